"""Keys of other trainers' argument classes that snug does not know: recipe_keys.py SNUG TRAINER SOURCES…

SOURCES are files or directories of the trainer's own Python code; the fields of its annotated classes are the keys. Each becomes a line of
a made-up recipe, which `snug plan --json` must know: what it calls unknown is printed, and the exit code is 1 if there is any.

  recipe_keys.py build/snug axolotl AXOLOTL/src/axolotl/utils/schemas
  recipe_keys.py build/snug llama_factory LLAMA_FACTORY/src/llamafactory/hparams
  recipe_keys.py build/snug swift MS_SWIFT/swift/arguments MS_SWIFT/swift/trainers/arguments.py
  recipe_keys.py build/snug megatron_swift MS_SWIFT/swift/megatron/arguments
  recipe_keys.py build/snug trl TRL/trl/trainer
"""

import ast
import json
import pathlib
import subprocess
import sys
import tempfile

HEADS = {
    "axolotl": {"base_model": "Qwen/Qwen2.5-0.5B", "sequence_len": "128", "datasets": "[]", "micro_batch_size": "1"},
    "llama_factory": {"model_name_or_path": "Qwen/Qwen2.5-0.5B", "stage": "sft", "dataset": "x", "finetuning_type": "lora"},
    "swift": {"model": "Qwen/Qwen2.5-0.5B", "tuner_type": "lora", "dataset": "x", "max_length": "128", "swift_version": "4"},
    "megatron_swift": {"model": "Qwen/Qwen2.5-0.5B", "micro_batch_size": "1", "recompute_granularity": "full"},
    "trl": {"model_name_or_path": "Qwen/Qwen2.5-0.5B", "dataset_name": "x"},
}
# Classes that are no arguments of a training run, or that stand in a block of their own.
APART = (
    "Dataset", "Prompter", "DPOType", "KTOType", "FSDPConfig", "EBFTConfig", "TRLConfig", "VllmConfig", "Synthetic", "Capabilities",
    "SpecialTokens", "PTQ", "QAT", "LrGroup", "LoftQ", "PeftConfig", "SelectiveCheckpointing", "DynamicCheckpoint", "RoleBoundary",
    "Collator", "Export", "Deploy", "EvalArguments", "InferArguments", "AppArguments", "WebUI", "Sampling", "Rollout", "Sglang",
    "Lmdeploy", "Moments", "Output", "EvaluationArguments", "_KTransformersRuntime", "Merge", "RewardModelArguments",
)


def fields(source):
    """Names of the annotated fields of the classes of a file."""
    for node in ast.walk(ast.parse(source.read_text(errors="replace"))):
        if isinstance(node, ast.ClassDef) and not any(part in node.name for part in APART):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not line.target.id.startswith("_"):
                    yield line.target.id


def main():
    snug, trainer = sys.argv[1], sys.argv[2]
    keys = set()
    for root in map(pathlib.Path, sys.argv[3:]):
        for source in [root] if root.is_file() else sorted(root.rglob("*.py")):
            keys.update(fields(source))
    keys.discard("model_config")
    head = HEADS[trainer]
    lines = [f"{key}: {value}\n" for key, value in head.items()]
    lines += [f"{key}: 1\n" for key in sorted(keys - set(head))]
    with tempfile.TemporaryDirectory() as directory:
        recipe = pathlib.Path(directory) / "keys.yaml"
        # A key at a time: values that make no sense together must not hide others.
        unknown = []
        for line in lines[len(head):]:
            recipe.write_text("".join(lines[: len(head)]) + line)
            said = subprocess.run([snug, "plan", recipe, "Qwen/Qwen2.5-0.5B", "--gpu", "A100-SXM4-80GB"], capture_output=True, text=True)
            first = said.stderr.splitlines()[0] if said.stderr else ""
            if "not known: " in first:
                unknown.append(line.split(":")[0])
            elif " recipe" not in first:
                sys.exit(f"{line.strip()}: {said.stderr}")
    print(f"{trainer}: {len(lines) - len(head)} keys, {len(unknown)} unknown {' '.join(unknown)}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
