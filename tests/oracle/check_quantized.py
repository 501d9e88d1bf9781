"""Does transformers read quantized checkpoints that snug wrote, and are their numbers bitsandbytes' own? By hand:

    python tests/oracle/check_quantized.py build/snug

Quantizes tiny models of several families with `snug quantize`, to nf4 (with double quantization), fp4 and int8: loads the result,
which must find every tensor, and compares each weight with the one that transformers quantizes itself from the same model: codes
equal, absmax equal or, where they are doubly quantized, within an ulp or so of the offset (PyTorch sums its mean in another order);
every other weight; and the logits of one forward pass. Exit code 1 if not.

As in make_qlora.py rows are multiples of 64 elements, and Linear4bit alone is left in training mode.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers

import make_qlora

SETTINGS = {
    "nf4": ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}, []),
    "fp4": ({"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
            ["--bnb-4bit-quant-type", "fp4", "--bnb-4bit-use-double-quant", "false"]),
    "int8": ({"load_in_8bit": True}, ["--load-in-8bit"]),
}
# How far they may be: a step of a scale's table; bf16 numbers on FP4's thresholds, which snug has from CUDA and the CPU from midpoints
# (src/quantize/four_bit.h); int8 is the same.
LOGITS = {"nf4": 1e-3, "fp4": 3e-2, "int8": 1e-6}


def gpt2_config():
    return transformers.GPT2Config(n_embd=64, n_layer=2, n_head=2, n_inner=128, vocab_size=53, n_positions=64, initializer_range=0.2,
                                   bos_token_id=0, eos_token_id=0)


def models():
    """Name, configuration and dtype of each."""
    t, config_of = transformers, make_qlora.config_of
    yield "llama", config_of(t.LlamaConfig), torch.float32
    yield "llama_bf16", config_of(t.LlamaConfig, tied=True), torch.bfloat16
    yield "phi3", config_of(t.Phi3Config, pad_token_id=0, eos_token_id=1, bos_token_id=2), torch.float32
    yield "gpt2", gpt2_config(), torch.float32
    yield "gpt2_bare", gpt2_config(), torch.float32  # names without "transformer.", as OpenAI's files have them
    yield "mixtral", config_of(t.MixtralConfig, num_local_experts=3, num_experts_per_tok=2), torch.float32


def write_model(directory, name, config, dtype):
    torch.manual_seed(1)
    transformers.AutoModelForCausalLM.from_config(config).to(dtype).save_pretrained(directory)
    if name == "gpt2_bare":
        file = directory / "model.safetensors"
        tensors = safetensors.torch.load_file(file)
        safetensors.torch.save_file({key.removeprefix("transformer."): value for key, value in tensors.items()}, file, {"format": "pt"})


def load(path, dtype, settings=None):
    if settings and "load_in_4bit" in settings:
        settings = {**settings, "bnb_4bit_compute_dtype": dtype}
    config = {"quantization_config": transformers.BitsAndBytesConfig(**settings)} if settings else {}
    model, info = transformers.AutoModelForCausalLM.from_pretrained(path, device_map="cpu", output_loading_info=True, **config)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    for module in model.modules():
        if type(module).__name__ == "Linear4bit":
            module.training = True
    return model


def same_four_bit(ours, theirs):
    a, b = ours.quant_state, theirs.quant_state
    # FP4 has two codes for 0, of which the CPU takes either.
    same = torch.equal(ours.data, theirs.data) if a.quant_type == "nf4" else True
    same &= (a.quant_type, a.blocksize, a.dtype, a.shape) == (b.quant_type, b.blocksize, b.dtype, b.shape)
    same &= torch.equal(a.code, b.code)
    if a.nested:
        same &= bool(((a.offset - b.offset).abs() < 1e-6 * b.offset).all()) and torch.equal(a.state2.code, b.state2.code)
        same &= torch.allclose(a.state2.absmax, b.state2.absmax, rtol=1e-5)
        same &= (a.absmax != b.absmax).float().mean().item() < 0.1  # their codes come from a coarse table
    else:
        same &= torch.equal(a.absmax, b.absmax)
    return same


def difference(ours, theirs):
    """How many weights are quantized, and names of those that are not as transformers makes them."""
    quantized, wrong = 0, []
    for name, weight in ours.named_parameters():
        other = theirs.get_parameter(name)
        if getattr(weight, "quant_state", None) is not None:
            same = same_four_bit(weight, other)
        elif weight.dtype == torch.int8:
            same = torch.equal(weight.data, other.data) and torch.equal(weight.SCB, other.SCB)
        else:
            same = weight.dtype == other.dtype and torch.equal(weight, other)
            quantized -= 1
        quantized += 1
        if not same:
            wrong.append(name)
    return quantized, wrong


def check(snug, root, name, dtype, way):
    settings, flags = SETTINGS[way]
    subprocess.run([snug, "quantize", root / name, "--output-dir", root / f"{name}_{way}", *flags], check=True, stdout=subprocess.DEVNULL)
    ours, theirs = load(root / f"{name}_{way}", dtype), load(root / name, dtype, settings)
    linears = sum(type(module).__name__ in ("Linear4bit", "Linear8bitLt") for module in theirs.modules())
    quantized, wrong = difference(ours, theirs)
    theirs.save_pretrained(root / f"{name}_{way}_saved")
    configs = [json.loads((root / directory / "config.json").read_text())["quantization_config"]
               for directory in (f"{name}_{way}", f"{name}_{way}_saved")]
    tokens = torch.arange(32).reshape(1, -1)
    with torch.no_grad():
        a, b = ours(tokens).logits.float(), theirs(tokens).logits.float()
    error = ((a - b).norm() / b.norm()).item()
    print(f"{name} {way}: {quantized} of {linears} linears, logits differ by {error:.1e}", *(f"\n  {one} differs" for one in wrong))
    if configs[0] != configs[1]:
        print(f"  quantization_config: {configs}")
    return quantized == linears > 0 and not wrong and error < LOGITS[way] and configs[0] == configs[1]


def main(snug):
    good = True
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, config, dtype in models():
            write_model(root / name, name, config, dtype)
            for way in SETTINGS:
                good &= check(snug, root, name, dtype, way)
    return 0 if good else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
