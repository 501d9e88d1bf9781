// The pictures of an answer: a bar of memory for PyTorch and one for snug, the peak of each phase, the levers. Figures are those of
// `--json`; sentences are those of the text.
/* global element, formatBytes */

export const kRoles = ["weights", "adapters", "gradients", "optimizer", "activations", "temporaries", "workspace", "batch", "comm", "runtime"];
export const letterOf = {weights: "W", adapters: "A", gradients: "G", optimizer: "O", activations: "S", temporaries: "T", workspace: "K", batch: "B",
  comm: "C", runtime: "R", held: "H"};
const wordsOf = {activations: "saved activations", comm: "communication", held: "held by PyTorch's allocator and the driver"};

// {name, parts: [[role, bytes]], bytes, limit, fits}: what each engine takes at its peak.
export function memories(json) {
  const found = [], limit = json.budget_bytes, pytorch = json.pytorch;
  if (pytorch?.allocated_bytes !== undefined) {
    const parts = Object.entries(pytorch.breakdown), high = pytorch.device_bytes.high;
    parts.push(["held", Math.max(0, high - parts.reduce((sum, part) => sum + part[1], 0))]);
    found.push({name: "PyTorch", parts, bytes: high, limit, fits: pytorch.fits, phases: Object.entries(pytorch.phases)
      .map(([phase, bytes]) => [phase, bytes.allocated_bytes])});
  }
  found.push({name: "snug", parts: Object.entries(json.breakdown), bytes: json.peak_bytes, limit, fits: json.peak_bytes <= limit,
    phases: Object.entries(json.stages).filter((stage) => stage[1] !== null)});
  return found;
}

export function showBars(json) {
  const all = memories(json), whole = Math.max(...all.map((memory) => Math.max(memory.bytes, memory.limit)));
  const used = new Map();
  const bars = all.map((memory) => {
    const box = element("div", "memory"), name = element("div", "name"), track = element("div", "track");
    name.append(element("span", "", `${memory.name}: ${memory.fits ? "✓ fits" : "✕ does not fit"}`),
      element("span", "", `${formatBytes(memory.bytes)} of ${formatBytes(memory.limit)}`));
    track.setAttribute("role", "img");
    track.setAttribute("aria-label", `${memory.name}, ${formatBytes(memory.bytes)} of ${formatBytes(memory.limit)}: ` +
      memory.parts.filter((part) => part[1] > 0).map(([role, bytes]) => `${wordsOf[role] ?? role} ${formatBytes(bytes)}`).join(", "));
    for (const [role, bytes] of memory.parts) {
      if (bytes <= 0) continue;
      const share = 100 * bytes / whole, part = element("span", role === "held" ? "part held" : "part", share > 2.5 ? letterOf[role] : "");
      part.style.width = share + "%";
      if (role !== "held") part.style.background = `var(--${role})`;
      part.title = `${wordsOf[role] ?? role} ${formatBytes(bytes)}`;
      track.append(part);
      used.set(role, {...used.get(role), [memory.name]: bytes});
    }
    const limit = element("i", "limit");
    limit.style.left = `calc(${100 * memory.limit / whole}% - 3px)`;
    track.append(limit);
    box.dataset.bytes = memory.bytes;
    box.dataset.engine = memory.name;
    box.append(name, track);
    return box;
  });
  document.getElementById("bars").replaceChildren(...bars);
  const legend = [...kRoles, "held"].filter((role) => used.has(role)).map((role) => {
    const item = element("li"), letter = element("span", role === "held" ? "letter held" : "letter", letterOf[role]);
    if (role !== "held") letter.style.background = `var(--${role})`;
    item.append(letter, `${wordsOf[role] ?? role} `,
      Object.entries(used.get(role)).map(([engine, bytes]) => all.length > 1 ? `${engine} ${formatBytes(bytes)}` : formatBytes(bytes)).join(", "));
    return item;
  });
  document.getElementById("legend").replaceChildren(...legend);
}

