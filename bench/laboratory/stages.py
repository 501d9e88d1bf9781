"""In which stage a program ran out, by the frames of its message."""

import re

import runner

FRAMES = (("backward", r"run_backward"), ("generate", r"in generate\b"), ("evaluation", r"in (?:evaluation_loop|evaluate|validate)\b"),
          ("loss", r"loss_utils\.py|in cross_entropy|in chunked_loss|in kl_div"), ("optimizer", r"/optim/|optimizer\.step"))


def right(log, answer):
    """The stages, any of which is right: a forward in a validation is both. Where an answer has but one stage, that."""
    if len(answer.stages) == 1:
        return list(answer.stages)
    frames = log[:runner.OUT_OF_MEMORY.search(log).start()]
    frames = frames[frames.rfind("Traceback (most recent call last)"):]
    found = [stage for stage, pattern in FRAMES if re.search(pattern, frames)]
    if found in ([], ["evaluation"]):
        found.append("forward")
    return found[:2] if found[0] == "evaluation" else found[:1]
