"""Sequences of loss scales: tests/golden/loss_scale.json.

torch.amp.GradScaler on the CPU, with one parameter under SGD whose gradient, (3, 4) times `slope`, is made infinite or NaN
in some steps. Each case: init_scale, growth_interval, slope, overflows (bools), scales (after each step), trackers (growth_tracker after each step),
moved (whether the parameter changed in the step), norms (of the gradient after unscale_ in steps without overflow).
"""

import json
import pathlib
import random

import torch

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


def make(init_scale, interval, overflows, slope=1.0):
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.SGD([parameter], lr=0.0625)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, growth_interval=interval)
    case = {"init_scale": init_scale, "growth_interval": interval, "slope": slope, "overflows": [],
            "scales": [], "trackers": [], "moved": [], "norms": []}
    for step, overflow in enumerate(overflows):
        before = parameter.detach().clone()
        optimizer.zero_grad()
        scaler.scale((parameter * torch.tensor([3.0 * slope, 4.0 * slope])).sum()).backward()
        if overflow:
            parameter.grad[step % 2] = float("inf") if step % 3 else float("nan")
        overflow = not bool(torch.isfinite(parameter.grad).all())  # the scale's doing, too
        case["overflows"].append(overflow)
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_([parameter], 1e9).item()
        scaler.step(optimizer)
        scaler.update()
        case["scales"].append(scaler.get_scale())
        case["trackers"].append(scaler._get_growth_tracker())
        case["moved"].append(not torch.equal(parameter.detach(), before))
        case["norms"].append(None if overflow else norm)
    return case


def main():
    draw = random.Random(5)
    cases = [make(65536.0, 2000, [draw.random() < 0.2 for _ in range(40)]),
             make(65536.0, 3, [draw.random() < 0.2 for _ in range(60)]),
             make(1.0, 1, [draw.random() < 0.5 for _ in range(60)]),
             make(1.0, 1, [False] * 140),  # until gradients overflow
             make(1.0, 1, [False] * 140, 2.0**-10),  # up to the largest scale that float32 holds
             make(2.0**20, 5, [True] * 30 + [False] * 30)]
    json.dump({"versions": {"torch": torch.__version__}, "cases": cases}, open(GOLDEN / "loss_scale.json", "w"))


main()
