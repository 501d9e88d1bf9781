// Puts the page together: what the person sets becomes a question, and its answers become pictures. The figures and first
// lines come from a desk of their own at once; the whole text, the levers and the drawing after a pause; the search and the explanation when
// they are asked for.
/* global element */

import {showBars, showLevers, showPhases, showVerdicts} from "./answer.js";
import {Desk} from "./desk.js";
import {droppedFile, pastedFile} from "./files.js";
import {addressOf, commandLine, fileOf, kSliders, newQuestion, questionOf, quoteWord, subjectWords, valueOf} from "./question.js";
import {planIn, showTimeline} from "./timeline.js";

const kPause = 400;  // milliseconds without a change after which the slower pictures are drawn

const at = (id) => document.getElementById(id);
let question = newQuestion();
let desks = null, shown = null, pause = 0;

const filesOf = () => question.files.map((file) => [file.name, file.source]);

// ---- What the person sees of the question

function stopsOf(name) {
  const value = Number(valueOf(question, name) || shown?.recipe[kSliders[name].key] || 0);
  const stops = kSliders[name].stops;
  return value > 0 && !stops.includes(value) ? [...stops, value].sort((a, b) => a - b) : stops;
}

function showQuestion() {
  for (const id of ["model", "gpu", "gpus", "sharing", "more"]) if (at(id).value !== String(question[id])) at(id).value = question[id];
  at("sharing").disabled = question.gpus < 2;
  const recipe = fileOf(question, "recipe"), config = fileOf(question, "config");
  at("model").disabled = Boolean(config);
  at("model-help").textContent = config ? `${config.name} is the model` : recipe && !question.modelBeside
    ? `The model is as ${recipe.name} says; write here to take another` : "A name of the catalogue; or drop a config.json";
  const methods = [...(recipe ? [["", "as the recipe says"]] : []), ["lora", "LoRA"], ["qlora", "QLoRA"], ["full", "full"]];
  at("method").replaceChildren(...methods.map(([value, text]) => {
    const option = element("option", "", text);
    option.value = value;
    return option;
  }));
  at("method").value = valueOf(question, "method");
  showSliders();
  at("files").replaceChildren(...question.files.map((file) => {
    const item = element("li", "", ""), button = element("button", "", "×");
    const kind = {recipe: "recipe", config: "model", evidence: "ran out", other: "lies beside"}[file.kind];
    button.type = "button";
    button.setAttribute("aria-label", `Take ${file.name} away`);
    button.addEventListener("click", () => { question.files = question.files.filter((other) => other !== file); changed(); at("choose").focus(); });
    item.append(element("span", "", `${file.name} (${kind})`), button);
    return item;
  }));
}

function showSliders() {
  for (const name of Object.keys(kSliders)) {
    const stops = stopsOf(name), value = Number(valueOf(question, name) || shown?.recipe[kSliders[name].key] || 0);
    at(name).max = stops.length - 1;
    at(name).value = Math.max(0, stops.indexOf(value));
    at(name).setAttribute("aria-valuetext", value ? String(value) : "as the recipe says");
    at(`${name}-value`).textContent = value ? value.toLocaleString("en") : "–";
  }
  const method = shown?.recipe.method;
  at("rank").disabled = (valueOf(question, "method") || method) === "full";
  at("checkpointing").checked = (valueOf(question, "checkpointing") || shown?.recipe.gradient_checkpointing) === "true";
}

// ---- Answers

// Tells in the place of an answer why there is none; of an answer without figures nothing, until its text comes.
function showFailure(answer) {
  const lines = answer.messages.trim().split("\n"), why = answer.output === "" ? lines.pop() : null;
  at("verdicts").replaceChildren(...(why === null ? [] : [element("p", "verdict over", why)]));
  at("messages").textContent = lines.join("\n");
  at("text").textContent = answer.messages;
  for (const id of ["bars", "legend", "phases", "timeline", "levers"]) at(id).replaceChildren();
}

// The figures and the first lines, at once: the question that follows a slider.
async function askPlan() {
  const words = ["plan", ...subjectWords(question)], from = performance.now();
  at("answer").setAttribute("aria-busy", "true");
  const answer = await desks.figures.ask([...words, "--json"], filesOf());
  if (!answer) return;  // a newer question took its place
  const json = answer.output === "" ? null : JSON.parse(answer.output);
  shown = json?.breakdown ? json : null;  // of some models snug knows less than a step: their text alone is shown
  if (shown) {
    showVerdicts(shown.verdicts);
    showBars(shown);
    showPhases(shown);
    showSliders();
    at("messages").textContent = answer.messages.trim();
  } else {
    showFailure(answer);
  }
  at("command").textContent = commandLine(words);
  at("answer").setAttribute("aria-busy", String(desks.figures.busy));
  document.documentElement.dataset.answers = 1 + Number(document.documentElement.dataset.answers ?? 0);
  document.documentElement.dataset.milliseconds = performance.now() - from;
}

