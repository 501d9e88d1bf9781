// Stacked areas of live bytes by role over the ops, with bands for micro-batches, stages and layers above.

function drawChart(plan, onSelect) {
  const svg = d3.select("#chart");
  const node = svg.node();
  const kBand = 18;
  const rows = [plan.groups.filter((g) => g.kind === "micro_batch" && !g.name.endsWith(" of 1")), stageRuns(plan), plan.groups.filter((g) => g.kind === "layer"),
    copies("page_in", "fetched"), copies("page_out", "sent"), waits()]
    .filter((row) => row.length > 0);
  let width = 0, height = 0, margin, base, transform = d3.zoomIdentity, selected = plan.peak, held = false;

  // Copies between homes, where they go on beside the ops.
  function copies(kind, label) {
    return plan.lanes.op.map((op, i) => ({name: plan.opName(op), label, kind: "copy", first: plan.lanes.from[i], last: plan.lanes.to[i] - 1}))
      .filter((copy) => copy.name.startsWith(kind));
  }

  // Ops that wait for one.
  function waits() {
    return plan.lanes.waiting.map((op) => ({name: "", label: "waits", kind: "wait", first: op, last: op}));
  }

  // Neighbouring ops of one stage.
  function stageRuns() {
    const runs = [];
    for (let i = 0; i < plan.count; ++i) {
      const stage = plan.groups[plan.steps.group[i]].stage, previous = runs[runs.length - 1];
      if (previous && previous.name === stage) previous.last = i;
      else runs.push({name: stage, first: i, last: i});
    }
    return runs;
  }

  // The budget is drawn where it does not flatten the areas; else a line of text says where it is.
  const tallest = Math.max(plan.peak_bytes, plan.total[plan.peak]);
  const showsBudget = plan.budget_bytes <= 1.7 * tallest;
  const top = showsBudget ? Math.max(tallest, plan.budget_bytes) * 1.06 : tallest * 1.1;

  const zoom = d3.zoom().scaleExtent([1, Math.max(2, plan.count / 8)])
    .filter(() => (d3.event.type === "wheel" ? d3.event.ctrlKey || d3.event.metaKey : d3.event.touches ? d3.event.touches.length > 1 : !d3.event.button))
    .on("zoom", () => { transform = d3.event.transform; draw(); });
  svg.call(zoom).on("dblclick.zoom", null);

  const x = () => transform.rescaleX(base);

  // Steps worth a vertex between two ops: of those that share a pixel, the one with the most bytes, so that no peak is lost.
  function samples(from, to) {
    const first = Math.max(0, Math.floor(from)), last = Math.min(plan.count - 1, Math.ceil(to));
    const pixels = Math.max(1, width - margin.left - margin.right);
    const each = Math.max(1, Math.floor((last - first + 1) / pixels));
    const chosen = [];
    for (let i = first; i <= last; i += each) {
      let most = i;
      for (let j = i; j < i + each && j <= last; ++j) if (plan.total[j] > plan.total[most]) most = j;
      chosen.push([i, most]);
    }
    chosen.push([last + 1, last]);
    return chosen;
  }

  function draw() {
    const scale = x(), y = d3.scaleLinear([0, top], [height - margin.bottom, margin.top]);
    const [from, to] = scale.domain();
    const steps = samples(from, to);
    svg.selectAll("*").remove();
    svg.attr("viewBox", `0 0 ${width} ${height}`);
    svg.append("clipPath").attr("id", "inside").append("rect").attr("x", margin.left).attr("y", 0)
      .attr("width", width - margin.left - margin.right).attr("height", height);
    drawAxes(scale, y);
    const inside = svg.append("g").attr("clip-path", "url(#inside)");
    const below = new Float64Array(steps.length);
    plan.drawOrder.forEach((role) => {
      const points = steps.map(([at, step], i) => {
        const low = below[i];
        below[i] += plan.live[role][step];
        return [scale(at), y(low), y(below[i])];
      });
      if (points.every((p) => p[1] === p[2])) return;
      inside.append("path").attr("class", "area").attr("data-role", plan.roles[role]).style("fill", colourOf(plan, role))
        .attr("d", d3.area().curve(d3.curveStepAfter).x((p) => p[0]).y0((p) => p[1]).y1((p) => p[2])(points));
    });
    drawBands(inside, scale);
    drawLines(inside, scale, y);
  }

  function drawAxes(scale, y) {
    const right = width - margin.right;
    svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
      .call(d3.axisLeft(y).tickValues(byteTicks(top)).tickFormat(formatBytes).tickSize(margin.left - right).tickPadding(6));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`)
      .call(d3.axisBottom(scale).ticks(width / 90).tickFormat((v) => (Number.isInteger(v) ? "op " + v : "")));
  }

  function drawBands(inside, scale) {
    const boxes = inside.append("g"), names = inside.append("g");  // no name lies under the next box
    rows.forEach((row, r) => {
      const layers = row[0].kind === "layer", lane = row[0].label;
      if (lane) svg.append("text").attr("class", "lane-name").attr("x", margin.left - 6).attr("y", r * kBand + 13).text(lane);
      for (const band of row) {
        const left = scale(band.first), wide = Math.max(scale(band.last + 1) - left, lane ? 1 : 0);
        if (left > width || left + wide < margin.left || (wide < 2 && !lane)) continue;
        boxes.append("rect").attr("class", "band " + band.kind).attr("x", left).attr("y", r * kBand + 1).attr("width", wide).attr("height", kBand - 2);
        if (band.kind === "wait") continue;
        const shownLeft = Math.max(left, margin.left), shown = Math.min(left + wide, width - margin.right) - shownLeft;
        const name = layers ? layerName(band, wide) : [band.name, band.name.replace(/^micro-batch | of .*/g, "")].find((n) => n.length * 6.4 + 4 < shown);
        if (name) names.append("text").attr("class", "band-name").attr("x", shownLeft + shown / 2).attr("y", r * kBand + 13).text(name);
      }
    });
  }

  // "layer 12", "12", or nothing where every second, fifth … number is all that there is room for.
  function layerName(band, wide) {
    if (band.name.length * 6.4 + 4 < wide) return band.name;
    const number = band.name.replace("layer ", "");
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n * wide > 22) || 1000;
    return Number(number) % every === 0 ? number : "";
  }

  function drawLines(inside, scale, y) {
    const right = width - margin.right;
    const across = (name, bytes, label) => {
      const g = svg.append("g").attr("class", name);
      g.append("line").attr("x1", margin.left).attr("x2", right).attr("y1", y(bytes)).attr("y2", y(bytes));
      if (label) g.append("text").attr("x", right - 4).attr("y", y(bytes) - 4).attr("text-anchor", "end").text(label);
    };
    across("held", plan.peak_bytes, "");
    if (showsBudget) across("budget", plan.budget_bytes, "budget " + formatBytes(plan.budget_bytes));
    const at = scale(plan.peak + 0.5), peak = inside.append("g").attr("class", "peak");
    peak.append("circle").attr("cx", at).attr("cy", y(plan.total[plan.peak])).attr("r", 4);
    const before = at > (margin.left + right) / 2;
    peak.append("text").attr("x", at + (before ? -8 : 8)).attr("y", y(plan.total[plan.peak]) - 7)
      .attr("text-anchor", before ? "end" : "start").text("peak " + formatBytes(plan.peak_bytes));
    const cursor = scale(selected + 0.5);
    inside.append("line").attr("class", "cursor").attr("x1", cursor).attr("x2", cursor).attr("y1", rows.length * kBand)
      .attr("y2", height - margin.bottom);
  }

  // Ticks at multiples of a power of two, which are round in binary units.
  function byteTicks(most) {
    const step = 2 ** Math.ceil(Math.log2(most / 7));
    return d3.range(0, most, step);
  }

  function resize() {
    const box = node.getBoundingClientRect();
    width = box.width;
    height = box.height;
    margin = {top: rows.length * kBand + 6, right: 18, bottom: 24, left: width < 500 ? 62 : 72};
    base = d3.scaleLinear([0, plan.count], [margin.left, width - margin.right]);
    zoom.translateExtent([[margin.left, 0], [width - margin.right, height]]).extent([[margin.left, 0], [width - margin.right, height]]);
    draw();
  }

  // `hold`: stays until another is chosen, and goes into the address.
  function select(step, hold) {
    selected = Math.max(0, Math.min(plan.count - 1, step));
    if (hold !== undefined) held = hold;
    const [from, to] = x().domain();
    if (selected < from || selected >= to) svg.call(zoom.translateTo, base(selected + 0.5), 0);
    draw();
    onSelect(selected, held);
  }

  const stepAt = (event) => Math.floor(x().invert(event.clientX - node.getBoundingClientRect().left));
  node.addEventListener("pointermove", (event) => { if (!held && event.buttons === 0) select(stepAt(event)); });
  node.addEventListener("click", (event) => { select(stepAt(event), true); });
  node.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 10 : 1;
    const goals = {ArrowLeft: selected - far, ArrowRight: selected + far, Home: 0, End: plan.count - 1, p: plan.peak, P: plan.peak};
    if (event.key in goals) select(goals[event.key], true);
    else if (event.key === "+" || event.key === "-") svg.call(zoom.scaleBy, event.key === "+" ? 1.5 : 1 / 1.5);
    else if (event.key === "Escape") { held = false; svg.call(zoom.transform, d3.zoomIdentity); }
    else return;
    event.preventDefault();
  });
  new ResizeObserver(resize).observe(node);
  resize();
  return {
    select,
    zoomBy: (factor) => svg.call(zoom.scaleBy, factor),
    reset: () => svg.call(zoom.transform, d3.zoomIdentity),
  };
}
