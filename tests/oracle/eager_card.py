"""A real card under eager_goldens.py: values for weights that no file gives, and the device's own count of this process."""
import os

import eager_evaluation

# saved: modules_to_save; cudnn: its kernels of attention, as they are or off; steps: of the optimizer
SETTINGS = dict(saved="") | eager_evaluation.SETTINGS | dict(eval_rows=0, cudnn="default", steps=2)


def give_values(model, torch):
    """Values as a fresh model has them, so that every loss is finite in every precision, no step of the optimizer is left out and products
    take as long as they do. Drawn once and repeated: a host draws a billion in ten seconds."""
    drawn = torch.empty(1 << 22, device=next(model.parameters()).device).normal_(0, 0.02)
    for name, parameter in model.named_parameters():
        flat = parameter.data.view(-1)
        if parameter.dim() < 2:
            flat.fill_(1 if "norm" in name.lower() and name.endswith("weight") else 0)
            continue
        for at in range(0, flat.numel(), drawn.numel()):
            part = flat[at:at + drawn.numel()]
            part.copy_(drawn[:part.numel()])


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
