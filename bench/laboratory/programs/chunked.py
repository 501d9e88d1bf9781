"""Cross entropy that never holds all logits: a piece of the rows at a time, computed again in backward."""
import torch
from torch.utils.checkpoint import checkpoint


def _piece(hidden, head, labels):
    return torch.nn.functional.cross_entropy(head(hidden).float(), labels, reduction="sum")


def chunked_loss(model, input_ids, pieces=16, **inputs):
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = inner.base_model(input_ids=input_ids, **inputs)[0][:, :-1].flatten(0, 1)
    labels, total = input_ids[:, 1:].flatten(), 0
    for part, wanted in zip(hidden.chunk(pieces), labels.chunk(pieces)):
        total = total + checkpoint(_piece, part, inner.get_output_embeddings(), wanted, use_reentrant=False)
    return total / labels.numel()
