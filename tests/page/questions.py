"""Questions of every kind that the program and the page both answer, as (words, {name: bytes of a file}). None depends on the machine
that answers: each names its card, or what PyTorch has."""

import json
import pathlib

MODELS = ["meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.3", "Qwen/Qwen2.5-0.5B", "Qwen/Qwen3-4B", "google/gemma-2-2b",
          "microsoft/Phi-3-mini-4k-instruct", "openai-community/gpt2", "mistralai/Mixtral-8x7B-v0.1", "deepseek-ai/DeepSeek-V2-Lite",
          "openai/gpt-oss-20b", "HuggingFaceTB/SmolLM2-135M", "google/gemma-3-4b-pt"]
CARDS = ["RTX-4090", "A100-80GB", "T4", "H200", "MI300X"]
RUNS = [["--batch", "1", "--seq", "1024"],
        ["--method", "qlora", "--batch", "4", "--seq", "4096", "--lora-r", "64", "--gradient-checkpointing"],
        ["--method", "full", "--optim", "adamw_8bit", "--batch", "2", "--accum", "4", "--seq", "512"]]

MORE = ["--attn-implementation flash_attention_2 --bf16 --seq 8192", "--attn-implementation eager --seq 2048", "--use-liger-kernel --batch 4",
        "--gpus 4 --fsdp --method full --gradient-checkpointing", "--gpus 8", "--runtime snug --zero-stage 3 --num-processes 4 --method full",
        "--runtime pytorch --fp16", "--optim adafactor --method full", "--optim lion_8bit", "--use-dora --lora-target-modules all-linear",
        "--packing=false --row-lengths 2048,731,12", "--offload-activations host --method full", "--val-size 100 --eval-batch 4",
        "--stack torch=2.4.1,transformers=4.48.1,peft=0.13.2", "--trainer litgpt --bf16", "--trainer torchtune --method lora --bf16",
        "--load-in-8bit", "--examples 10000 --example-tokens 5000000", "--own-loop logits --method full", "--gptq 128 --fp16",
        "--tiled-mlp --seq 16384", "--paged", "--neftune-noise-alpha 5", "--gradient-checkpointing-kwargs use_reentrant=false --gradient-checkpointing"]

