"""Writes tests/golden/quantize with bitsandbytes on the CPU: the two dynamic maps.
Run: python tests/oracle/make_quantize.py (needs torch, bitsandbytes, safetensors)."""

import pathlib

import bitsandbytes
import bitsandbytes.functional as F
import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "quantize"


def maps():
    """The maps' floats depend on the machine's linspace in the last bit: see src/base/dynamic_map.h."""
    assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"), "linspace rounds otherwise on this machine"
    tensors = {"signed": F.create_dynamic_map(signed=True), "unsigned": F.create_dynamic_map(signed=False)}
    versions = {"torch": torch.__version__, "bitsandbytes": bitsandbytes.__version__}
    save_file(tensors, OUT / "dynamic_maps.safetensors", metadata=versions)


if __name__ == "__main__":
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    maps()