// The first lines of the answer; the engines' verdicts among them are told by colour too.
export function showVerdicts(lines) {
  const verdicts = lines.map((line) => {
    const over = line.includes("does not fit"), fits = !over && /(^|: )fits: /.test(line);
    return element("p", over ? "verdict over" : fits ? "verdict fits" : "", (over ? "✕ " : fits ? "✓ " : "") + line);
  });
  document.getElementById("verdicts").replaceChildren(...verdicts);
}

function table(head, rows) {
  const made = element("table"), top = element("tr"), body = element("tbody"), above = element("thead");
  for (const [name, className] of head) {
    const cell = element("th", className, name);
    cell.scope = "col";
    top.append(cell);
  }
  above.append(top);
  body.append(...rows);
  made.append(above, body);
  return made;
}

export function showPhases(json) {
  const all = memories(json), whole = Math.max(...all.flatMap((memory) => [memory.limit, ...memory.phases.map((phase) => phase[1])]));
  const names = [...new Set(all.flatMap((memory) => memory.phases.map((phase) => phase[0])))];
  const rows = names.flatMap((name) => all.filter((memory) => memory.phases.some((phase) => phase[0] === name)).map((memory, i) => {
    const bytes = memory.phases.find((phase) => phase[0] === name)[1], row = element("tr"), bar = element("td"), track = element("span", "track");
    const part = element("span", bytes > memory.limit ? "past" : "");
    part.style.width = 100 * bytes / whole + "%";
    track.append(part);
    bar.append(track);
    row.append(element("td", "", i === 0 ? name : ""), element("td", "", memory.name), bar, element("td", "bytes", formatBytes(bytes)));
    row.title = `${bytes} bytes`;
    return row;
  }));
  document.getElementById("phases").replaceChildren(table([["Phase"], ["Engine"], [""], ["Peak", "bytes"]], rows));
}

// One row a change, with what it saves each engine; `take` is called with the settings of the row whose button is pressed.
export function showLevers(json, take) {
  const rows = new Map();
  const gather = (levers, engine) => {
    for (const lever of levers ?? []) {
      const key = JSON.stringify(lever.settings), row = rows.get(key) ?? {...lever, saved: {}, timed: engine};
      row.saved[engine] = lever.saved_bytes;
      rows.set(key, row);
    }
  };
  gather(json.pytorch?.levers, "PyTorch");
  gather(json.levers, "snug");
  const engines = json.pytorch?.levers ? ["PyTorch", "snug"] : ["snug"];
  const savesOf = (engine) => engines.length > 1 ? `${engine} saves` : "Saves";
  const made = [...rows.values()].map((row) => {
    const line = element("tr"), change = element("td", "change"), button = element("button", "", "Take"), last = element("td", "bytes");
    const words = Object.entries(row.settings).map(([key, value]) => `${key}: ${value}`).join(", ");
    change.append(element("div", "", words), element("div", "effect", row.note + (row.effect === "none" ? "" : `; ${row.effect} effect on the result`)));
    button.type = "button";
    button.setAttribute("aria-label", `Take ${words}`);
    button.addEventListener("click", () => take(row.settings));
    last.append(button);
    const figure = (name, text) => {
      const cell = element("td", "bytes", text);
      cell.dataset.name = name;  // stands in for the heading where the table is narrow
      return cell;
    };
    line.append(change, ...engines.map((engine) => figure(savesOf(engine), row.saved[engine] === undefined ? "–" : formatBytes(row.saved[engine]))),
      figure(`Time in ${engines[0]}`, row.slowdown ? `× ${row.slowdown.toFixed(2)}${row.timed === engines[0] ? "" : ` in ${row.timed}`}` : "–"), last);
    return line;
  });
  const head = [["Change"], ...engines.map((engine) => [savesOf(engine), "bytes"]), [`Time in ${engines[0]}`, "bytes"], [""]];
  document.getElementById("levers").replaceChildren(made.length > 0 ? table(head, made) : element("p", "help", "No single change saves memory here."));
}
