// One planner in a thread of its own. Each question brings the files that it may read; what an answer wrote under names that the
// question wants comes back with it.

import {Planner} from "./planner.js";

const kMostKept = 256 * 2 ** 20;  // memory of WebAssembly never shrinks: after a larger question the planner starts anew

let planner = null;

self.onmessage = ({data}) => {
  if (data.module) {
    planner = new Planner(data.module);
    return;
  }
  const {id, words, files, wanted} = data, from = performance.now();
  planner.files.contents.clear();
  for (const [path, source] of files) planner.files.put(path, source);
  const answer = planner.ask(words), memoryBytes = planner.memoryBytes;
  const written = Object.fromEntries(wanted.map((path) => [path, planner.files.text(path)]));
  if (memoryBytes > kMostKept) planner.start();
  self.postMessage({id, ...answer, written, memoryBytes, milliseconds: performance.now() - from});
};
