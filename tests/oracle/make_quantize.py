"""Writes tests/golden/quantize with bitsandbytes on the CPU: the two dynamic maps, and tensors quantized in every way that
src/quantize knows. Codes follow the CUDA kernels; where bitsandbytes' CPU path decides otherwise (see the headers of
src/quantize) the literal CUDA decision below takes its place, and every such element is counted.
Run: python tests/oracle/make_quantize.py (needs torch, transformers, accelerate, bitsandbytes, safetensors, numpy)."""

import json
import os
import pathlib
import tempfile

os.environ["TORCH_COMPILE_DISABLE"] = "1"  # odd rows are dequantized by compiled code otherwise

import bitsandbytes
import bitsandbytes.functional as F
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "quantize"
VERSIONS = {  # one key: their order in a file is random
    "made_by": f"torch {torch.__version__}, transformers {transformers.__version__}, bitsandbytes {bitsandbytes.__version__}"
}


def maps():
    """The maps' floats depend on the machine's linspace in the last bit: see src/base/dynamic_map.h."""
    assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"), "linspace rounds otherwise on this machine"
    tensors = {"signed": F.create_dynamic_map(signed=True), "unsigned": F.create_dynamic_map(signed=False)}
    save_file(tensors, OUT / "dynamic_maps.safetensors", metadata=VERSIONS)


def cuda_nf4(x):
    """kernels.cu: dQuantizeNF4, its tree written out as the sorted thresholds."""
    thresholds = [-0.8480964004993439, -0.6106329262256622, -0.4599952697753906, -0.33967943489551544, -0.23460740596055984,
                  -0.13791173323988914, -0.045525018125772476, 0.03979014977812767, 0.1202552504837513, 0.2035212516784668,
                  0.2920137718319893, 0.3893125355243683, 0.5016634166240692, 0.6427869200706482, 0.8614784181118011]
    return sum(bool(x > np.float32(t)) for t in thresholds)


def cuda_fp4(x):
    """kernels.cu: dQuantizeFP4."""
    sign = 8 if x < 0 else 0
    for threshold, code in [(0.8333333, 3), (0.583333, 2), (0.4166667, 5), (0.29166667, 4), (0.20833333, 7), (0.0859375, 6),
                            (0.00260417, 1)]:
        if abs(x) > np.float32(threshold):
            return code + sign
    return sign


def cuda_codes(x, block, kind):
    """The kernel's codes and absmax, but 0 for a block of zeros."""
    x = x.float().numpy().reshape(-1)
    decide = cuda_nf4 if kind == "nf4" else cuda_fp4
    codes, absmax = [], []
    for begin in range(0, len(x), block):
        part = x[begin:begin + block]
        greatest = np.abs(part).max()
        scale = np.float32(0) if greatest == 0 else np.float32(1) / greatest
        codes += [decide(v) for v in part * scale]
        absmax.append(greatest)
    return np.array(codes, np.uint8), torch.tensor(np.array(absmax, np.float32))


