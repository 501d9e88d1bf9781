// The operating system of the planner in a page: WASI as far as it asks, over files in memory. There is one folder, "/", with what
// was dropped on the page and what an answer wrote; no clock but the page's, no environment, no machine.

const kOk = 0, kBadDescriptor = 8, kInvalid = 28, kIsDirectory = 31, kNoEntry = 44, kNotDirectory = 54;
const kDirectory = 3, kRegularFile = 4, kCharacters = 2;
const kRoot = 3;  // the descriptor of "/": 0 to 2 are the standard streams
const kCreate = 1, kWantDirectory = 2, kTruncate = 8;

// Of a path as the planner writes it: without empty parts, "." and ".."; ".." of what would lie above "/", where nothing is.
function name(path) {
  const parts = [];
  for (const part of path.split("/")) {
    if (part === ".." && parts.length === 0) return "..";
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
}

// Bytes of a file that were given as text, as an array, or as a File of the browser, which is read piece by piece where it lies.
class Content {
  constructor(source) {
    const isFile = typeof Blob !== "undefined" && source instanceof Blob;
    this.file = isFile ? source : null;
    this.bytes = isFile ? null : typeof source === "string" ? new TextEncoder().encode(source) : source;
  }
  get size() { return this.file ? this.file.size : this.bytes.length; }
  read(from, most) {
    const end = Math.min(this.size, from + most);
    if (from >= end) return new Uint8Array(0);
    if (!this.file) return this.bytes.subarray(from, end);
    return new Uint8Array(new FileReaderSync().readAsArrayBuffer(this.file.slice(from, end)));
  }
  write(at, bytes) {
    const end = at + bytes.length;
    if (end > this.size) {
      const grown = new Uint8Array(end);
      grown.set(this.bytes);
      this.bytes = grown;
    }
    this.bytes.set(bytes, at);
  }
}

export class Files {
  constructor() { this.contents = new Map(); }
  put(path, source) { this.contents.set(name(path), new Content(source)); }
  remove(path) { this.contents.delete(name(path)); }
  text(path) {
    const content = this.contents.get(name(path));
    return content && new TextDecoder().decode(content.read(0, content.size));
  }
  isDirectory(path) {
    return path === "" || [...this.contents.keys()].some((other) => other.startsWith(path + "/"));
  }
  // [name, whether it is a folder] of what lies in a folder.
  entries(path) {
    const start = path === "" ? "" : path + "/";
    const inside = [...this.contents.keys()].filter((other) => other.startsWith(start)).map((other) => other.slice(start.length).split("/"));
    return [...new Map(inside.map((parts) => [parts[0], parts.length > 1]))];
  }
}

// The functions that the module imports; `memory` gives its memory, which moves as it grows.
export function systemOver(files, memory) {
  const open = new Map();  // descriptor → {path, content, at}
  const opened = (descriptor) => open.get(descriptor)?.content ? open.get(descriptor) : null;
  const view = () => new DataView(memory().buffer);
  const bytes = (at, size) => new Uint8Array(memory().buffer, at, size);
  const pathAt = (at, size) => name(new TextDecoder().decode(bytes(at, size)));

  // Through the pieces {address, size} of a list, until `move` moves less than a piece.
  const through = (list, count, move) => {
    let all = 0;
    for (let i = 0; i < count; ++i) {
      const at = view().getUint32(list + 8 * i, true), size = view().getUint32(list + 8 * i + 4, true);
      const moved = move(at, size);
      all += moved;
      if (moved < size) break;
    }
    return all;
  };
  const read = (descriptor, list, count, from, result) => {
    const file = opened(descriptor);
    if (!file) return open.has(descriptor) ? kIsDirectory : kBadDescriptor;
    let at = from ?? file.at;
    const all = through(list, count, (address, size) => {
      const piece = file.content.read(at, size);
      bytes(address, piece.length).set(piece);
      at += piece.length;
      return piece.length;
    });
    if (from === null) file.at = at;
    view().setUint32(result, all, true);
    return kOk;
  };
  const write = (descriptor, list, count, from, result) => {
    const file = opened(descriptor);
    if (!file && descriptor > 2) return kBadDescriptor;
    let at = from ?? (file ? file.at : 0);
    const all = through(list, count, (address, size) => {
      if (file) file.content.write(at, bytes(address, size).slice());
      else console.warn(new TextDecoder().decode(bytes(address, size)));  // a library's last words
      at += size;
      return size;
    });
    if (file && from === null) file.at = at;
    view().setUint32(result, all, true);
    return kOk;
  };
  const stat = (at, kind, size) => {
    bytes(at, 64).fill(0);
    view().setUint8(at + 16, kind);
    view().setBigUint64(at + 24, 1n, true);
    view().setBigUint64(at + 32, BigInt(size), true);
    return kOk;
  };

  return {
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return kOk;
    },
    environ_get: () => kOk,
    clock_time_get(clock, precision, result) {
      const milliseconds = clock === 0 ? Date.now() : performance.now();
      view().setBigUint64(result, BigInt(Math.round(milliseconds * 1e6)), true);
      return kOk;
    },
    fd_prestat_get(descriptor, result) {
      if (descriptor !== kRoot) return kBadDescriptor;
      view().setUint32(result, 0, true);
      view().setUint32(result + 4, 1, true);
      return kOk;
    },
    fd_prestat_dir_name(descriptor, at) {
      bytes(at, 1)[0] = "/".charCodeAt(0);
      return kOk;
    },
    fd_fdstat_get(descriptor, result) {
      if (descriptor > kRoot && !open.has(descriptor)) return kBadDescriptor;
      bytes(result, 24).fill(0);
      view().setUint8(result, descriptor < kRoot ? kCharacters : opened(descriptor) ? kRegularFile : kDirectory);
      bytes(result + 8, 16).fill(255);  // every right
      return kOk;
    },
    fd_fdstat_set_flags: () => kOk,
    fd_filestat_get(descriptor, result) {
      if (descriptor === kRoot) return stat(result, kDirectory, 0);
      const file = opened(descriptor);
      if (file) return stat(result, kRegularFile, file.content.size);
      return open.has(descriptor) ? stat(result, kDirectory, 0) : kBadDescriptor;
    },
    path_filestat_get(directory, flags, at, size, result) {
      const path = pathAt(at, size), content = files.contents.get(path);
      if (content) return stat(result, kRegularFile, content.size);
      return files.isDirectory(path) ? stat(result, kDirectory, 0) : kNoEntry;
    },
    path_open(directory, lookup, at, size, how, rights, inherited, flags, result) {
      const path = pathAt(at, size);
      if (!files.contents.has(path)) {
        if (!(how & kCreate) && !files.isDirectory(path)) return kNoEntry;
        if (how & kCreate) files.contents.set(path, new Content(new Uint8Array(0)));
      } else if (how & kWantDirectory) {
        return kNotDirectory;
      } else if (how & kTruncate) {
        files.contents.set(path, new Content(new Uint8Array(0)));
      }
      let descriptor = kRoot + 1;
      while (open.has(descriptor)) ++descriptor;
      open.set(descriptor, {path, content: files.contents.get(path) ?? null, at: 0});  // a folder has no content
      view().setUint32(result, descriptor, true);
      return kOk;
    },
    // Entries from the cookie-th on, until the room is used up: the last may be cut off, and is asked for again.
    fd_readdir(descriptor, at, room, cookie, result) {
      if (opened(descriptor)) return kNotDirectory;
      if (descriptor !== kRoot && !open.has(descriptor)) return kBadDescriptor;
      const entries = files.entries(open.get(descriptor)?.path ?? "");
      let used = 0;
      for (let i = Number(cookie); i < entries.length && used < room; ++i) {
        const called = new TextEncoder().encode(entries[i][0]), entry = new Uint8Array(24 + called.length), header = new DataView(entry.buffer);
        header.setBigUint64(0, BigInt(i + 1), true);  // the cookie of the next
        header.setBigUint64(8, 1n, true);
        header.setUint32(16, called.length, true);
        header.setUint8(20, entries[i][1] ? kDirectory : kRegularFile);
        entry.set(called, 24);
        const piece = entry.subarray(0, room - used);
        bytes(at + used, piece.length).set(piece);
        used += piece.length;
      }
      view().setUint32(result, used, true);
      return kOk;
    },
    fd_close: (descriptor) => open.delete(descriptor) ? kOk : kBadDescriptor,
    fd_read: (descriptor, list, count, result) => read(descriptor, list, count, null, result),
    fd_pread: (descriptor, list, count, from, result) => read(descriptor, list, count, Number(from), result),
    fd_write: (descriptor, list, count, result) => write(descriptor, list, count, null, result),
    fd_pwrite: (descriptor, list, count, from, result) => write(descriptor, list, count, Number(from), result),
    fd_seek(descriptor, offset, whence, result) {
      const file = opened(descriptor);
      if (!file) return kBadDescriptor;
      const at = [0, file.at, file.content.size][whence] + Number(offset);
      if (at < 0) return kInvalid;
      file.at = at;
      view().setBigUint64(result, BigInt(at), true);
      return kOk;
    },
    fd_sync: () => kOk,
    path_rename(directory, at, size, toDirectory, toAt, toSize) {
      const from = pathAt(at, size), content = files.contents.get(from);
      if (!content) return kNoEntry;
      files.contents.delete(from);
      files.contents.set(pathAt(toAt, toSize), content);
      return kOk;
    },
    path_unlink_file: (directory, at, size) => files.contents.delete(pathAt(at, size)) ? kOk : kNoEntry,
    proc_exit(code) { throw new Error(`the planner ended itself with ${code}`); },
  };
}
