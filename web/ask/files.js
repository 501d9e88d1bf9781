// What a dropped or pasted file is. The planner goes by a recipe's name, so a pasted text gets the ending of what it looks like.

const kMostText = 16 * 2 ** 20;  // larger files are logs, traces and snapshots, and are read in the worker

const kOutOfMemory = /out of memory|OutOfMemory|Tried to allocate|RESOURCE_EXHAUSTED|Killed process|CUDA error|Traceback \(most recent|memory summary/i;

const safeName = (name) => name.replace(/[^\w.-]+/g, "_").replace(/^[-.]+/, "") || "file";

function kindOfJson(text) {
  let json = null;
  try { json = JSON.parse(text); } catch { return null; }
  if (json === null || typeof json !== "object") return null;
  if ("cells" in json) return {kind: "recipe", ending: ".ipynb"};
  if ("traceEvents" in json) return {kind: "evidence", ending: ".json"};
  if ("model_type" in json || "architectures" in json) return {kind: "config", ending: ".json"};
  if ("zero_optimization" in json || "fsdp_transformer_layer_cls_to_wrap" in json) return {kind: "other", ending: ".json"};
  return {kind: "recipe", ending: ".json"};
}

function kindOfText(text) {
  if (kOutOfMemory.test(text) && !/^(import|from) \w/m.test(text)) return {kind: "evidence", ending: ".log"};
  if (/^(import|from) \w+|^def \w+\(/m.test(text)) return {kind: "recipe", ending: ".py"};
  if (/^#!.*sh\b/.test(text) || /(^|\s)--[a-z_]+([= ]|$)/m.test(text)) return {kind: "recipe", ending: ".sh"};
  return {kind: "recipe", ending: ".yaml"};
}

// {kind, name, source} of text that was pasted.
export function pastedFile(text) {
  const {kind, ending} = (/^\s*[{[]/.test(text) && kindOfJson(text)) || kindOfText(text);
  return named({kind, name: "pasted" + ending, source: text});
}

// A model is called as the folder that its config.json lies in.
function named(file) { return file.kind === "config" ? {...file, name: "dropped-model/config.json"} : file; }

// Likewise of a File. Kinds: recipe, config (of a model), evidence (of a run that ran out), other (lies beside the recipe).
export async function droppedFile(file) { return named(await fileIn(file)); }

async function fileIn(file) {
  const name = safeName(file.name), ending = /\.[^.]*$/.exec(name)?.[0].toLowerCase() ?? "";
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (file.size > kMostText || head[0] === 0x80 || (head[0] === 0x1f && head[1] === 0x8b) || ending === ".pickle" || ending === ".pkl")
    return {kind: "evidence", name, source: file};
  const source = await file.text();
  if (ending === ".yaml" || ending === ".yml") return {kind: "recipe", name, source};
  if (ending === ".sh" || ending === ".py" || ending === ".ipynb") return {kind: "recipe", name, source};
  const found = (/^\s*[{[]/.test(source) && kindOfJson(source)) || kindOfText(source);
  if (ending === ".json" || ending === ".log" || ending === ".txt" || ending === ".out" || ending === ".err") {
    if (found.kind === "evidence" || found.ending === ending || ending === ".json") return {kind: found.kind, name, source};
    return found.kind === "recipe" && ending !== ".json" && found.ending === ".yaml" ? {kind: "evidence", name, source}
      : {kind: found.kind, name: name + found.ending, source};
  }
  return {kind: found.kind, name: ending ? name : name + found.ending, source};
}
