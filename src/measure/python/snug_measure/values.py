"""Values that stay known: on a null device every value read back is zero, which is right for losses and norms, but not for masks,
lengths and positions, on which a program decides what to allocate. Small tensors of integers or booleans that come from the host keep
their values there, as twins; what is computed from twins alone is computed on the twins as well, and reads of them are answered.

The twins are followed through calls from Python, by a mode of PyTorch that sees each call; it allocates nothing on the device."""

import functools
import threading
import weakref

MOST = 1 << 20  # elements of a tensor that has a twin
_twins = {}  # id of a tensor → (weak reference to it, its twin)
READS = {"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "cpu", "numpy", "equal", "is_nonzero", "__contains__",
         "__format__", "__repr__"}
FACTORIES = {"arange", "ones", "zeros", "full", "tensor", "as_tensor"}
ABSORBING = {"or": True, "ior": True, "bitwise_or": True, "logical_or": True,
             "and": False, "iand": False, "bitwise_and": False, "logical_and": False}
FINITE = {"isnan": False, "isinf": False, "isposinf": False, "isneginf": False, "isfinite": True}  # of all that is not known
STARTS = FACTORIES | set(FINITE) | {"to", "cuda"}
SIZED = {"__getitem__", "masked_select", "where", "unique", "unique_consecutive", "repeat_interleave"}  # by values, in some uses
_torch = None
_thread = threading.local()


def twin_of(tensor):
    entry = _twins.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


def known(tensor):
    return not tensor.is_cuda or twin_of(tensor) is not None


def _keep(tensor, twin):
    if not tensor.is_cuda or twin.numel() > MOST or twin.shape != tensor.shape or twin.dtype != tensor.dtype:
        return
    key = id(tensor)
    _twins[key] = (weakref.ref(tensor, lambda _: _twins.pop(key, None)), twin)


def told(tensor, twin):
    """What a tensor holds from now on; none: nobody knows."""
    _twins.pop(id(tensor), None)
    if twin is not None:
        _keep(tensor, twin)


def _plain(tensor):
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.numel() <= MOST


def _on_host(value, state):
    """An argument with twins in place of tensors on the device; state[0]: a tensor without a twin was met, state[1]: one with."""
    if isinstance(value, _torch.Tensor):
        if not value.is_cuda:
            if not _plain(value):
                state[0] = True
            return value
        twin = twin_of(value)
        if twin is None:
            state[0] = True
            return value
        state[1] = True
        return twin
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_on_host(one, state) for one in value)
    if isinstance(value, slice):
        return slice(*(_on_host(one, state) for one in (value.start, value.stop, value.step)))
    return value


def _pair(out, twin):
    if isinstance(out, _torch.Tensor) and isinstance(twin, _torch.Tensor):
        _keep(out, twin)
    elif isinstance(out, (tuple, list)) and isinstance(twin, (tuple, list)) and len(out) == len(twin):
        for one, other in zip(out, twin):
            _pair(one, other)


def _moved(function, args, kwargs):
    """A `to` or `cuda`: what comes from the host, or has a twin, keeps its values."""
    first, out = args[0], function(*args, **kwargs)
    source = first if not first.is_cuda else twin_of(first)
    if isinstance(out, _torch.Tensor) and not out.is_cuda and first.is_cuda and source is not None:
        return source.to(out.dtype, copy=True)  # back to the host
    followed = first.is_cuda or source is not None and _plain(source) and _plain(out)  # a twin may be a quotient
    if isinstance(out, _torch.Tensor) and out.is_cuda and out is not first and source is not None and followed:
        _keep(out, source.to(out.dtype, copy=not first.is_cuda))
    return out


def _made(function, args, kwargs):
    """A tensor made on the device from plain numbers."""
    out = function(*args, **kwargs)
    if isinstance(out, _torch.Tensor) and out.is_cuda and _plain(out):
        _keep(out, function(*args, **{**kwargs, "device": "cpu"}))
    return out


def _finite(function, args, kwargs):
    """What is computed on the device is taken to be finite."""
    out = function(*args, **kwargs)
    if isinstance(out, _torch.Tensor) and out.is_cuda and out.numel() <= MOST:
        _keep(out, _torch.full(out.shape, FINITE[function.__name__], dtype=out.dtype))
    return out


def _absorbed(name, args, out):
    """True or … and false and … are known where the rest is not: so a generation ends at its greatest length."""
    wins = ABSORBING.get(name.strip("_"))
    for value in args if wins is not None and isinstance(out, _torch.Tensor) else ():
        twin = twin_of(value) if isinstance(value, _torch.Tensor) else None
        if twin is not None and (twin.dtype == _torch.bool or not wins) and bool((twin == wins).all()) and twin.shape == out.shape:
            _keep(out, _torch.full(out.shape, wins, dtype=out.dtype))
    return out


def _any_twin(values):
    for value in values:
        if id(value) in _twins or type(value) in (list, tuple) and _any_twin(value):
            return True
        if type(value) is slice and _any_twin((value.start, value.stop, value.step)):
            return True
    return False


