// The trace as `snug explain --html` embeds it, and what follows from it. A position is a number of events played: 0 is what was
// there before the trace, `events` its end. Nothing here takes time by the number of events once the page is loaded, but for
// `momentAt`, which looks once at every block. Draws nothing.

// "21.30 GiB": as the program prints sizes in its answers.
function sizeText(bytes) {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : bytes + " bytes";
  const units = ["KiB", "MiB", "GiB"];
  let value = bytes / 1024, unit = 0;
  while (value >= 1024 && unit + 1 < units.length) { value /= 1024; ++unit; }
  return value.toFixed(2) + " " + units[unit];
}

const countText = (count) => count.toLocaleString("en-US");
const kHoldingColours = ["older", "weights", "gradients", "optimizer", "activations", "loss", "backward", "workspaces", "other"];
const kHoldingsUpwards = [0, 1, 3, 2, 4, 5, 6, 7, 8];  // what stays lies at the bottom of the areas
const kLinesShown = 12;

// The records of the page: 32 bytes each, little-endian.
function decodeRecords(count) {
  const bytes = new Uint8Array(count * 32);
  let at = 0;
  for (const part of document.querySelectorAll("script.records")) {
    if (bytes.setFromBase64) {
      at += bytes.subarray(at).setFromBase64(part.textContent).written;
    } else {
      const letters = atob(part.textContent);
      for (let i = 0; i < letters.length; ++i) bytes[at++] = letters.charCodeAt(i);
    }
    part.remove();
  }
  if (at !== bytes.length) throw new Error("the page is cut short: " + at + " of " + bytes.length + " bytes of records");
  return {whole: new Uint32Array(bytes.buffer), wide: new Float64Array(bytes.buffer)};
}

// Numbers of records in the order of their addresses. There are far fewer addresses than records.
function byAddress(records, wide) {
  const ranks = new Map();
  for (const r of records) ranks.set(wide[4 * r + 2], 0);
  Float64Array.from(ranks.keys()).sort().forEach((address, rank) => ranks.set(address, rank));
  const starts = new Uint32Array(ranks.size + 1), sorted = new Uint32Array(records.length);
  for (const r of records) ++starts[ranks.get(wide[4 * r + 2]) + 1];
  for (let i = 1; i < starts.length; ++i) starts[i] += starts[i - 1];
  for (const r of records) sorted[starts[ranks.get(wide[4 * r + 2])]++] = r;
  return sorted;
}

// Columns of blocks or of stretches of reserved memory, by address.
function columnsOf(records, {whole, wide}) {
  const sorted = byAddress(records, wide), count = sorted.length;
  const columns = {count, first: new Uint32Array(count), asked: new Uint32Array(count), end: new Uint32Array(count),
    kind: new Uint32Array(count), address: new Float64Array(count), bytes: new Float64Array(count)};
  for (let i = 0; i < count; ++i) {
    const r = sorted[i];
    columns.first[i] = whole[8 * r];
    columns.asked[i] = whole[8 * r + 1];
    columns.end[i] = whole[8 * r + 2];
    columns.kind[i] = whole[8 * r + 3];
    columns.address[i] = wide[4 * r + 2];
    columns.bytes[i] = wide[4 * r + 3];
  }
  return columns;
}

// Bytes at every position.
function totalsOf(columns, positions) {
  const total = new Float64Array(positions + 1);
  for (let i = 0; i < columns.count; ++i) {
    total[columns.first[i]] += columns.bytes[i];
    total[columns.end[i]] -= columns.bytes[i];
  }
  for (let p = 1; p < positions; ++p) total[p] += total[p - 1];
  return total.subarray(0, positions);
}

// Where the largest of a stretch of `values` is, by looking at a few dozen of them: each level knows it of 16 of the one below.
function highestOf(values) {
  const kFan = 16, levels = [];
  for (let below = values.length; below > kFan; below = levels[levels.length - 1].length) {
    const lower = levels[levels.length - 1], level = new Uint32Array(Math.ceil(below / kFan));
    for (let i = 0; i < level.length; ++i) {
      let best = lower ? lower[i * kFan] : i * kFan;
      for (let k = i * kFan + 1; k < Math.min(below, (i + 1) * kFan); ++k) {
        const other = lower ? lower[k] : k;
        if (values[other] > values[best]) best = other;
      }
      level[i] = best;
    }
    levels.push(level);
  }
  // The first of the highest in [from, to).
  return (from, to) => {
    let best = from;
    const look = (p) => { if (values[p] > values[best] || (values[p] === values[best] && p < best)) best = p; };
    for (let depth = 0, level = null; from < to; level = levels[depth++]) {
      const at = (i) => (level ? level[i] : i), isTop = depth === levels.length;
      while (from < to && (isTop || from % kFan !== 0)) look(at(from++));
      while (from < to && to % kFan !== 0) look(at(--to));
      from /= kFan;
      to /= kFan;
    }
    return best;
  };
}

