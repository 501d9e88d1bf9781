"""Is what `snug merge` writes what PEFT's merge_and_unload computes?

    python tests/oracle/merge_check.py [SNUG]          # build/snug unless told

Makes tiny random models and adapters of many kinds, merges each with snug and with PEFT, and compares: the logits of the merged
checkpoint (loaded by transformers) with those of PEFT's model before merging (float32: norm-wise relative error at most 1e-5), and the
weights with those of merge_and_unload (bf16 and f16: at most one in a thousand may differ, where float32 sums taken in another order
fall on two sides of a rounding). Exit code 1 if one is off. By hand.

    python tests/oracle/merge_check.py SNUG --golden    # writes tests/golden/merge: base, adapters, PEFT's merged weights
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import peft
import safetensors.torch
import torch
import transformers

warnings.filterwarnings("ignore")
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]


def llama(seed, tied=False, dtype=torch.float32, family="llama"):
    torch.manual_seed(seed)
    sizes = dict(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=64, tie_word_embeddings=tied, bos_token_id=1, eos_token_id=2)
    config = {"llama": transformers.LlamaConfig, "qwen2": transformers.Qwen2Config, "mistral": transformers.MistralConfig}[family](**sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype)
    randomize(model, 0.3)
    return model


def gpt2(seed):
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=64,
                                                                 bos_token_id=1, eos_token_id=2))
    randomize(model, 0.3)
    return model


def randomize(model, size):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn(parameter.shape) * size + (1 if "norm" in name or "ln_" in name else 0))


def adapt(model, seed, **config):
    torch.manual_seed(seed)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **config))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if parameter.requires_grad and "magnitude" not in name:
                parameter.copy_(torch.randn(parameter.shape) * 0.3)
            elif parameter.requires_grad:
                parameter.mul_(1.0 + 0.2 * torch.rand(parameter.shape))
    return adapted


LINEAR = ["q_proj", "v_proj", "down_proj"]
CASES = {
    "lora": (lambda: llama(1), dict(r=4, lora_alpha=8, target_modules=LINEAR)),
    "rslora": (lambda: llama(2), dict(r=4, lora_alpha=8, use_rslora=True, target_modules=LINEAR)),
    "patterns": (lambda: llama(3), dict(r=4, lora_alpha=8, target_modules=LINEAR, rank_pattern={"q_proj": 2},
                                        alpha_pattern={"layers.1.self_attn.q_proj": 20, "down_proj": 3})),
    "rslora_patterns": (lambda: llama(4), dict(r=4, lora_alpha=8, use_rslora=True, target_modules=LINEAR, rank_pattern={"v_proj": 2})),
    "regex_targets": (lambda: llama(5), dict(r=4, lora_alpha=8, target_modules=r".*layers\.0.*(q_proj|up_proj)")),
    "dora": (lambda: llama(6), dict(r=4, lora_alpha=8, use_dora=True, target_modules=LINEAR)),
    "saved_head": (lambda: llama(7), dict(r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=["lm_head"])),
    "saved_both": (lambda: llama(8), dict(r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=["lm_head", "embed_tokens"])),
    "embedding": (lambda: llama(9), dict(r=4, lora_alpha=8, target_modules=["q_proj", "embed_tokens", "lm_head"])),
    "tied": (lambda: llama(10, tied=True), dict(r=4, lora_alpha=8, target_modules=LINEAR)),
    "tied_head": (lambda: llama(11, tied=True), dict(r=4, lora_alpha=8, target_modules=["q_proj", "lm_head"])),
    "tied_embedding": (lambda: llama(12, tied=True), dict(r=4, lora_alpha=8, target_modules=["q_proj", "embed_tokens"])),
    "tied_saved_head": (lambda: llama(13, tied=True), dict(r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=["lm_head"])),
    "qwen2": (lambda: llama(14, family="qwen2"), dict(r=4, lora_alpha=8, target_modules="all-linear")),
    "gpt2": (lambda: gpt2(15), dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)),
    "bf16": (lambda: llama(16, dtype=torch.bfloat16), dict(r=4, lora_alpha=8, target_modules="all-linear")),
    "f16": (lambda: llama(17, dtype=torch.float16), dict(r=4, lora_alpha=8, target_modules="all-linear")),
}
TOKENS = torch.arange(2, 38).reshape(2, 18)


def logits(model):
    with torch.no_grad():
        return model.eval()(TOKENS).logits.float()


def distance(ours, theirs):
    return ((ours - theirs).norm() / theirs.norm()).item()


def weights(directory):
    found = {}
    for file in sorted(pathlib.Path(directory).glob("*.safetensors")):
        found.update(safetensors.torch.load_file(file))
    return found


def merge(snug, adapters, base, output, *flags):
    subprocess.run([snug, "merge", ",".join(map(str, adapters)), "--model", base, "--output-dir", output, *flags], check=True,
                   stdout=subprocess.DEVNULL)


def check(snug, name, work):
    make, config = CASES[name]
    base, adapter, output = work / name / "base", work / name / "adapter", work / name / "out"
    model = make()
    model.save_pretrained(base)
    adapted = adapt(model, 100, **config)
    adapted.save_pretrained(adapter)
    before = logits(adapted)
    merge(snug, [adapter], base, output, "--max-shard-size", "9000B")
    written = transformers.AutoModelForCausalLM.from_pretrained(output, dtype="auto")
    off = distance(logits(written), before)
    theirs = adapted.merge_and_unload()
    after = distance(logits(theirs), before)
    different, values, largest = 0, 0, 0.0
    theirs = {key: value for key, value in theirs.state_dict().items()}
    for key, value in written.state_dict().items():
        values += value.numel()
        different += (value != theirs[key]).sum().item()
        largest = max(largest, ((value.float() - theirs[key].float()).abs() / (theirs[key].float().abs() + 1e-3)).max().item())
    exact = model.dtype == torch.float32
    good = off <= 1e-5 if exact else (different <= values // 1000 and off <= 2 * after)
    print(f"{name:16} logits: snug {off:.1e}, PEFT's own merge {after:.1e}; weights that differ from PEFT's: {different} of {values}, "
          f"largest relative {largest:.1e}{'' if good else '   WRONG'}")
    return good


def check_stack(snug, work):
    base, output = work / "stack" / "base", work / "stack" / "out"
    model = llama(20)
    model.save_pretrained(base)
    adapters = []
    for i in range(2):
        adapters.append(work / "stack" / f"adapter{i}")
        adapted = adapt(transformers.AutoModelForCausalLM.from_pretrained(base), 200 + i, r=4, lora_alpha=8, target_modules=LINEAR)
        adapted.save_pretrained(adapters[-1])
    merge(snug, adapters, base, output)
    for adapter in adapters:
        model = peft.PeftModel.from_pretrained(model, adapter).merge_and_unload()
    off = distance(logits(transformers.AutoModelForCausalLM.from_pretrained(output)), logits(model))
    print(f"{'two adapters':16} logits: {off:.1e}")
    return off <= 1e-5


def check_mlx(snug, work):
    """The same numbers in mlx-lm's layout give the same model."""
    base, peft_adapter, mlx_adapter = work / "lora" / "base", work / "lora" / "adapter", work / "mlx"
    mlx_adapter.mkdir()
    tensors = {}
    for key, value in safetensors.torch.load_file(peft_adapter / "adapter_model.safetensors").items():
        key = key.removeprefix("base_model.model.").replace(".lora_A.weight", ".lora_a").replace(".lora_B.weight", ".lora_b")
        tensors[key] = value.T.contiguous()
    safetensors.torch.save_file(tensors, mlx_adapter / "adapters.safetensors", {"format": "mlx"})
    (mlx_adapter / "adapter_config.json").write_text(json.dumps(
        {"fine_tune_type": "lora", "model": str(base), "num_layers": 2, "lora_parameters": {"rank": 4, "scale": 2.0, "dropout": 0.0}}))
    merge(snug, [mlx_adapter], base, work / "mlx-out")
    ours, theirs = weights(work / "mlx-out"), weights(work / "lora" / "out")
    same = all(torch.equal(ours[key], theirs[key]) for key in theirs)
    print(f"{'mlx-lm':16} {'the same bits as from PEFT' if same else 'WRONG'}")
    return same


