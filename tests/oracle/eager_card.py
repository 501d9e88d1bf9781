"""A real card under eager_goldens.py: values for weights that no file gives, and the device's own count of this process."""
import os

import eager_evaluation

# saved: modules_to_save; cudnn: its kernels of attention, as they are or off; steps: of the optimizer
SETTINGS = dict(saved="") | eager_evaluation.SETTINGS | dict(eval_rows=0, cudnn="default", steps=2)


def give_values(model):
    """Values with which every loss is finite in every precision, so that no step of the optimizer is left out."""
    for name, parameter in model.named_parameters():
        value = 1 / parameter.shape[-1] if parameter.dim() > 1 else 1 if "norm" in name.lower() and name.endswith("weight") else 0
        parameter.data.fill_(value)


def device_bytes(torch):
    """`device`: what the driver counts for this process (0 where it does not tell), `used`: for all, both after the last step with `kept`
    reserved by PyTorch's allocator."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    mine = 0
    try:
        import pynvml
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        mine = sum(p.usedGpuMemory or 0 for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if p.pid == os.getpid())
    except Exception:  # no NVML, or none that tells
        pass
    return dict(device=mine, used=total - free, kept=torch.cuda.memory_reserved(), card_bytes=total)