// Blocks that begin or end at each position: 2 * block, + 1 where it ends; those of p are changes[starts[p]] … [starts[p + 1]].
function changesOf(blocks, positions) {
  const starts = new Uint32Array(positions + 2), changes = new Uint32Array(2 * blocks.count);
  for (let i = 0; i < blocks.count; ++i) { ++starts[blocks.first[i] + 1]; ++starts[blocks.end[i] + 1]; }
  for (let p = 1; p < starts.length; ++p) starts[p] += starts[p - 1];
  const next = starts.slice();
  for (let i = 0; i < blocks.count; ++i) {
    changes[next[blocks.first[i]]++] = 2 * i;
    changes[next[blocks.end[i]]++] = 2 * i + 1;
  }
  return {starts, changes};
}

// Sums of groups at any position: they are kept at every 64th and counted on from there.
function groupSums(blocks, groupOfKind, groups, changes, positions) {
  const kEvery = 64, kept = new Float64Array(Math.ceil(positions / kEvery) * groups), sums = new Float64Array(groups);
  const play = (p) => {
    for (let c = changes.starts[p]; c < changes.starts[p + 1]; ++c) {
      const change = changes.changes[c], block = change >> 1;
      sums[groupOfKind[blocks.kind[block]]] += change & 1 ? -blocks.bytes[block] : blocks.bytes[block];
    }
  };
  for (let p = 0; p < positions; ++p) {
    play(p);
    if (p % kEvery === 0) kept.set(sums, p / kEvery * groups);
  }
  // In an array that the next call writes again.
  return (position) => {
    const from = Math.floor(position / kEvery);
    for (let g = 0; g < groups; ++g) sums[g] = kept[from * groups + g];
    for (let p = from * kEvery + 1; p <= position; ++p) play(p);
    return sums;
  };
}

// The most that each line holds at any time.
function mostByHolder(blocks, stacks, holders, changes) {
  const now = new Float64Array(holders), most = new Float64Array(holders);
  for (const change of changes.changes) {
    const block = change >> 1, holder = stacks[blocks.kind[block]][0];
    now[holder] += change & 1 ? -blocks.bytes[block] : blocks.bytes[block];
    if (now[holder] > most[holder]) most[holder] = now[holder];
  }
  return most;
}

// The two ways to colour: {names, colours, groupOfKind, groupOfHolder, sumsAt}, groups from the bottom of the areas upwards.
function groupingsOf(trace) {
  const make = (names, colours, groupOfHolder) => {
    const groupOfKind = Uint16Array.from(trace.stacks, (stack) => groupOfHolder[stack[0]]);
    return {names, colours, groupOfHolder,
      groupOf: (block) => groupOfKind[trace.blocks.kind[block]],
      sumsAt: groupSums(trace.blocks, groupOfKind, names.length, trace.changes, trace.events + 1)};
  };
  const purpose = () => make(kHoldingsUpwards.map((h) => trace.holdings[h]), kHoldingsUpwards.map((h) => kHoldingColours[h]),
    trace.holders.map(([holding]) => kHoldingsUpwards.indexOf(holding)));
  const line = () => {
    const most = mostByHolder(trace.blocks, trace.stacks, trace.holders.length, trace.changes);
    const largest = [...most.keys()].sort((a, b) => most[b] - most[a]).slice(0, kLinesShown);
    const others = trace.holders.length > largest.length;
    return make(largest.map((h) => trace.holders[h][1]).concat(others ? ["all other lines"] : []),
      largest.map((_, i) => "shade-" + i).concat(others ? ["rest"] : []),
      trace.holders.map((_, h) => (largest.includes(h) ? largest.indexOf(h) : largest.length)));
  };
  const made = {};
  return (name) => (made[name] ||= name === "line" ? line() : purpose());
}

// What each event did, for `eventText`: 8 * (number + 1) + kind of what began, was freed or ended.
const kAllocated = 0, kAsked = 1, kFreed = 2, kReserved = 3, kGivenBack = 4;
function deedsOf(trace) {
  const deeds = new Uint32Array(trace.events + 2), {blocks, reserved} = trace;
  for (let i = 0; i < reserved.count; ++i) {
    deeds[reserved.first[i]] = 8 * (i + 1) + kReserved;
    deeds[reserved.end[i]] = 8 * (i + 1) + kGivenBack;
  }
  for (let i = 0; i < blocks.count; ++i) {
    deeds[blocks.asked[i]] = 8 * (i + 1) + kAsked;
    deeds[blocks.end[i]] = 8 * (i + 1) + kFreed;
  }
  for (let i = 0; i < blocks.count; ++i) if (!trace.isOlder(i)) deeds[blocks.first[i]] = 8 * (i + 1) + kAllocated;
  return deeds;
}

