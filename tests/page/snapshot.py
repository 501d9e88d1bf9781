"""Writes a memory snapshot as torch.cuda.memory._dump_snapshot does, of a training run as long as wished: snapshot.py FILE MEGABYTES"""

import pickle
import sys

LAYERS = 32
STEP_BYTES = 110 * LAYERS * 30  # of the file, about


def frames(function, line):
    inner = [{"name": "torch::unwind::unwind()", "filename": "??", "line": 0}, {"name": "at::native::empty_cuda", "filename": "??", "line": 0}]
    return inner + [{"name": function, "filename": "/home/user/train/model.py", "line": line},
                    {"name": "_call_impl", "filename": "/usr/lib/python3/torch/nn/modules/module.py", "line": 1790},
                    {"name": "forward", "filename": "/home/user/train/model.py", "line": 400},
                    {"name": "main", "filename": "/home/user/train/train.py", "line": 52}]


def write(path, megabytes):
    where = [frames(f"op_{i}", 100 + i) for i in range(200)]
    trace, time_us, steps = [], 1_700_000_000_000_000, int(megabytes * 1e6 / STEP_BYTES)
    base, block = 0x7F0000000000, 2 << 20

    def event(action, address, size, stack):
        nonlocal time_us
        time_us += 7
        trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us, "compile_context": "N/A",
                      "user_metadata": "", "frames": where[stack]})

    segments = LAYERS * 14
    for i in range(segments):
        event("segment_alloc", base + i * block, block, i % 200)
    for step in range(steps):
        for i in range(segments):  # forward keeps, backward gives back
            event("alloc", base + i * block, block - 512 * (step % 3), i % 200)
        for i in reversed(range(segments)):
            event("free_requested", base + i * block, block - 512 * (step % 3), (i + 7) % 200)
            event("free_completed", base + i * block, block - 512 * (step % 3), (i + 7) % 200)
    held = [{"device": 0, "address": base + i * block, "total_size": block, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0,
             "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": where[i % 200],
             "blocks": [{"address": base + i * block, "size": block, "requested_size": 0, "state": "inactive", "frames": []}]} for i in range(segments)]
    with open(path, "wb") as file:
        pickle.dump({"segments": held, "device_traces": [trace], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                     "garbage_collection_threshold": 0.0, "expandable_segments": False}, "external_annotations": []}, file, protocol=4)


if __name__ == "__main__":
    write(sys.argv[1], float(sys.argv[2]))
