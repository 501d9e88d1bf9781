// Memory over the events: areas by group, reserved memory as a line, phases above. Every column of pixels shows the highest of
// its positions, so that no peak is lost; a frame costs by the pixels, not by the events.

function drawTimeline(trace, state, onMove) {
  const canvas = document.getElementById("timeline"), context = canvas.getContext("2d"), cursor = document.getElementById("cursor");
  const positions = trace.events + 1, kBand = 16, kLeft = 72, kRight = 14, kBottom = 22;
  const rows = Math.min(2, depthOfPhases()), kTop = 8 + rows * kBand;
  const peak = trace.explanation.event, ranOut = trace.explanation.moment === "out_of_memory";
  const capacity = ranOut && trace.explanation.free_bytes !== null
    ? trace.explanation.reserved_bytes + trace.explanation.free_bytes : 0;
  const highest = trace.highest(0, positions);
  const most = Math.max(trace.total[highest], trace.reservedTotal[trace.highestReserved(0, positions)], 1);
  const showsCapacity = capacity > 0 && capacity <= 1.7 * most;
  const needed = ranOut && trace.explanation.needed_bytes <= 1.7 * most ? trace.explanation.needed_bytes : 0;
  const top = Math.max(most, showsCapacity ? capacity : 0, needed) * 1.06;
  let from = 0, to = positions, width = 0, height = 0, ratio = 1, image = null, pixels = null, shown = new Uint32Array(0);

  // Phases lie in rows by how deep they are nested; deeper ones than the second are not drawn.
  function depthOfPhases() {
    const open = [];
    let deepest = 0;
    for (const phase of trace.phases) {
      while (open.length > 0 && open[open.length - 1] <= phase[1]) open.pop();
      open.push(phase[2]);
      phase[3] = open.length;
      deepest = Math.max(deepest, open.length);
    }
    return deepest;
  }

  const plotWidth = () => Math.max(1, width - kLeft - kRight), plotHeight = () => Math.max(1, height - kTop - kBottom);
  const xOf = (position) => kLeft + (position - from) / (to - from) * plotWidth();
  // Of what is drawn of a position: a step, or less than a pixel.
  const middleOf = (position) => xOf(position + Math.min(0.5, (to - from) / plotWidth() / 2));
  const yOf = (bytes) => kTop + (1 - bytes / top) * plotHeight();

  // The positions that a column of pixels stands for, as [first, end).
  function columnRange(x, columns) {
    const first = Math.min(positions - 1, Math.floor(from + (to - from) * x / columns));
    return [first, Math.max(first + 1, Math.min(positions, Math.floor(from + (to - from) * (x + 1) / columns)))];
  }

  function paintAreas(style) {
    const columns = image.width, tall = image.height, grouping = trace.grouping(state.mode);
    const colours = grouping.colours.map((name) => pixelOf(style, name)), scale = tall / top;
    pixels.fill(pixelOf(style, "ground"));
    for (let x = 0; x < columns; ++x) {
      const [first, end] = columnRange(x, columns);
      shown[x] = trace.highest(first, end);
      const sums = grouping.sumsAt(shown[x]);
      let sum = 0, low = tall;
      for (let g = 0; g < colours.length; ++g) {
        sum += sums[g];
        const high = Math.max(0, tall - Math.round(sum * scale)), colour = colours[g];
        for (let at = high * columns + x, stop = low * columns; at < stop; at += columns) pixels[at] = colour;
        low = Math.min(low, high);
      }
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.putImageData(image, Math.round(kLeft * ratio), Math.round(kTop * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function paintAxes(style) {
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = style.getPropertyValue("--quiet");
    context.strokeStyle = style.getPropertyValue("--grid");
    context.lineWidth = 1;
    context.beginPath();
    context.textAlign = "right";
    const step = 2 ** Math.ceil(Math.log2(top / 7));
    for (let bytes = 0; bytes < top; bytes += step) {
      const y = Math.round(yOf(bytes)) + 0.5;
      context.moveTo(kLeft, y);
      context.lineTo(width - kRight, y);
      context.fillText(sizeText(bytes), kLeft - 6, y + 4);
    }
    context.stroke();
    context.textAlign = "center";
    const most = Math.max(2, plotWidth() / 110), every = [1, 2, 5].flatMap((n) => [...Array(12).keys()].map((k) => n * 10 ** k))
      .sort((a, b) => a - b).find((n) => (to - from) / n <= most) || positions;
    for (let p = Math.ceil(from / every) * every; p < to; p += every) {
      const text = countText(p), half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(xOf(p), width - half), height - 6);
    }
  }

  function paintReserved(style) {
    const columns = Math.round(plotWidth());
    context.strokeStyle = style.getPropertyValue("--ink");
    context.lineWidth = 1.5;
    context.beginPath();
    for (let x = 0, last = -1; x < columns; ++x) {
      const bytes = trace.reservedTotal[trace.highestReserved(...columnRange(x, columns))];
      if (bytes === last && x + 1 < columns) continue;
      if (last >= 0) context.lineTo(kLeft + x, yOf(last));
      context[last < 0 ? "moveTo" : "lineTo"](kLeft + x + (x + 1 === columns ? 1 : 0), yOf(bytes));
      last = bytes;
    }
    context.stroke();
  }

  function paintPhases(style) {
    context.textAlign = "left";
    let drawn = [-1, -1, -1];
    for (const [name, first, end, depth] of trace.phases) {
      if (depth > rows || end < from || first > to) continue;
      const left = Math.max(kLeft, xOf(first)), wide = Math.min(width - kRight, xOf(Math.max(end, first + 1))) - left;
      if (wide <= 0 || left + wide < drawn[depth] + 1) continue;  // nothing new for the eye
      drawn[depth] = left + wide;
      const y = 2 + (depth - 1) * kBand;
      context.fillStyle = style.getPropertyValue("--phase");
      context.fillRect(left, y, Math.max(1, wide - 1), kBand - 2);
      if (wide < 40) continue;
      const short = name.replace(/^Optimizer\.step#/, "").slice(0, Math.floor((wide - 8) / 6.2));
      context.fillStyle = style.getPropertyValue("--ink");
      context.fillText(short, left + 4, y + 11);
    }
    context.strokeStyle = style.getPropertyValue("--quiet");
    context.lineWidth = 1;
    context.beginPath();
    for (let i = lowerBound(trace.steps, from), last = -9; i < trace.steps.length && trace.steps[i] < to; ++i) {
      const x = xOf(trace.steps[i]);
      if (x < last + 3) continue;
      context.moveTo(x, kTop + plotHeight());
      context.lineTo(x, kTop + plotHeight() + 5);
      last = x;
    }
    context.stroke();
  }

  function note(style, text, x, y, colour) {
    const before = x > width / 2;
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = before ? "right" : "left";
    context.lineWidth = 3;
    context.strokeStyle = style.getPropertyValue("--ground");
    context.strokeText(text, x + (before ? -7 : 7), y);
    context.fillStyle = style.getPropertyValue(colour);
    context.fillText(text, x + (before ? -7 : 7), y);
  }

  function paintMarks(style) {
    if (showsCapacity) {
      context.strokeStyle = style.getPropertyValue("--bad");
      context.setLineDash([6, 3]);
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(kLeft, yOf(capacity));
      context.lineTo(width - kRight, yOf(capacity));
      context.stroke();
      context.setLineDash([]);
    }
    context.fillStyle = style.getPropertyValue("--bad");
    for (const [event] of trace.ooms) {
      if (event < from || event >= to) continue;
      context.fillRect(xOf(event) - 1, kTop, 2, plotHeight());
    }
    if (needed > trace.total[peak] && peak >= from && peak < to) paintNeed(style);
    const marks = ranOut ? [] : [peak];
    if (ranOut) {
      if (trace.total[highest] > trace.total[peak]) marks.push(highest);
      if (peak >= from && peak < to) note(style, "out of memory, " + sizeText(trace.total[peak]), xOf(peak), kTop + 10, "--bad");
    }
    for (const position of marks) if (position >= from && position < to) paintPeak(style, position);
  }

  // What the step would have held at most, from there on.
  function paintNeed(style) {
    const x = xOf(peak), y = yOf(needed);
    context.strokeStyle = style.getPropertyValue("--ink");
    context.setLineDash([2, 3]);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, yOf(trace.total[peak]));
    context.lineTo(x, y);
    context.moveTo(x - 14, y);
    context.lineTo(Math.min(x + 14, width - kRight), y);
    context.stroke();
    context.setLineDash([]);
    note(style, (trace.explanation.needed_whole ? "needed " : "needed at least ") + sizeText(needed), x - 14, y + 4, "--ink");
  }

  function paintPeak(style, position) {
    const x = middleOf(position), y = yOf(trace.total[position]), above = Math.max(kTop + 12, y - 8);
    context.fillStyle = style.getPropertyValue("--ink");
    context.beginPath();
    context.arc(x, y, 4, 0, 2 * Math.PI);
    context.fill();
    const line = yOf(trace.reservedTotal[position]);  // the label does not lie across it
    note(style, "peak " + sizeText(trace.total[position]), x, line > above - 13 && line < above + 3 ? y + 14 : above, "--ink");
  }

  function draw() {
    if (!image) return;
    const style = getComputedStyle(document.documentElement);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = style.getPropertyValue("--ground");
    context.fillRect(0, 0, width, height);
    paintAreas(style);
    paintAxes(style);
    paintPhases(style);
    paintReserved(style);
    paintMarks(style);
    moveCursor();
  }

  function moveCursor() {
    const x = middleOf(state.position), inside = x >= kLeft && x <= width - kRight;
    cursor.style.display = inside ? "" : "none";
    cursor.style.transform = `translateX(${x}px)`;
    cursor.style.top = kTop + "px";
    cursor.style.height = plotHeight() + "px";
  }

  function resize() {
    const box = canvas.getBoundingClientRect();
    ratio = window.devicePixelRatio || 1;
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    image = context.createImageData(Math.max(1, Math.round(plotWidth() * ratio)), Math.max(1, Math.round(plotHeight() * ratio)));
    pixels = new Uint32Array(image.data.buffer);
    shown = new Uint32Array(image.width);
    draw();
  }

  // Shows [from, from + span), moved and cut to what there is.
  function look(start, span) {
    const wide = Math.min(positions, Math.max(Math.min(positions, 8), span));
    from = Math.max(0, Math.min(positions - wide, start));
    to = from + wide;
  }

  function zoomAt(factor, position) {
    const span = (to - from) / factor;
    look(position - (position - from) / (to - from) * span, span);
    askFrame(draw);
  }

  const fractionAt = (event) => (event.clientX - canvas.getBoundingClientRect().left - kLeft) / plotWidth();
  const clamped = (position) => Math.max(0, Math.min(positions - 1, position));
  // The position whose bytes are drawn there.
  function positionAt(event) {
    const column = Math.floor(fractionAt(event) * shown.length);
    return clamped(shown[Math.max(0, Math.min(shown.length - 1, column))]);
  }

  const fingers = new Map();
  let dragged = 0;
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event.clientX);
    dragged = 0;
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  const lift = (event) => fingers.delete(event.pointerId);
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (before === undefined) {
      if (!state.held) onMove(positionAt(event), false);
      return;
    }
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
    fingers.set(event.pointerId, event.clientX);
    dragged += Math.abs(event.clientX - before);
    if (others.length > 0) {  // two fingers: their distance scales
      const apart = Math.abs(event.clientX - others[0]), was = Math.abs(before - others[0]);
      if (was > 8) zoomAt(apart / was, from + (to - from) * fractionAt(event));
    } else {
      look(from - (event.clientX - before) / plotWidth() * (to - from), to - from);
      askFrame(draw);
    }
  });
  canvas.addEventListener("click", (event) => { if (dragged < 5) onMove(positionAt(event), true); });
  canvas.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      zoomAt(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.002)), from + (to - from) * fractionAt(event));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      look(from + sideways / plotWidth() * (to - from), to - from);
      askFrame(draw);
    } else {
      return;
    }
    event.preventDefault();
  }, {passive: false});
  canvas.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? Math.max(1, Math.round((to - from) / 50)) : 1, at = state.position;
    const goals = {ArrowLeft: at - far, ArrowRight: at + far, Home: 0, End: positions - 1, p: peak, P: peak};
    if (event.key in goals) onMove(clamped(goals[event.key]), true);
    else if (event.key === "+" || event.key === "-") zoomAt(event.key === "+" ? 1.5 : 1 / 1.5, at);
    else if (event.key === "Escape") { view.reset(); onMove(at, false); }
    else return;
    event.preventDefault();
  });
  new ResizeObserver(resize).observe(canvas);

  const view = {
    draw, moveCursor,
    // Moves the view so that the chosen position is in it.
    follow() {
      if (state.position < from || state.position >= to) look(state.position - (to - from) / 2, to - from);
      askFrame(draw);
    },
    look(start, span) { look(start, span); },
    zoomBy: (factor) => zoomAt(factor, state.position >= from && state.position < to ? state.position : (from + to) / 2),
    reset() { look(0, positions); askFrame(draw); },
  };
  resize();
  return view;
}

// The first index whose value is not below `value`.
function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A colour of the page as a pixel of an ImageData seen as Uint32Array.
const knownPixels = new Map();
function pixelOf(style, name) {
  const colour = style.getPropertyValue("--" + name).trim();
  let pixel = knownPixels.get(colour);
  if (pixel === undefined) {
    const [red, green, blue] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    pixel = (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
    knownPixels.set(colour, pixel);
  }
  return pixel;
}
