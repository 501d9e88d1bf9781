"""What each word of `do` changes in a case's settings, or on its machine. A word whose setting a program does not take cannot be followed there.

`word=value` says to what: a number of rows or tokens, a fraction, bytes of a card. Without a value the change is the largest there is."""


def _to(key, value):
    def change(settings, _):
        if key not in settings or settings[key] == value:
            return False
        settings[key] = value
        return True
    return change


def _smaller(key, by=None, least=1):
    """Down to `least`, or to that part of what it was."""
    def change(settings, _):
        value = max(least, int(settings[key] * by) if by else least) if key in settings else None
        if value is None or value >= settings[key]:
            return False
        settings[key] = value
        return True
    return change


def _first(*changes):
    """The first of several that can be followed."""
    return lambda settings, machine: any(change(settings, machine) for change in changes)


def _micro_batch(settings, _):
    if settings.get("micro_batch", 1) <= 1:
        return False
    if "accumulation" in settings:
        settings["accumulation"] *= settings["micro_batch"]
    settings["micro_batch"] = 1
    return True


def _lengths(settings, machine):
    if "longest" in settings:
        return _smaller("longest", least=settings.get("usual", settings.get("length", 64)))(settings, machine)
    return _smaller("length", 0.25, 32)(settings, machine)


def _bf16(settings, machine):
    return _to("dtype", "bfloat16")(settings, machine)


def _quantize(settings, machine):
    if settings.get("quantize_4bit") is not False:
        return False
    settings.update(quantize_4bit=True)
    if "lora" in settings:
        settings["lora"] = settings["lora"] or 8
    return True


def _lora(settings, _):
    if settings.get("lora") != 0:
        return False
    settings["lora"] = 8
    return True


def _expandable(settings, machine):
    if "expandable_segments:True" in machine.get("alloc_conf", ""):
        return False
    machine["alloc_conf"] = "expandable_segments:True"
    return True


def _alone(settings, machine):
    return bool(machine.pop("others", None))


def _larger_card(settings, machine):
    machine["larger"] = True
    return True


REMEDIES = {
    "smaller_micro_batch": _first(_micro_batch, _smaller("generated_rows", 0.25)),
    "shorter_sequences": _lengths,
    "gradient_checkpointing": _to("gradient_checkpointing", True),
    "fused_loss": _to("fused_loss", True),
    "flash_attention": _to("attention", "sdpa"),
    "bf16_weights": _bf16,
    "quantize_4bit": _quantize,
    "lora": _lora,
    "optimizer_8bit": _to("optimizer", "adamw_8bit"),
    "optimizer_foreach_off": _to("foreach", False),
    "detach_kept": _to("detach_kept", True),
    "move_kept_to_host": _first(_to("kept_on", "cpu"), _to("eval_accumulation", 1)),
    "prediction_loss_only": _to("prediction_loss_only", True),
    "eval_accumulation": _to("eval_accumulation", 1),
    "smaller_eval_batch": _smaller("eval_batch"),
    "release_hooks": _to("hooks", False),
    "drop_second_model": _to("second_model", False),
    "load_once": _to("load_device", "cpu"),
    "smaller_cache": _smaller("generated_rows", 0.25),
    "merge_on_host": _first(_to("merge_device", "cpu"), _to("save_device", "cpu")),
    "save_from_host": _first(_to("save_device", "cpu"), _to("merge_device", "cpu")),
    "expandable_segments": _expandable,
    "empty_cache": _to("empty_cache", True),
    "fixed_lengths": _to("fixed_lengths", True),
    "raise_fraction": _to("fraction", 1.0),
    "end_other_process": _alone,
    "gradient_as_bucket_view": _to("gradient_as_bucket_view", True),
    "reshard_after_forward": _to("reshard_after_forward", True),
    "right_shape": _to("right_shape", True),
    "larger_card": _larger_card,
}


VALUED = {"smaller_micro_batch": ("micro_batch", "generated_rows"), "shorter_sequences": ("longest", "length"), "smaller_eval_batch": ("eval_batch",),
          "smaller_cache": ("generated_rows",), "eval_accumulation": ("eval_accumulation",), "raise_fraction": ("fraction",)}


def _set_value(word, value, before, settings, machine):
    if word == "larger_card":
        machine["memory"] = int(value)
        return
    key = next(key for key in VALUED[word] if key in before)
    settings[key] = float(value) if word == "raise_fraction" else int(value)
    if key == "micro_batch" and "accumulation" in settings:
        settings["accumulation"] = before["accumulation"] * -(-before["micro_batch"] // settings["micro_batch"])


def apply(word, settings, machine):
    """Settings and machine with the change of `word`, or None where it cannot be followed."""
    word, _, value = word.partition("=")
    before, settings, machine = settings, dict(settings), dict(machine)
    change = REMEDIES.get(word)
    if change is None or not change(settings, machine):
        return None
    if value and (word in VALUED or word == "larger_card"):
        _set_value(word, value, before, settings, machine)
    return settings, machine
