"""Does transformers read quantized checkpoints that snug wrote, and are their numbers bitsandbytes' own? By hand:

    SNUG_QUANTIZED_OUT=/tmp/quantized build/tests/formats_tests --gtest_filter='BnbCheckpoint*'
    python tests/oracle/check_quantized.py /tmp/quantized

For nf4 (with double quantization), fp4 and int8: loads the model, which must find every tensor, and compares each weight with
the one that transformers quantizes itself from tests/golden/untied: codes equal, absmax equal or, where they are doubly
quantized, within an ulp or so of the offset; and one forward pass. Exit code 1 if not.
"""

import pathlib
import sys

import torch
import transformers

MODEL = pathlib.Path(__file__).resolve().parent.parent / "golden" / "untied"
SETTINGS = {
    "nf4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
    "fp4": {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
    "int8": {"load_in_8bit": True},
}


def load(path, settings=None):
    config = {"quantization_config": transformers.BitsAndBytesConfig(**settings)} if settings else {}
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, device_map="cpu", output_loading_info=True, **config)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
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


def main(root):
    failed = False
    for way, settings in SETTINGS.items():
        ours, theirs = load(root / way), load(MODEL, settings)
        weights = 0
        for name, weight in ours.named_parameters():
            other = theirs.get_parameter(name)
            if getattr(weight, "quant_state", None) is not None:
                same = same_four_bit(weight, other)
            elif weight.dtype == torch.int8:
                same = torch.equal(weight.data, other.data) and torch.equal(weight.SCB, other.SCB)
            else:
                continue
            weights += 1
            if not same:
                print(f"{way}: {name} differs")
                failed = True
        tokens = torch.arange(32).reshape(1, -1)
        with torch.no_grad():
            a, b = ours(tokens).logits, theirs(tokens).logits
        error = ((a - b).norm() / b.norm()).item()
        print(f"{way}: {weights} weights, logits differ by {error:.1e}")
        failed |= weights != 14 or not error < 1e-3
    return failed


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(pathlib.Path(sys.argv[1])))
