#!/usr/bin/env python3
"""Holds docs/schema/ against the program: check_schemas.py [SNUG [PREFIX]]

Output: each question of QUESTIONS is asked with --json, and the answer must be what its schema says. Broken answers must not: every object
with a field more, every figure made a list, every object without a field that all others of its kind have. PREFIX: ask those that begin
with it alone.

Recipes: docs/schema/recipe.json must be what `snug help schema` prints. Each key is written with many values: what the schema takes the
program must read, and what it refuses the program must refuse, but for a few spellings (LENIENT). The recipes of the documents and those
that `snug fit --write` makes must pass.

Exit code 77 where Debian's python3-jsonschema is missing."""

import concurrent.futures
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import check_docs

warnings.filterwarnings("ignore", category=DeprecationWarning)  # of the resolver, from jsonschema 4.18 on; Debian has 4.10
try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed (scripts/setup.sh test)")
    sys.exit(77)

ROOT = check_docs.ROOT
SCHEMAS = ROOT / "docs" / "schema"
GOLDEN = ROOT / "tests" / "golden"
LLAMA = "meta-llama/Llama-3.1-8B"
MISTRAL = "mistralai/Mistral-7B-v0.1"

# Words behind `snug`; the first is the schema too. Files of ```… file=NAME blocks of the documents are at hand, as is demo/.
QUESTIONS = [
    "plan demo/model", "plan demo/model --method full --gradient-checkpointing --memory 1MiB", "plan demo/model --levers",
    "plan demo/model --examples 100 --example-tokens 50", "plan demo/model --fp16 --method full",
    "plan demo/model --gradient-checkpointing auto --offload-activations disk --memory 24MiB",
    "plan demo/model --method full --offload-weights disk --offload-gradients disk --offload-optimizer disk",
    "plan demo/model --gradient-checkpointing --checkpoint-inputs 3", "plan demo/model --num-processes 4 --zero-stage 3 --method full",
    f"plan {LLAMA} --gpu H100 --gpus 64 --gpus-per-node 8 --runtime snug --tp-size 4 --pp-size 4 --cp-size 2 --bf16",
    "plan demo/model --load-in-8bit --bf16 --max-steps 10", "plan demo/model --runtime pytorch --levers",
    f"plan {LLAMA} --bf16 --memory 24GiB", f"plan {LLAMA} --gpu RTX-4090 --method qlora --gradient-checkpointing --levers",
    f"plan {LLAMA} --gpu A100 --runtime snug --max-steps 100", f"plan {LLAMA} --gpu H100 --gpus 4 --fsdp --method full --use-dora false",
    f"plan {LLAMA} --gpu H100 --gpus 8 --ddp --bf16 --stack torch=2.4.1,transformers=4.48.1", f"plan {LLAMA} --gpu T4 --method qlora --use-dora",
    "plan Qwen/Qwen2.5-0.5B --gpu RTX-4090 --bf16 --seq 1024 --val-size 100", "plan openai/gpt-oss-20b --gpu H200 --bf16",
    "plan Qwen/Qwen3-Next-80B-A3B-Instruct --gpu H200 --method qlora", "plan Qwen/Qwen3-Next-80B-A3B-Instruct --gpu T4",
    "plan Qwen/Qwen3.5-4B --gpu RTX-4090 --bf16", "plan Qwen/Qwen3.5-4B --runtime pytorch --stack fla=0.6.0",
    "plan qlora.yml", "plan qlora.yml --gpu RTX-4090 --levers", "plan qlora.yml --runtime snug",
    f"plan {MISTRAL} --textbook --parameters 7B --fp16 --method full --seq 1024", "plan 7B --textbook --method full",
    "plan 4B --textbook --bf16 --optim adamw_bf16_states --trained 20M", f"plan {LLAMA} --bf16 --max-memory 0:12GiB,1:6GiB,cpu:200GiB",
    f"plan {LLAMA} --bf16 --max-memory 0:1GiB", f"plan {LLAMA} --method qlora --bf16 --gradient-checkpointing --max-memory cpu:4GiB,disk:20GiB",
    f"plan {LLAMA} --bf16 --weights-only --max-memory 0:12GiB,cpu:64GiB", "plan --megatron pretrain.sh --gpus 8",
    "fit demo/model --memory 40MiB --seq 128", "fit demo/model --memory 1MiB --method lora", "fit demo/model --memory 64MiB --data rows.jsonl",
    f"fit {LLAMA} --gpu RTX-4090 --method qlora", f"fit {LLAMA} --gpu H100 --runtime snug --method lora", "fit qlora.yml --gpu RTX-4090",
    "fit Qwen/Qwen3.5-4B --gpu RTX-4090 --method lora",
    "fit openai/gpt-oss-20b --gpu H200 --method lora", "fit Qwen/Qwen2.5-0.5B --gpu H100 --method full", f"fit {LLAMA} --gpu GTX-1080 --method full",
    f"fit {LLAMA} --method full --gpu H100 --gpus 16 --gpus-per-node 8", "fit meta-llama/Llama-3.1-405B --method full --gpu T4 --gpus 8 --gpus-per-node 8",
    "fit meta-llama/Llama-3.1-70B --method full --seq 8192 --gpu H100 --gpus 8 --gpus-per-node 8",
    "explain crash.log", "explain step.log qlora.yml", "explain step.log qlora.yml --runtime snug", "explain memory_stats.txt",
    "explain memory_summary.txt", "explain profiler_trace.json", "explain old.log", "explain ranks.log", "explain cublas.log",
    *(f"explain {path.name}" for path in sorted((GOLDEN / "snapshots").glob("*.pickle"))), "explain fragmentation.pickle qlora.yml --gpu RTX-4090",
    "measure fits", "measure runs_out --gpus 2", "measure nothing",
]

