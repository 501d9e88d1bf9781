"""What each source's rows mean, as recipes: one function a source, which takes a row and fills in a Question. What a row does not say has the
default of its source's own script, named here; where even that is open, the row is asked several times."""

import math
import pathlib
import random
import re
import statistics

import rows
from published_models import config_of
from rows import Ask, Question

HERE = pathlib.Path(__file__).resolve().parent
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
QWEN_TARGETS = ["c_attn", "c_proj", "w1", "w2"]  # finetune.py, LoraArguments: all linears, for attention's and the MLP's end alike
FLASH = ["--attn-implementation", "flash_attention_2"]


def found(pattern, text, default):
    match = re.search(pattern, text)
    return match[1] if match else default


def lora(rank, targets, dropout=0.0):
    return {"method": "lora", "lora_r": rank, "lora_dropout": dropout, "lora_target_modules": targets}


def whole(method, rank=8, targets="all-linear", dropout=0.0):
    """The keys of a method as tables name it."""
    if method.startswith("full"):
        return {"method": "full"}
    return dict(lora(rank, targets, dropout), **({"load_in_4bit": True} if method.startswith("q") else {}))


def lengths(mean, deviation, most, rows_of_all):
    """Lengths of so many rows, their logarithms normal, as the published mean and deviation have them; longer ones than `most` are deleted."""
    spread = math.log(1 + (deviation / mean) ** 2)
    curve = statistics.NormalDist(math.log(mean) - spread / 2, math.sqrt(spread))
    share = curve.cdf(math.log(most))
    count = round(share * rows_of_all)
    return [max(1, round(math.exp(curve.inv_cdf(share * (i + 0.5) / count)))) for i in range(count)]


def shuffled(drawn, order):
    """The same in an order of that number, always the same, as --row-lengths takes them."""
    mixed = list(drawn)
    random.Random(order).shuffle(mixed)
    return ",".join(map(str, mixed))


# --- foundation-model-stack/fms-acceleration: scripts/benchmarks ---

FMS_MODELS = {"TheBloke/Llama-2-70B-GPTQ": "Llama-2-70B (fms)", "TechxGenus/Meta-Llama-3-8B-GPTQ": "meta-llama/Meta-Llama-3-8B",
              "TheBloke/Mistral-7B-v0.1-GPTQ": "mistralai/Mistral-7B-v0.1", "bigcode/gpt_bigcode-santacoder": "santacoder",
              "mistralai/Mixtral-8x7B-Instruct-v0.1": "Mixtral-8x7B", "TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ": "Mixtral-8x7B",
              "ibm-granite/granite-3.0-3b-a800m-instruct": "granite-3.0-3b-a800m", "ibm-research/moe-7b-1b-active-shared-experts": "moe-7b-1b"}
PREPARATION = {"baseline-peft-bnb": "trl", "accelerated-peft-bnb": "false"}


