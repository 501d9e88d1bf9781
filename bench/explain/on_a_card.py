#!/usr/bin/env python3
"""Runs out of memory on a real card, each time for a reason set on purpose, and keeps what PyTorch tells: DIR/CASE.txt (the traceback) and
DIR/CASE.pickle (the allocator's snapshot). Models are made on the card, their sizes by its memory.

  on_a_card.py DIR [CASE…]          then: snug explain DIR/CASE.pickle, snug explain DIR/CASE.txt"""
import os, pathlib, subprocess, sys, time, traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))
LLAMA_8B, LLAMA_1B = "meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.2-1B"


def cases(total):
    """Each cause by its name in explain, and a run that has it on a card of so many bytes."""
    tokens = lambda at_80_gb: int(at_80_gb * total / 85e9)  # noqa: E731
    layers = lambda share, layer, rest: round((share * total - rest) / layer)  # so that weights take this share  # noqa: E731
    return {
        "activations": dict(model=LLAMA_8B, checkpointing="none", batch=tokens(16), seq=2048),
        "logits": dict(model=LLAMA_1B, batch=tokens(48), seq=2048),
        "attention": dict(model=LLAMA_1B, attention="eager", batch=2, seq=int(12288 * (total / 85e9) ** 0.5)),
        "optimizer_states": dict(model=LLAMA_8B, method="full", weights="float32", layers=layers(0.29, 0.873e9, 4.2e9), batch=1),
        "gradients": dict(model="Qwen/Qwen2.5-32B", method="full", layers=layers(0.6, 0.975e9, 3.1e9), batch=1),
        "other_process": dict(model=LLAMA_8B, batch=1, hold=total // 2**30 - 14),
        "kept_graphs": dict(model=LLAMA_1B, batch=4, seq=1024, kept=True, checkpointing="none", steps=60),
    }


HOLD = "import torch, sys; x = torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device='cuda'); print('held', flush=True); sys.stdin.read()"


def train(row):
    import torch
    import eager_goldens
    eager_goldens.ON_A_CARD = True
    with torch.device("cuda"):
        model = eager_goldens.build(row, torch).train()
    if row["checkpointing"] != "none":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5)
    losses = []
    for _ in range(row.get("steps", 2)):
        ids = torch.randint(0, 1000, (row["batch"], row["seq"]), device="cuda")
        loss = model(input_ids=ids, labels=ids).loss
        if row.get("kept"):
            losses.append(loss)
            continue
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def run(case, folder):
    import torch
    import eager_goldens
    row = eager_goldens.SETTINGS | cases(torch.cuda.get_device_properties(0).total_memory)[case]
    other = None
    if row.get("hold"):
        other = subprocess.Popen([sys.executable, "-c", HOLD, str(row["hold"])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        other.stdout.readline()
    torch.cuda.memory._record_memory_history(max_entries=60000)
    try:
        train(row)
        print(f"{case}: did not run out")
    except torch.OutOfMemoryError:
        text = traceback.format_exc()
        torch.cuda.memory._dump_snapshot(str(folder / f"{case}.pickle"))
        (folder / f"{case}.txt").write_text(text)
        print(f"{case}: {text.strip().splitlines()[-1]}")
    if other:
        other.kill()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if os.environ.get("ON_A_CARD_CASE"):
        return run(os.environ["ON_A_CARD_CASE"], folder)
    for case in sys.argv[2:] or cases(1):
        begin = time.time()
        subprocess.run([sys.executable, __file__, str(folder)], env=os.environ | {"ON_A_CARD_CASE": case}, timeout=150)
        print(f"  {case}: {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
