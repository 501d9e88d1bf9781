// A desk asks a planner in a worker, one question at a time. Of questions that come meanwhile the newest alone waits: whoever moves a
// slider wants the answer to where it is now.

export class Desk {
  constructor(module) {
    this.module = module;
    this.worker = this.asked = this.waiting = null;
    this.id = 0;
  }

  // The worker comes with the first question.
  start() {
    this.worker = new Worker("worker.js", {type: "module"});
    this.worker.postMessage({module: this.module});
    this.worker.onmessage = ({data}) => this.done(data);
    this.worker.onerror = (event) => this.done({exitCode: 1, output: "", messages: `snug: ${event.message}\n`, written: {}});
  }

  // The answer to `words`, or null where a newer question took its place. `files`: [name, text or File] that it may read; `wanted`:
  // names of files that it writes.
  ask(words, files = [], wanted = []) {
    return new Promise((tell) => {
      if (this.waiting) this.waiting.tell(null);
      this.waiting = {words, files, wanted, tell};
      this.next();
    });
  }

  get busy() { return this.asked !== null; }

  // Ends what is being answered, at once.
  stop() {
    this.worker?.terminate();
    for (const question of [this.asked, this.waiting]) if (question) question.tell(null);
    this.worker = this.asked = this.waiting = null;
  }

  next() {
    if (this.asked || !this.waiting) return;
    if (!this.worker) this.start();
    this.asked = this.waiting;
    this.waiting = null;
    this.asked.id = ++this.id;
    const {words, files, wanted, id} = this.asked;
    this.worker.postMessage({id, words, files, wanted});
  }

  done(answer) {
    const question = this.asked;
    this.asked = null;
    if (question) question.tell(answer);
    this.next();
  }
}