def fms(row, q):
    framework = re.search(r"framework_config=([\w-]+)", row["other"])[1]
    peak = re.search(r"torch peak alloc ([\d.]+)", row["other"])
    packed = "packed" in row["seq"]
    q.trainer, q.card, q.metric = "fms-hf-tuning", "A100-SXM4-80GB", "allocated" if peak else "device"
    q.out_of_memory = "OOM" in row["peak_gb"]
    if peak:
        q.least = q.most = float(peak[1])
    elif not q.out_of_memory:
        q.least, q.most = rows.printed(row["peak_gb"])
    q.tier = "C" if not peak else "A" if q.gpus == 1 and packed else "B"
    version = found(r"transformers ([\d.]+)", row["framework"], "4.45.2" if "granite" in row["source"] else "4.48.1")
    q.stack = f"torch=2.4.1,transformers={version},peft=0.13.2,bitsandbytes=0.43.3,trl=0.13.0"
    half = "float16" if "float16" in row["precision"] and "bfloat16" not in row["precision"] else "bfloat16"
    amp = "(AMP)" in row["precision"]
    if "fp32" in row["precision"] or "float32" in row["precision"]:
        half = "float32"
    method = {"full": "full", "LoRA": "lora", "LoRA on GPTQ 4-bit": "lora"}.get(row["method"], "qlora")
    keys = whole(method, 16, ATTENTION, 0.1)
    keys.update(gradient_checkpointing=True, packing=False)
    keys["fp16" if "fp16=True" in row["precision"] else "bf16"] = amp
    flags = list(FLASH)
    if method == "qlora":
        flags += ["--prepare-model-for-kbit-training", PREPARATION.get(framework, "false")]
    if "foak" in framework:
        kernels = ["norm", "rope"] + (["lora"] if "bnb" in framework or "gptq" in framework else []) + (["linear-loss"] if "liger" in framework else ["loss"])
        flags += ["--fused-kernels", ",".join(kernels)]
    if "GPTQ" in row["method"]:
        flags += ["--gptq", "none" if "70B" in row["model"] else "128"]  # 70B: as its published bytes show; else as usual
    if "scattermoe" in framework:
        q.left_out = "ScatterMoE's kernels"
    if not packed and not q.left_out:
        q.left_out = "lengths of the longest batch not published"
    ask(q, row, FMS_MODELS.get(row["model"], row["model"]), keys, flags, half)
    if q.gpus > 1 and not q.left_out:
        for a in q.asks:
            a.flags += ["--gpus", str(q.gpus), "--fsdp"]


# --- huggingface/peft: method_comparison/MetaMathQA (run.py: a loop of its own, rows of up to 768 tokens, no autocast) ---

def peft_comparison(row, q):
    q.trainer, q.card, q.metric, q.tier = "PEFT's comparison", "L40S", "reserved", "B"
    q.least, q.most = rows.printed(row["peak_gb"])
    torch = found(r"torch ([\d.]+)", row["framework"], "")
    peft = found(r"PEFT (\d+\.\d+\.\d+)", row["framework"], "0.18.0" if "2.9" in torch else "0.16.0")
    q.stack = f"torch={torch},transformers={found(r'transformers ([0-9.]+)', row['framework'], '')},peft={peft}"
    name = found(r"llama-3\.2-3B-(\S*?)\.json", row["source"], "")
    kind = row["method"].lower()
    keys = {"bf16": False, "gradient_checkpointing": False, "packing": False}
    if kind == "full":
        keys.update(whole("full"))
    elif kind == "lora" and (read := re.fullmatch(r"rank(\d+)(-rslora|-dora|-target-mlp|)", name)):
        targets = ["gate_proj", "up_proj", "down_proj"] if "mlp" in read[2] else ["q_proj", "v_proj"]
        keys.update(lora(int(read[1]), targets), use_dora=read[2] == "-dora")
    else:
        q.left_out = "a method of PEFT other than LoRA and DoRA"
    ask(q, row, "llama-3.2-3b", keys, ["--own-loop", "labels"])


# --- Lightning-AI/litgpt: config_hub/finetune and tutorials/resource-tables.md (torch.cuda.max_memory_allocated, / 1e9) ---

LITGPT_TARGETS = {"query": ["q_proj"], "key": ["k_proj"], "value": ["v_proj"], "projection": ["o_proj"], "mlp": ["gate_proj", "up_proj", "down_proj"],
                  "head": ["lm_head"]}
SHORT = 128  # tokens of a short row of Alpaca
LITGPT_FILES = {"14.31 GB": "gemma-2-2b"}  # gemma2-2b/lora.yaml, whose column says gemma-2b
PARAMETERS = {"llama-3.2-1b": 1.23e9, "llama-3.2-3b": 3.21e9, "Phi-3-mini-4k-instruct": 3.82e9}
LITGPT_MODELS = {"1,572,864": "microsoft/phi-1_5", "4,194,304": "llama-2-7b", "6,553,600": "meta-llama/Llama-2-13b-hf"}  # by what is trained


