# What the pages that plan and explain write are made of.
snug_embed(report kPageText web/plan/page.html)
snug_embed(report kPageStyle web/common/page.css web/plan/page.css)
snug_embed(report kPageScript web/common/elements.js web/plan/data.js web/plan/chart.js web/plan/arena.js web/plan/page.js)
snug_embed(report kD3Script ${D3_SCRIPT})
snug_embed(report kExplainText web/explain/page.html)
snug_embed(report kExplainStyle web/common/page.css web/explain/page.css)
snug_embed(report kExplainScript web/common/elements.js web/explain/data.js web/explain/timeline.js web/explain/segments.js web/explain/page.js)
