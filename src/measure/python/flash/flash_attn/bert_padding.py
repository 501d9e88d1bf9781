"""flash-attn's functions for padded batches, in PyTorch's operations."""

import torch


def index_first_axis(x, indices):
    return torch.gather(x.flatten(1), 0, indices[:, None].expand(-1, x.flatten(1).shape[1])).reshape(-1, *x.shape[1:])


def pad_input(x, indices, batch, length):
    out = torch.zeros(batch * length, *x.shape[1:], device=x.device, dtype=x.dtype)
    return out.index_put((indices,), x).view(batch, length, *x.shape[1:])


def unpad_input(x, mask, unused_mask=None):
    lengths = mask.sum(dim=-1, dtype=torch.int32)
    indices = torch.nonzero(mask.flatten(), as_tuple=False).flatten()
    ends = torch.nn.functional.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
    return index_first_axis(x.reshape(-1, *x.shape[2:]), indices), indices, ends, lengths.max().item(), lengths
