"""Plans, fits, explanations and the textbook: what the program says, with types, for every way to ask."""

import concurrent.futures
import dataclasses
import json
import pathlib
import subprocess
import tempfile
import threading
import time
import typing
import unittest

import snug

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "demo" / "model")
SCHEMAS = ROOT / "docs" / "schema"
PROGRAM = pathlib.Path(snug.__file__).parent / "bin" / "snug"
LLAMA = "meta-llama/Llama-3.1-8B"

AXOLOTL = {
    "base_model": MODEL,
    "adapter": "qlora",
    "load_in_4bit": True,
    "datasets": [{"path": "mhenrichsen/alpaca_2k_test", "type": "alpaca"}],
    "sequence_len": 128,
    "sample_packing": False,
    "micro_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_linear": True,
    "optimizer": "paged_adamw_8bit",
    "bf16": "auto",
    "learning_rate": 2e-05,
    "special": None,
    "extra": {"some": [], "deep": {"er": "a: b"}},
}
TRL = "model_name_or_path: {}\ndataset_name: mine\nuse_peft: true\nlora_r: 8\nmax_length: 128\n"
SHELL = "trl sft --model_name_or_path {} --dataset_name mine --use_peft --lora_r 8 --max_length 128\n"
OUT_OF_MEMORY = """  File "/home/me/train.py", line 84, in main
    trainer.train()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.71 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.21 GiB is free. \
Including non-PyTorch memory, this process has 22.42 GiB memory in use. Of the allocated memory 21.13 GiB is allocated by PyTorch, and 861.10 MiB \
is reserved by PyTorch but unallocated.
"""

# A question in Python, and the same as words of the program.
QUESTIONS = [
    (
        snug.plan,
        ({}, dict(model=LLAMA, bf16=True, memory="24GiB", max_length=2048)),
        ["plan", LLAMA, "--bf16", "--memory", "24GiB", "--seq", "2048"],
    ),
    (
        snug.plan,
        (MODEL, dict(gpu="RTX 4090", method="lora", max_length=128, levers=True)),
        ["plan", MODEL, "--gpu", "RTX-4090", "--method", "lora", "--seq", "128", "--levers"],
    ),
    (
        snug.plan,
        (LLAMA, dict(gpu="A100", lora_target_modules=["q_proj", "v_proj"], rank_pattern={"q_proj": 16}, runtime="snug")),
        [
            "plan",
            LLAMA,
            "--gpu",
            "A100",
            "--lora-target-modules",
            "q_proj,v_proj",
            "--rank-pattern",
            "q_proj=16",
            "--runtime",
            "snug",
        ],
    ),
    (
        snug.plan,
        (LLAMA, dict(memory=24 << 30, gradient_checkpointing=False, lora_dropout=0.05)),
        ["plan", LLAMA, "--memory", "25769803776B", "--gradient-checkpointing", "false", "--lora-dropout", "0.05"],
    ),
    (
        snug.plan,
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", dict(gpu="H200")),
        ["plan", "Qwen/Qwen3-Next-80B-A3B-Instruct", "--gpu", "H200"],
    ),
    (snug.plan, ("openai/gpt-oss-20b", dict(gpu="H200", bf16=True)), ["plan", "openai/gpt-oss-20b", "--gpu", "H200", "--bf16"]),
    (
        snug.plan,
        (LLAMA, dict(gpu="H100", gpus=4, fsdp=True, method="full")),
        ["plan", LLAMA, "--gpu", "H100", "--gpus", "4", "--fsdp", "--method", "full"],
    ),
    (snug.plan, (pathlib.Path(MODEL), dict(memory="1MiB")), ["plan", MODEL, "--memory", "1MiB"]),
    (
        snug.fit,
        (MODEL, dict(memory="64MiB", max_length=128, method="lora")),
        ["fit", MODEL, "--memory", "64MiB", "--seq", "128", "--method", "lora"],
    ),
    (
        snug.meshes,
        ({}, dict(model=LLAMA, method="full", gpu="H100", gpus=16, gpus_per_node=8)),
        ["fit", LLAMA, "--method", "full", "--gpu", "H100", "--gpus", "16", "--gpus-per-node", "8"],
    ),
    (
        snug.meshes,
        ({}, dict(model=LLAMA, method="full", gpu="T4", gpus=2, gpus_per_node=2)),
        ["fit", LLAMA, "--method", "full", "--gpu", "T4", "--gpus", "2", "--gpus-per-node", "2"],
    ),
    (snug.fit, (MODEL, dict(gpu="RTX 4090", method="lora")), ["fit", MODEL, "--gpu", "RTX-4090", "--method", "lora"]),
    (snug.textbook, (LLAMA, dict(bf16=True, memory="24GiB")), ["plan", LLAMA, "--textbook", "--bf16", "--memory", "24GiB"]),
    (snug.textbook, ("4B", dict(bf16=True, trained="20M")), ["plan", "4B", "--textbook", "--bf16", "--trained", "20M"]),
]


