"""What PyTorch and Triton cannot do on a null device, and what need not be done: libraries that are not there are switched off,
random numbers of large tensors are not drawn, Triton's kernels are not launched."""

import functools

LARGE = 1 << 16  # elements


def prepare(torch):
    for switch in ("enable_cudnn_sdp",):
        if hasattr(torch.backends.cuda, switch):
            getattr(torch.backends.cuda, switch)(False)
    torch.backends.cudnn.enabled = False
    _leave_weights_as_they_come(torch)
    _leave_out_decompositions(torch)
    _sample_unchecked(torch)
    from snug_measure import values
    values.prepare(torch)


def _leave_weights_as_they_come(torch):
    """Initial values change no size: they are not drawn, so that the pages of large weights on the host are never touched."""
    def same(tensor, *_, **__):
        return tensor

    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, functools.wraps(getattr(torch.nn.init, name))(same))
    for name in ("normal_", "uniform_"):
        drawn = getattr(torch.Tensor, name)

        def draw(tensor, *args, _drawn=drawn, **kwargs):
            return tensor if tensor.numel() > LARGE and not tensor.is_cuda else _drawn(tensor, *args, **kwargs)
        setattr(torch.Tensor, name, functools.wraps(drawn)(draw))
    copied = torch.Tensor.copy_

    def copy(tensor, source, *args, **kwargs):
        """Weights that go from a file's pages to the host's: what they hold does not matter."""
        on_host = not tensor.is_cuda and tensor.numel() > LARGE and tensor.is_floating_point()
        if on_host and isinstance(source, torch.Tensor) and source.device.type == "cpu" and source.is_floating_point():
            return tensor
        return copied(tensor, source, *args, **kwargs)
    torch.Tensor.copy_ = functools.wraps(copied)(copy)


def _leave_out_decompositions(torch):
    """cuSOLVER is not there: results of the right shape, as initialisations by decomposition (PiSSA, OLoRA) need them."""
    def on_device(function, answer):
        @functools.wraps(function)
        def decomposed(a, *args, **kwargs):
            return answer(a, *args, **kwargs) if a.is_cuda else function(a, *args, **kwargs)
        return decomposed

    def svd(a, full_matrices=True, **_):
        m, n = a.shape[-2:]
        k = min(m, n)
        return torch.return_types.linalg_svd((a.new_empty(*a.shape[:-2], m, m if full_matrices else k), a.new_empty(*a.shape[:-2], k),
                                              a.new_empty(*a.shape[:-2], n if full_matrices else k, n)))

    def qr(a, mode="reduced", **_):
        m, n = a.shape[-2:]
        k = m if mode == "complete" else min(m, n)
        return torch.return_types.linalg_qr((a.new_empty(*a.shape[:-2], m, k), a.new_empty(*a.shape[:-2], k, n)))

    torch.linalg.svd = on_device(torch.linalg.svd, svd)
    torch.linalg.qr = on_device(torch.linalg.qr, qr)


def _sample_unchecked(torch):
    """PyTorch reads from the device whether probabilities are any; what it allocates to draw (exponential_, argmax) is the same here."""
    real = torch.multinomial

    @functools.wraps(real)
    def multinomial(input, num_samples, replacement=False, **kwargs):
        if not input.is_cuda or kwargs.get("out") is not None or (replacement and num_samples > 1):
            return real(input, num_samples, replacement, **kwargs)
        drawn = torch.empty_like(input).exponential_()
        drawn = torch.div(input, drawn, out=drawn)
        return drawn.argmax(-1, keepdim=True) if num_samples == 1 else drawn.topk(num_samples)[1]
    torch.multinomial = torch.Tensor.multinomial = multinomial


def prepare_flash_utilities(module):
    """Whether several documents stand in one row is read from positions on the device; those that are given on purpose say so by their
    cumulative lengths, all others are one document a row."""
    if hasattr(module, "_is_packed_sequence"):
        real = module._is_packed_sequence

        def is_packed(position_ids, batch_size=1, *args, **kwargs):
            from snug_measure import values
            known = position_ids is not None and values.known(position_ids)
            return real(position_ids, batch_size, *args, **kwargs) if known else False
        module._is_packed_sequence = is_packed


def prepare_triton(module):
    """Kernels are neither compiled nor launched: what they would write nobody reads, and what they write into is allocated before."""
    def run(*_, **__):
        return None

    for name in ("JITFunction", "Autotuner", "Heuristics"):
        kind = getattr(module, name, None)
        if kind is not None and kind.__module__ == module.__name__:
            kind.run = run
