// Puts the page together: the answer, the timeline, the segments and what held the memory at the moment in view, which stands in
// the address (#event=17), so that a link shows what its sender saw. "#measure" times frames instead (bench/explain.sh).

// Draws at the next frame, whatever asks for it, once.
const asked = new Set();
function askFrame(draw) {
  if (asked.size === 0) {
    requestAnimationFrame(() => {
      const all = [...asked];
      asked.clear();
      all.forEach((one) => one());
    });
  }
  asked.add(draw);
}

function main() {
  const trace = readTrace();
  const state = {position: trace.explanation.event, held: false, mode: "purpose", order: "address"};
  showAnswer(trace);
  let segments = null, timeline = null;
  const side = momentList(trace, state);
  const show = () => {
    const moment = momentAt(trace, state.position);
    timeline.moveCursor();
    side(moment);
    segments.show(moment);
    tellSegments(moment);
  };
  // `hold`: stays until another is chosen, and goes into the address.
  const choose = (position, hold) => {
    state.position = Math.max(0, Math.min(trace.events, position));
    state.held = hold;
    if (hold) { history.replaceState(null, "", "#event=" + state.position); timeline.follow(); }
    askFrame(show);
  };
  timeline = drawTimeline(trace, state, choose);
  segments = drawSegments(trace, state);
  addButtons("timeline", timeline);
  addChoice("modes", state, "mode", [["purpose", "by purpose"], ["line", "by line"]], () => {
    showLegend(trace, state);
    timeline.draw();
    show();
  });
  addChoice("orders", state, "order", [["address", "by address"], ["size", "by size"]], show);
  showLegend(trace, state);
  const follow = () => {
    const wished = /^#event=(\d+)$/.exec(location.hash);
    if (wished) { state.position = Math.min(trace.events, Number(wished[1])); state.held = true; timeline.follow(); }
    show();
  };
  window.addEventListener("hashchange", follow);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { timeline.draw(); show(); });
  follow();
  document.documentElement.dataset.ready = "true";
  if (location.hash === "#measure") measure(trace, state, timeline, show);
}

function showAnswer(trace) {
  const {explanation} = trace, ranOut = explanation.moment === "out_of_memory";
  document.title = "snug explain: " + trace.file;
  const verdict = document.getElementById("verdict");
  verdict.textContent = explanation.answer;
  verdict.className = ranOut ? "over" : "";
  const cause = [explanation.cause, explanation.what].filter((word) => word).join(", ").replaceAll("_", " ");
  if (ranOut) document.getElementById("arithmetic").append(element("li", "", "cause: " + cause));
  document.getElementById("arithmetic").append(...explanation.arithmetic.map((line) => element("li", "", line)));
  for (const [label, text] of trace.facts) document.getElementById("facts").append(element("dt", "", label), element("dd", "", text));
  if (ranOut && explanation.free_bytes !== null) {
    const bytes = explanation.reserved_bytes + explanation.free_bytes;
    document.getElementById("capacity-note").textContent = ` When memory ran out, the device had ${sizeText(bytes)} for PyTorch in all (dashed); what the step would have needed is dotted.`;
  }
  showTables(trace);
}

function showTables(trace) {
  const tables = document.getElementById("tables"), {explanation} = trace;
  const add = (title, rows) => {
    if (rows.length === 0) return;
    const part = element("div"), table = element("table");
    for (const [text, figure] of rows) {
      const row = element("tr");
      row.append(element("td", "", text), element("td", "bytes", figure));
      table.append(row);
    }
    part.append(element("h3", "", title), table);
    tables.append(part);
  };
  const placeOf = (source) => (source ? `${source.file}:${source.line} in ${source.function}` : "no line of Python is known");
  add("What to change", explanation.advice.map((one, i) =>
    [`${i + 1}. ${one.change}${one.effect ? ": " + one.effect : ""}`, one.most_bytes === null ? "" : "up to " + sizeText(one.most_bytes)]));
  add(`What grows from step to step (${explanation.growth.steps} steps seen)`, explanation.growth.list.slice(0, 12).map((one) =>
    [`${one.holding}: ${placeOf(one.source)}`, sizeText(one.bytes_a_step) + " a step"]));
  add("To note", explanation.remarks.map((remark) => [remark, ""]));
  const left = trace.phases.length === 20000 ? ["Only the first 20,000 phases are drawn"] : [];
  add("Drawn", left.map((text) => [text, ""]));
}

// Buttons of which one is pressed.
function addChoice(id, state, key, choices, changed) {
  const box = document.getElementById(id), buttons = choices.map(([value, text]) => {
    const button = element("button", "", text);
    button.type = "button";
    button.dataset.value = value;
    button.addEventListener("click", () => {
      state[key] = value;
      press();
      changed();
    });
    return button;
  });
  const press = () => buttons.forEach((button) => button.setAttribute("aria-pressed", button.dataset.value === state[key]));
  press();
  box.append(...buttons);
}

// A row of "name … bytes" that is written again and again; nodes are kept, since a moment changes with every movement.
function rowOf(list) {
  const row = element("li"), mark = element("span", "swatch"), name = element("span", "name"), bytes = element("span", "bytes");
  row.append(mark, name, bytes);
  list.append(row);
  return (shown, colour, text, sum, title) => {
    row.hidden = !shown;
    if (!shown) return;
    mark.style.background = `var(--${colour})`;
    if (name.textContent !== text) name.textContent = text;
    const figure = sizeText(sum);
    if (bytes.textContent !== figure) bytes.textContent = figure;
    row.title = title;
    row.dataset.name = text;
    row.dataset.bytes = sum;
  };
}