def litgpt(row, q):
    q.trainer, q.metric = "LitGPT", "allocated"
    q.card = "A100-SXM4-40GB" if "A100" in row["gpu"] else "A10G"
    q.out_of_memory = row["peak_gb"] == "OOM"
    q.least, q.most = rows.printed(row["peak_gb"])
    if "devices=1" in row["other"]:
        q.gpus = 1  # the file says devices: 1; the row of four GPUs repeats it
    quantized = re.search(r"bnb\.nf4(-dq)?", row["other"])
    keys = {"method": "full"}
    model = LITGPT_FILES.get(row["peak_gb"], row["model"])
    if row["method"] in ("LoRA", "QLoRA"):
        words = found(r"targets=([\w+]+)", row["other"], "query+value").split("+")
        targets = [target for word in words for target in LITGPT_TARGETS[word]]
        if model.startswith("Phi-3"):  # all, some of which its checkpoints hold in one
            targets = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"]
        keys = lora(int(found(r"lora_r=(\d+)", row["other"], 8)), targets, 0.05)
    elif row["method"] != "full":
        q.left_out = "adapters that are no LoRA"
    elif 0 < q.most < 8 * PARAMETERS.get(model, 0):  # two bytes each, by AdamW: the run was another one
        q.left_out = "less than weights, gradients and moments take"
    if quantized:
        keys.update(load_in_4bit=True, bnb_4bit_use_double_quant=bool(quantized[1]), optim="paged_adamw_32bit")
    if "resource-tables" in row["source"]:  # names a commit of 20 October 2023; was itself written a week later, when norms had been widened
        model = LITGPT_MODELS.get(found(r"trainable params ([\d,]+)", row["other"], ""), model)
        q.stack = "torch=2.1.0,bitsandbytes=0.41.1,litgpt=0.2"
        keys["gradient_accumulation_steps"] = 128 // rows.count(row["batch"])
    else:  # Gemma 2 came in July 2024, Llama 3.2 in September; the others' figures are of March and April
        late = "gemma-2-" in model or "gemma2" in row["source"] or "llama-3.2" in model
        q.stack = f"torch={'2.4.0' if late else '2.2.0'},bitsandbytes=0.42.0,litgpt={'0.4.8' if late else '0.3.0'}"
        keys["gradient_accumulation_steps"] = int(found(r"global_batch=(\d+)", row["other"], 1)) // rows.count(row["batch"])
    keys.update(bf16=True, gradient_checkpointing=False, packing=False, max_grad_norm=0)
    flags = ["--trainer", "litgpt"]
    if "resource-tables" in row["source"]:  # finetune/lora.py, get_batch: the longest sample is in the first batch, others are drawn at random
        flags += ["--row-lengths", f"{rows.count(row['seq'].partition('sample')[2])},300,300,300"]
        keys["gradient_accumulation_steps"] = 2
    else:  # the batch before, whose logits are still there (a local of fit), is as long or shorter
        ask(q, row, model, keys, [*flags, "--row-lengths", f"{rows.count(row['seq'])},{SHORT},{rows.count(row['seq'])},{SHORT}"])
    ask(q, row, model, keys, flags)


# --- pytorch/torchtune ---


def torchtune(row, q):
    q.trainer, q.metric = "torchtune", "unknown"
    q.least, q.most = rows.printed(row["peak_gb"])
    q.left_out = "torchtune's own model and loop"


# --- QwenLM/Qwen: finetune.py and its scripts (Trainer, weights and autocast of bf16, checkpointing, AdamW) ---


