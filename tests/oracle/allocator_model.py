"""A plain model of PyTorch's caching allocator: lists and loops, written from its rules, nothing shared with src/torch. It keeps
every event and every state, and writes them as a memory snapshot of PyTorch 2.0 to 2.14."""

MIB = 1 << 20
KIB = 1 << 10


class OutOfMemory(Exception):
    pass


class Model:
    """One device. A segment is {address, size, key, spans}; spans are [address, size, requested, state, stack] in order. With
    expandable segments a segment is address space, and `pages` the set of mapped pages of it. `limit`: bytes of the device;
    `allowed`: of them to this process, none: all, and no garbage is collected; `own`: pools with an allocator of their own."""

    def __init__(self, limit, divisions=0, max_split=None, expandable=False, allowed=None, collect=0.0, rounding=20 * MIB,
                 large=20 * MIB, own=()):  # fmt: skip
        self.limit, self.divisions, self.max_split, self.expandable = limit, divisions, max_split, expandable
        self.allowed, self.collect, self.rounding, self.large, self.own = allowed, collect, rounding, large, set(own)
        self.segments, self.events, self.states, self.clock, self.next = [], [], [], 1_000_000, 0x7F0000000000
        self.captures, self.users, self.calls, self.searches, self.waited = 0, {}, [], 0, []

    # --- rules ---

    def rounded(self, n):
        if n < 512:
            return 512
        divisions = self.divisions
        if isinstance(divisions, dict):  # by the power of two in MiB, its ends for all beyond
            divisions = divisions[min(max((n // MIB).bit_length() - 1, 0), 15)]
        if divisions > 1 and n > 512 * divisions:
            floor = 1 << (n.bit_length() - 1)
            step = floor // divisions
            n = -(-n // step) * step if floor != n else n
        return -(-n // 512) * 512

    def page(self, key):
        return 2 * MIB if key[2] else self.large

    def expands(self, key):
        return self.expandable and key[1] not in self.own

    def splits(self, held, n, key):
        if key[2] or self.expands(key):
            return held - n >= 512
        return (self.max_split is None or n < self.max_split) and held - n > MIB

    # --- state ---

    def free_runs(self, segment):
        """[address, size] of the free memory of a segment, whole runs."""
        runs, at = [], segment["address"]
        if "pages" not in segment:
            for span in [*segment["spans"], [segment["address"] + segment["size"], 0]]:
                if span[0] > at:
                    runs.append([at, span[0] - at])
                at = span[0] + span[1]
            return runs
        page, used = self.page(segment["key"]), segment["spans"]
        for index in sorted(segment["pages"]):
            begin, end = segment["address"] + index * page, segment["address"] + (index + 1) * page
            for span in [s for s in used if s[0] < end and s[0] + s[1] > begin] + [[end, 0]]:
                if span[0] > begin:
                    if runs and runs[-1][0] + runs[-1][1] == begin:
                        runs[-1][1] += min(span[0], end) - begin
                    else:
                        runs.append([begin, min(span[0], end) - begin])
                begin = max(begin, min(span[0] + span[1], end))
        return runs

    def mapped(self, segment):
        return len(segment["pages"]) * self.page(segment["key"]) if "pages" in segment else segment["size"]

    def reserved(self):
        return sum(self.mapped(segment) for segment in self.segments)

    def totals(self):
        spans = [span for segment in self.segments for span in segment["spans"]]
        return [sum(s[2] for s in spans), sum(s[1] for s in spans if s[3] == "active_allocated"), sum(s[1] for s in spans),
                self.reserved(), sum(self.mapped(s) for s in self.segments if not s["spans"])]  # fmt: skip

    def event(self, action, **entries):
        self.clock += 10
        self.events.append({"action": action, **entries, "time_us": self.clock})
        self.states.append(self.totals())

    # --- what the program does ---

    def malloc(self, requested, stack=0, stream=0, pool=(0, 0)):
        n = self.rounded(requested)
        key = (stream, pool, n <= MIB)
        self.searches += pool == (0, 0) and n > MIB
        found = self.cached(n, key) or self.collected(n, key) or self.release_oversize(n, key) or self.retry(n, key)
        if not found:
            self.event("oom", device_free=self.limit - self.reserved(), size=n, stream=stream, stack=stack, pool=pool)
            raise OutOfMemory
        segment, address, held = found
        size = n if self.splits(held, n, key) else held
        segment["spans"].append([address, size, requested, "active_allocated", stack])
        segment["spans"].sort()
        self.event("alloc", addr=address, size=requested, stream=stream, stack=stack, pool=pool)
        return address

    def request_free(self, address):
        segment, span = self.find(address)
        span[3] = "active_pending_free"
        self.event("free_requested", addr=address, size=span[2], stream=segment["key"][0], stack=span[4], pool=segment["key"][1])

    def complete_free(self, address):
        segment, span = self.find(address)
        segment["spans"].remove(span)
        if not segment["spans"]:
            segment["idle_since"] = self.searches
        self.event("free_completed", addr=address, size=span[2], stream=segment["key"][0], stack=span[4], pool=segment["key"][1])

    def free(self, address):
        self.request_free(address)
        self.complete_free(address)

    def is_pending(self, address):
        return any(span[0] == address and span[3] == "active_pending_free" for s in self.segments for span in s["spans"])

    # What a program does that leaves no event: each is noted with the number of events before it.

    def call(self, name, pool=(0, 0)):
        self.calls.append([len(self.events), name, *pool])

    def begin_capture(self):
        self.call("begin_capture")
        self.captures += 1

    def end_capture(self):
        self.call("end_capture")
        self.captures -= 1

    def use_pool(self, pool):
        self.call("use_pool", pool)
        self.users[pool] = self.users.get(pool, 1) + 1

    def release_pool(self, pool):
        self.call("release_pool", pool)
        self.users[pool] = self.users.get(pool, 1) - 1

    def empty_cache(self):
        self.call("release_cached")
        self.release_all()

    def find(self, address):
        return next((segment, span) for segment in self.segments for span in segment["spans"] if span[0] == address)

    # --- how memory is found ---

    def cached(self, n, key):
        fits = sorted((run[1], run[0], segment["address"]) for segment in self.segments if segment["key"] == key
                      for run in self.free_runs(segment) if run[1] >= n)  # fmt: skip
        if not fits:
            return None
        owner = {segment["address"]: segment for segment in self.segments}
        at = 0
        if self.expands(key):
            room = [size + self.unmapped_behind(owner[home], address + size) for size, address, home in fits]
            while at + 1 < len(fits) and room[at + 1] < room[at]:
                at += 1
        size, address, home = fits[at]
        if self.max_split is not None:
            if n < self.max_split <= size or (n >= self.max_split and size >= n + self.rounding):
                return None
        return owner[home], address, size

    def unmapped_behind(self, segment, end):
        page, index = self.page(segment["key"]), (end - segment["address"]) // self.page(segment["key"])
        if (end - segment["address"]) % page or index in segment["pages"]:
            return 0
        above = [i for i in segment["pages"] if i > index]
        return ((min(above) if above else segment["size"] // page) - index) * page

    def collected(self, n, key):
        """Where garbage is collected, segments of the common large pool that have been idle for longer than their mean go
        first, again and again until enough is gone."""
        over = self.reserved() - int(self.collect * self.allowed) if self.allowed and self.collect else 0
        idle = [s for s in self.segments if s["key"][1:] == ((0, 0), False) and "pages" not in s and not s["spans"]]
        while over > 0 and idle:
            ages = [self.searches - s["idle_since"] for s in idle]
            mean = sum(ages) / len(ages)
            for segment in [s for s, age in zip(idle, ages) if age >= mean]:
                over -= segment["size"]
                idle.remove(segment)
                self.give_back(segment)
        return self.reserve(n, key)

    def reserve(self, n, key):
        size = 2 * MIB if key[2] else self.large if n < 10 * MIB else -(-n // (2 * MIB)) * 2 * MIB
        if self.allowed is not None and self.reserved() + size > self.allowed:
            return None
        if self.expands(key):
            return self.expand(n, key)
        if self.reserved() + size > self.limit:
            return None
        segment = self.add_segment(size, key)
        self.event("segment_alloc", addr=segment["address"], size=size, stream=key[0], stack=0, pool=key[1])
        return segment, segment["address"], size

    def add_segment(self, size, key):
        self.segments.append({"address": self.next, "size": size, "key": key, "spans": []})
        self.next += -(-size // (2 * MIB)) * 2 * MIB
        return self.segments[-1]

    def expand(self, n, key):
        """The lowest hole, with the free run before it, that has room; its pages are mapped one request at a time."""
        for segment in sorted((s for s in self.segments if s["key"] == key), key=lambda s: s["address"]):
            start = self.lowest_room(segment, n)
            if start is not None:
                return self.map_from(segment, start, n)
        segment = self.add_segment(1 << 41, key)
        segment["pages"] = set()
        segment["size"] = -(-(1 << 41) // self.page(key)) * self.page(key)
        return self.map_from(segment, segment["address"], n)

    def lowest_room(self, segment, n):
        page, count = self.page(segment["key"]), segment["size"] // self.page(segment["key"])
        holes = [i for i in range(max(segment["pages"], default=-1) + 2) if i not in segment["pages"] and i < count]
        for index in (i for i in holes if i == 0 or i - 1 in segment["pages"]):
            hole = segment["address"] + index * page
            start = next((r[0] for r in self.free_runs(segment) if r[0] + r[1] == hole), hole)
            end = min((s[0] for s in segment["spans"] if s[0] >= hole), default=segment["address"] + segment["size"])
            if end - start >= n:
                return start
        return None

    def map_from(self, segment, start, n):
        page = self.page(segment["key"])
        have = 0
        while have < n:
            run = next((r for r in self.free_runs(segment) if r[0] == start), None)
            have = run[1] if run else 0
            if have >= n:
                break
            first = (start + have - segment["address"]) // page
            above = [i for i in segment["pages"] if i > first]
            count = min(-(-(n - have) // page), (min(above) if above else segment["size"] // page) - first)
            if self.reserved() + count * page > self.limit:
                return None
            segment["pages"] |= set(range(first, first + count))
            self.event("segment_map", addr=segment["address"] + first * page, size=count * page, stream=segment["key"][0], stack=0,
                       pool=segment["key"][1])  # fmt: skip
        return segment, start, have

    def give_back(self, segment):
        self.segments.remove(segment)
        self.event("segment_free", addr=segment["address"], size=segment["size"], stream=segment["key"][0], stack=0, pool=segment["key"][1])

    def release_oversize(self, n, key):
        if self.max_split is None:
            return None
        idle = [s for s in self.segments if s["key"] == key and not s["spans"]]
        runs = sorted((r[1], r[0], s["address"]) for s in self.segments if s["key"] == key for r in self.free_runs(s))
        enough = [run for run in runs if run[0] >= max(n, self.max_split)]
        by_address = {s["address"]: s for s in idle}
        whole = lambda run: run[2] in by_address  # noqa: E731
        if enough:
            if not whole(enough[0]):
                return None
            self.give_back(by_address[enough[0][2]])
            return self.reserve(n, key)
        released = 0
        while released < n and runs and runs[-1][0] >= self.max_split and whole(runs[-1]):
            released += runs[-1][0]
            self.give_back(by_address[runs.pop()[2]])
        return self.reserve(n, key) if released >= n else None

    def retry(self, n, key):
        if self.captures:
            return None
        self.release_all()
        return self.reserve(n, key)

    def release_all(self):
        """Waits for other streams; then gives back what is idle, but of private pools only where nobody uses them."""
        for address in [span[0] for s in self.segments for span in s["spans"] if span[3] == "active_pending_free"]:
            self.waited.append(len(self.events))
            self.complete_free(address)
        free = [s for s in self.segments if s["key"][1] == (0, 0) or self.users.get(s["key"][1], 1) == 0]
        for segment in [s for s in free if "pages" not in s and not s["spans"]]:
            self.give_back(segment)
        for segment in [s for s in free if "pages" in s]:
            page = self.page(segment["key"])
            for address, size in self.free_runs(segment):
                first, end = -(-(address - segment["address"]) // page), (address + size - segment["address"]) // page
                if end > first:
                    segment["pages"] -= set(range(first, end))
                    self.event("segment_unmap", addr=segment["address"] + first * page, size=(end - first) * page,
                               stream=segment["key"][0], stack=0, pool=segment["key"][1])  # fmt: skip

    # --- the file ---

    def blocks(self, segment, begin, end, stacks):
        spans = [[*s] for s in segment["spans"] if begin <= s[0] < end]
        spans += [[a, n, 0, "inactive", 0] for a, n in self.free_runs(segment) if begin <= a < end]
        return [{"address": a, "size": n, "requested_size": r, "state": state, "frames": stacks[stack] if state != "inactive" else []}
                for a, n, r, state, stack in sorted(spans)]  # fmt: skip

    def stretches(self, segment):
        if "pages" not in segment:
            return [(segment["address"], segment["address"] + segment["size"])]
        page, found = self.page(segment["key"]), []
        for index in sorted(segment["pages"]):
            begin = segment["address"] + index * page
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], begin + page)
            else:
                found.append((begin, begin + page))
        return found

    def file_segments(self, stacks):
        segments = []
        for segment in self.segments:
            for begin, end in self.stretches(segment):
                blocks = self.blocks(segment, begin, end, stacks)
                active = [b for b in blocks if b["state"] != "inactive"]
                segments.append({
                    "device": 0, "address": begin, "total_size": end - begin,
                    "allocated_size": sum(b["size"] for b in active if b["state"] == "active_allocated"),
                    "active_size": sum(b["size"] for b in active), "requested_size": sum(b["requested_size"] for b in active),
                    "stream": segment["key"][0], "segment_type": "small" if segment["key"][2] else "large",
                    "segment_pool_id": segment["key"][1], "is_expandable": "pages" in segment, "frames": [], "blocks": blocks,
                })  # fmt: skip
        return segments

    def text(self):
        """The settings that the table below leaves out."""
        said = ["release_lock_on_cudamalloc:True"] * (self.large != 20 * MIB or self.rounding != 20 * MIB)
        said += [f"large_segment_size_mb: {self.large // MIB}"] * (self.large != 20 * MIB)
        return ", ".join(said + [f"max_non_split_rounding_mb:{self.rounding // MIB}"] * (self.rounding != 20 * MIB))

    def snapshot(self, last=None, pool_id=False, skip=(), frames=True):
        names = [{"filename": f"/app/model/part_{i % 3}.py", "name": f"forward_{i}", "line": 10 * i} for i in range(12)]
        stacks = [[]] + [[names[i], names[i + 1], names[11]] if frames else [] for i in range(10)]
        trace = []
        for event in self.events[-last:] if last else self.events:
            if event["action"] in skip:
                continue
            entry = {key: value for key, value in event.items() if key not in ("stack", "pool")}
            entry |= {"compile_context": "N/A", "user_metadata": "", "frames": list(stacks[event["stack"]])}
            trace.append(entry | {"pool_id": event["pool"]} if pool_id else entry)
        settings = {"PYTORCH_CUDA_ALLOC_CONF": self.text(), "max_split_size": -1 if self.max_split is None else self.max_split,
                    "garbage_collection_threshold": self.collect, "expandable_segments": self.expandable,
                    "roundup_power2_divisions": {str(1 << i): self.divisions for i in range(16)}}  # fmt: skip
        return {"segments": self.file_segments(stacks), "device_traces": [trace], "allocator_settings": settings,
                "external_annotations": [{"stage": "START", "name": "step", "device": 0, "time_us": 5},
                                         {"stage": "END", "name": "step", "device": 0, "time_us": 9}]}  # fmt: skip