ERRORS = [["plan"], ["plan", "no-such-model"], ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "RTX-9999"],
          ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--batch", "0"], ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--batch", "x"],
          ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--seq", "99999999999999999999"], ["plan", "Qwen/Qwen2.5-0.5B", "--gpu"],
          ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--optim", "adamm"], ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--solve", "hope"],
          ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--solve", "seq", "--dump"], ["plan", "gone.yaml"], ["explain", "gone.log"], ["explain"],
          ["fit"], ["fit", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--gpus-per-node", "0"], ["plan", "Qwen/Qwen2.5-0.5B", "--no-such-flag"],
          ["explain", "log.txt", "--html"], ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--learning-rate", "1e-5x"],
          ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--lora-dropout", "1.5"], ["models", "no-such"], ["gpus", "no-such"]]


def recipes(shared):
    """Each recipe file as it is, and with a model that is known beside it."""
    for path in sorted((shared / "recipes").rglob("*")):
        if path.suffix not in {".yaml", ".yml", ".json", ".sh", ".py", ".ipynb"}:
            continue
        files = {path.name: path.read_bytes()}
        yield ["plan", path.name, "--gpu", "A100-80GB"], files
        yield ["plan", path.name, "--gpu", "RTX-4090", "--json"], files
        yield ["plan", "Qwen/Qwen2.5-0.5B", path.name, "--gpu", "T4"], files
        yield ["plan", "Qwen/Qwen2.5-0.5B", path.name, "--gpu", "H100-SXM5", "--json", "--batch", "2"], files


def logs(shared):
    for path in sorted((shared / "oom").glob("*.txt")):
        files = {path.name: path.read_bytes()}
        yield ["explain", path.name], files
        yield ["explain", path.name, "--json"], files
        yield ["explain", path.name, "Qwen/Qwen2.5-0.5B", "--gpu", "T4", "--method", "full", "--seq", "2048"], files


def snapshots(shared):
    for path in sorted((shared / "snapshots").glob("*.pickle")):
        files = {path.name: path.read_bytes()}
        yield ["explain", path.name], files
        yield ["explain", path.name, "--json"], files


def plans():
    for number, model in enumerate(MODELS):
        for run in RUNS:
            for card in (CARDS[number % len(CARDS)], CARDS[(number + 2) % len(CARDS)]):
                yield ["plan", model, "--gpu", card, *run, *(["--json"] if (number + len(card)) % 2 else [])], {}
    for words in MORE:
        yield ["plan", "Qwen/Qwen2.5-0.5B", "--gpu", "A100-80GB", *words.split()], {}
        yield ["plan", "meta-llama/Llama-3.1-8B", "--gpu", "RTX-4090", *words.split(), "--json"], {}
    config = json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1536,
                         "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 8192, "rms_norm_eps": 1e-5,
                         "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "rope_theta": 500000.0}).encode()
    for words in (["plan"], ["plan", "--json"], ["plan", "--dump"], ["fit"]):
        yield [words[0], "small/config.json", *words[1:], "--gpu", "GTX-1080"], {"small/config.json": config}
    yield ["plan", "small", "--gpu", "T4"], {"small/config.json": config}
    yield ["plan", "small/config.json", "--gpu", "T4"], {"small/config.json": config[:-20]}


def other_views():
    for model in MODELS[:6]:
        for what in ("batch", "seq", "rank"):
            yield ["plan", model, "--gpu", "RTX-4090", "--solve", what, "--runtime", "snug" if what == "batch" else "pytorch"], {}
        yield ["plan", model, "--gpu", "RTX-4090", "--textbook", "--seq", "2048"], {}
        yield ["plan", model, "--gpu", "T4", "--textbook", "--json"], {}
        yield ["plan", model, "--gpu", "A100-80GB", "--max-memory", "0:10GiB,1:10GiB,cpu:200GiB", "--json"], {}
    for model in ("LiquidAI/LFM2-350M", "Qwen/Qwen3-Next-80B-A3B-Instruct"):  # of which a step is not modelled
        yield ["plan", model, "--gpu", "H200"], {}
        yield ["plan", model, "--gpu", "RTX-4090", "--json"], {}
    for model in (MODELS[2], MODELS[5]):
        yield ["plan", model, "--gpu", "RTX-4090", "--levers", "--json"], {}
        yield ["plan", model, "--gpu", "T4", "--levers"], {}
    yield ["plan", "7B", "--textbook", "--gpu", "RTX-4090"], {}
    yield ["plan", "openai-community/gpt2", "--gpu", "T4", "--dump"], {}
    for words in (["models"], ["models", "--json"], ["models", "Qwen/Qwen2.5-0.5B"], ["models", "qwen"], ["gpus"], ["gpus", "--json"],
                  ["gpus", "RTX-4090"], ["gpus", "a100"]):
        yield words, {}


def settings_beside():
    """A script whose settings lie in a file that nobody names: the folder is read, in one call and in several, and below it."""
    script = b"""import sys, yaml
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
with open(sys.argv[1]) as file:
    settings = yaml.safe_load(file)
model = AutoModelForCausalLM.from_pretrained(settings["model_name"])
Trainer(model=model, args=TrainingArguments(output_dir="out", per_device_train_batch_size=settings["batch_size"])).train()
"""
    settings = b"model_name: Qwen/Qwen2.5-0.5B\nbatch_size: 3\n"
    others = {f"notes-of-the-{number:03}th-run-that-is-kept-here.txt": b"nothing" for number in range(150)}
    for name in ("settings.yaml", "configs/run.yaml"):
        for more in ({}, others):
            yield ["plan", "train.py", "--gpu", "A100-80GB", "--json"], {"train.py": script, name: settings, **more}
    yield ["plan", "train.py", "--gpu", "A100-80GB"], {"train.py": script, "settings.yaml": settings, "configs/run.yaml": settings}
    nameless = b"training: {batch_size: 3, grad_accum: 4, max_seq_length: 640}\nlora: {r: 24, alpha: 48}\n"
    loads = b"path = 'configs/run.yaml'\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')\n" \
        b"Trainer(model=model, args=TrainingArguments('out')).train()\n"
    yield ["plan", "configs/run.yaml", "--gpu", "A100-80GB"], {"configs/run.yaml": nameless, "src/train.py": loads, "README.md": b"x"}


def neighbours():
    """A script without a model beside the command that starts it, a recipe beside the stage that writes its model."""
    script = b"parser.add_argument('--base')\nargs = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained(args.base)\n" \
        b"Trainer(model=model, args=TrainingArguments('out')).train()\n"
    command = b"python train.py --base Qwen/Qwen2.5-0.5B\n"
    yield ["plan", "src/train.py", "--gpu", "A100-80GB"], {"src/train.py": script, "jobs/small.sh": b"python src/train.py --base gpt2\n",
                                                           "README.md": b"x"}
    yield ["plan", "train.py", "--gpu", "A100-80GB"], {"train.py": script, "other/run.sh": command, "other/train.py": script}
    merged = b"model_name_or_path: Qwen/Qwen2.5-0.5B\nexport_dir: models/merged\n"
    yield ["plan", "dpo.json", "--gpu", "A100-80GB"], {
        "dpo.json": b'{"model_name_or_path": "models/merged", "per_device_train_batch_size": 2, "dataset_name": "a"}', "merge.yaml": merged}


def searches():
    for model in ("Qwen/Qwen2.5-0.5B", "openai-community/gpt2", "HuggingFaceTB/SmolLM2-135M"):
        yield ["fit", model, "--gpu", "T4", "--json"], {}
        yield ["fit", model, "--gpu", "RTX-4090"], {}
    yield ["fit", "meta-llama/Llama-3.1-8B", "--gpu", "RTX-4090", "--json"], {}
    recipe = b"base_model: Qwen/Qwen2.5-7B\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\nsequence_len: 4096\n" \
        b"micro_batch_size: 8\ngradient_accumulation_steps: 2\noptimizer: adamw_torch\nbf16: true\ndatasets:\n  - path: rows.jsonl\n    type: alpaca\n"
    yield ["fit", "axolotl.yaml", "--gpu", "RTX-4090"], {"axolotl.yaml": recipe}
    yield ["fit", "axolotl.yaml", "--gpu", "RTX-3090", "--json"], {"axolotl.yaml": recipe}


def all_questions(shared):
    found = [*plans(), *other_views(), *settings_beside(), *neighbours(), *searches(), *((words, {}) for words in ERRORS)]
    if shared is not None:
        found += [*recipes(shared), *logs(shared), *snapshots(shared)]
    return found