def qwen(row, q):
    q.trainer, q.card, q.metric = "Qwen's finetune.py", "A100-SXM4-80GB", "unknown"
    q.least, q.most = (bytes / q.gpus for bytes in rows.printed(row["peak_gb"]))  # of several GPUs the sum is told
    # "G" is 10^9: Qwen-7B's 162.0G on two cards of 80 GiB could not be GiB, nor is another unit named in the table
    # docker/Dockerfile; README.md: "peft<0.8.0"; DeepSpeed as of then
    stacks = [f"torch=2.0.1,transformers=4.32.0,peft={peft},deepspeed=0.12.6" for peft in ("0.5.0", "0.7.1")]
    keys = lora(64, QWEN_TARGETS, 0.05)
    flags = list(FLASH)
    if "emb" in row["method"]:  # of a base model, whose name says no "chat": modules_to_save = ["wte", "lm_head"]
        keys["lora_modules_to_save"] = ["wte", "lm_head"]
    if row["method"].startswith("Q-LoRA"):  # finetune_qlora_single_gpu.sh: ds_config_zero2.json, and weights that GPTQ quantized
        q.left_out = "quantized weights under DeepSpeed"
    if row["method"].startswith("Full"):
        keys = {"method": "full"}
    stages = []  # finetune_ds.sh has the third; which of both configurations one GPU had is not said
    if row["method"].startswith("Full") or "Zero3" in row["method"]:
        stages = ["zero3"] if q.gpus > 1 else ["zero2", "zero3"]
    keys.update(bf16=True, gradient_checkpointing=True, packing=False)
    for stack in stacks:
        for stage in stages or [""]:
            shared = ["--gpus", str(q.gpus), "--deepspeed", str(HERE / "recipes" / f"qwen_{stage}.json")] if stage else []
            ask(q, row, row["model"], keys, [*flags, *shared, "--stack", stack])


# --- modelscope/ms-swift ---

ORDERS = 8
ORDERS_OF_FEW = 32  # rows of an epoch: the fewer there are, the more it matters which comes when
FEW = 100
SWIFT_MODELS = {"qwen-7b-chat": "Qwen-7B", "qwen-14b-chat": "Qwen-14B", "qwen-1_8b-chat": "Qwen-1.8B", "qwen-72b-chat": "Qwen-72B",
                "chatglm3-6b": "chatglm3-6b", "openbuddy-zephyr-7b-chat": "openbuddy-zephyr-7b"}


def swift_benchmark(row, q):
    """docs/source_en/LLM/Benchmark.md: reserved, in GiB; of rows of 3,234 ± 2,547 tokens those above max_length are deleted, as
    truncation_strategy has it (swift/llm/utils/argument.py), and the others' lengths vary: what is reserved grows with them. One epoch of all
    4,959 rows (Supported-models-datasets.md), of 1,000 where max_length is above 2,048 (scripts/benchmark/test_memory_time/run_single.py)."""
    q.trainer, q.card, q.metric = "ms-swift", "A100-SXM4-80GB", "reserved"
    q.least, q.most = rows.printed(row["peak_gb"])
    q.stack = "torch=2.1.1,transformers=4.36.0,peft=0.7.0,bitsandbytes=0.41.3"
    if "int8" in row["method"]:
        q.left_out = "GPTQ of eight bits"
    method = "full" if row["method"] == "full" else "qlora" if "bnb" in row["method"] else "lora"
    targets = ["c_attn"] if row["model"].startswith("qwen") else ["q_proj", "k_proj", "v_proj"]  # DEFAULT
    keys = whole(method, 8, targets, 0.05)
    keys.update(bf16=True, gradient_checkpointing=True, packing=False)
    gptq = "gptq" in row["method"]
    if gptq:
        keys.update(bf16=False, fp16=True, load_in_4bit=False)
    flags = [*FLASH, *(["--gptq", "128"] if gptq else [])]
    most = rows.count(row["seq"])
    drawn = lengths(3234.4, 2547.5, most, 4959 if most <= 2048 else 1000)
    for order in range(1, 1 + (ORDERS_OF_FEW if len(drawn) < FEW else ORDERS)):  # which nobody knows
        ask(q, row, SWIFT_MODELS.get(row["model"], row["model"]), keys, flags + ["--row-lengths", shuffled(drawn, order)],
            "float16" if gptq else "bfloat16")


