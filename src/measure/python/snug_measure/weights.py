"""Weights that are not there: a checkpoint whose files are holes, so that every loader reads it as it reads a real one, in the same
order, and neither disk nor memory holds anything. Only config.json is needed, and nothing is downloaded but that."""

import contextlib
import functools
import json
import os
import shutil
import struct

import snug_measure

SHARD_BYTES, OLD_SHARD_BYTES = 5_000_000_000, 10_000_000_000  # how transformers cuts checkpoints since 4.35, and before
NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "int64": "I64", "int32": "I32", "int8": "I8",
         "uint8": "U8", "bool": "BOOL"}
LARGE = 1 << 16  # elements
INDEX = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json",
         "consolidated.safetensors", "tf_model.h5", "model.ckpt.index", "flax_model.msgpack")
_made = {}


def stand_in_directory(name):
    path = os.path.join(snug_measure.DIRECTORY, "models", name.strip("/").replace("/", "--"))
    os.makedirs(path, exist_ok=True)
    return path


def present(name, subfolder="", **options):
    """True if weights for `name` are in its directory, or in the local cache."""
    if os.path.isdir(name):
        return any(os.path.exists(os.path.join(name, subfolder, file)) for file in INDEX)
    from huggingface_hub import try_to_load_from_cache
    where = {key: options[key] for key in ("cache_dir", "revision") if options.get(key)}
    try:
        return any(isinstance(try_to_load_from_cache(name, file, **where), str) for file in INDEX)
    except ValueError:  # neither a directory nor a name of the hub: the loader will say so
        return True


def _shard_bytes(config):
    version = [int(part) for part in str(getattr(config, "transformers_version", None) or "5.0").split(".")[:2] if part.isdigit()]
    return OLD_SHARD_BYTES if version < [4, 35] else SHARD_BYTES


def _shards(tensors, most):
    shards, room = [[]], most
    for row in tensors:
        if shards[-1] and row[3] > room:
            shards.append([])
            room = most
        shards[-1].append(row)
        room -= row[3]
    return shards


def _write_shard(path, rows):
    """A file of safetensors with a header alone; the rest is a hole. Largest dtype first, then by name, as safetensors writes them."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, size in sorted(rows, key=lambda row: row[0]):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def _tensors(model, torch, dtype):
    """(name, dtype, shape, bytes) of what a checkpoint of `model` holds; a tied weight stands once."""
    seen, rows = set(), []
    persistent = model.state_dict()
    for name, tensor in [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]:
        if name not in persistent or id(tensor) in seen:
            continue
        seen.add(id(tensor))
        kind = dtype if tensor.is_floating_point() and tensor.dtype in (torch.float32, torch.get_default_dtype()) else tensor.dtype
        rows.append((name, NAMES[str(kind).removeprefix("torch.")], list(tensor.shape), tensor.numel() * kind.itemsize))
    return rows


def write_checkpoint(cls, config, path):
    import torch
    dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) or torch.float32
    dtype = getattr(torch, dtype.removeprefix("torch.")) if isinstance(dtype, str) else dtype
    plain = type(config).from_dict({k: v for k, v in config.to_dict().items() if k != "quantization_config"})
    plain._attn_implementation = "eager"
    with torch.device("meta"):
        model = cls(plain)
        model.tie_weights()
    shards = _shards(_tensors(model, torch, dtype), _shard_bytes(config))
    if len(shards) == 1:
        _write_shard(os.path.join(path, "model.safetensors"), shards[0])
    else:
        places = {}
        for number, rows in enumerate(shards, 1):
            file = f"model-{number:05}-of-{len(shards):05}.safetensors"
            _write_shard(os.path.join(path, file), rows)
            places.update({row[0]: file for row in rows})
        total = sum(row[3] for rows in shards for row in rows)
        with open(os.path.join(path, "model.safetensors.index.json"), "w") as file:
            json.dump({"metadata": {"total_size": total}, "weight_map": places}, file)
    config.save_pretrained(path)


@contextlib.contextmanager
def conversions_left_out():
    """While empty weights are loaded: the host does not convert them to another dtype, nor on their way to a device, which would touch
    every page."""
    import torch
    to = torch.Tensor.to

    def convert(tensor, *args, **kwargs):
        if tensor.device.type != "cpu" or not tensor.is_floating_point() or tensor.numel() < LARGE:
            return to(tensor, *args, **kwargs)
        dtype = next((one for one in (*args, *kwargs.values()) if isinstance(one, torch.dtype)), None)
        places = [one for one in (*args, kwargs.get("device")) if isinstance(one, (str, int, torch.device)) and not isinstance(one, bool)]
        by_device = kwargs.get("non_blocking") or any(one is True for one in args)  # then the device converts
        if dtype in (None, tensor.dtype) or by_device:
            return to(tensor, *args, **kwargs)
        return torch.empty_like(tensor, dtype=dtype, device=places[0] if places else "cpu")
    torch.Tensor.to = convert
    try:
        yield
    finally:
        torch.Tensor.to = to


def _stand_in(cls, name, kwargs):
    """The directory of a checkpoint that stands in for `name`."""
    config = kwargs.get("config")
    if config is None or isinstance(config, (str, os.PathLike)):
        keys = {key: kwargs[key] for key in ("cache_dir", "revision", "token", "subfolder", "trust_remote_code") if key in kwargs}
        config = cls.config_class.from_pretrained(config or name, **keys)
    key = (cls.__name__, name)
    if key not in _made:
        path = os.path.join(stand_in_directory(name), cls.__name__)
        part = f"{path}.{os.getpid()}"
        if not os.path.isdir(path):
            os.makedirs(part)
            write_checkpoint(cls, config, part)
            try:
                os.rename(part, path)
            except OSError:  # another rank was faster
                shutil.rmtree(part)
        snug_measure.say(f"{name}: its weights are not here; empty ones of the same shapes stand in")
        _made[key] = path
    return _made[key]


def prepare(module):
    base = module.PreTrainedModel
    load = base.from_pretrained.__func__

    @functools.wraps(load)
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        name = pretrained_model_name_or_path
        if not isinstance(name, (str, os.PathLike)) or kwargs.get("gguf_file") or kwargs.get("state_dict") is not None:
            return load(cls, name, *args, **kwargs)
        name = str(name)
        where = {key: kwargs.get(key) for key in ("cache_dir", "revision")}
        if present(name, kwargs.get("subfolder") or "", **where):
            return load(cls, name, *args, **kwargs)
        path = _stand_in(cls, name, kwargs)
        for key in ("revision", "subfolder", "variant"):
            kwargs.pop(key, None)
        with conversions_left_out():
            model = load(cls, path, *args, **kwargs)
        for one in (model[0] if isinstance(model, tuple) else model,):
            one.config._name_or_path = one.name_or_path = name
        return model
    base.from_pretrained = classmethod(from_pretrained)
    _leave_weights_undrawn(base)


def _leave_weights_undrawn(base):
    """A model that is made from its configuration needs no values either."""
    for name in ("_init_weights", "_initialize_weights", "initialize_weights"):
        if hasattr(base, name):
            setattr(base, name, lambda self, *_, **__: None)
