#pragma once
// A memory snapshot as one web page that needs no network: memory over the events, the segments at any of them, what held
// the memory there. The page itself is web/explain/; here its data are written, block by block as the replay goes, so that a
// long trace needs no more memory than a short one.

#include "explain/snapshot_explanation.h"
#include "report/page.h"

namespace snug {

// `file`: the snapshot's name, for the title.
void write_explain_html(const Snapshot& snapshot, const SnapshotExplanation& explanation, const std::string& file,
                        const PageSink& sink);

}  // namespace snug