// The whole text, with the smallest change that would fit, which is a search.
async function askText() {
  const answer = await desks.text.ask(["plan", ...subjectWords(question)], filesOf());
  if (!answer) return;
  at("text").textContent = answer.output + answer.messages;
  if (answer.output !== "") showVerdicts(answer.output.split("\n\n")[0].split("\n").filter((line) => /^\S/.test(line)));
}

async function askSlower() {
  const subject = subjectWords(question), files = filesOf();
  if (!shown) return;
  const from = performance.now(), levers = await desks.levers.ask(["plan", ...subject, "--json", "--levers"], files);
  if (!levers?.output) return;  // another question came
  showLevers(JSON.parse(levers.output), takeLever);
  document.documentElement.dataset.leversMilliseconds = performance.now() - from;
  const drawing = await desks.drawing.ask(["plan", ...subject, "--html", "plan.html"], files, ["plan.html"]);
  if (drawing?.written["plan.html"]) showTimeline(planIn(drawing.written["plan.html"]));
  document.documentElement.dataset.settled = "true";
}

async function askWhy() {
  const evidence = fileOf(question, "evidence");
  at("explanation").hidden = !evidence;
  if (!evidence) return;
  at("explanation-text").textContent = `${evidence.name} is being read.`;
  const beside = at("with-run").checked ? subjectWords(question) : [];
  const answer = await desks.why.ask(["explain", evidence.name, ...beside], filesOf());
  if (!answer) return;
  at("explanation-text").textContent = answer.messages + answer.output;
  at("save-drawing").hidden = answer.exitCode !== 0 || typeof evidence.source === "string";
  document.documentElement.dataset.explained = answer.milliseconds;
  document.documentElement.dataset.explainedBytes = answer.memoryBytes;
}

// The search takes seconds, so that it has a button, and one that ends it.
async function askFit() {
  const files = filesOf(), recipe = fileOf(question, "recipe"), own = recipe ? [] : ["--write", "snug-fit.yaml"];
  at("fit").disabled = true;
  at("cancel").hidden = false;
  at("cancel").focus();
  at("fit-answer").hidden = false;
  at("fit-diff-part").hidden = true;
  at("fit-text").textContent = "Recipes are being searched.";
  const from = performance.now(), answer = await desks.fit.ask(["fit", ...fitWords(), ...own], files, ["snug-fit.yaml"]);
  at("fit").disabled = false;
  at("cancel").hidden = true;
  if (document.activeElement === document.body) at("fit").focus();
  if (!answer) {
    at("fit-text").textContent = "Cancelled.";
    return;
  }
  const [text, diff] = answer.output.split("\nin your file\n");
  at("fit-text").textContent = text || answer.messages;
  showDiff(diff ?? answer.written["snug-fit.yaml"], diff ? `The change in ${recipe.name}, as a diff` : "The recipe, as YAML");
  document.documentElement.dataset.fitMilliseconds = performance.now() - from;
}

// What fit searches itself is not said: the micro-batch and the checkpointing of a model's usual question.
function fitWords() {
  if (fileOf(question, "recipe")) return subjectWords(question);
  return subjectWords(question).filter((word, i, all) => word !== "--batch" && all[i - 1] !== "--batch" && !word.startsWith("--gradient-checkpointing="));
}

function showDiff(text, title) {
  at("fit-diff-part").hidden = !text;
  if (!text) return;
  at("fit-diff-title").textContent = title;
  at("fit-diff").textContent = text;
}

// ---- What the person does

function changed() {
  showQuestion();
  for (const desk of [desks.text, desks.levers, desks.drawing]) if (desk.busy) desk.stop();  // of a question that is no longer asked
  askPlan();
  clearTimeout(pause);
  pause = setTimeout(settle, kPause);
}

async function settle() {
  const slower = Promise.all([askText(), askSlower()]);
  const {hash} = await addressOf(question);
  history.replaceState(null, "", hash || location.pathname);
  await slower;
}

function takeLever(settings) {
  const known = {per_device_train_batch_size: "batch", max_length: "seq", lora_r: "rank", gradient_checkpointing: "checkpointing", method: "method"};
  for (const [key, value] of Object.entries(settings)) {
    if (known[key]) question[known[key]] = typeof question[known[key]] === "number" ? Number(value) : value;
    else question.more = `${question.more} --${key.replaceAll("_", "-")}=${quoteWord(value)}`.trim();
  }
  changed();
  at("answer").scrollIntoView({block: "nearest"});
}

function add(file) {
  question.files = question.files.filter((other) => file.kind === "other" ? other.name !== file.name : other.kind !== file.kind);
  question.files.push(file);
  if (file.kind === "recipe") Object.assign(question, {method: "", batch: 0, seq: 0, rank: 0, checkpointing: "", more: "", modelBeside: ""});
  changed();
  if (file.kind === "evidence") askWhy();
}

