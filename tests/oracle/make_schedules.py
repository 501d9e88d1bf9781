"""schedules.json: learning rates of transformers.get_scheduler, as Trainer calls it, over whole runs: every schedule without arguments and
with each that it takes, without a warm-up and with one, on runs of one step to 57."""

import json
import warnings

import torch
import transformers

import oracle

RATE = 2e-3
ARGUMENTS = {"constant": [{}], "constant_with_warmup": [{}], "linear": [{}], "cosine": [{}, {"num_cycles": 1.5}, {"num_cycles": 0.25}],
             "cosine_with_restarts": [{}, {"num_cycles": 3}],
             "cosine_with_min_lr": [{"min_lr": 1e-4}, {"min_lr_rate": 0.25}, {"min_lr": 1e-5, "num_cycles": 1}],
             "polynomial": [{}, {"power": 2}, {"power": 0.5, "lr_end": 1e-4}], "inverse_sqrt": [{}, {"timescale": 5}],
             "warmup_stable_decay": [{"num_decay_steps": 4}, {"num_decay_steps": 6, "min_lr_ratio": 0.125},
                                     {"num_decay_steps": 6, "num_stable_steps": 3, "min_lr_ratio": 0.5, "num_cycles": 1}]}


def rates(name, arguments, warmup, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    schedule = transformers.get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=steps, scheduler_specific_kwargs=dict(arguments))
    told = []
    for _ in range(steps):
        told.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return told


def main():
    warnings.simplefilter("ignore")
    cases = []
    for name, all_arguments in ARGUMENTS.items():
        for arguments in all_arguments:
            for warmup, steps in ((0, 1), (0, 23), (7, 23), (9, 57)):
                if name == "constant" and warmup:
                    continue
                cases.append({"lr_scheduler_type": name, "lr_scheduler_kwargs": arguments, "warmup_steps": warmup, "rates": rates(name, arguments, warmup, steps)})
    path = oracle.GOLDEN / "schedules.json"
    path.write_text(json.dumps({"made_with": {"transformers": transformers.__version__, "torch": torch.__version__}, "learning_rate": RATE, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
