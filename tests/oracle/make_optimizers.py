"""The update rules of the optimizers beside AdamW: optimizers (single tensors), adafactor (fine-tuning of a tiny model).

optimizers/expected.safetensors: tensors after 50 steps of torch.optim.SGD without and with momentum, bitsandbytes' 32-bit Lion and
transformers' Adafactor as Trainer builds it; and after one step of bitsandbytes' 8-bit AdamW and Lion as its CUDA kernels define
them (csrc/kernels.cu:kOptimizerStatic8bit2StateBlockwise and …1StateBlockwise, with the NaN check of later versions), written out
here in numpy because they run on GPUs alone: 50 blocks, each from states of its own at a step of its own. Block 3 has a NaN
and an infinite gradient. Inputs are not stored: `numbers` makes them from integers alone, here and in tests/train/optimizers_test.cpp.
"""

import os

import bitsandbytes
import numpy
import safetensors.numpy
import torch
import transformers
from bitsandbytes.functional import create_dynamic_map

import oracle

ROWS, COLS, STEPS, RATE, DECAY, CLIP = 24, 40, 50, 1e-2, 0.1, 0.75
BETAS, EPSILON, BLOCKS, BLOCK = (0.9, 0.999), 1e-8, 50, 256


def bits(count, stream):
    """A 32-bit number for each i < count (lowbias32 of i + stream * 0x9E3779B9)."""
    with numpy.errstate(over="ignore"):
        x = numpy.arange(count, dtype=numpy.uint32) + numpy.uint32(stream * 0x9E3779B9 % 2**32)
        x ^= x >> 16
        x *= numpy.uint32(0x7FEB352D)
        x ^= x >> 15
        x *= numpy.uint32(0x846CA68B)
        return x ^ (x >> 16)


def numbers(count, stream):
    """In [-1, 1), exact in float32."""
    return ((bits(count, stream) >> 8).astype(numpy.float32) * numpy.float32(2.0**-23)) - numpy.float32(1)


def run(make, shape):
    count = int(numpy.prod(shape))
    p = torch.nn.Parameter(torch.tensor(numbers(count, 1)).reshape(shape))
    optimizer = make([p])
    for step in range(1, STEPS + 1):
        p.grad = torch.tensor(numbers(count, 100 + step)).reshape(shape) * CLIP
        optimizer.step()
    return p.detach(), optimizer.state[p]


def run_all():
    tensors = {}

    def keep(name, make, states, shape=(ROWS, COLS)):
        p, state = run(make, shape)
        tensors[f"{name}.p"] = p.numpy()
        for state_name in states:
            tensors[f"{name}.{state_name}"] = state[state_name].numpy()

    keep("sgd", lambda p: torch.optim.SGD(p, lr=RATE, weight_decay=DECAY), [])
    keep("sgd_momentum", lambda p: torch.optim.SGD(p, lr=RATE, weight_decay=DECAY, momentum=0.9), ["momentum_buffer"])
    keep("lion", lambda p: bitsandbytes.optim.Lion(p, lr=RATE, betas=BETAS, weight_decay=DECAY, min_8bit_size=2**30), ["state1"])

    def adafactor(p):
        return transformers.Adafactor(p, lr=RATE, weight_decay=DECAY, scale_parameter=False, relative_step=False)

    keep("adafactor_matrix", adafactor, ["exp_avg_sq_row", "exp_avg_sq_col"])
    keep("adafactor_vector", adafactor, ["exp_avg_sq"], shape=(COLS,))
    keep("adafactor_experts", adafactor, ["exp_avg_sq_row", "exp_avg_sq_col"], shape=(3, 8, COLS))
    return tensors


def quantize_2d(code, x, signed):
    """csrc/kernels.cu:quantize_2D for one number; quadrants are codes 63, 127 and 191."""
    pivot, upper_pivot, lower_pivot = 127, 255, 0
    lower, upper = numpy.float32(-1 if signed else 0), numpy.float32(1)
    value = code[127]
    step = 64
    while step > 0:
        if x > value:
            lower_pivot, lower, pivot = pivot, value, pivot + step
        else:
            upper_pivot, upper, pivot = pivot, value, pivot - step
        value = code[pivot]
        step //= 2
    half = numpy.float32(0.5)
    if x > value:
        return upper_pivot if x > (upper + value) * half else pivot
    return lower_pivot if x < (lower + value) * half else pivot


