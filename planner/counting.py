"""Exact counts of an architecture: parameters by part, cache per token by layer kind, constant state.

Everything here is an integer and follows from the shapes alone; number formats come in with ``inventory``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from planner.architecture import (
    Architecture,
    Attention,
    Block,
    CrossAttention,
    LatentAttention,
    Layer,
    Moe,
    Part,
    StateSpace,
    Use,
    Weight,
    layer_weights,
)


class ParameterCounts(NamedTuple):
    """Parameters of a model, each an exact count.

    ``total`` counts a tied head once, the vision tower with the model, MTP modules and buffers apart. ``by_part``
    sums to ``total``. ``active``: what one token of text uses, routed experts at ``active`` of ``experts``, towers
    left out; the second and third variants leave out the input embedding, and the head too. ``decode_read``: what a
    decode step of one token reads (no embedding table, the head once, one row of every lookup table not counted).
    """

    total: int
    active: int
    active_without_embedding: int
    active_without_embedding_and_head: int
    decode_read: int
    by_part: dict[Part, int]
    bias: int
    buffers: int
    mtp: int


@lru_cache(maxsize=256)
def count_parameters(architecture: Architecture) -> ParameterCounts:
    """Count every tensor of the architecture once."""
    by_part = dict.fromkeys(Part, 0)
    bias = buffers = mtp = 0
    for weight, layers in stored_weights(architecture):
        elements = weight.elements * layers
        if weight.buffer:
            buffers += elements
            continue
        by_part[weight.part] += elements
        bias += elements if weight.is_bias else 0
    for component in architecture.components:
        if not component.counted:
            mtp += sum(w.elements for w in component.weights if not w.buffer)
    total = sum(by_part.values())
    active = _used(architecture, Use.UNUSED)
    embedding = architecture.embedding.elements
    head = by_part[Part.LM_HEAD]
    return ParameterCounts(
        total=total,
        active=active,
        active_without_embedding=active - (0 if architecture.tied else embedding),
        active_without_embedding_and_head=active - embedding - head,
        decode_read=_decode_read(architecture),
        by_part=by_part,
        bias=bias,
        buffers=buffers,
        mtp=mtp,
    )


def text_weights(architecture: Architecture) -> Iterator[tuple[Weight, int]]:
    """Every weight of the text model with the number of layers that hold one like it; the head last."""
    yield architecture.embedding, 1
    for layer, count in layer_counts((*architecture.encoder, *architecture.layers)):
        for weight in layer_weights(layer):
            yield weight, count
    for weight in architecture.outer:
        yield weight, 1
    if architecture.lm_head is not None:
        yield architecture.lm_head, 1


def stored_weights(architecture: Architecture) -> Iterator[tuple[Weight, int]]:
    """Every stored tensor that belongs to the total, with its multiplicity."""
    for weight, count in text_weights(architecture):
        if weight.stored:
            yield weight, count
    for component in architecture.components:
        if component.counted:
            for weight in component.weights:
                if weight.stored:
                    yield weight, 1


def layer_counts(layers: Iterable[Layer]) -> list[tuple[Layer, int]]:
    """Distinct layers with how often each occurs, in order of first appearance."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return list(counts.items())


def unused_experts(architecture: Architecture) -> int:
    """Parameters of the routed experts that one token does not use."""
    return sum(
        weight.size * max(0, weight.copies - block.active) * count
        for layer, count in layer_counts((*architecture.encoder, *architecture.layers))
        for block in layer.blocks
        if isinstance(block, Moe)
        for weight in block.weights
        if weight.use is Use.ROUTED and weight.stored
    )


def _used(architecture: Architecture, *unused: Use) -> int:
    """Parameters of the text model but for those of some uses, with the experts of one token."""
    whole = sum(
        weight.elements * count
        for weight, count in text_weights(architecture)
        if weight.stored and not weight.buffer and weight.use not in unused
    )
    return whole - unused_experts(architecture)


def _decode_read(architecture: Architecture) -> int:
    read = _used(architecture, Use.UNUSED, Use.LOOKED_UP)
    return read + (architecture.embedding.elements if architecture.tied else 0)


class CacheLayers(NamedTuple):
    """Layers that cache alike: ``elements`` per token and layer, at most ``window`` tokens (None: all)."""

    kind: str
    layers: int
    elements: int
    window: int | None
    indexer_elements: int = 0


@lru_cache(maxsize=256)
def cache_layers(architecture: Architecture) -> tuple[CacheLayers, ...]:
    """The caching layers of the (decoder) stack by kind; layers without a cache of their own are left out."""
    found: dict[tuple[str, int, int | None, int], int] = {}
    for layer, count in layer_counts(architecture.layers):
        for block in layer.blocks:
            key = _cache_of(block)
            if key is not None:
                found[key] = found.get(key, 0) + count
    return tuple(CacheLayers(kind, n, size, window, index) for (kind, size, window, index), n in found.items())


def _cache_of(block: Block) -> tuple[str, int, int | None, int] | None:
    if isinstance(block, Attention) and block.caches:
        kind = "sliding window" if block.window else "chunked" if block.chunk else "full attention"
        kind = "sparse attention" if block.selected else kind
        row = block.kv_heads * (block.key_dim + block.value_dim)
        return kind, row, block.window or block.chunk, block.indexer_dim
    if isinstance(block, LatentAttention):
        return "latent attention (MLA)", block.latent + block.rope_dim, None, block.indexer_dim
    return None


def cache_elements(architecture: Architecture, tokens: int) -> int:
    """Elements of keys and values that one sequence of ``tokens`` tokens holds, indexer caches left out."""
    return sum(
        group.layers * group.elements * (tokens if group.window is None else min(tokens, group.window))
        for group in cache_layers(architecture)
    )


class StateElements(NamedTuple):
    """Constant state per sequence: ``recurrent_bytes`` in its own format, ``convolution`` elements in the model's."""

    recurrent_bytes: int
    convolution: int


@lru_cache(maxsize=256)
def state_elements(architecture: Architecture) -> StateElements:
    """Sum of the state-space blocks' states over all layers."""
    recurrent = convolution = 0
    for layer, count in layer_counts(architecture.layers):
        for block in layer.blocks:
            if isinstance(block, StateSpace):
                recurrent += block.state * block.state_bytes * count
                convolution += block.convolution * count
    return StateElements(recurrent, convolution)


def cross_attention(architecture: Architecture) -> list[tuple[CrossAttention, int]]:
    """Cross-attention blocks with the number of layers that hold them."""
    return [
        (block, count)
        for layer, count in layer_counts(architecture.layers)
        for block in layer.blocks
        if isinstance(block, CrossAttention)
    ]
