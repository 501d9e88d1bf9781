// The segments at one moment, to scale: what PyTorch reserved, laid out like the lines of a text, blocks in the colours of
// their groups, free memory between them.

function drawSegments(trace, state) {
  const canvas = document.getElementById("segments"), context = canvas.getContext("2d"), about = document.getElementById("about");
  const kRow = 17, kGap = 4;
  let width = 0, height = 0, ratio = 1, image = null, pixels = null, strip = new Uint32Array(0);
  let order = [], starts = new Float64Array(0), bytesAPixel = 1, moment = null, pointed = null;

  const rowCount = () => Math.max(1, Math.floor((image.height + Math.round(kGap * ratio)) / pitch()));
  const pitch = () => Math.round(kRow * ratio) + Math.round(kGap * ratio);

  // Where each segment begins on the line that the rows make.
  function layOut() {
    order = moment.segments.slice();
    if (state.order === "size") order.sort((a, b) => b.bytes - a.bytes);
    starts = new Float64Array(order.length + 1);
    order.forEach((segment, i) => { starts[i + 1] = starts[i] + segment.bytes; });
    bytesAPixel = Math.max(1, starts[order.length] / (rowCount() * image.width));
  }

  function fillStrip(style) {
    const grouping = trace.grouping(state.mode), colours = grouping.colours.map((name) => pixelOf(style, name));
    const free = pixelOf(style, "free"), edge = pixelOf(style, "ground"), cut = pixelOf(style, "ink"), {address, bytes} = trace.blocks;
    strip.fill(pixelOf(style, "ground"));
    for (let s = 0; s < order.length; ++s) {
      const segment = order[s], left = Math.floor(starts[s] / bytesAPixel), right = Math.ceil(starts[s + 1] / bytesAPixel);
      strip.fill(free, left, right);
      for (let i = segment.from; i < segment.to; ++i) {
        const block = moment.live[i], begin = starts[s] + address[block] - segment.address;
        const first = Math.floor(begin / bytesAPixel), end = Math.min(right, Math.round((begin + bytes[block]) / bytesAPixel));
        strip.fill(colours[grouping.groupOf(block)], first, Math.max(end, first + 1));
        if (end - first > 5 * ratio) strip[end - 1] = edge;  // neighbours of one colour stay apart
      }
      if (right - left > 3 * ratio) strip[left] = cut;
    }
  }

  function paint(style) {
    const wide = image.width, tall = Math.round(kRow * ratio);
    const free = pixelOf(style, "free"), rim = pixelOf(style, "rim");
    pixels.fill(pixelOf(style, "ground"));
    for (let row = 0; row < rowCount(); ++row) {
      const line = strip.subarray(row * wide, (row + 1) * wide), at = row * pitch();
      for (let y = 1; y + 1 < tall && at + y < image.height; ++y) pixels.set(line, (at + y) * wide);
      for (let x = 0; x < wide; ++x) if (line[x] === free) line[x] = rim;  // above and below free memory a line
      pixels.set(line, at * wide);
      if (at + tall <= image.height) pixels.set(line, (at + tall - 1) * wide);
    }
    context.putImageData(image, 0, 0);
  }

  // Outlines [address, address + bytes) of a segment, on each row that it touches.
  function outline(style, address, bytes, colour) {
    const s = order.findIndex((segment) => segment.address <= address && address < segment.address + segment.bytes);
    if (s < 0 || bytes <= 0) return;
    const wide = image.width, first = (starts[s] + address - order[s].address) / bytesAPixel, end = Math.max(first + 2, first + bytes / bytesAPixel);
    context.strokeStyle = style.getPropertyValue(colour);
    context.lineWidth = 2 * ratio;
    for (let row = Math.floor(first / wide); row * wide < end && row < rowCount(); ++row) {
      const left = Math.max(0, first - row * wide), right = Math.min(wide, end - row * wide);
      context.strokeRect(left, row * pitch() + ratio, right - left, Math.round(kRow * ratio) - 2 * ratio);
    }
  }

  function draw() {
    if (!image || !moment) return;
    const style = getComputedStyle(document.documentElement);
    layOut();
    fillStrip(style);
    paint(style);
    outline(style, moment.gap.address, moment.gap.bytes, "--bad");
    if (pointed) outline(style, pointed.address, pointed.bytes, "--ink");
    canvas.dataset.segments = order.length;
  }

  function resize() {
    const box = canvas.getBoundingClientRect();
    ratio = window.devicePixelRatio || 1;
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    image = context.createImageData(Math.max(1, canvas.width), Math.max(1, canvas.height));
    pixels = new Uint32Array(image.data.buffer);
    strip = new Uint32Array(rowCount() * image.width);
    draw();
  }

  // The segment under a point, and the block there or the free memory.
  function at(event) {
    const box = canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) * ratio / pitch());
    const x = Math.floor((event.clientX - box.left) * ratio);
    const place = (row * image.width + x + 0.5) * bytesAPixel;
    const s = lowerBound(starts, place) - 1;
    if (row < 0 || row >= rowCount() || x < 0 || x >= image.width || s < 0 || s >= order.length) return null;
    const segment = order[s], address = segment.address + place - starts[s], {blocks} = trace;
    let free = segment.address;
    for (let i = segment.from; i < segment.to; ++i) {
      const block = moment.live[i], begin = blocks.address[block], end = begin + blocks.bytes[block];
      if (address < begin) return {segment, address: free, bytes: begin - free, block: -1};
      if (address < Math.max(end, begin + bytesAPixel)) return {segment, address: begin, bytes: end - begin, block};
      free = Math.max(free, end);
    }
    return {segment, address: free, bytes: segment.address + segment.bytes - free, block: -1};
  }

  function ageText(block) {
    if (trace.isOlder(block)) return "allocated before the trace begins";
    const born = trace.blocks.first[block], age = moment.position - born;
    return `allocated by event ${countText(born - 1)}, ${age === 0 ? "the last one" : countText(age) + " events ago"}`;
  }

  function tell() {
    const lines = [];
    if (pointed && pointed.block >= 0) {
      const {block} = pointed, asked = trace.blocks.asked[block] <= moment.position;
      lines.push(["h3", "", `${sizeText(pointed.bytes)}: ${trace.holdingOf(block)}`], ["p", "", trace.lineOf(block)],
        ["p", "path", ageText(block) + (asked ? "; freed, while another stream may use it" : "")]);
    } else if (pointed) {
      lines.push(["h3", "", `${sizeText(pointed.bytes)} free`]);
    } else {
      lines.push(["h3", "", "Point at a block"], ["p", "path", "to see what it is, which line asked for it, and when."]);
    }
    if (pointed) {
      const {segment} = pointed, what = segment.expandable ? "expandable segment" : segment.small ? "segment for small blocks" : "segment";
      lines.push(["p", "path", `in a ${what} of ${sizeText(segment.bytes)}, ${sizeText(segment.bytes - segment.used)} of it free`]);
    }
    const frames = pointed && pointed.block >= 0 ? trace.framesOf(pointed.block) : [];
    const stack = element("ol", "stack");
    stack.append(...frames.map((frame) => element("li", "", frame)));
    about.replaceChildren(...lines.map((line) => element(...line)), stack);
    about.dataset.bytes = pointed ? pointed.bytes : "";
  }

  function point(found) {
    const same = found && pointed ? found.address === pointed.address && found.block === pointed.block : found === pointed;
    pointed = found;
    if (!same) askFrame(draw);
    if (!same) tell();
  }

  canvas.addEventListener("pointermove", (event) => point(at(event)));
  canvas.addEventListener("pointerdown", (event) => point(at(event)));
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") point(null); });
  canvas.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const {blocks} = trace, {live, count} = moment, step = event.key === "ArrowRight" ? 1 : -1;
    const now = pointed && pointed.block >= 0 ? live.subarray(0, count).indexOf(pointed.block) : step > 0 ? -1 : count;
    const block = live[Math.max(0, Math.min(count - 1, now + step))];
    const segment = count > 0 && moment.segments.find((s) => s.address <= blocks.address[block] && blocks.address[block] < s.address + s.bytes);
    if (segment) point({segment, address: blocks.address[block], bytes: blocks.bytes[block], block});
    event.preventDefault();
  });
  new ResizeObserver(resize).observe(canvas);
  tell();

  const view = {
    draw,
    show(next) {
      moment = next;
      if (pointed) { pointed = null; tell(); }
      if (!image) resize();
      else draw();
    },
  };
  return view;
}
