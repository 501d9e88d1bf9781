// What is asked, and the three forms that it has: what the person set, the words of the command line, the address of the page.

// Stops of the sliders, and the key in an answer's "recipe" that tells where one stands.
export const kSliders = {
  batch: {stops: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128], key: "per_device_train_batch_size", flag: "--batch"},
  seq: {stops: [128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304, 131072],
    key: "max_length", flag: "--seq"},
  rank: {stops: [1, 2, 4, 8, 16, 32, 64, 128, 256], key: "lora_r", flag: "--lora-r"},
};

const kNew = {model: "meta-llama/Llama-3.1-8B", gpu: "RTX-4090", gpus: 1, sharing: "ddp", method: "", batch: 0, seq: 0, rank: 0,
  checkpointing: "", more: ""};
// What a model of which nothing else is said is asked with; a recipe says these itself.
const kUsual = {method: "lora", batch: 1, seq: 2048, rank: 16, checkpointing: "false"};

export function newQuestion() { return {...kNew, files: []}; }

export const fileOf = (question, kind) => question.files.find((file) => file.kind === kind);

// Splits as a shell does, with quotes but without substitution.
export function splitWords(text) {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3]);
}

export function quoteWord(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`; }

// The value in force of what the person may set: theirs, or the usual one where no recipe says it.
export function valueOf(question, name) {
  return question[name] || (fileOf(question, "recipe") ? "" : kUsual[name]);
}

// What stands behind the command: the model or the recipe with what was changed of it.
export function subjectWords(question) {
  const recipe = fileOf(question, "recipe"), config = fileOf(question, "config"), words = [];
  if (config) words.push(config.name);
  else if (!recipe || question.modelBeside) words.push(question.model);
  if (recipe) words.push(recipe.name);
  if (question.gpu) words.push("--gpu", question.gpu);
  if (question.gpus > 1) words.push("--gpus", String(question.gpus), ...(question.sharing === "fsdp" ? ["--fsdp"] : []));
  const method = valueOf(question, "method");
  if (method) words.push("--method", method);
  for (const [name, slider] of Object.entries(kSliders)) {
    const value = valueOf(question, name);
    if (value && !(name === "rank" && method === "full")) words.push(slider.flag, String(value));
  }
  const checkpointing = valueOf(question, "checkpointing");
  if (checkpointing === "true" || question.checkpointing) words.push("--gradient-checkpointing=" + checkpointing);
  return words.concat(splitWords(question.more));
}

export const commandLine = (words) => ["snug", ...words.map(quoteWord)].join(" ");

// ---- The address

const kShort = {model: "m", gpu: "g", gpus: "n", sharing: "s", method: "method", batch: "batch", seq: "seq", rank: "r", checkpointing: "gc",
  more: "more", modelBeside: "beside"};

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function packed(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
}

const kMostInAddress = 200_000;  // bytes of a file; browsers take addresses of megabytes, mail programs do not

// "#m=…&g=…": all of the question, with its files as compressed text; `left` names the files that are too large for it.
export async function addressOf(question) {
  const parts = new URLSearchParams(), left = [];
  for (const [name, short] of Object.entries(kShort))
    if (question[name] && question[name] !== kNew[name]) parts.set(short, String(question[name]));
  for (const file of question.files) {
    if (typeof file.source !== "string" || file.source.length > kMostInAddress) left.push(file.name);
    else parts.append("f", `${file.kind}~${await packed(file.source)}~${file.name}`);
  }
  return {hash: parts.size > 0 ? "#" + parts : "", left};
}

export async function questionOf(hash) {
  const question = newQuestion(), parts = new URLSearchParams(hash.slice(1));
  for (const [name, short] of Object.entries(kShort)) {
    const value = parts.get(short);
    if (value !== null) question[name] = typeof kNew[name] === "number" ? Number(value) || kNew[name] : value;
  }
  for (const file of parts.getAll("f")) {
    const [kind, text, ...name] = file.split("~");
    if (["recipe", "config", "evidence", "other"].includes(kind) && name.length > 0)
      question.files.push({kind, name: name.join("~"), source: await unpacked(text)});
  }
  return question;
}
