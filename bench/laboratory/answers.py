"""The known answer of every kind: its cause, what was short, the stages that are right, and the change that is known to mend it.

A case is kept only if it was run with that change (`cure`, a word of remedies.py) and passes on the same card. `stages` are those where such
a case may fail; the case itself says in which it did."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    cause: str
    what: str | None
    stages: tuple
    cure: str


SHORT = "shortage"
ANSWERS = {
    "weights":               Answer(SHORT, "weights", ("load",), "quantize_4bit"),
    "load_twice":            Answer(SHORT, "second_model", ("load",), "load_once"),
    "second_model":          Answer(SHORT, "second_model", ("load",), "drop_second_model"),
    "activations":           Answer(SHORT, "activations", ("forward", "loss", "backward"), "smaller_micro_batch"),
    "recomputation":         Answer(SHORT, "activations", ("forward", "loss", "backward"), "gradient_checkpointing"),
    "logits":                Answer(SHORT, "logits", ("forward", "loss", "backward"), "fused_loss"),
    "attention":             Answer(SHORT, "attention", ("forward", "loss", "backward"), "flash_attention"),
    "gradients":             Answer(SHORT, "gradients", ("backward",), "lora"),
    "optimizer_states":      Answer(SHORT, "optimizer_states", ("optimizer",), "optimizer_8bit"),
    "optimizer_temporaries": Answer(SHORT, "optimizer_temporaries", ("optimizer",), "optimizer_foreach_off"),
    "buckets":               Answer(SHORT, "buckets", ("backward", "load"), "gradient_as_bucket_view"),
    "gathered":              Answer(SHORT, "gathered", ("forward", "backward"), "reshard_after_forward"),
    "long_batch":            Answer(SHORT, "long_batch", ("forward", "loss", "backward"), "shorter_sequences"),
    "growing_lengths":       Answer(SHORT, "growing_lengths", ("forward", "loss", "backward"), "shorter_sequences"),
    "kept_graphs":           Answer(SHORT, "kept_graphs", ("forward", "loss", "backward", "evaluation"), "detach_kept"),
    "kept_outputs":          Answer(SHORT, "kept_tensors", ("forward", "loss", "backward"), "move_kept_to_host"),
    "kept_by_hooks":         Answer(SHORT, "kept_tensors", ("forward", "loss", "backward"), "release_hooks"),
    "kept_evaluation":       Answer(SHORT, "kept_evaluation", ("evaluation",), "prediction_loss_only"),
    "kept_in_loop":          Answer(SHORT, "kept_evaluation", ("evaluation",), "move_kept_to_host"),
    "kv_cache":              Answer(SHORT, "kv_cache", ("generate",), "smaller_cache"),
    "merging":               Answer(SHORT, "saving", ("save",), "merge_on_host"),
    "saving":                Answer(SHORT, "saving", ("save",), "save_from_host"),
    "growing_holes":         Answer("fragmentation", None, ("forward", "loss", "backward"), "expandable_segments"),
    "scattered_blocks":      Answer("fragmentation", None, ("forward",), "expandable_segments"),
    "alternating_sizes":     Answer("fragmentation", None, ("forward", "loss", "backward"), "expandable_segments"),
    "memory_limit":          Answer("memory_limit", None, ("load", "forward", "loss", "backward", "optimizer"), "raise_fraction"),
    "other_process":         Answer("other_process", None, ("load", "forward", "loss", "backward", "optimizer"), "end_other_process"),
    "expandable_too_little": Answer(SHORT, "activations", ("forward", "loss", "backward"), "smaller_micro_batch"),
    "impossible_request":    Answer("impossible_request", None, ("forward", "loss"), "right_shape"),
}
