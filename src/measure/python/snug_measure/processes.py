"""Several ranks: tensors are not exchanged, since there is nothing in them, but objects that the ranks tell each other are, over the host,
and so are the values of small tensors of integers that one rank tells the others. Checks that compare the ranks' tensors are answered."""

import functools

SMALL = 1 << 16  # elements


def prepare(torch):
    if not torch.distributed.is_available():
        return
    import torch.distributed.distributed_c10d as c10d
    for name in ("_verify_params_across_processes", "_verify_param_shape_across_processes"):
        if hasattr(torch.distributed, name):
            setattr(torch.distributed, name, lambda *_, **__: None)
    if hasattr(torch.distributed, "utils"):
        torch.distributed.utils._verify_param_shape_across_processes = lambda *_, **__: None
    _over_the_host(torch, c10d)


def _over_the_host(torch, c10d):
    """Object collectives of a group on devices run on a group of the same ranks on the host."""
    groups = {}

    def on_host(group):
        group = group or c10d.group.WORLD
        if group is None or c10d.get_backend(group) != "nccl":
            return group
        if id(group) not in groups:
            groups[id(group)] = c10d.new_group(ranks=c10d.get_process_group_ranks(group), backend="gloo",
                                               use_local_synchronization=True)
        return groups[id(group)]

    _broadcast_values(torch, c10d, on_host)
    for name, place in (("all_gather_object", 2), ("gather_object", 3), ("broadcast_object_list", 2), ("scatter_object_list", 3)):
        real = getattr(c10d, name)

        def over_host(*args, _real=real, _place=place, **kwargs):
            args = list(args)
            if len(args) > _place:
                args[_place] = on_host(args[_place])
            else:
                kwargs["group"] = on_host(kwargs.get("group"))
            if kwargs.get("device") is not None:
                kwargs["device"] = torch.device("cpu")
            return _real(*args, **kwargs)
        for module in (c10d, torch.distributed):
            setattr(module, name, functools.wraps(real)(over_host))


def _broadcast_values(torch, c10d, on_host):
    """A rank's integers, where it knows them (values.py): lengths, counts and orders on which ranks agree, as DeepSpeed's ZeRO-3 does."""
    from snug_measure import values
    real = c10d.broadcast

    @functools.wraps(real)
    def broadcast(tensor, src=None, group=None, async_op=False, **kwargs):
        done = real(tensor, src, group, async_op, **kwargs)
        if not tensor.is_cuda or tensor.is_floating_point() or tensor.is_complex() or tensor.numel() > SMALL:
            return done
        twin, host = values.twin_of(tensor), torch.zeros(tensor.numel() + 1, dtype=torch.int64)
        if twin is not None:
            host[0], host[1:] = 1, twin.flatten()
        real(host, src, on_host(group), **kwargs)
        values.told(tensor, host[1:].view(tensor.shape).to(tensor.dtype) if host[0] else None)
        return done
    for module in (c10d, torch.distributed):
        module.broadcast = broadcast