// The list at the side: returns what writes a moment into it.
function momentList(trace, state) {
  const kMostLines = 40, box = document.getElementById("moment");
  const heading = element("h2"), happened = element("p", "path"), sums = element("dl"), purposes = element("ol"), lines = element("ol");
  const rest = element("p", "path"), figures = ["in blocks", "reserved", "free inside", "largest free piece"].map((label) => {
    const value = element("dd");
    sums.append(element("dt", "", label), value);
    return value;
  });
  purposes.id = "purposes";
  lines.id = "lines";
  box.append(heading, happened, sums, element("h3", "", "By purpose"), purposes, element("h3", "", "By line"), lines, rest);
  const purposeRows = trace.holdings.map(() => rowOf(purposes)), lineRows = Array.from({length: kMostLines}, () => rowOf(lines));
  return (moment) => {
    const {position} = moment, oom = trace.oomAt(position);
    heading.textContent = trace.events === 0 ? "The file has no trace"
      : `After ${countText(position)} of ${countText(trace.events)} events` + (position === trace.explanation.event && !oom ? " (the peak)" : "");
    happened.textContent = (position === 0 ? "" : `The last: ${trace.eventText(position)}. `) +
      (oom ? `Then memory ran out: ${sizeText(oom.asked)} were asked for, the device had ${sizeText(oom.free)} free.` : "");
    const values = [moment.active, moment.reserved, moment.reserved - moment.active, moment.gap.bytes];
    figures.forEach((figure, i) => {
      figure.textContent = sizeText(values[i]);
      figure.title = values[i] + " bytes";
    });
    Object.assign(box.dataset, {event: position, activeBytes: moment.active, allocatedBytes: moment.allocated, reservedBytes: moment.reserved,
      largestFreeBytes: moment.gap.bytes, blocks: moment.count});
    const largest = [...moment.byHolding.keys()].sort((a, b) => moment.byHolding[b] - moment.byHolding[a]);
    purposeRows.forEach((row, i) => {
      const sum = moment.byHolding[largest[i]];
      row(sum > 0, kHoldingColours[largest[i]], trace.holdings[largest[i]], sum, sum + " bytes");
    });
    const grouping = trace.grouping(state.mode);
    lineRows.forEach((row, i) => {
      const holder = moment.lines[i];
      if (holder === undefined) { row(false); return; }
      const sum = moment.byHolder[holder], blocks = moment.blocksOf[holder];
      row(true, grouping.colours[grouping.groupOfHolder[holder]], trace.holders[holder][1], sum,
        `${trace.holdings[trace.holders[holder][0]]}, ${sum} bytes in ${blocks === 1 ? "1 block" : blocks + " blocks"}`);
    });
    const others = moment.lines.slice(kMostLines).reduce((sum, holder) => sum + moment.byHolder[holder], 0);
    rest.textContent = others > 0 ? `and ${countText(moment.lines.length - kMostLines)} more with ${sizeText(others)}` : "";
    rest.dataset.bytes = others;
  };
}

function tellSegments(moment) {
  const {segments, gap, reserved, active} = moment;
  document.getElementById("segments-text").textContent = segments.length === 0 ? "Nothing is reserved."
    : `${sizeText(reserved)} in ${segments.length === 1 ? "one segment" : countText(segments.length) + " segments"}, to scale, from left to right and on ` +
      `to the next row. ${sizeText(reserved - active)} of it are free` +
      (gap.bytes > 0 ? `; the largest free piece is ${sizeText(gap.bytes)} (outlined).` : ".");
}

function showLegend(trace, state) {
  const grouping = trace.grouping(state.mode), ever = new Set(trace.stacks.map((stack) => grouping.groupOfHolder[stack[0]]));
  const items = grouping.names.map((name, group) => {
    const item = element("li");
    item.append(swatch(grouping.colours[group]), name);
    return ever.has(group) ? item : null;
  });
  document.getElementById("legend").replaceChildren(...items.filter(Boolean));
}

// Times the load since the page was asked for, 200 frames of zooming and panning, and 200 of other moments: milliseconds of
// script, layout included, and from frame to frame.
async function measure(trace, state, timeline, show) {
  const load = performance.now(), positions = trace.events + 1;
  const frame = () => new Promise((done) => requestAnimationFrame(() => done(performance.now())));
  const times = async (change) => {
    const script = [], between = [];
    let last = await frame();
    for (let i = 0; i < 200; ++i) {
      const begin = performance.now();
      change(i);
      void document.body.offsetHeight;
      script.push(performance.now() - begin);
      const now = await frame();
      between.push(now - last);
      last = now;
    }
    const told = (all) => ({median: all.sort((a, b) => a - b)[100], worst: all[199]});
    return {script: told(script), between: told(between)};
  };
  for (let i = 0; i < 30; ++i) await frame();
  const zoom = await times((i) => {
    const span = positions / 1.08 ** (i % 100);
    timeline.look((i % 100) / 100 * (positions - span), span);
    timeline.draw();
  });
  timeline.look(0, positions);
  const hover = await times((i) => {
    state.position = Math.floor((i * 0.61803398875 % 1) * positions);
    show();
  });
  const told = JSON.stringify({events: trace.events, blocks: trace.blocks.count, load, zoom, hover});
  document.documentElement.dataset.measure = told;
  console.log("measured " + told);
}

main();