def write_golden():
    """Small: [out 6, in 8] and the like; the everyday test merges and compares."""
    golden = ROOT / "tests" / "golden" / "merge"
    shutil.rmtree(golden, ignore_errors=True)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
    tiny = dict(vocab_size=10, hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                max_position_embeddings=16, bos_token_id=1, eos_token_id=2)
    cases = {
        "plain": (dict(tie_word_embeddings=False), torch.float32, dict(r=2, lora_alpha=6, target_modules=["q_proj", "down_proj"],
                                                                       modules_to_save=["lm_head"])),
        "rslora": (dict(tie_word_embeddings=False), torch.bfloat16,
                   dict(r=4, lora_alpha=6, use_rslora=True, target_modules="all-linear", rank_pattern={"k_proj": 2},
                        alpha_pattern={"self_attn.v_proj": 3})),
        "embedding": (dict(tie_word_embeddings=True), torch.float32, dict(r=2, lora_alpha=6, target_modules=["embed_tokens", "up_proj"])),
        "dora": (dict(tie_word_embeddings=False), torch.float32, dict(r=2, lora_alpha=6, use_dora=True, target_modules=["q_proj", "up_proj"])),
    }
    for index, (name, (sizes, dtype, config)) in enumerate(cases.items()):
        torch.manual_seed(300 + index)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**tiny, **sizes)).to(dtype)
        randomize(model, 0.3)
        model.save_pretrained(golden / name / "base")
        base_embedding = model.model.embed_tokens.weight.detach().clone()
        adapted = adapt(model, 400 + index, **config)
        adapted.save_pretrained(golden / name / "adapter")
        (golden / name / "adapter" / "README.md").unlink()
        path = golden / name / "adapter" / "adapter_config.json"
        settings = json.loads(path.read_text())
        settings["base_model_name_or_path"] = None
        path.write_text(json.dumps(settings, indent=2, sort_keys=True))
        merged = {key: value.detach().clone().contiguous() for key, value in adapted.merge_and_unload().state_dict().items()}
        if name == "embedding":  # before merging the head was the base's embedding; merging both in place changes the model
            merged["lm_head.weight"] = base_embedding
        safetensors.torch.save_file(merged, golden / name / "expected.safetensors", {"format": "pt"})
    (golden / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


def main():
    words = [word for word in sys.argv[1:] if word != "--golden"]
    snug = pathlib.Path(words[0] if words else ROOT / "build" / "snug").resolve()
    if "--golden" in sys.argv:
        return write_golden()
    with tempfile.TemporaryDirectory(prefix="snug-merge-") as directory:
        work = pathlib.Path(directory)
        good = [check(snug, name, work) for name in CASES]
        good += [check_stack(snug, work), check_mlx(snug, work)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