# What requirements/framework.txt allowed when version 3 brought these files with their figures (December 2024), and today's: no figure was
# changed since, files were, and which of both was measured is not said.
SWIFT_STACKS = ("torch=2.5.1,transformers=4.47.1,peft=0.13.2,bitsandbytes=0.44.1", "")


def swift_examples(row, q):
    """Comments at the head of examples/train/**/*.sh: by hand, and of no named card or measure. Their rows (Alpaca's, and a model's words about
    itself) are shorter than max_length, how long the longest is not said: all short, or one as long as that."""
    q.trainer, q.card, q.metric = "ms-swift", "A100-SXM4-80GB", "unknown"
    figure = re.search(r"[\d.]+\s*Gi?B", row["peak_gb"])
    q.gb_may_be_gib = bool(figure) and "GiB" not in figure[0]
    q.least, q.most = rows.printed(figure[0] if figure else "")
    q.gpus = int(found(r"nproc=(\d+)", row["other"], 1))
    for word in ("muon", "liger", "hqq", "gptq", "awq", "packing", "seq_cls", "reranker", "new_special_tokens"):
        if word in (row["other"] + row["method"] + row["source"] + row["optimizer"]).lower():
            q.left_out = f"{word}: not modelled"
    rank = int(found(r"lora_rank=(\d+)", row["other"], 8))
    keys = whole("qlora" if "4bit" in row["method"] else row["method"].split()[0], rank, "all-linear", 0.05)
    keys.update(bf16=True, gradient_checkpointing=row["checkpointing"] != "false", packing=False)
    flags = list(FLASH) if "flash" in row["attention"] else []
    stage = found(r"deepspeed=zero(\d)", row["other"], "")
    if stage:  # swift/config/zero2.json, zero3.json
        flags += ["--gpus", str(q.gpus), "--deepspeed", str(HERE / "recipes" / f"swift_zero{stage}.json")]
    elif "multi-gpu/ddp/" in row["source"]:
        flags += ["--gpus", str(q.gpus)]
    elif "multi-gpu/fsdp2_lora/" in row["source"]:  # whose fsdp2.json has activation_checkpointing
        keys["gradient_checkpointing"] = True
        flags += ["--gpus", str(q.gpus), "--fsdp"]
    for stack in SWIFT_STACKS:
        if stack and "--fsdp" in flags:
            continue  # which came with transformers 5
        for lengths_of_rows in ([], ["--row-lengths", f"{SHORT},{SHORT}"]):
            ask(q, row, row["model"], keys, flags + (["--stack", stack] if stack else []) + lengths_of_rows)


# --- ljm565/universal-llm-trainer: docs/gpu_test.md (a loop of its own; rows filled to 8,192 tokens; reserved) ---


def universal(row, q):
    cards = {"A100": "A100-SXM4-80GB", "H100": "H100-SXM5-80GB"}
    q.trainer, q.metric = "universal-llm-trainer", "reserved"
    q.card = next((card for word, card in cards.items() if word in row["gpu"]), "")
    q.least, q.most = (x * 10**9 / 2**30 for x in rows.printed(row["peak_gb"]))  # its log divides by 1e9 and the page says GiB
    q.stack = "torch=2.5.1,transformers=4.49.0,bitsandbytes=0.46.1" if q.card.startswith("H100") else "torch=2.8.0,transformers=4.49.0,bitsandbytes=0.46.1"
    if q.gpus > 1:
        q.left_out = "FSDP with parameters in host memory"
    names = {"Llama 3 8B": "llama-3-8b", "Llama 2 13B": "meta-llama/Llama-2-13b-hf", "Gemma 7B": "gemma-7b", "Gemma 2 9B": "gemma-2-9b",
             "Phi3-mini (3.8B)": "phi-3", "Qwen 3 8B": "Qwen/Qwen3-8B"}
    targets = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"] if "Phi3" in row["model"] else ATTENTION + ["gate_proj", "up_proj", "down_proj"]
    keys = whole(row["method"].lower(), 8, targets, 0.05)
    keys.update(bf16=False, gradient_checkpointing=True, packing=False)
    card = [] if q.card else ["--memory", "96GiB"]  # RTX Pro 6000
    ask(q, row, names[row["model"]], keys, ["--own-loop", "logits", *card])


