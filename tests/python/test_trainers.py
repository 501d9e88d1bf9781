"""from_trainer: a live trainer has the plan of the recipe that says the same."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import types
import unittest
import warnings
from unittest import mock

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import transformers
    import trl

    import trainers
except ImportError as error:
    raise unittest.SkipTest(f"needs transformers, trl, peft and bitsandbytes: {error}") from None

import snug

warnings.filterwarnings("ignore")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
GPU = "A100"


def quietly(make, *arguments):
    with contextlib.redirect_stderr(io.StringIO()):
        return make(*arguments)


class SameAsTheRecipe(unittest.TestCase):
    def compare(self, live, written):
        self.assertEqual(live.peak_bytes, written.peak_bytes)
        self.assertEqual(live.breakdown, written.breakdown)
        self.assertEqual(live.pytorch_not_covered, written.pytorch_not_covered)
        if written.pytorch is None:
            return
        for name in (
            "allocated_bytes",
            "reserved_bytes",
            "device_bytes",
            "phase",
            "phases",
            "breakdown",
            "steady_bytes",
            "stack",
        ):
            self.assertEqual(getattr(live.pytorch, name), getattr(written.pytorch, name), name)

    def test_a_trainer_has_the_plan_of_its_script(self):
        self.assertGreaterEqual(len(trainers.SCRIPTS), 20)
        for name, (script, beside) in trainers.SCRIPTS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                file = pathlib.Path(directory) / "script.py"
                file.write_text(trainers.PRELUDE + script)
                trainer = quietly(trainers.execute, script)
                if "TrainingArguments(" in script:  # which have no length: the data have
                    beside = {**beside, "max_length": trainers.LENGTH}
                live = snug.from_trainer(trainer, gpu=GPU)
                self.compare(live, snug.plan(file, gpu=GPU, stack=trainers.STACK, **beside))
                self.assertEqual(live.pytorch is None, name in ("SFT, packing",), live.pytorch_not_covered)

    def test_a_trainer_has_the_plan_of_a_recipe_written_by_hand(self):
        by_hand = {
            "full, autocast": {"per_device_train_batch_size": 2, "bf16": True, "torch_dtype": "float32", "max_length": 96},
            "LoRA, sgd, accumulation": {
                "per_device_train_batch_size": 2,
                "gradient_accumulation_steps": 4,
                "optim": "sgd",
                "torch_dtype": "bfloat16",
                "bf16": False,
                "use_peft": True,
                "lora_r": 4,
                "lora_alpha": 8,
                "lora_target_modules": ["q_proj", "v_proj"],
                "max_length": 96,
            },
            "QLoRA, paged": {
                "per_device_train_batch_size": 2,
                "optim": "paged_adamw_8bit",
                "torch_dtype": "bfloat16",
                "bf16": True,
                "use_peft": True,
                "lora_r": 4,
                "lora_alpha": 8,
                "lora_target_modules": ["q_proj", "v_proj"],
                "load_in_4bit": True,
                "bnb_4bit_use_double_quant": True,
                "gradient_checkpointing": True,
                "max_length": 96,
            },
            "SFT, LoRA": {
                "dataset_name": "mine",
                "per_device_train_batch_size": 2,
                "max_length": 64,
                "dtype": "bfloat16",
                "use_peft": True,
                "lora_r": 16,
                "lora_alpha": 32,
                "lora_dropout": 0.0,
                "lora_target_modules": "all-linear",
            },
            "SFT, full": {
                "dataset_name": "mine",
                "per_device_train_batch_size": 2,
                "max_length": 64,
                "dtype": "float32",
                "bf16": True,
            },
        }
        for name, recipe in by_hand.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                file = pathlib.Path(directory) / "recipe.json"
                file.write_text(json.dumps({"model_name_or_path": trainers.MODEL, **recipe}))
                live = snug.from_trainer(quietly(trainers.execute, trainers.SCRIPTS[name][0]), gpu=GPU)
                self.compare(live, snug.plan(file, gpu=GPU, stack=trainers.STACK))

    def test_what_a_trainer_changes_changes_the_plan(self):
        script = trainers.SCRIPTS["LoRA, adamw_8bit"][0]
        base = snug.from_trainer(quietly(trainers.execute, script), gpu=GPU)
        for before, after in (
            ("batch_size=2", "batch_size=3"),
            ("r=4", "r=5"),
            ("bfloat16", "float32"),
            ("r=4", "use_dora=True, r=4"),
        ):
            changed = snug.from_trainer(quietly(trainers.execute, script.replace(before, after)), gpu=GPU)
            self.assertNotEqual(changed.pytorch.allocated_bytes, base.pytorch.allocated_bytes, after)

    def test_nothing_is_left_of_a_plan(self):
        plan = snug.from_trainer(quietly(trainers.execute, trainers.SCRIPTS["LoRA, adamw_8bit"][0]), gpu=GPU)
        directory = plan.asked.files.path
        self.assertTrue(str(plan).startswith("snug: trainer.json: Hugging Face Trainer recipe"))
        del plan
        self.assertFalse(directory.exists())

    def test_the_card_is_the_one_that_torch_sees(self):
        trainer = quietly(trainers.execute, trainers.SCRIPTS["LoRA, adamw_8bit"][0])
        for name, gpu in (("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA Unheard-Of 9000", None)):
            card = types.SimpleNamespace(name=name, total_memory=3 << 30)
            with (
                mock.patch("torch.cuda.is_available", return_value=True),
                mock.patch("torch.cuda.current_device", return_value=0),
                mock.patch("torch.cuda.get_device_properties", return_value=card),
            ):
                seen = snug.from_trainer(trainer)
            named = snug.from_trainer(trainer, gpu=gpu, memory=3 << 30)
            self.assertEqual((seen.budget_bytes, seen.pytorch, seen.peak_bytes), (3 << 30, named.pytorch, named.peak_bytes))
            self.assertIs(seen.pytorch.fits, True)

    def test_ranks_and_what_is_not_planned_of_them(self):
        trainer = quietly(trainers.execute, trainers.SCRIPTS["full, autocast"][0])
        with mock.patch.object(type(trainer.args), "world_size", 4):
            shared = snug.from_trainer(trainer, gpu=GPU).pytorch
            self.assertEqual((shared.setup.sharding, shared.setup.ranks), ("ddp", 4))
            trainer.args.fsdp_config = {"min_num_params": 0, "xla": False}  # as older transformers have it without FSDP
            self.assertEqual(snug.from_trainer(trainer, gpu=GPU).pytorch, shared)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as stage:
                stage.write('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}')
                stage.flush()
                trainer.args.deepspeed = stage.name
                parted = snug.from_trainer(trainer, gpu=GPU).pytorch
            self.assertEqual((parted.setup.sharding, parted.setup.ranks), ("zero2", 4))
        trainer.args.deepspeed, trainer.args.fsdp = None, ["full_shard"]
        with self.assertRaisesRegex(snug.Error, "FSDP of a live trainer"):
            snug.from_trainer(trainer, gpu=GPU)
        trainer.args.fsdp = None
        with mock.patch.object(type(trainer.args), "n_gpu", 2), self.assertRaisesRegex(snug.Error, "DataParallel over 2 GPUs"):
            snug.from_trainer(trainer, gpu=GPU)

    def test_a_length_can_be_given(self):
        trainer = quietly(trainers.execute, trainers.SCRIPTS["full, autocast"][0])
        self.assertEqual(snug.from_trainer(trainer, gpu=GPU, max_length=200).pytorch.setup.length, 200)
        trainer.train_dataset = None
        with self.assertRaisesRegex(snug.Error, "length of the rows"):
            snug.from_trainer(trainer, gpu=GPU)


class Refused(unittest.TestCase):
    def trainer_of(self, name):
        return quietly(trainers.execute, trainers.SCRIPTS[name][0])

    def test_trainers_that_are_no_supervised_fine_tuning_are_refused_by_name(self):
        from datasets import Dataset
        from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(trainers.MODEL)
        tokenizer.pad_token = tokenizer.eos_token
        model = AutoModelForCausalLM.from_pretrained(trainers.MODEL)
        pairs = Dataset.from_dict({"prompt": ["one"] * 2, "chosen": [" two"] * 2, "rejected": [" three"] * 2})
        same = {"use_cpu": True, "report_to": "none"}
        made = {
            "DPOTrainer": lambda: trl.DPOTrainer(
                model, args=trl.DPOConfig("out", **same), train_dataset=pairs, processing_class=tokenizer
            ),
            "GRPOTrainer": lambda: trl.GRPOTrainer(
                model,
                args=trl.GRPOConfig("out", **same),
                train_dataset=pairs.select_columns("prompt"),
                processing_class=tokenizer,
                reward_funcs=lambda completions, **_: [0.0] * len(completions),
            ),
            "RewardTrainer": lambda: trl.RewardTrainer(
                AutoModelForSequenceClassification.from_pretrained(trainers.MODEL, num_labels=1),
                args=trl.RewardConfig("out", **same),
                train_dataset=pairs,
                processing_class=tokenizer,
            ),
        }
        for name, make in made.items():
            with self.subTest(name):
                trainer = quietly(make)
                with self.assertRaisesRegex(snug.Error, f"{name} is not planned"):
                    snug.from_trainer(trainer, gpu=GPU)

    def test_other_things_are_refused(self):
        for thing in (object(), transformers.TrainerCallback()):
            with self.assertRaisesRegex(snug.Error, "no Trainer|is not planned"):
                snug.from_trainer(thing, gpu=GPU)

    def test_what_is_not_planned_is_named(self):
        from peft import LoraConfig, PromptTuningConfig, get_peft_model

        trainer = self.trainer_of("full, autocast")
        trainer.model.model.embed_tokens.weight.requires_grad = False
        with self.assertRaisesRegex(snug.Error, "1 weights are frozen"):
            snug.from_trainer(trainer, gpu=GPU)
        trainer = self.trainer_of("full, autocast")
        trainer.model.model.norm.to(dtype=__import__("torch").float16)
        trainer.model.model.layers[0].to(dtype=__import__("torch").float16)
        with self.assertRaisesRegex(snug.Error, "float16 and float32"):
            snug.from_trainer(trainer, gpu=GPU)
        trainer = self.trainer_of("full, autocast")
        trainer.optimizer = __import__("torch").optim.Adagrad(trainer.model.parameters())
        with self.assertRaisesRegex(snug.Error, "Adagrad"):
            snug.from_trainer(trainer, gpu=GPU)
        for config, word in (
            (PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4), "PROMPT_TUNING"),
            (LoraConfig(layers_to_transform=[0]), "some of the modules"),
        ):
            trainer = self.trainer_of("full, autocast")
            trainer.model = get_peft_model(trainer.model, config)
            with self.assertRaisesRegex(snug.Error, word):
                snug.from_trainer(trainer, gpu=GPU)


if __name__ == "__main__":
    unittest.main()
