"""Snapshots and messages as they would be without the null device: its own frames are taken out. And what a snapshot says of the moment of failure."""

import pathlib
import pickle
import re

OWN = re.compile(r"/snug-measure-\w+/")
FRAME = re.compile(r'^(?:\[rank\d+\]: ?)?\s*(?:\||│)?\s*File "([^"]+)", line \d+')


def clean_message(text):
    kept, inside = [], False
    for line in text.splitlines():
        frame = FRAME.match(line)
        if frame:
            inside = bool(OWN.search(frame[1]))
        elif inside and not re.match(r"^(?:\[rank\d+\]: ?)? {4}", line):
            inside = False
        if not inside and not line.startswith("snug measure: "):
            kept.append(line)
    return "\n".join(kept) + "\n"


def clean_snapshot(path):
    snapshot = pickle.loads(pathlib.Path(path).read_bytes())
    seen = set()
    events = [event for trace in snapshot["device_traces"] for event in trace]
    for holder in [*events, *(block for segment in snapshot["segments"] for block in (segment, *segment["blocks"]))]:
        frames = holder.get("frames")
        if frames and id(frames) not in seen:
            seen.add(id(frames))
            frames[:] = [frame for frame in frames if not OWN.search(frame["filename"])]
    pathlib.Path(path).write_bytes(pickle.dumps(snapshot))


def held_and_asked(path):
    """Bytes in tensors when memory ran out, with those that were asked for."""
    snapshot = pickle.loads(pathlib.Path(path).read_bytes())
    asked = [event["size"] for trace in snapshot["device_traces"] for event in trace if event["action"] == "oom"]
    held = sum(block["size"] for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated")
    return held + asked[0]