def pack(codes, kind):
    padded = np.append(codes, np.uint8(7 if kind == "nf4" else 0))[:(len(codes) + 1) // 2 * 2]
    return torch.tensor(padded[::2] << 4 | padded[1::2]).reshape(-1, 1)


def unpack(packed, count):
    flat = packed.numpy().reshape(-1)
    return np.stack([flat >> 4, flat & 15], 1).reshape(-1)[:count]


def nearest_codes(x, code, block):
    """bitsandbytes' own nearest code: its CPU path for other dtypes than those with a table of 65,536 steps."""
    codes, absmax = torch.ops.bitsandbytes.quantize_blockwise.default(x.reshape(-1).double(), code, block)
    for i, greatest in enumerate(absmax.tolist()):  # 0 · ∞ there
        if greatest == 0:
            codes[i * block:(i + 1) * block] = 0
    return codes, absmax


def four_bit(name, x, kind, block, nested, tensors):
    packed, state = F.quantize_4bit(x, blocksize=block, quant_type=kind)
    theirs = unpack(packed, x.numel())
    codes, absmax = cuda_codes(x, block, kind)
    same = theirs == codes
    if kind == "fp4":
        same |= (theirs & 7 == 0) & (codes & 7 == 0)
    print(f"{name}: {(~same).sum()} of {len(codes)} codes differ between the CPU and CUDA", end="; ")
    # The CPU divides in a last, shorter block, so that a value on a threshold may fall to its other side there.
    assert same[:len(codes) // block * block].all() and (~same).sum() <= 3, np.nonzero(~same)
    assert torch.equal(state.absmax[absmax > 1e-38], absmax[absmax > 1e-38])
    state.absmax = absmax
    tensors[name + "/codes"], tensors[name + "/absmax"] = pack(codes, kind), absmax
    if nested:
        _, dynamic = F.quantize_4bit(x, blocksize=block, quant_type=kind, compress_statistics=True)
        offset = absmax.mean()
        state.offset, state.state2 = offset, dynamic.state2
        state.absmax, state.state2.absmax = nearest_codes(absmax - offset, F.create_dynamic_map(), 256)
        state.nested = True
        print(f"{(state.absmax != dynamic.absmax).sum()} of {len(absmax)} absmax codes differ from the CPU's table", end="")
        tensors[name + "/absmax_codes"], tensors[name + "/nested_absmax"] = state.absmax, state.state2.absmax
        tensors[name + "/offset"] = offset.reshape(1)
        tensors[name + "/absmax_values"] = F.dequantize_blockwise(state.absmax, state.state2) + offset
    print()
    if x.numel() < 4000 or block > 4000:  # to keep the file small
        tensors[name + "/values"] = F.dequantize_4bit(tensors[name + "/codes"], state).reshape(-1)


def eight_bit(name, x, signed, block, tensors):
    code = F.create_dynamic_map(signed=signed)
    codes, absmax = nearest_codes(x, code, block)
    state = F.QuantState(absmax, code=code, blocksize=block, dtype=x.dtype)
    tensors[name + "/codes"], tensors[name + "/absmax"] = codes, absmax
    tensors[name + "/values"] = F.dequantize_blockwise(codes, state)


def int8_rows(name, x, tensors):
    param = bitsandbytes.nn.Int8Params(x.clone(), requires_grad=False).to("cpu")
    tensors[name + "/codes"], tensors[name + "/absmax"] = param.CB, param.SCB
    values = F.int8_vectorwise_dequant(param.CB, param.SCB).to(x.dtype)
    tensors[name + "/values"] = values.reshape(-1)


def normal(shape, scale, dtype, seed):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


def with_zero_blocks(x):
    flat = x.reshape(-1)
    flat[64:192] = 0
    flat[-(flat.numel() % 64 or 64):] = 0  # the last, shorter block too
    return x


def inputs():
    """name: (tensor, [(kind, block, nested) …])."""
    f32, bf16, f16 = torch.float32, torch.bfloat16, torch.float16
    spiky = normal((4, 101), 0.02, f32, 5)
    spiky[2, 7], spiky[3, 100] = 40.0, -7.5
    return {
        "plain": (normal((12, 64), 0.02, f32, 1), [("nf4", 64, True), ("fp4", 64, True), ("nf4", 32, True)]),
        "odd": (normal((5, 73), 1.0, f32, 2), [("nf4", 64, True), ("fp4", 64, False), ("nf4", 128, False)]),
        "bf16": (normal((12, 60), 0.05, bf16, 3), [("nf4", 64, True), ("fp4", 64, True), ("nf4", 256, False)]),
        "f16": (normal((11, 61), 0.1, f16, 4), [("nf4", 64, True), ("fp4", 32, False), ("nf4", 512, False)]),
        "spiky": (spiky, [("nf4", 64, True), ("fp4", 128, False)]),
        "many_blocks": (normal((20, 420), 0.03, bf16, 6), [("nf4", 32, True)]),  # 263 absmax: two nested blocks
        "large_blocks": (normal((9, 457), 0.3, bf16, 7), [("nf4", 4096, False), ("fp4", 1024, True)]),
        "zeros": (torch.zeros((3, 50), dtype=bf16), [("nf4", 64, False), ("fp4", 64, False)]),
        "zero_blocks": (with_zero_blocks(normal((6, 71), 0.5, f32, 8)), [("nf4", 64, True), ("fp4", 64, False)]),
        "tiny": (normal((4, 65), 1e-35, f32, 9).clamp(-1e-34, 1e-34), [("nf4", 64, False), ("fp4", 64, False)]),
        "tiny_f16": (normal((4, 66), 2e-7, f16, 10), [("nf4", 64, False), ("fp4", 64, True)]),
        "huge": (normal((4, 70), 6e37, f32, 11).clamp(-3.4e38, 3.4e38), [("nf4", 64, False), ("fp4", 64, False)]),
        "huge_f16": (normal((3, 64), 2e4, f16, 12).clamp(-65504, 65504), [("nf4", 64, True), ("fp4", 64, False)]),
        "one": (torch.tensor([-0.25], dtype=bf16), [("nf4", 64, True), ("fp4", 64, False)]),
        "constant": (torch.full((2, 64), 0.75, dtype=f16), [("nf4", 64, True), ("fp4", 64, False)]),
    }


def quantized():
    tensors, cases = {}, []
    for name, (x, ways) in inputs().items():
        tensors[name + "/input"] = x
        for kind, block, nested in ways:
            case = f"{name}/{kind}_{block}"
            cases.append({"name": case, "input": name, "kind": kind, "block": block, "nested": nested})
            four_bit(case, x, kind, block, nested, tensors)
    for name, signed, block in [("plain", True, 256), ("odd", True, 64), ("bf16", True, 128), ("f16", True, 256),
                                ("spiky", True, 4096), ("zero_blocks", True, 64), ("tiny", True, 64), ("huge", True, 64),
                                ("constant", False, 64), ("squares", False, 256)]:
        if name == "squares":
            tensors[name + "/input"] = tensors["plain/input"][:5].square()
        case = f"{name}/dynamic_{block}"
        cases.append({"name": case, "input": name, "kind": "signed" if signed else "unsigned", "block": block})
        eight_bit(case, tensors[name + "/input"], signed, block, tensors)
    for name in ["plain", "odd", "bf16", "f16", "spiky", "tiny_f16", "huge_f16", "constant"]:
        cases.append({"name": name + "/int8", "input": name, "kind": "int8", "block": tensors[name + "/input"].shape[-1]})
        int8_rows(name + "/int8", tensors[name + "/input"], tensors)
    save_file({k: v.contiguous() for k, v in tensors.items()}, OUT / "quantized.safetensors", metadata=VERSIONS)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (OUT / "cases.json").write_text("[\n" + lines + "\n]\n")


def checkpoints():
    """Parts of a tiny model that transformers quantized while loading and saved, with what the weights stand for."""
    ways = {
        "nf4": (torch.bfloat16, {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}),
        "fp4": (torch.float16, {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}),
        "int8": (torch.float16, {"load_in_8bit": True}),
    }
    for name, (dtype, settings) in ways.items():
        model = transformers.AutoModelForCausalLM.from_pretrained(
            OUT.parent / "untied", dtype=dtype, device_map="cpu",
            quantization_config=transformers.BitsAndBytesConfig(**settings))
        with tempfile.TemporaryDirectory() as directory:
            model.save_pretrained(directory)
            saved = load_file(directory + "/model.safetensors")
        layer = "model.layers.0."
        parts = (layer + "self_attn.k_proj.", layer + "mlp.up_proj.", "model.norm.")
        kept = {k: v for k, v in saved.items() if k.startswith(parts)}
        for module in ("self_attn.k_proj", "mlp.up_proj"):
            weight = model.get_submodule(layer + module).weight
            if name == "int8":
                values = F.int8_vectorwise_dequant(weight.data, weight.SCB)
            else:
                # As one row: bitsandbytes 0.50.2 with AVX-512 takes the wrong absmax where rows are no whole blocks.
                shape, weight.quant_state.shape = weight.quant_state.shape, (1, weight.quant_state.shape.numel())
                values = F.dequantize_4bit(weight.data, weight.quant_state).float().reshape(shape)
            kept["expected." + layer + module + ".weight"] = values
        save_file(kept, OUT / f"checkpoint_{name}.safetensors", metadata=VERSIONS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    maps()
    quantized()
    checkpoints()
