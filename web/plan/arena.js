// The arena as a map: every storage a rectangle from its birth to its death, at its offset.

function drawArena(plan, onSelect) {
  const canvas = document.getElementById("arena"), text = document.getElementById("arena-text");
  const context = canvas.getContext("2d");
  const lives = plan.lives;
  let transform = d3.zoomIdentity, selected = plan.peak, pointed = null;
  const kLeft = 0;

  const rectangles = plan.resident.filter((s) => s.offset >= 0)
    .map((s) => ({name: s.name, role: s.role, bytes: s.bytes, offset: s.offset, birth: 0, death: plan.count - 1}));
  for (let i = 0; i < lives.storage.length; ++i) {
    const s = plan.storages[lives.storage[i]];
    if (s.away) continue;
    const name = s.layered ? `${s.name.replace("{}", lives.instance[i])} (${lives.instance[i]})` : s.name;
    rectangles.push({name, role: s.role, bytes: s.bytes, offset: lives.offset[i], birth: lives.birth[i], death: lives.death[i]});
  }

  const size = () => [canvas.clientWidth, canvas.clientHeight];
  const xOf = (step) => transform.applyX(kLeft + step / plan.count * (size()[0] - kLeft));

  // What lives throughout says little, so it gets at most a sixth of the height; the rest is to scale.
  const low = Math.min(1 / 6, plan.run_bytes / plan.arena_bytes), dynamic = Math.max(1, plan.arena_bytes - plan.run_bytes);
  const share = (offset) => (offset <= plan.run_bytes ? low * offset / Math.max(1, plan.run_bytes)
    : low + (1 - low) * (offset - plan.run_bytes) / dynamic);
  const offsetOf = (part) => (part <= low ? part / Math.max(low, 1e-9) * plan.run_bytes : plan.run_bytes + (part - low) / (1 - low) * dynamic);
  const yOf = (offset) => transform.applyY((1 - share(offset)) * size()[1]);

  function draw() {
    const [width, height] = size(), ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colours = plan.roles.map((role) => style.getPropertyValue("--" + role).trim());
    context.fillStyle = style.getPropertyValue("--ground");
    context.fillRect(0, 0, width, height);
    context.strokeStyle = style.getPropertyValue("--ground");
    context.lineWidth = 0.5;
    for (const r of rectangles) {
      const left = xOf(r.birth), wide = xOf(r.death + 1) - left, top = yOf(r.offset + r.bytes), tall = yOf(r.offset) - top;
      if (left > width || left + wide < 0 || top > height || top + tall < 0) continue;
      context.fillStyle = colours[r.role];
      context.fillRect(left, top, Math.max(wide, 0.6), Math.max(tall, 0.4));
      if (wide > 3 && tall > 3) context.strokeRect(left, top, wide, tall);
      if (r === pointed) outline(left, top, wide, tall, style);
      if (wide > 90 && tall > 14) label(r, Math.max(0, left), top, Math.min(width, left + wide), tall);
    }
    context.strokeStyle = style.getPropertyValue("--ink");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(xOf(selected + 0.5), 0);
    context.lineTo(xOf(selected + 0.5), height);
    context.stroke();
  }

  function outline(left, top, wide, tall, style) {
    context.save();
    context.strokeStyle = style.getPropertyValue("--ink");
    context.lineWidth = 2;
    context.strokeRect(left, top, wide, tall);
    context.restore();
  }

  function label(r, left, top, right, tall) {
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, tall);
    context.clip();
    context.fillStyle = "#10151c";
    context.font = "11px system-ui, sans-serif";
    context.fillText(`${r.name}  ${formatBytes(r.bytes)}`, left + 4, top + Math.min(tall / 2 + 4, 14));
    context.restore();
  }

  function at(event) {
    const box = canvas.getBoundingClientRect(), [width, height] = size();
    const px = transform.invertX(event.clientX - box.left), py = transform.invertY(event.clientY - box.top);
    const step = Math.floor((px - kLeft) / (width - kLeft) * plan.count), offset = offsetOf(1 - py / height);
    return [step, rectangles.find((r) => r.birth <= step && step <= r.death && r.offset <= offset && offset < r.offset + r.bytes)];
  }

  function tell() {
    text.textContent = pointed
      ? `${pointed.name}: ${formatBytes(pointed.bytes)} of ${plan.roles[pointed.role]} at offset ${pointed.offset}, ` +
        `op ${pointed.birth} (${plan.opName(pointed.birth)}) to op ${pointed.death} (${plan.opName(pointed.death)})`
      : `${formatBytes(plan.arena_bytes)} from bottom to top, ${formatBytes(plan.run_bytes)} of them (not to scale) for storages that live throughout. ` +
        "Point at a rectangle to see what it is; Ctrl and the wheel zoom, drag to pan.";
  }

  const zoom = d3.zoom().scaleExtent([1, 400])
    .filter(() => (d3.event.type === "wheel" ? d3.event.ctrlKey || d3.event.metaKey : d3.event.touches ? d3.event.touches.length > 1 : !d3.event.button))
    .on("zoom", () => { transform = d3.event.transform; draw(); });
  const view = d3.select(canvas).call(zoom).on("dblclick.zoom", null);
  canvas.addEventListener("pointermove", (event) => {
    const found = at(event)[1] || null;
    if (found === pointed) return;
    pointed = found;
    tell();
    draw();
  });
  canvas.addEventListener("click", (event) => onSelect(at(event)[0]));
  canvas.addEventListener("keydown", (event) => {
    const moves = {ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40]};
    if (event.key in moves) view.call(zoom.translateBy, moves[event.key][0] / transform.k, moves[event.key][1] / transform.k);
    else if (event.key === "+" || event.key === "-") view.call(zoom.scaleBy, event.key === "+" ? 1.5 : 1 / 1.5);
    else if (event.key === "Escape") view.call(zoom.transform, d3.zoomIdentity);
    else return;
    event.preventDefault();
  });
  const resize = () => { zoom.translateExtent([[0, 0], size()]).extent([[0, 0], size()]); draw(); };
  new ResizeObserver(resize).observe(canvas);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  tell();
  resize();
  return {
    select(step) { selected = step; draw(); },
    zoomBy: (factor) => view.call(zoom.scaleBy, factor),
    reset: () => view.call(zoom.transform, d3.zoomIdentity),
  };
}
