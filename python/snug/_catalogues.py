"""The models and accelerators that are known by name."""

from __future__ import annotations

import dataclasses
from typing import List, Optional

from ._answer import list_of, read


@dataclasses.dataclass(frozen=True)
class CatalogueModel:
    """A model that is known by name; ``trainable`` by snug itself, lengths are in tokens."""

    name: str
    family: str
    architecture: str
    trainable: bool
    total_parameters: int
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_size: int
    experts: int
    experts_per_token: int
    vocab_size: int
    max_position: int
    sliding_window: int
    tied_embeddings: bool
    dtype: str


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """A card that is known by name. Rates are per second, ``bandwidth`` and links in bytes; 0 is what it cannot do."""

    name: str
    aliases: List[str]
    vendor: str
    generation: str
    compute_capability: Optional[int]
    memory_bytes: int
    usable_bytes: int
    bandwidth: float
    fp32_flops: float
    tf32_flops: float
    fp16_flops: float
    bf16_flops: float
    fp8_flops: float
    int8_ops: float
    host_link: float
    peer_link: float
    dollars_per_hour: Optional[float]
    best_use: str


def models() -> List[CatalogueModel]:
    """The models that are known by name, as ``snug models`` lists them."""
    return [read(CatalogueModel, each) for each in list_of(["models"], "models")]


def gpus() -> List[Accelerator]:
    """The accelerators that are known by name, as ``snug gpus`` lists them."""
    return [read(Accelerator, each) for each in list_of(["gpus"], "accelerators")]