OLD_LOG = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total capacity; 6.04 GiB already allocated; " \
          "11.88 MiB free; 6.13 GiB reserved in total by PyTorch)\n"
RANK_LOG = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.64 GiB of " \
           "which 1.21 GiB is free. Process 77 has 3.00 GiB memory in use. Including non-PyTorch memory, this process has 19.42 GiB memory " \
           "in use. Of the allocated memory 18.13 GiB is allocated by PyTorch, and 861.10 MiB is reserved by PyTorch but unallocated.\n"
CUBLAS_LOG = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"

# What a PyTorch program's own side writes when it ends, for `snug measure` to read; tests/measure has programs that really run.
PEAK = {"allocated_bytes": 3 << 30, "reserved_bytes": 4 << 30}
RESULT = {"rank": 0, "device": 0, "phase": "backward", **PEAK, "driver_bytes": 4 << 30, "steady_bytes": 2 << 30, "pinned_bytes": 0,
          "managed_bytes": 0, "phases": {"load": PEAK, "forward": PEAK, "backward": PEAK}, "steps": [PEAK, PEAK], "out_of_memory": None,
          "versions": {"torch": "2.6.0"}, "refused": [], "seconds": 1.5, "host_peak_bytes": 1 << 30}
RAN_OUT = {"phase": "backward", "asked_bytes": 1 << 30, "free_bytes": 1 << 20, "snapshot": str(GOLDEN / "snapshots" / "fragmentation.pickle")}
MEASURED = {
    "fits": [RESULT],
    "runs_out": [RESULT | {"out_of_memory": RAN_OUT}, RESULT | {"rank": 1, "reserved_bytes": 5 << 30, "steady_bytes": None}],
    "nothing": [RESULT | {"phase": None, "steps": [], "phases": {}, "refused": ["cuMemAllocManaged"]}],
}

# Objects whose fields are names of something, any of which may be there.
MAPS = {"recipe", "settings", "assumed", "device_map", "phases", "stack"}

# What the program reads beside what the schema takes: other spellings of true, false and numbers, a list of nothing or of one. Where a
# text is expected it takes any scalar for one.
LENIENT = ["yes", "no", "none", "7", "0.5", 0, 1, False, [], ["norms"]]
TEXTS = {"dataset_format"}  # whose words are judged with the rows

VALUES = [True, False, None, 0, 1, 7, -1, -2, 0.5, 1.5, "auto", "none", "disk", "all", "yes", "24GB", "24G", "q_proj=16", "momentum=0.9", "no-such-word",
          "norms,attention", "adamw_hf", "cosine", "wandb", "trl", [0, 1], ["q_proj", "v_proj"], [], {"q_proj": 16}, {"num_cycles": 2}]


