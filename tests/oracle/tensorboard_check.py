"""Does TensorBoard read what snug writes?

    python tests/oracle/tensorboard_check.py [SNUG]          # build/snug unless told; pip install tensorboard

Trains the demo model with --report-to tensorboard, kills it, goes on, and reads the directory with TensorBoard's own
EventAccumulator: every step of metrics.jsonl must be there once, with its value. Exit code 1 otherwise. By hand.
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    snug = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "snug").resolve()
    with tempfile.TemporaryDirectory(prefix="snug-events-") as directory:
        work = pathlib.Path(directory)
        (work / "rows.jsonl").write_text("".join(json.dumps({"text": f"row {i} " * 9}) + "\n" for i in range(300)))
        output = work / "out"
        words = [snug, "train", ROOT / "demo/model", "--data", work / "rows.jsonl", "--eval-data", work / "rows.jsonl", "--seq", "64",
                 "--batch", "4", "--max-steps", "120", "--save-steps", "10", "--report-to", "tensorboard", "--output-dir", output]
        first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (output / "checkpoint-20").exists() and first.poll() is None:
            time.sleep(0.02)
        time.sleep(0.1)
        first.send_signal(signal.SIGKILL)
        first.wait()
        subprocess.run([*words, "--resume-from-checkpoint"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        files = sorted((output / "runs").iterdir())
        events = EventAccumulator(str(output / "runs")).Reload()
        lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        expected = {}
        for line in lines:
            for name, value in line.items():
                if name in ("step", "summary") or "eval_documents" == name:
                    continue
                tag = f"eval/{name[5:]}" if name.startswith("eval_") else f"train/{name}"
                expected.setdefault(tag, []).append((line["step"], value))
        wrong = []
        for tag, points in expected.items():
            shown = [(event.step, event.value) for event in events.Scalars(tag)]
            if [step for step, _ in shown] != [step for step, _ in points]:
                wrong.append(f"{tag}: steps {[step for step, _ in shown]}")
            elif any(abs(a - b) > 1e-6 * max(1, abs(b)) for (_, a), (_, b) in zip(shown, points)):
                wrong.append(f"{tag}: other values")
        print("\n".join(wrong) if wrong else f"{len(expected)} tags, {len(expected['train/loss'])} steps in {len(files)} files, tags "
              f"{', '.join(sorted(events.Tags()['scalars']))}")
        return 1 if wrong or len(files) != 2 else 0


if __name__ == "__main__":
    sys.exit(main())
