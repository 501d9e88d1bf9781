// Puts the page together: summary, the two views with one cursor between them, tables. The op in view stands in the address
// (#op=17), so that a link shows what its sender saw.

function main() {
  const plan = readPlan(document.getElementById("plan-data").textContent);
  // What stays lies at the bottom of the areas, what comes and goes on top.
  plan.drawOrder = ["runtime", "weights", "adapters", "optimizer", "gradients", "batch", "comm", "activations", "workspace", "temporaries"]
    .map((name) => plan.roles.indexOf(name));
  showSummary(plan);
  showTables(plan);

  let chart = null, arena = null;
  chart = drawChart(plan, (step, held) => {
    showAlive(plan, step);
    if (arena) arena.select(step);
    if (held) history.replaceState(null, "", "#op=" + step);
  });
  arena = drawArena(plan, (step) => chart.select(step, true));
  addButtons("chart", chart);
  addButtons("arena", arena);
  const follow = () => {
    const wished = /^#op=(\d+|peak)$/.exec(location.hash);
    const step = wished && wished[1] !== "peak" ? Number(wished[1]) : plan.peak;
    chart.select(step, wished ? true : undefined);
  };
  window.addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "true";
}

function showSummary(plan) {
  document.title = `snug plan: ${plan.model}`;
  const verdict = document.getElementById("verdict");
  verdict.textContent = plan.verdict;
  verdict.className = plan.fits ? "fits" : "over";
  verdict.dataset.peakBytes = plan.peak_bytes;
  document.getElementById("change").textContent = plan.change;
  document.getElementById("model").textContent = plan.model;
  document.getElementById("shape").textContent = plan.shape;
  if (plan.hidden) document.getElementById("hidden-note").textContent = plan.hidden;

  const bar = document.getElementById("budget-bar"), whole = Math.max(plan.peak_bytes, plan.budget_bytes);
  const legend = document.getElementById("legend");
  bar.setAttribute("aria-label", plan.verdict);
  plan.breakdown.forEach(([name, bytes]) => {
    if (bytes === 0) return;
    const part = element("span");
    part.style.width = 100 * bytes / whole + "%";
    part.style.background = `var(--${name})`;
    part.title = `${name} ${formatBytes(bytes)}`;
    bar.append(part);
    const item = element("li");
    item.append(swatch(name), `${name} ${formatBytes(bytes)}`);
    legend.append(item);
  });
  const share = 100 * plan.budget_bytes / whole, mark = element("i"), label = element("b", "", "budget " + formatBytes(plan.budget_bytes));
  mark.style.left = `calc(${share}% - 2px)`;
  label.style.right = 100 - share + "%";
  bar.append(mark, label);
}

function showAlive(plan, step) {
  const kMostLines = 60;
  const box = document.getElementById("alive"), list = plan.alive(step), lines = element("ol");
  const heading = element("h3", "", `op ${step}: ${plan.opName(step)}${step === plan.peak ? " (the peak)" : ""}`);
  for (const entry of list.slice(0, kMostLines)) {
    const line = element("li");
    const name = entry.name.replace(/[._]/g, "$&\u200b");  // long names break at their parts
    line.append(swatch(plan.roles[entry.role]), element("span", "name", entry.count > 1 ? `${name} × ${entry.count}` : name),
      element("span", "bytes", formatBytes(entry.bytes)));
    line.title = `${plan.roles[entry.role]}, ${entry.bytes} bytes`;
    lines.append(line);
  }
  const total = element("p", "total", `${formatBytes(plan.total[step])} alive`);
  total.dataset.bytes = plan.total[step];
  box.replaceChildren(heading, element("p", "path", plan.path(step)), total, lines);
  if (plan.waits.has(step)) total.before(element("p", "waits", `waits ${formatSeconds(plan.waits.get(step))} for a copy`));
  if (plan.disk_bytes > 0) {
    const elsewhere = element("p", "path elsewhere", `${formatBytes(plan.awayAt[step])} ${plan.away.where}`);
    elsewhere.dataset.bytes = plan.awayAt[step];
    total.after(elsewhere);
  }
  box.dataset.step = step;
  if (list.length > kMostLines) {
    const rest = list.slice(kMostLines).reduce((sum, entry) => sum + entry.bytes, 0);
    box.append(element("p", "path", `and ${list.length - kMostLines} more with ${formatBytes(rest)}`));
  }
}

function showTables(plan) {
  const tables = document.getElementById("tables");
  const add = (title, rows, className) => {
    if (rows.length === 0) return;
    const part = element("div", className), table = element("table");
    for (const [name, bytes, role] of rows) {
      const row = element("tr"), cell = element("td");
      if (role) cell.append(swatch(role));
      cell.append(name);
      row.append(cell, element("td", "bytes", formatBytes(bytes)));
      row.title = bytes + " bytes";
      table.append(row);
    }
    part.append(element("h3", "", title), table);
    tables.append(part);
  };
  add(`At the peak: ${formatBytes(plan.peak_bytes)} = ${plan.peak_bytes} bytes`,
    plan.breakdown.filter((b) => b[1] > 0).map(([name, bytes]) => [name, bytes, name]));
  add("Peak of each stage", plan.stages);
  add("Largest at the peak", plan.largest);
  add(plan.away.where[0].toUpperCase() + plan.away.where.slice(1), plan.disk_bytes > 0 ? plan.away.parts : []);
  const keys = (title, map, open) => {
    if (map.length === 0) return;
    const part = element("div", "wide"), details = element("details"), list = element("div", "keys");
    details.open = open;
    for (const [name, value] of map) {
      const line = element("div");
      line.append(element("span", "", name), element("span", "", value === "" ? "–" : value));
      list.append(line);
    }
    details.append(element("summary", "", title), list);
    part.append(details);
    tables.append(part);
  };
  keys("Asked for", plan.given, true);
  keys("Precision", plan.precision, true);
  keys("Assumed: every key left open", plan.assumed, false);
  if (plan.notes.length > 0) {
    const part = element("div", "wide");
    part.append(element("h3", "", "Notes"), ...plan.notes.map((note) => element("p", "", note)));
    tables.append(part);
  }
}

main();