def schema(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def validator(name):
    of = schema(name)
    kind = jsonschema.validators.validator_for(of)
    kind.check_schema(of)
    return kind(of, resolver=jsonschema.RefResolver(f"{SCHEMAS.as_uri()}/{name}.json", of))


def prepare(directory):
    shutil.copytree(ROOT / "demo", directory / "demo")
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for info, lines, _ in check_docs.blocks(document.read_text()):
            if name := info.partition(" file=")[2]:
                (directory / name).write_text("\n".join(lines) + "\n")
    for path in [*(GOLDEN / "snapshots").glob("*.pickle"), *(GOLDEN / "torch").iterdir()]:
        shutil.copy(path, directory)
    (directory / "rows.jsonl").write_text('{"text": "one two three"}\n' * 40)
    for name, text in {"old.log": OLD_LOG, "ranks.log": RANK_LOG, "cublas.log": CUBLAS_LOG}.items():
        (directory / name).write_text(text)


def measured_command(words):
    """snug measure of a program that leaves what PyTorch's side would."""
    which, *flags = words
    writes = [f"open(os.environ['SNUG_MEASURE_DIR'] + '/results/{number}.json', 'w').write({json.dumps(result)!r})"
              for number, result in enumerate(MEASURED[which])]
    return ["measure", "--json", f"measured-{which}.json", *flags, "--", sys.executable, "-S", "-c", "import os; " + "; ".join(writes)]


def ask(snug, directory, question):
    """(answer as JSON, what went wrong)"""
    first, *rest = question.split()
    words = measured_command(rest) if first == "measure" else [first, *rest, "--json"]
    done = subprocess.run([snug, *words], cwd=directory, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, XDG_CACHE_HOME=str(directory / "cache")))
    text = done.stdout
    if first == "measure" and done.returncode in (0, 3):
        text = (directory / f"measured-{rest[0]}.json").read_text()
    try:
        return json.loads(text), ""
    except json.JSONDecodeError:
        return None, f"exit code {done.returncode}, no JSON: {done.stderr[-300:]}{text[:200]}"


def objects(value, path=()):
    """Every object in a document, with its path."""
    if isinstance(value, dict):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from objects(inner, (*path, key))


def changed(document, path, change):
    result = copy.deepcopy(document)
    at = result
    for key in path:
        at = at[key]
    change(at)
    return result


def plain(path):
    return tuple("N" if isinstance(key, int) else key for key in path)


def mutations(document, seen):
    """(what was done and where, the field that was taken away or none, the document thus broken), of alike objects the first alone."""
    for path, value in objects(document):
        alike = (frozenset(document), plain(path), frozenset(value))
        if alike in seen:
            continue
        seen.add(alike)
        where = "/".join(plain(path)) or "the top"
        yield f"{where} with a field more", None, changed(document, path, lambda at: at.update({"no_such_field": [[]]}))
        for key, inner in value.items():
            yield f"{where} without {key}", (*plain(path), key), changed(document, path, lambda at: at.pop(key))
            if isinstance(inner, (int, float)):
                yield f"{where}/{key} as a list", None, changed(document, path, lambda at: at.update({key: ["text"]}))


def lacking(documents):
    """Fields that an object lacks which another of the same place has."""
    fields, lacks = {}, set()
    for document in documents:
        for path, value in objects(document):
            fields.setdefault(plain(path), []).append(set(value))
    for path, sets in fields.items():
        lacks |= {(*path, key) for key in set.union(*sets) - set.intersection(*sets)}
    return lacks


def check_answer(check, document, may_lack, seen):
    """(what is wrong, broken documents refused, broken documents taken)"""
    wrong = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in check.iter_errors(document)]
    if wrong:
        return wrong[:5], 0, []
    refused, taken = 0, []
    for what, without, broken in mutations(document, seen):
        if not check.is_valid(broken):
            refused += 1
        elif without is None or not (without in may_lack or (len(without) > 1 and without[-2] in MAPS)):
            taken.append(what)
    return [], refused, taken


def schema_of(question):
    kind = question.split()[0]
    return "meshes" if kind == "fit" and "--gpus-per-node" in question else kind