def encode(code, values, signed):
    absmax = numpy.abs(values).max()
    codes = numpy.array([quantize_2d(code, x, signed) for x in values / absmax], dtype=numpy.int64)
    if signed:
        turned = numpy.signbit(code[codes]) != numpy.signbit(values)
        codes = numpy.where(turned, numpy.where(values > 0, codes + 1, codes - 1), codes)
    return codes.astype(numpy.uint8), absmax


def injected(block):
    """(parameter, gradient, codes of both states, both absmax, step) of one block."""
    gradient = numbers(BLOCK, 1000 + block) * numpy.float32(0.01)
    if block == 3:
        gradient[17], gradient[40] = numpy.nan, numpy.inf
    codes = [(bits(BLOCK, 2000 + 100 * which + block) >> 24).astype(numpy.uint8) for which in range(2)]
    return numbers(BLOCK, 3000 + block), gradient, codes, (numpy.float32(2.0**-8), numpy.float32(2.0**-14)), 1 + 7 * block


def eight_bit_steps():
    maps = [create_dynamic_map(signed=True).numpy(), create_dynamic_map(signed=False).numpy()]
    f = numpy.float32
    beta1, beta2, rate, decay = f(BETAS[0]), f(BETAS[1]), f(RATE), f(1) - f(RATE) * f(DECAY)
    out = {name: [] for name in ("adamw.p", "adamw.state1", "adamw.state2", "adamw.absmax1", "adamw.absmax2", "lion.p", "lion.state1",
                                 "lion.absmax1")}

    def keep(name, *values):
        for key, value in zip([key for key in out if key.startswith(name)], values, strict=True):
            out[key].append(value)

    for block in range(BLOCKS):
        p, gradient, codes, absmax, step = injected(block)
        finite = numpy.isfinite(gradient)
        g = numpy.where(finite, gradient, f(0)) * f(CLIP)
        decoded = [maps[i][codes[i]] * absmax[i] for i in range(2)]
        m = numpy.where(finite, decoded[0] * beta1 + (f(1) - beta1) * g, f(0))
        v = numpy.where(finite, decoded[1] * beta2 + (f(1) - beta2) * g * g, f(0))
        correction1, correction2 = f(1 - float(beta1) ** step), f((1 - float(beta2) ** step) ** 0.5)
        moved = (p + (-rate * correction2 / correction1) * (m / (numpy.sqrt(v) + correction2 * f(EPSILON)))) * decay
        state1, absmax1 = encode(maps[0], m, True)
        state2, absmax2 = encode(maps[1], v, False)
        keep("adamw", numpy.where(finite, moved, p), state1, state2, absmax1, absmax2)
        direction = numpy.sign(decoded[0] * beta1 + (f(1) - beta1) * g)
        m = numpy.where(finite, decoded[0] * beta2 + (f(1) - beta2) * g, f(0))
        state1, absmax1 = encode(maps[0], m, True)
        keep("lion", numpy.where(finite, p * decay - rate * direction, p), state1, absmax1)
    return {name.replace(".", "_8bit.", 1): numpy.array(rows) for name, rows in out.items()}


def make_adafactor():
    """20 steps of a tiny model, as make_adamw.py makes them."""
    case, steps_count, rate = "adafactor", 20, 5e-3
    config = oracle.tiny_config(C=16, L=2, H=2, K=1, F=24, V=37)
    directory = oracle.write_model(case, config, 7)
    generator = torch.Generator().manual_seed(7)
    steps = [{"micro_batches": [oracle.make_batch(generator, config.vocab_size, [[11], [11]], keep) for keep in (0.9, 0.3)]}
             for _ in range(steps_count)]
    model = oracle.read_model(directory)
    optimizer = transformers.Adafactor(model.parameters(), lr=rate, scale_parameter=False, relative_step=False)
    scheduler = transformers.get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=steps_count)
    metrics = oracle.train(model, optimizer, scheduler, steps, 1.0)
    oracle.write_golden(case, {"steps": steps}, {f"final.{n}": p.detach() for n, p in model.named_parameters()},
                        {"arithmetic": "weights, optimizer and arithmetic in float32, eager attention",
                         "recipe": {"optim": "adafactor", "learning_rate": rate, "lr_scheduler_type": "linear", "max_steps": steps_count,
                                    "max_grad_norm": 1.0, "gradient_accumulation_steps": 2, "per_device_train_batch_size": 2},
                         "denominator": "targets", "steps": metrics})


def main():
    os.chdir(oracle.ROOT)
    directory = oracle.ROOT / "tests" / "golden" / "optimizers"
    directory.mkdir(exist_ok=True)
    safetensors.numpy.save_file({**run_all(), **eight_bit_steps()}, directory / "expected.safetensors")
    make_adafactor()


if __name__ == "__main__":
    main()
