"""Full fine-tuning of a tied model, 20 steps of torch.optim.AdamW: adamw_linear, adamw_cosine.

As Hugging Face's Trainer does it: two micro-batches a step, loss divided by the step's targets, gradients clipped, weight decay 0.1
on everything but norms and biases (a tied matrix decays once), learning rate with 3 warm-up steps (so step 0 has rate 0). Gradient
norms lie between 4 and 6: adamw_linear clips them to 1 in every step, which hides their scale from Adam; adamw_cosine clips to
4.5, so some steps are clipped and some are not, and a wrong denominator or clip shows in the weights.
The loop here is written out; a real Trainer then runs on the same data and its distance is kept in expected.json (`trainer`).

batch.json: {"steps": [{"micro_batches": [batch, batch]} …]}. expected.json: `steps`: loss, grad_norm (before clipping), learning_rate
(the one used in that step), both denominators. expected.safetensors: `final.NAME`, every parameter after the last step.
"""

import os
import tempfile

import torch
import transformers
from transformers.trainer_pt_utils import get_parameter_names

import oracle

STEPS, WARM_UP, RATE, DECAY, ACCUMULATION = 20, 3, 5e-3, 0.1, 2
FORBIDDEN = [r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]  # Trainer.get_decay_parameter_names


def run_by_hand(directory, schedule, max_grad_norm, steps):
    model = oracle.read_model(directory)
    decayed = set(get_parameter_names(model, [torch.nn.LayerNorm], FORBIDDEN))
    groups = [{"params": [p for n, p in model.named_parameters() if n in decayed], "weight_decay": DECAY},
              {"params": [p for n, p in model.named_parameters() if n not in decayed], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=1e-8)
    scheduler = transformers.get_scheduler(schedule, optimizer, num_warmup_steps=WARM_UP, num_training_steps=STEPS)
    metrics = oracle.train(model, optimizer, scheduler, steps, max_grad_norm)
    return metrics, {n: p.detach() for n, p in model.named_parameters()}, [n for n, _ in model.named_parameters() if n in decayed]


def run_trainer(directory, schedule, max_grad_norm, steps):
    """The same through transformers.Trainer: (its log of every step, its final weights)."""
    rows = [{"input_ids": tokens, "labels": labels} for step in steps for batch in step["micro_batches"]
            for tokens, labels in zip(batch["tokens"], batch["labels"])]
    with tempfile.TemporaryDirectory() as output:
        arguments = transformers.TrainingArguments(
            output_dir=output, use_cpu=True, per_device_train_batch_size=2, gradient_accumulation_steps=ACCUMULATION,
            max_steps=STEPS, learning_rate=RATE, lr_scheduler_type=schedule, warmup_steps=WARM_UP, weight_decay=DECAY,
            max_grad_norm=max_grad_norm, optim="adamw_torch", logging_steps=1, save_strategy="no", report_to="none",
            train_sampling_strategy="sequential", disable_tqdm=True)
        trainer = transformers.Trainer(
            oracle.read_model(directory), arguments, train_dataset=rows,
            data_collator=lambda rows: {key: torch.tensor([row[key] for row in rows]) for key in rows[0]})
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    log = [entry for entry in trainer.state.log_history if "loss" in entry]
    return log, {n: p.detach() for n, p in trainer.model.named_parameters()}


def largest_difference(ours, theirs, key):
    return max(abs(a[key] - b[key]) for a, b in zip(ours, theirs, strict=True))


def make(schedule, max_grad_norm):
    case = f"adamw_{schedule}"
    config = oracle.tiny_config(C=32, L=2, H=4, K=2, F=48, V=61, tied=True)
    directory = oracle.write_model(case, config, 7)
    generator = torch.Generator().manual_seed(7)
    steps = [{"micro_batches": [oracle.make_batch(generator, config.vocab_size, [[11], [11]], keep) for keep in (0.9, 0.3)]}
             for _ in range(STEPS)]
    metrics, final, decayed = run_by_hand(directory, schedule, max_grad_norm, steps)
    log, trainer_final = run_trainer(directory, schedule, max_grad_norm, steps)
    all_final, all_trainer = (torch.cat([w[n].flatten() for n in final]) for w in (final, trainer_final))
    oracle.write_golden(
        case, {"steps": steps}, {f"final.{name}": weight for name, weight in final.items()},
        {"arithmetic": "weights, optimizer and arithmetic in float32, eager attention",
         "recipe": {"optim": "adamw_torch", "learning_rate": RATE, "lr_scheduler_type": schedule, "warmup_steps": WARM_UP,
                    "max_steps": STEPS, "weight_decay": DECAY, "max_grad_norm": max_grad_norm, "adam_beta1": 0.9, "adam_beta2": 0.999,
                    "adam_epsilon": 1e-8, "gradient_accumulation_steps": ACCUMULATION, "per_device_train_batch_size": 2},
         "denominator": "targets", "decayed": decayed, "steps": metrics,
         "trainer": {"largest_loss_difference": largest_difference(metrics, log, "loss"),
                     "largest_grad_norm_difference": largest_difference(metrics, log, "grad_norm"),
                     "largest_learning_rate_difference": largest_difference(metrics, log, "learning_rate"),
                     "final_weights_distance": oracle.relative_error(all_trainer, all_final)}})


def main():
    os.chdir(oracle.ROOT)
    make("linear", max_grad_norm=1.0)
    make("cosine", max_grad_norm=4.5)


if __name__ == "__main__":
    main()