def ask(function, arguments):
    recipe, keys = arguments
    return function(**keys) if recipe == {} else function(recipe, **keys)


def program(words):
    return subprocess.run([str(PROGRAM), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def timeless(value):
    """Without what a clock says, or how much this machine has to give."""
    if isinstance(value, dict):
        return {
            key: timeless(inner)
            for key, inner in value.items()
            if not (key == "seconds" and ("methods" in value or "tried" in value)) and key != "memory_bytes"
        }
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def misfits(value, hint, path="answer"):
    """Where a value is not of the type that its field names."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return
    if origin is typing.Union:
        if not any(not list(misfits(value, each)) for each in inner):
            yield f"{path}: {value!r} is no {hint}"
    elif origin is list:
        yield from (
            [f"{path}: {value!r} is no list"]
            if not isinstance(value, list)
            else [line for each in value for line in misfits(each, inner[0], path + "[]")]
        )
    elif origin is not None:  # a mapping
        yield from (
            [f"{path}: {value!r} is no mapping"]
            if not isinstance(value, dict)
            else [line for key, each in value.items() for line in misfits(each, inner[1], f"{path}.{key}")]
        )
    elif dataclasses.is_dataclass(hint):
        if not isinstance(value, hint):
            yield f"{path}: {value!r} is no {hint.__name__}"
            return
        hints = typing.get_type_hints(hint)
        for field in dataclasses.fields(hint):
            if field.name != "asked":  # the question
                yield from misfits(getattr(value, field.name), hints[field.name], f"{path}.{field.name}")
    elif hint is float:
        yield from (
            [] if isinstance(value, (int, float)) and not isinstance(value, bool) else [f"{path}: {value!r} is no number"]
        )
    elif hint is int:
        yield from [] if isinstance(value, int) and not isinstance(value, bool) else [f"{path}: {value!r} is no integer"]
    elif not isinstance(value, hint):
        yield f"{path}: {value!r} is no {hint}"


class SameAsTheProgram(unittest.TestCase):
    def test_the_object_and_the_text_are_what_the_program_prints_and_its_fields_have_their_types(self):
        for function, arguments, words in QUESTIONS:
            with self.subTest(" ".join(words)):
                answer = ask(function, arguments)
                printed = program([*words, "--json"])
                told = json.loads(printed.stdout)
                self.assertEqual(timeless(dict(answer.json)), timeless(told))
                self.assertEqual(list(misfits(answer, type(answer))), [])
                self.assertEqual(answer.messages, printed.stderr)
                if function not in (snug.fit, snug.meshes):  # which say how long they searched
                    text = program(words)
                    self.assertEqual(str(answer), (text.stderr + text.stdout).rstrip("\n"))
                    self.assertEqual(answer.text, text.stdout)

    def test_catalogues_and_explanations_have_the_types_that_they_name(self):
        self.assertEqual([line for each in snug.models() for line in misfits(each, snug.CatalogueModel)], [])
        self.assertEqual([line for each in snug.gpus() for line in misfits(each, snug.Accelerator)], [])
        self.assertEqual(list(misfits(snug.explain(OUT_OF_MEMORY), snug.Explanation)), [])

    def test_no_field_of_the_schemas_is_left_out(self):
        plan, fit, meshes, explain = (
            json.loads((SCHEMAS / f"{name}.json").read_text()) for name in ("plan", "fit", "meshes", "explain")
        )
        of = plan["definitions"]
        pairs = [
            (snug.PlannedModel, of["model"]),
            (snug.Cost, of["cost"]),
            (snug.Interval, of["interval"]),
            (snug.Peak, of["peak"]),
            (snug.Setup, of["setup"]),
            (snug.PyTorchPlan, of["pytorch_plan"]),
            (snug.PyTorchRank, of["pytorch_plan"]["properties"]["ranks"]["items"]),
            (snug.Lever, of["lever"]),
            (snug.Lever, of["pytorch_lever"]),
            (snug.Rank, of["plan"]["properties"]["ranks"]["items"]),
            (snug.Homes, of["plan"]["properties"]["homes"]),
            (snug.File, of["file"]),
            (snug.FileKey, of["file"]["properties"]["keys"]["items"]),
            (snug.TextbookRow, of["textbook_row"]),
            (snug.Textbook, of["textbook"]),
            (snug.TextbookActivations, of["textbook"]["properties"]["activations"]),
            (snug.Choice, fit["definitions"]["choice"]),
            (snug.Choice, fit["definitions"]["pytorch_choice"]),
            (snug.Method, fit["definitions"]["method"]),
            (snug.RunCost, fit["definitions"]["cost"]),
            (snug.WayOut, fit["definitions"]["way_out"]),
            (snug.PyTorchFit, fit["definitions"]["pytorch_fit"]),
            (snug.Mesh, meshes["properties"]["meshes"]["items"]),
            (snug.RecipeAdvice, explain["definitions"]["recipe"]),
            (snug.Advice, explain["definitions"]["advice"]["items"]),
            (snug.Frame, explain["definitions"]["frame"]),
        ]
        for kind, schema in pairs:
            self.assertEqual(
                set(schema["properties"]) - {field.name for field in dataclasses.fields(kind)}, set(), kind.__name__
            )
        told = {
            "schema",
            "made_again",
            "waits_on_disk",
            "inputs_at_once",
            "textbook",
            "reason",
            "device_map",
            "placement",
            "verdicts",
            "settings",
        }  # in json
        self.assertEqual(set(of["plan"]["properties"]) - {field.name for field in dataclasses.fields(snug.Plan)}, told)
        self.assertEqual(set(fit["properties"]) - {field.name for field in dataclasses.fields(snug.Fit)}, {"schema"})
        self.assertEqual(set(meshes["properties"]) - {field.name for field in dataclasses.fields(snug.Meshes)}, {"schema"})

    def test_the_catalogues_are_the_programs(self):
        models = json.loads(program(["models", "--json"]).stdout)["models"]
        gpus = json.loads(program(["gpus", "--json"]).stdout)["accelerators"]
        self.assertEqual([dataclasses.asdict(each) for each in snug.models()], models)
        self.assertEqual([dataclasses.asdict(each) for each in snug.gpus()], gpus)
        self.assertEqual(program(["--version"]).stdout.split()[-1], snug.__version__)

    def test_the_console_script_is_the_program(self):
        import sys

        script = pathlib.Path(sys.executable).parent / "snug"
        if not script.exists():
            self.skipTest("not installed beside this Python")
        done = subprocess.run([str(script), "plan", MODEL, "--memory", "1MiB"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertTrue(done.stdout.startswith("does not fit"))


class Recipes(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def test_a_mapping_is_the_file_of_the_same_keys(self):
        file = self.directory / "recipe.yaml"
        file.write_text(json.dumps(AXOLOTL))  # JSON, which is YAML too, by another writer
        written, mapped = snug.plan(file, gpu="A100"), snug.plan(AXOLOTL, gpu="A100")
        self.assertEqual(mapped.peak_bytes, written.peak_bytes)
        self.assertEqual(mapped.pytorch, written.pytorch)
        self.assertIsNotNone(mapped.pytorch)
        self.assertEqual(
            [(key.name, key.fate) for key in mapped.file.keys], [(key.name, key.fate) for key in written.file.keys]
        )
        self.assertEqual(
            mapped.messages.splitlines()[0], "snug: recipe.yaml: axolotl recipe; not known: special, extra.some, extra.deep.er"
        )

    def test_our_own_keys_as_a_mapping_are_the_keywords(self):
        keys = {
            "method": "lora",
            "lora_r": 16,
            "max_length": 128,
            "lora_target_modules": ["q_proj", "v_proj"],
            "rank_pattern": {"q_proj": 4},
            "bf16": True,
        }
        self.assertEqual(snug.plan({"model_name_or_path": MODEL, **keys}).peak_bytes, snug.plan(MODEL, **keys).peak_bytes)

    def test_files_of_other_trainers_are_read(self):
        (self.directory / "trl.yaml").write_text(TRL.format(MODEL))
        (self.directory / "train.sh").write_text(SHELL.format(MODEL))
        plans = [snug.plan(self.directory / name, gpu="A100") for name in ("trl.yaml", "train.sh")]
        self.assertEqual(plans[0].pytorch.allocated_bytes, plans[1].pytorch.allocated_bytes)
        self.assertEqual([plan.file.trainer for plan in plans], ["TRL", "TRL"])
        self.assertEqual(plans[0].engine, "pytorch")

    def test_a_fit_of_a_file_is_a_diff_of_it(self):
        file = self.directory / "trl.yaml"
        file.write_text(TRL.format(MODEL))
        needed = snug.plan(file, memory="1GiB").needed_bytes
        fit = snug.fit(file, memory=needed)  # of which a margin is kept free, so something must change
        self.assertEqual((fit.engine, fit.fits), ("pytorch", True))
        self.assertTrue(fit.diff.startswith("--- "), fit.diff)
        self.assertEqual(fit.settings, fit.best.settings)

    def test_files_are_gone_with_the_answer(self):
        plan = snug.plan(AXOLOTL, gpu="A100")
        path = plan.asked.files.path
        self.assertTrue(path.exists())
        self.assertIn("axolotl", str(plan))
        del plan
        self.assertFalse(path.exists())


class Errors(unittest.TestCase):
    def test_what_is_wrong_is_one_line(self):
        for question, code, line in [
            (lambda: snug.plan("no-such-model"), 1, "'no-such-model' is neither a path nor a model of the catalogue"),
            (lambda: snug.plan(MODEL, no_such_key=1), 2, "there is no key 'no_such_key'"),
            (lambda: snug.plan(), 2, "which model?"),
            (lambda: snug.plan(MODEL, gpu="no such card"), 1, "no such card"),
            (lambda: snug.plan(MODEL, max_length=-5), 1, "max_length"),
            (lambda: snug.explain("all is\nwell"), 1, "text.log: no out-of-memory message in 2 lines"),
            (lambda: snug.plan({"model_name_or_path": MODEL, "lora_r": "many"}), 1, "recipe.yaml:2"),
        ]:
            with self.assertRaises(snug.Error) as raised:
                question()
            self.assertIn(line, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))
            self.assertFalse(str(raised.exception).startswith("snug: "))
            self.assertEqual(raised.exception.exit_code, code, line)

    def test_what_does_not_fit_is_an_answer(self):
        plan = snug.plan(MODEL, memory="1MiB")
        self.assertIs(plan.fits, False)
        self.assertGreater(plan.peak_bytes, plan.budget_bytes)
        fit = snug.fit(MODEL, memory="1MiB", method="lora", max_length=64)
        self.assertEqual((fit.fits, fit.settings, fit.best), (False, None, None))
        self.assertGreater(fit.way_out.peak_bytes, fit.budget_bytes)

    def test_words_without_an_object_are_refused(self):
        for word in ("json", "dump", "solve", "megatron"):
            with self.assertRaises(TypeError):
                snug.plan(MODEL, **{word: True})
        with self.assertRaises(ValueError):
            snug.plan(MODEL, method="a\0b")


class Explanations(unittest.TestCase):
    def test_a_text_is_explained_as_its_file_is(self):
        with tempfile.TemporaryDirectory() as name:
            file = pathlib.Path(name) / "crash.log"
            file.write_text(OUT_OF_MEMORY)
            told = json.loads(program(["explain", str(file), "--json"]).stdout)
            for subject in (OUT_OF_MEMORY, file, str(file)):
                explanation = snug.explain(subject)
                self.assertEqual(dict(explanation.json), told)
        self.assertEqual((explanation.cause, explanation.source.line, explanation.kind), ("shortage", 84, "message"))
        self.assertEqual(explanation.advice[0].change, told["advice"][0]["change"])

    def test_a_recipe_adds_what_to_change_in_it(self):
        explanation = snug.explain(OUT_OF_MEMORY, {**AXOLOTL, "micro_batch_size": 16}, gpu="RTX 4090")
        self.assertEqual(explanation.recipe.dialect, "axolotl")
        self.assertIn("-micro_batch_size: 16", explanation.recipe.diff)
        self.assertTrue(explanation.recipe.diff.startswith("--- recipe.yaml\n"))


class Threads(unittest.TestCase):
    def test_several_threads_ask_at_once(self):
        lengths = [64, 96, 128, 160, 192, 224, 256, 288]
        alone = [snug.plan(MODEL, max_length=length, memory="1GiB").peak_bytes for length in lengths]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda length: snug.plan(MODEL, max_length=length, memory="1GiB").peak_bytes, lengths * 4))
        self.assertEqual(together, alone * 4)
        self.assertEqual(len(set(alone)), len(lengths))

    def test_other_threads_run_while_one_waits(self):
        done = threading.Event()
        thread = threading.Thread(target=lambda: (snug.fit(MODEL, gpu="RTX 4090", max_length=128), done.set()))
        begin = last = time.monotonic()
        thread.start()
        longest = 0.0
        while not done.is_set():
            time.sleep(0.001)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        thread.join()
        whole = time.monotonic() - begin
        self.assertLess(longest, whole / 2, f"this thread stood still for {longest:.3f} s of {whole:.3f} s")


if __name__ == "__main__":
    unittest.main()
