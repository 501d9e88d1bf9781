// One step of snug as areas by role over its ops, from the data of `snug plan --html` (web/plan/data.js reads them). A cursor tells
// what is alive at an op: by pointer, or by the arrow keys.
/* global readPlan, formatBytes, element */

import {letterOf} from "./answer.js";

const kWidth = 720, kHeight = 240, kTop = 16, kLetter = 14;  // pixels; a role's area takes a letter where it is as high as one
const kOrder = ["runtime", "weights", "adapters", "optimizer", "gradients", "batch", "comm", "activations", "workspace", "temporaries"];
const kStages = ["load", "forward", "backward", "optimizer", "evaluate", "save"];
const kMostColumns = 900;  // of more ops, a column is the op among its neighbours with the most alive

const svg = (tag, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

export function planIn(html) {
  const mark = '<script type="application/json" id="plan-data">', from = html.indexOf(mark);
  return readPlan(html.slice(from + mark.length, html.indexOf("</script>", from)));
}

function columnsOf(plan) {
  const each = Math.max(1, Math.ceil(plan.count / kMostColumns)), columns = [];
  for (let first = 0; first < plan.count; first += each) {
    let most = first;
    for (let step = first; step < Math.min(plan.count, first + each); ++step) if (plan.total[step] > plan.total[most]) most = step;
    columns.push(most);
  }
  return columns;
}

export function showTimeline(plan) {
  const columns = columnsOf(plan), top = 1.04 * Math.max(plan.total[plan.peak], Math.min(plan.budget_bytes, 2 * plan.total[plan.peak]));
  const x = (column) => kWidth * column / columns.length, y = (bytes) => kHeight - (kHeight - kTop) * bytes / top;
  const drawing = svg("svg", {viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: "none", tabindex: "0", role: "slider",
    "aria-label": "Memory over the ops of a step", "aria-valuemin": "0", "aria-valuemax": String(columns.length - 1)});
  const below = columns.map(() => 0), letters = [];
  for (const name of kOrder) {
    const role = plan.roles.indexOf(name);
    if (role < 0) continue;
    const upper = [], lower = [];
    const places = [];  // of the letter
    columns.forEach((step, i) => {
      const from = below[i], to = from + plan.live[role][step];
      places.push({height: y(from) - y(to), share: (i + 0.5) / columns.length, middle: (y(from) + y(to)) / 2});
      below[i] = to;
      upper.push(`${x(i).toFixed(1)},${y(to).toFixed(1)}`, `${x(i + 1).toFixed(1)},${y(to).toFixed(1)}`);
      lower.push(`${x(i).toFixed(1)},${y(from).toFixed(1)}`, `${x(i + 1).toFixed(1)},${y(from).toFixed(1)}`);
    });
    const area = svg("polygon", {points: upper.join(" ") + " " + lower.reverse().join(" "), "data-role": name});
    area.style.fill = `var(--${name})`;
    drawing.append(area);
    const height = Math.max(...places.map((place) => place.height)), thick = places.filter((place) => place.height >= 0.7 * height);
    if (0.7 * height > kLetter) letters.push(letterAt(name, thick[Math.floor(thick.length / 4)]));
  }
  if (plan.budget_bytes <= top) drawing.append(svg("line", {class: "limit", x1: 0, x2: kWidth, y1: y(plan.budget_bytes), y2: y(plan.budget_bytes)}));
  const cursor = svg("line", {class: "cursor", y1: 0, y2: kHeight, "vector-effect": "non-scaling-stroke"});
  drawing.append(cursor);
  const at = element("p", "at");
  let here = columns.indexOf(columns.reduce((most, step) => plan.total[step] > plan.total[most] ? step : most));

  const select = (column) => {
    here = Math.max(0, Math.min(columns.length - 1, column));
    const step = columns[here], middle = x(here + 0.5);
    cursor.setAttribute("x1", middle);
    cursor.setAttribute("x2", middle);
    const alive = plan.alive(step), largest = alive.slice(0, 3).map((entry) => `${entry.name}${entry.count > 1 ? ` × ${entry.count}` : ""} ${formatBytes(entry.bytes)}`);
    const words = `Op ${step} of ${plan.count}, ${plan.path(step)} ${plan.opName(step)}: ${formatBytes(plan.total[step])} alive. Largest: ${largest.join(", ")}`;
    at.textContent = words;
    drawing.setAttribute("aria-valuenow", String(here));
    drawing.setAttribute("aria-valuetext", words);
  };
  const columnAt = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.floor(columns.length * (event.clientX - box.left) / box.width);
  };
  drawing.addEventListener("pointermove", (event) => select(columnAt(event)));
  drawing.addEventListener("pointerdown", (event) => select(columnAt(event)));
  drawing.addEventListener("keydown", (event) => {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -here, End: columns.length - 1 - here}[event.key];
    if (steps === undefined) return;
    event.preventDefault();
    select(here + steps * (event.shiftKey && Math.abs(steps) === 1 ? 10 : 1));
  });
  select(here);
  const picture = element("div", "picture");
  picture.append(drawing, ...letters);
  document.getElementById("timeline").replaceChildren(picture, stagesUnder(plan), at,
    element("p", "help", "The arrow keys move the line; the dashed one is the card's memory."));
}

// The letter of a role where its area is thick; as text of the page, since the drawing is stretched.
function letterAt(role, {share, middle}) {
  const letter = element("span", "letter", letterOf[role]);
  letter.style.left = `${100 * share}%`;
  letter.style.top = `${middle}px`;
  return letter;
}

// Where the stages lie, as words under the drawing.
function stagesUnder(plan) {
  const row = element("div", "stages");
  for (const group of plan.groups.filter((one) => kStages.includes(one.name))) {
    const word = element("span", "", group.name);
    word.style.left = 100 * group.first / plan.count + "%";
    word.style.width = 100 * (group.last + 1 - group.first) / plan.count + "%";
    row.append(word);
  }
  return row;
}