async function addFiles(files) {
  for (const file of [...files]) {
    try {
      add(await droppedFile(file));
    } catch (error) {  // a folder, or a file that went away
      say(`${file.name} cannot be read: ${error.message}`);
    }
  }
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied.`);
  } catch {
    say("The browser does not let the page copy; the address bar and the text have it.");
  }
}

function say(text) { at("said").textContent = text; }

function saveFile(text, name) {
  const link = element("a"), address = URL.createObjectURL(new Blob([text], {type: "text/html"}));
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function listen() {
  for (const id of ["gpu", "sharing", "method", "more"]) at(id).addEventListener("change", () => { question[id] = at(id).value; changed(); });
  at("model").addEventListener("change", () => {
    question.model = at("model").value.trim();
    question.modelBeside = fileOf(question, "recipe") ? "yes" : "";
    changed();
  });
  at("gpus").addEventListener("change", () => { question.gpus = Math.max(1, Number(at("gpus").value) || 1); changed(); });
  for (const name of Object.keys(kSliders)) {
    let stops = null;  // as they were when the slider began to move
    at(name).addEventListener("input", () => {
      stops ??= stopsOf(name);
      question[name] = stops[Number(at(name).value)] ?? stops.at(-1);
      changed();
    });
    at(name).addEventListener("change", () => { stops = null; });
  }
  at("checkpointing").addEventListener("change", () => { question.checkpointing = String(at("checkpointing").checked); changed(); });
  at("paste").addEventListener("change", () => { if (at("paste").value.trim() !== "") add(pastedFile(at("paste").value)); });
  at("paste").addEventListener("paste", () => setTimeout(() => add(pastedFile(at("paste").value))));
  at("choose").addEventListener("click", () => at("chooser").click());
  at("chooser").addEventListener("change", () => { addFiles(at("chooser").files); });
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dragging"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dragging"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dragging");
    addFiles(event.dataTransfer.files);
  });
  at("question").addEventListener("submit", (event) => event.preventDefault());
  at("fit").addEventListener("click", askFit);
  at("cancel").addEventListener("click", () => desks.fit.stop());
  at("copy-diff").addEventListener("click", () => copy(at("fit-diff").textContent, "The text is"));
  at("with-run").addEventListener("change", askWhy);
  at("link").addEventListener("click", async () => {
    const {hash, left} = await addressOf(question);
    history.replaceState(null, "", hash || location.pathname);
    await copy(location.href, left.length > 0 ? `The link, without ${left.join(", ")} (too large), is` : "The link is");
  });
  at("save").addEventListener("click", async () => {
    const answer = await desks.drawing.ask(["plan", ...subjectWords(question), "--html", "plan.html"], filesOf(), ["plan.html"]);
    if (answer?.written["plan.html"]) saveFile(answer.written["plan.html"], "plan.html");
    else say((answer?.messages ?? "").trim());
  });
  at("save-drawing").addEventListener("click", async () => {
    const evidence = fileOf(question, "evidence");
    const answer = await desks.why.ask(["explain", evidence.name, "--html", "explain.html"], filesOf(), ["explain.html"]);
    if (answer?.written["explain.html"]) saveFile(answer.written["explain.html"], "explain.html");
    else say((answer?.messages ?? "").trim());
  });
  window.addEventListener("hashchange", async () => { question = await questionOf(location.hash); changed(); askWhy(); });
}

async function fillCatalogues() {
  const [gpus, models] = await Promise.all([desks.figures.ask(["gpus", "--json"]), desks.levers.ask(["models", "--json"])]);
  const groups = new Map();
  for (const card of JSON.parse(gpus.output).accelerators) {
    if (!groups.has(card.vendor)) groups.set(card.vendor, element("optgroup"));
    const group = groups.get(card.vendor), option = element("option", "", `${card.name}, ${Math.round(card.memory_bytes / 2 ** 30)} GiB`);
    group.label = card.vendor;
    option.value = card.name;
    group.append(option);
  }
  at("gpu").replaceChildren(...groups.values());
  at("gpu").value = question.gpu;
  at("models").replaceChildren(...JSON.parse(models.output).models.map((model) => {
    const option = element("option");
    option.value = model.name;
    return option;
  }));
}

// A browser compiles anew, and better, what has run often: some questions ahead, so that the first move of a slider is as fast as the later.
async function warmUp() {
  const asked = Number(document.documentElement.dataset.answers);
  for (let i = 0; i < 8 && Number(document.documentElement.dataset.answers) === asked && !desks.figures.busy; ++i)
    await desks.figures.ask(["plan", ...subjectWords(question), "--json"], filesOf());
}

async function start() {
  question = await questionOf(location.hash);
  const module = await WebAssembly.compileStreaming(fetch("snug.wasm"));
  desks = Object.fromEntries(["text", "figures", "levers", "drawing", "fit", "why"].map((name) => [name, new Desk(module)]));
  listen();
  showQuestion();
  await askPlan();
  document.documentElement.dataset.firstAnswer = performance.now();
  await fillCatalogues();
  await settle();
  if (fileOf(question, "evidence")) await askWhy();
  await warmUp();
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  at("verdicts").replaceChildren(element("p", "verdict over", `The planner cannot be loaded: ${error.message}. A page from a disk cannot load it; ` +
    "serve the folder (python3 -m http.server)."));
});
