"""snug.Callback in real runs of transformers on the CPU."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import time
import unittest
import warnings
from unittest import mock

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import torch
    import transformers

    import trainers
except ImportError as error:
    raise unittest.SkipTest(f"needs transformers, trl, peft and bitsandbytes: {error}") from None

import snug
import snug.callback as callback_module

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
SECONDS = 20  # that the timed run takes at least
OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 3.71 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.21 GiB is free."
    " Including non-PyTorch memory, this process has 22.42 GiB memory in use. Of the allocated memory 21.13 GiB is allocated by"
    " PyTorch, and 861.10 MiB is reserved by PyTorch but unallocated."
)


class Failing(transformers.TrainerCallback):
    def __init__(self, error):
        self.error = error

    def on_step_end(self, *_, **__):
        raise self.error


class Stopping(transformers.TrainerCallback):
    """Ends a run some seconds after it began."""

    def on_train_begin(self, *_, **__):
        self.end = time.monotonic() + SECONDS

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = time.monotonic() > self.end
        return control


class Runs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def run_with(self, *callbacks, name="LoRA, adamw_8bit", optim="adamw_torch", within=None, **arguments):
        """(seconds of train(), what it printed, its warnings) of a run of the demo's model."""
        with contextlib.redirect_stderr(io.StringIO()):
            trainer = trainers.execute(trainers.SCRIPTS[name][0].replace("adamw_8bit", optim))
        trainer.train_dataset = trainer.train_dataset.select([0] * 8)  # rows of one length, as the default collator wants
        trainer.args.output_dir = str(self.directory)
        trainer.args.save_strategy = "no"
        trainer.args.disable_tqdm = True
        for key, value in arguments.items():
            setattr(trainer.args, key, value)
        for callback in callbacks:
            trainer.add_callback(callback)
        printed = io.StringIO()
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            within or contextlib.nullcontext(),
        ):
            warnings.simplefilter("always")
            begin = time.monotonic()
            trainer.train()
        return (
            time.monotonic() - begin,
            printed.getvalue(),
            [str(each.message) for each in caught if "this run will not fit" in str(each.message)],
        )

    def receipt(self):
        return json.loads((self.directory / "snug-receipt.json").read_text())

    def test_a_run_is_planned_measured_and_receipted_in_less_than_a_hundredth_of_its_time(self):
        callback = snug.Callback(gpu="A100")
        seconds, printed, warned = self.run_with(Stopping(), callback, max_steps=100_000)
        self.assertGreaterEqual(seconds, SECONDS)
        self.assertIn("Hugging Face Trainer on PyTorch: fits", printed)
        self.assertEqual(warned, [])
        receipt = self.receipt()
        self.assertEqual((receipt["ended"], receipt["plan"]["fits"], receipt["plan"]["engine"]), ("done", True, "pytorch"))
        self.assertEqual(receipt["plan"]["allocated_bytes"], callback.plan.pytorch.allocated_bytes)
        self.assertGreater(receipt["steps"], 10)
        status = pathlib.Path("/proc/self/status").read_text()
        peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024
        self.assertLessEqual(receipt["measured"]["host_bytes"], peak)
        self.assertGreater(receipt["measured"]["host_bytes"], 0.5 * peak)
        self.assertIsNone(receipt["measured"]["allocated_bytes"])
        self.assertAlmostEqual(receipt["seconds"], seconds, delta=2)
        self.assertLess(receipt["own_seconds"], 0.01 * seconds)
        self.assertGreater(receipt["own_seconds"], 0)
        print(
            f"the callback took {receipt['own_seconds']:.3f} s of a run of {seconds:.1f} s,"
            f" {receipt['own_seconds'] / seconds:.2%}"
        )

    def test_a_run_that_will_not_fit_is_warned_of_and_goes_on(self):
        _, printed, warned = self.run_with(snug.Callback(gpu="A100", memory="400MiB"), max_steps=2)
        self.assertIn("does not fit", printed)
        self.assertEqual(len(warned), 1)
        self.assertEqual((self.receipt()["plan"]["fits"], self.receipt()["steps"], self.receipt()["ended"]), (False, 2, "done"))

    def test_the_plan_is_that_of_from_trainer(self):
        callback = snug.Callback(gpu="A100")
        self.run_with(callback, max_steps=1)
        with contextlib.redirect_stderr(io.StringIO()):
            trainer = trainers.execute(trainers.SCRIPTS["LoRA, adamw_8bit"][0].replace("adamw_8bit", "adamw_torch"))
        plan = snug.from_trainer(trainer, gpu="A100")
        self.assertEqual((callback.plan.peak_bytes, callback.plan.pytorch), (plan.peak_bytes, plan.pytorch))

    def test_without_a_card_there_is_a_plan_without_a_verdict_of_pytorch(self):
        callback = snug.Callback()
        _, printed, _ = self.run_with(callback, max_steps=1)
        self.assertIn("Hugging Face Trainer on PyTorch: ", printed)
        self.assertIsNone(callback.plan.pytorch.fits)

    def test_on_a_gpu_the_peaks_are_those_that_pytorch_counts(self):
        with mock.patch.multiple(
            "torch.cuda",
            is_available=lambda: True,
            max_memory_allocated=lambda: 3 << 30,
            max_memory_reserved=lambda: 4 << 30,
        ):
            peak = callback_module._peak()
        self.assertEqual((peak["allocated_bytes"], peak["reserved_bytes"]), (3 << 30, 4 << 30))

    def test_a_crash_for_memory_is_explained_and_goes_on(self):
        callback = snug.Callback(gpu="RTX 4090")
        error = torch.OutOfMemoryError(OUT_OF_MEMORY)
        with self.assertRaises(torch.OutOfMemoryError) as raised:
            self.run_with(callback, Failing(error), within=callback, max_steps=3)
        self.assertIs(raised.exception, error)
        receipt = self.receipt()
        self.assertEqual((receipt["ended"], receipt["explanation"]["cause"]), ("failed", "shortage"))
        self.assertIn("Tried to allocate 3.71 GiB", receipt["error"])
        self.assertEqual(callback.explanation.cause, "shortage")
        self.assertEqual(callback.explanation.recipe.dialect, "Hugging Face Trainer")

    def test_another_error_is_not_explained(self):
        callback = snug.Callback(gpu="A100")
        with self.assertRaises(ValueError):
            self.run_with(callback, Failing(ValueError("no such thing")), within=callback, max_steps=3)
        self.assertEqual(
            (self.receipt()["ended"], self.receipt()["explanation"], self.receipt()["error"]),
            ("failed", None, "ValueError: no such thing"),
        )
        self.assertIn("no out-of-memory message", self.receipt()["not_explained"])

    def test_what_is_not_planned_is_said_and_the_run_goes_on(self):
        _, printed, _ = self.run_with(snug.Callback(gpu="no such card"), max_steps=1)
        self.assertIn("snug: not planned: ", printed)
        receipt = self.receipt()
        self.assertEqual((receipt["ended"], receipt["plan"]), ("done", None))
        self.assertIn("no such card", receipt["not_planned"])


if __name__ == "__main__":
    unittest.main()