def check_answers(snug, directory, prefix):
    questions = [question for question in QUESTIONS if question.startswith(prefix)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(zip(questions, pool.map(lambda question: ask(snug, directory, question), questions)))
    refused, wrong, taken = 0, [], {}
    for name in ("plan", "fit", "meshes", "explain", "measure"):
        of = [(question, document, problem) for question, (document, problem) in answers if schema_of(question) == name]
        may_lack, check, seen = lacking([document for _, document, problem in of if not problem]), validator(name), set()
        for question, document, problem in of:
            found, count, kept = ([problem], 0, []) if problem else check_answer(check, document, may_lack, seen)
            wrong += [f"snug {question}: {line}" for line in found]
            refused += count
            for what in kept:
                taken.setdefault(f"{name}: {what}", question)
    wrong += [f"taken although broken: {what} (snug {question})" for what, question in taken.items()]
    return wrong, f"{len(answers)} answers are as their schemas say; {refused} broken ones are refused"


def as_yaml(value):
    return "null" if value is None else json.dumps(value) if not isinstance(value, str) or re.search(r"[:,{}\[\]]|^$", value) or \
        scalar(value) != value else value


def scalar(text):
    """A plain scalar of YAML 1.2."""
    try:
        return None if text in ("null", "~", "") else json.loads(text)
    except json.JSONDecodeError:
        return text if not re.fullmatch(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?", text) else float(text)


def read_flat(text):
    """A recipe: keys with scalars, lists in one line or several, and mappings of scalars."""
    recipe, key = {}, None
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not line:
            continue
        name, _, rest = line.strip().partition(":")
        if line.lstrip().startswith("- "):
            recipe[key] = (recipe[key] or []) + [scalar(line.strip()[2:])]
        elif line.startswith(" "):
            recipe[key] = (recipe[key] or {}) | {name: scalar(rest.strip())}
        elif rest.strip().startswith("["):
            recipe[key := name] = [scalar(item.strip().strip("\"'")) for item in rest.strip()[1:-1].split(",") if item.strip()]
        else:
            recipe[key := name] = scalar(rest.strip()) if not rest.strip().startswith(("'", '"')) else rest.strip()[1:-1]
    return recipe


def reads(snug, directory, number, key, value):
    """Whether the program reads the value, whatever it then says of the recipe as a whole."""
    file = directory / f"value-{number}.yaml"
    file.write_text(f"model_name_or_path: demo/model\n{key}: {as_yaml(value)}\n")
    done = subprocess.run([snug, "plan", file.name], cwd=directory, capture_output=True, text=True, timeout=60)
    return f"{file.name}:2:" not in done.stderr


def check_values(snug, directory):
    """Each key with each of VALUES: by the schema and by the program."""
    check, wrong = validator("recipe"), []
    pairs = [(key, value) for key in schema("recipe")["properties"] if key != "model_name_or_path" for value in VALUES]
    texts = TEXTS | {key for key, of in schema("recipe")["properties"].items() if {"type": "string"} in of.get("anyOf", [])}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(lambda pair: reads(snug, directory, pair[0], *pair[1]), enumerate(pairs)))
    for (key, value), taken in zip(pairs, read):
        valid = check.is_valid({key: value})
        lenient = taken and (key in texts or any(value == same and type(value) is type(same) for same in LENIENT))
        if valid != taken and not lenient:
            wrong.append(f"{key}: {as_yaml(value)}: the schema {'takes' if valid else 'refuses'} it, snug does not")
    return wrong, f"{len(pairs)} values of keys: schema and program agree"


def check_recipes(snug, directory):
    """The recipes of the documents, and one that fit writes."""
    printed = subprocess.run([snug, "help", "schema"], capture_output=True, text=True, check=True).stdout
    wrong = [] if printed == (SCHEMAS / "recipe.json").read_text() else ["docs/schema/recipe.json is not what `snug help schema` prints"]
    subprocess.run([snug, "fit", "demo/model", "--memory", "40MiB", "--seq", "128", "--write", "fitted.yaml"], cwd=directory, check=True,
                   capture_output=True)
    check, names = validator("recipe"), ["recipe.yaml", "fitted.yaml"]
    for name in names:
        wrong += [f"{name}: {error.message}" for error in check.iter_errors(read_flat((directory / name).read_text()))]
    wrong += [f"a recipe with {key} is taken" for key in ("lorar", "no_such_key") if check.is_valid({key: 8})]
    return wrong, f"{len(names)} recipes are as their schema says"


def main():
    snug = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "snug").resolve())
    prefix = sys.argv[2] if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory(prefix="snug-schemas-") as name:
        directory = pathlib.Path(name)
        prepare(directory)
        checks = [check_answers(snug, directory, prefix)]
        if not prefix:
            checks += [check_recipes(snug, directory), check_values(snug, directory)]
    for wrong, passed in checks:
        print("\n".join(wrong) if wrong else passed)
    return 1 if any(wrong for wrong, _ in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