# --- LLaMA-Factory's wiki, as Unsloth's README quotes it ---


def llama_factory_wiki(row, q):
    q.trainer, q.card, q.metric, q.gb_may_be_gib = "LLaMA-Factory", "A100-SXM4-80GB", "unknown", True
    q.least, q.most = rows.printed(row["peak_gb"])
    q.stack = "torch=2.1.0,transformers=4.36.0,peft=0.7.0,bitsandbytes=0.41.3"
    if "Unsloth" in row["framework"]:
        q.left_out = "Unsloth's kernels"
    keys = whole(row["method"].lower(), 8, ["q_proj", "v_proj"], 0.0)
    keys.update(fp16=True, gradient_checkpointing=True, packing=False)
    kinds = ["flash_attention_2"] if "FA2" in row["framework"] else ["eager", "sdpa"]  # transformers 4.36 began to choose sdpa
    for kind in kinds:
        ask(q, row, "llama-2-7b", keys, ["--attn-implementation", kind], "float16")


def ask(q, row, model, keys, flags, dtype="bfloat16"):
    """Adds one reading of the row."""
    config = config_of(model, dtype)
    if config is None:
        q.left_out = q.left_out or f"configuration of {model} not at hand"
        return
    keys = dict(keys, per_device_train_batch_size=rows.count(row["batch"]), max_length=rows.count(row["seq"]))
    accumulation = re.search(r"GA (\d+)", row["batch"])
    if accumulation:
        keys["gradient_accumulation_steps"] = int(accumulation[1])
    config["max_position_embeddings"] = max(config.get("max_position_embeddings", 0), keys["max_length"])
    q.asks.append(Ask(config, keys, list(flags)))


LEFT_OUT = [("llmq", "not PyTorch"), ("Megatron", "Megatron's own model and several GPUs"), ("torchtitan", "several GPUs"),
            ("fsdp_qlora", "several GPUs (FSDP)"), ("Soup", "weights streamed from host memory"), ("loggetta", "mixtures of experts"),
            ("experts4bit", "mixtures of experts"), ("ColossalAI", "preference tuning on several GPUs"), ("arXiv", "largest batch that fits, not stated"),
            ("APOLLO", "other"), ("GaLore", "other"), ("BAdam", "other")]
SOURCES = [("fms-acceleration", fms), ("peft@", peft_comparison), ("litgpt", litgpt), ("torchtune", torchtune), ("QwenLM", qwen),
           ("ms-swift@d2b45ec8", swift_benchmark), ("ms-swift@", swift_examples), ("universal-llm", universal), ("unsloth", llama_factory_wiki)]


def question(line, row):
    """The row as a question; none where it does not state batch and length."""
    if not rows.states_batch_and_length(row):
        return None
    source = row["source"].split()[0]
    q = Question(line, source.partition("@")[0], row["framework"].split(",")[0][:30], row["model"], row["method"], rows.gpus_of(row["gpu"]))
    q.left_out = next((why for word, why in LEFT_OUT if word in source), "")
    if q.left_out:
        q.least, q.most = rows.printed(row["peak_gb"])
        q.out_of_memory = "OOM" in row["peak_gb"]
        return q
    read = next((read for word, read in SOURCES if word in source), None)
    if read is None or (read is peft_comparison and "method_comparison" not in row["source"]):
        q.left_out = "several GPUs" if q.gpus > 1 else "no reading of this source"
        return q
    read(row, q)
    if q.gpus > 1 and not q.left_out and "--gpus" not in str(q.asks):
        q.left_out = "several GPUs"
    return q
