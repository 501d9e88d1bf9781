"""Stands in for flash-attn where it is asked for and not installed: its functions over PyTorch's own copy of the same kernels, which
allocate what flash-attn allocates."""

import torch

__version__ = "2.8.3"

_forward, _backward = torch.ops.aten._flash_attention_forward, torch.ops.aten._flash_attention_backward


class _Attention(torch.autograd.Function):
    """q, k, v [B, T, H, D], or [tokens, H, D] with cumulative lengths."""

    @staticmethod
    def forward(context, q, k, v, cumulative, longest_q, longest_k, dropout, scale, causal, left):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        cumulative_q, cumulative_k = cumulative or (None, None)
        window = {} if left is None or left < 0 else {"window_size_left": left, "window_size_right": 0}
        out, sums, seed, offset, _ = _forward(q, k, v, cumulative_q, cumulative_k, longest_q, longest_k, dropout, causal, False,
                                              scale=scale, **window)
        # flash-attn keeps its state of random numbers on the device, PyTorch up to 2.4 on the host
        state = None if seed is not None and seed.is_cuda else torch.empty(2, dtype=torch.long, device=q.device)
        context.save_for_backward(q, k, v, out, sums, seed, offset, state)
        context.rest = (cumulative_q, cumulative_k, longest_q, longest_k, dropout, causal, scale, window)
        return out

    @staticmethod
    def backward(context, gradient, *_):
        q, k, v, out, sums, seed, offset, _ = context.saved_tensors
        cumulative_q, cumulative_k, longest_q, longest_k, dropout, causal, scale, window = context.rest
        gradients = _backward(gradient, q, k, v, out, sums, cumulative_q, cumulative_k, longest_q, longest_k, dropout, causal, seed,
                              offset, scale=scale, **window)
        return (*gradients, *(None,) * 7)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), **_):
    return _Attention.apply(q, k, v, None, q.shape[1], k.shape[1], dropout_p, softmax_scale, causal, window_size[0])


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None,
                           causal=False, window_size=(-1, -1), **_):
    return _Attention.apply(q, k, v, (cu_seqlens_q, cu_seqlens_k), max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, causal,
                            window_size[0])


def flash_attn_with_kvcache(*_, **__):
    raise NotImplementedError("snug measure: flash_attn_with_kvcache; install flash-attn to measure generation with it")