def _follow(function, args, kwargs):
    """Calls `function`, and on the twins as well where all that it reads has one."""
    name = getattr(function, "__name__", "")
    first = args[0] if args else None
    if name in ("to", "cuda") and isinstance(first, _torch.Tensor):
        return _moved(function, args, kwargs)
    if name in FACTORIES:
        return _made(function, args, kwargs)
    if name in FINITE:
        return _finite(function, args, kwargs)
    if not _any_twin(args) and not _any_twin(kwargs.values()):
        return function(*args, **kwargs)
    places = _places(name, first, args)
    if places is not None:
        return (first.expand(places[0]) if name == "masked_select" else first)[places[1]]
    state = [False, False]
    host_args, host_kwargs = _on_host(args, state), {k: _on_host(v, state) for k, v in kwargs.items()}
    if state[0] or not state[1]:
        if (name in ("__setitem__", "__set__") or name.endswith("_") and not name.endswith("__")) and id(first) in _twins:
            del _twins[id(first)]  # written with what is not known
        return _absorbed(name, args, function(*args, **kwargs))
    if name in READS:
        return function(*host_args, **host_kwargs)
    host_kwargs.pop("device", None)
    if name == "nonzero" or (name in SIZED and _sized_by_values(name, host_args, host_kwargs)):
        return _to_device(function(*host_args, **host_kwargs), args)
    out = function(*args, **kwargs)
    try:
        _pair(out, function(*host_args, **host_kwargs))
    except (RuntimeError, TypeError, NotImplementedError):
        pass  # then its value is not known
    return out


def _places(name, first, args):
    """Where a mask that is known is true, of a tensor that is not: (its shape with the mask's, what it is indexed by instead); none otherwise.

    PyTorch does the same with a mask, but has to read from the device how many places there are."""
    if name not in ("__getitem__", "masked_select") or not isinstance(first, _torch.Tensor) or not first.is_cuda or twin_of(first) is not None:
        return None
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    twins = [twin_of(one) if isinstance(one, _torch.Tensor) and one.is_cuda and one.dtype == _torch.bool else None for one in index]
    if all(twin is None for twin in twins):
        return None
    shape = _torch.broadcast_shapes(first.shape, index[0].shape) if name == "masked_select" else first.shape
    by = []
    for one, twin in zip(index, twins):
        if twin is None:
            by.append(one)
        else:
            by.extend(_to_device((twin.expand(shape) if name == "masked_select" else twin).nonzero(), [one]).unbind(1))
    return shape, tuple(by)


def _sized_by_values(name, args, kwargs):
    if name == "__getitem__":
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        return any(isinstance(one, _torch.Tensor) and one.dtype == _torch.bool for one in index)
    if name == "where":
        return len(args) == 1 and not kwargs
    return name != "repeat_interleave" or "output_size" not in kwargs


def _to_device(twin, args):
    device = next(value.device for value in args if isinstance(value, _torch.Tensor) and value.is_cuda)
    if isinstance(twin, (tuple, list)):
        return type(twin)(_to_device(one, args) for one in twin)
    out = _torch.empty(twin.shape, dtype=twin.dtype, device=device)
    if _plain(twin):
        _keep(out, twin)
    return out


def _mode():
    from torch.overrides import TorchFunctionMode

    class Follow(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if not _twins and getattr(function, "__name__", "") not in STARTS:
                return function(*args, **kwargs)
            return _follow(function, args, kwargs)
    return Follow()


def prepare(torch):
    global _torch
    _torch = torch
    _thread.follows = True
    _mode().__enter__()


def prepare_checkpoint(module):
    """What is computed again runs in autograd's thread, where values are to be followed as well."""
    checkpoint = module.checkpoint

    @functools.wraps(checkpoint)
    def followed(function, *args, **kwargs):
        twins = [twin_of(value) if isinstance(value, _torch.Tensor) else None for value in args]

        def run(*inputs, **more):
            for value, twin in zip(inputs, twins):  # the second time they are other objects
                if twin is not None:
                    _keep(value, twin)
            if getattr(_thread, "follows", False):
                return function(*inputs, **more)
            _thread.follows = True
            try:
                with _mode():
                    return function(*inputs, **more)
            finally:
                _thread.follows = False
        return checkpoint(run, *args, **kwargs)
    module.checkpoint = followed


def prepare_generation(module):
    """transformers.generation.utils: what is sampled is told as the longest text that is allowed, of one token that ends nothing, so that
    programs that train on their own samples (GRPO, RLOO, online DPO) go on with the most that they can need."""
    generate = module.GenerationMixin.generate

    @functools.wraps(generate)
    def generated(self, inputs=None, *args, **kwargs):
        out = generate(self, inputs, *args, **kwargs)
        ids = out if isinstance(out, _torch.Tensor) else getattr(out, "sequences", None)
        if ids is not None and ids.is_cuda and twin_of(ids) is None:
            _keep(ids, _samples(ids, inputs if inputs is not None else kwargs.get("input_ids"), _ends(self, kwargs)))
        return out
    module.GenerationMixin.generate = generated


def _ends(model, arguments):
    """The tokens that mean something to a generation."""
    found = set()
    for holder in (arguments.get("generation_config"), getattr(model, "generation_config", None), getattr(model, "config", None)):
        for name in ("eos_token_id", "pad_token_id", "bos_token_id"):
            value = arguments.get(name, getattr(holder, name, None))
            value = value.tolist() if isinstance(value, _torch.Tensor) else value
            found.update(value if isinstance(value, (list, tuple)) else [value])
    return found


def _samples(ids, prompt, ends):
    token = next(one for one in range(len(ends) + 1) if one not in ends)
    twin = _torch.full(ids.shape, token, dtype=ids.dtype)
    known_prompt = twin_of(prompt) if isinstance(prompt, _torch.Tensor) else None
    if known_prompt is not None and known_prompt.dim() == ids.dim() and ids.shape[0] % known_prompt.shape[0] == 0:
        length = min(known_prompt.shape[1], ids.shape[1])
        twin[:, :length] = known_prompt.repeat_interleave(ids.shape[0] // known_prompt.shape[0], 0)[:, :length]
    return twin
