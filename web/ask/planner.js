// The planner as a function: the words of the command line go in, {exitCode, output, messages} comes out.

import {Files, systemOver} from "./system.js";

export class Planner {
  constructor(module) {
    this.module = module;
    this.files = new Files();
    this.start();
  }

  start() {
    let exports = null;
    const system = systemOver(this.files, () => exports.memory);
    exports = new WebAssembly.Instance(this.module, {wasi_snapshot_preview1: system}).exports;
    exports._initialize();
    this.exports = exports;
  }

  get memoryBytes() { return this.exports.memory.buffer.byteLength; }

  // A string of C at an address.
  text(at) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at)));
  }

  ask(words) {
    try {
      return this.answer(words);
    } catch (error) {  // a trap: no memory, or no stack; nothing of the instance can be trusted then
      this.start();
      return {exitCode: 1, output: "", messages: `snug: the page could not answer this: ${error.message}\n`};
    }
  }

  answer(words) {
    const {malloc, free, memory, snug_ask: ask, snug_free: release} = this.exports;
    const encoded = words.map((word) => new TextEncoder().encode(word + "\0"));
    const list = 4 * words.length;
    const block = malloc(list + encoded.reduce((sum, word) => sum + word.length, 0));
    let at = block + list;
    encoded.forEach((word, i) => {
      new DataView(memory.buffer).setUint32(block + 4 * i, at, true);
      new Uint8Array(memory.buffer).set(word, at);
      at += word.length;
    });
    const answer = ask(words.length, block);
    free(block);
    if (answer === 0) throw new Error("no memory");
    const result = {exitCode: this.exports.snug_exit_code(answer), output: this.text(this.exports.snug_output(answer)),
      messages: this.text(this.exports.snug_messages(answer))};
    release(answer);
    return result;
  }
}
