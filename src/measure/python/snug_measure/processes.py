"""Several ranks: tensors are not exchanged, since there is nothing in them, but objects that the ranks tell each other are, over the host.
Checks that compare the ranks' tensors are answered."""

import functools


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