// Segments at a position, by address: expandable stretches that touch are one. In address order, as the blocks in `live`.
function segmentsAt(trace, position) {
  const {first, end, address, bytes, kind, count} = trace.reserved, segments = [];
  for (let i = 0; i < count; ++i) {
    if (first[i] > position || end[i] <= position) continue;
    const last = segments[segments.length - 1], expandable = (kind[i] & 1) === 1;
    if (last && expandable && last.expandable && last.address + last.bytes === address[i]) last.bytes += bytes[i];
    else segments.push({address: address[i], bytes: bytes[i], expandable, small: (kind[i] & 2) === 2, from: 0, to: 0, used: 0});
  }
  return segments;
}

// Blocks of each segment ([from, to) of `live`), and the largest gap that they leave.
function placeBlocks(blocks, live, count, segments) {
  const gap = {address: 0, bytes: 0};
  const offer = (from, to) => { if (to - from > gap.bytes) { gap.address = from; gap.bytes = to - from; } };
  let next = 0;
  for (const segment of segments) {
    const end = segment.address + segment.bytes;
    while (next < count && blocks.address[live[next]] < segment.address) ++next;  // outside of every segment
    let free = segment.address;
    for (segment.from = next; next < count && blocks.address[live[next]] < end; ++next) {
      const at = blocks.address[live[next]];
      offer(free, at);
      free = Math.max(free, at + blocks.bytes[live[next]]);
      segment.used += blocks.bytes[live[next]];
    }
    segment.to = next;
    offer(free, end);
  }
  return gap;
}

// What was held at a position. `live` is an array that the next call writes again: numbers of blocks by address.
function momentAt(trace, position) {
  const {first, asked, end, bytes, kind, count} = trace.blocks, live = trace.live;
  const byHolder = new Float64Array(trace.holders.length), blocksOf = new Uint32Array(trace.holders.length);
  let found = 0, active = 0, pending = 0;
  for (let i = 0; i < count; ++i) {
    if (first[i] > position || end[i] <= position) continue;
    live[found++] = i;
    const holder = trace.holderOfKind[kind[i]];
    byHolder[holder] += bytes[i];
    ++blocksOf[holder];
    active += bytes[i];
    if (asked[i] <= position) pending += bytes[i];
  }
  const byHolding = new Float64Array(trace.holdings.length);
  byHolder.forEach((sum, holder) => { byHolding[trace.holders[holder][0]] += sum; });
  const segments = segmentsAt(trace, position), gap = placeBlocks(trace.blocks, live, found, segments);
  const lines = [...byHolder.keys()].filter((h) => blocksOf[h] > 0).sort((a, b) => byHolder[b] - byHolder[a]);
  return {position, live, count: found, active, allocated: active - pending, reserved: trace.reservedTotal[position], byHolding,
    byHolder, blocksOf, lines, segments, gap};
}

function readTrace() {
  const data = JSON.parse(document.getElementById("trace-data").textContent), {explanation} = data;
  const decoded = decodeRecords(data.records), records = [[], []];
  for (let r = 0; r < data.records; ++r) records[decoded.whole[8 * r + 3] >>> 31].push(r);
  const events = explanation.events, blocks = columnsOf(records[0], decoded), reserved = columnsOf(records[1], decoded);
  const trace = {...data, events, blocks, reserved, live: new Uint32Array(blocks.count),
    holderOfKind: Uint32Array.from(data.stacks, (stack) => stack[0]),
    isOlder: (block) => data.stacks[blocks.kind[block]][1] === 1,
    total: totalsOf(blocks, events + 1), reservedTotal: totalsOf(reserved, events + 1),
    changes: changesOf(blocks, events + 1)};
  const oomAt = new Map(data.ooms.map(([event, asked, free]) => [event, {asked, free}]));
  trace.highest = highestOf(trace.total);
  trace.highestReserved = highestOf(trace.reservedTotal);
  trace.grouping = groupingsOf(trace);
  trace.oomAt = (position) => oomAt.get(position);
  trace.lineOf = (block) => trace.holders[trace.holderOfKind[blocks.kind[block]]][1];
  trace.holdingOf = (block) => trace.holdings[trace.holders[trace.holderOfKind[blocks.kind[block]]][0]];
  trace.framesOf = (block) => data.stacks[blocks.kind[block]].slice(2).map((frame) => data.frames[frame]);
  const deeds = deedsOf(trace);
  // What the event that led to a position did; of a position above 0.
  trace.eventText = (position) => {
    if (trace.oomAt(position - 1)) return "memory ran out";
    const deed = deeds[position], what = (deed >>> 3) - 1;
    if (deed === 0) return "no change of memory";
    if ((deed & 7) >= kReserved) {
      const change = trace.reservedTotal[position] - trace.reservedTotal[position - 1];
      return `${sizeText(Math.abs(change))} ${change < 0 ? "given back to" : "reserved from"} the device`;
    }
    const verb = ["allocated", "freed, while another stream may use it", "freed"][deed & 7];
    return `${sizeText(blocks.bytes[what])} ${verb}: ${trace.lineOf(what)}`;
  };
  return trace;
}
