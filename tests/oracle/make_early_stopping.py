"""early_stopping.json: random courses of evaluations, and of each the best step and where the run ends, as transformers' Trainer and
EarlyStoppingCallback have it."""

import json
import random
import types

import transformers

import oracle


def course(seed):
    draw = random.Random(seed)
    greater = draw.random() < 0.5
    patience, threshold = draw.randint(1, 4), draw.choice([0.0, 0.0, 0.03, 0.1])
    level, values = 0.5, []
    for _ in range(draw.randint(1, 20)):
        level += draw.uniform(-0.08, 0.06) * (-1 if greater else 1)
        values.append(round(max(0.0, level + draw.uniform(-0.05, 0.05)), 2))  # equal ones too
    return greater, patience, threshold, values


def follow(greater, patience, threshold, values):
    metric = "eval_token_accuracy" if greater else "eval_loss"
    args = types.SimpleNamespace(greater_is_better=greater, metric_for_best_model=metric, load_best_model_at_end=True,
                                 save_strategy="steps")
    trainer = types.SimpleNamespace(args=args, state=transformers.TrainerState())
    callback = transformers.EarlyStoppingCallback(patience, threshold)
    control = transformers.TrainerControl()
    for index, value in enumerate(values):
        trainer.state.global_step = 10 * (index + 1)
        callback.on_evaluate(args, trainer.state, control, {metric: value})
        transformers.Trainer._determine_best_metric(trainer, {metric: value}, None)
        if control.should_training_stop:
            return trainer.state.best_global_step, trainer.state.global_step
    return trainer.state.best_global_step, None


def main():
    cases = []
    for seed in range(200):
        greater, patience, threshold, values = course(seed)
        best, end = follow(greater, patience, threshold, values)
        cases.append({"greater": greater, "patience": patience, "threshold": threshold, "values": values, "best_step": best, "end": end})
    path = oracle.GOLDEN / "early_stopping.json"
    path.write_text(json.dumps({"made_with": {"transformers": transformers.__version__}, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
