"""Tensor parallelism: which degrees a model allows, and what one device of a group holds.

Floors divide bytes and arithmetic evenly over the devices, which no layout can beat; memory follows what engines do:
matrices are split, small vectors repeated, key-value heads repeated where there are fewer than devices, and the MLA
latent kept whole on every device.
"""

from __future__ import annotations

from functools import lru_cache

from planner.architecture import Architecture, Attention, CrossAttention, LatentAttention, Use
from planner.errors import PlanError
from planner.inventory import Inventory, Operation, Stage
from planner.work import cache_bytes

# Two all-reduces per layer, one after the attention's and one after the feed-forward's output projection
# (Megatron-LM, arXiv:1909.08053, section 3).
ALL_REDUCES_PER_LAYER = 2


@lru_cache(maxsize=256)
def legal_degrees(architecture: Architecture, limit: int = 64) -> tuple[int, ...]:
    """Tensor-parallel degrees up to ``limit`` that divide every attention block's heads evenly.

    Key-value heads are split while they last and repeated beyond that, so the degree must divide them or be a
    multiple of them.
    """
    return tuple(degree for degree in range(1, limit + 1) if is_legal(architecture, degree))


def is_legal(architecture: Architecture, degree: int) -> bool:
    """Whether ``degree`` divides the heads of every attention block."""
    return all(_divides(degree, heads, kv_heads) for heads, kv_heads in _head_counts(architecture))


@lru_cache(maxsize=256)
def _head_counts(architecture: Architecture) -> frozenset[tuple[int, int]]:
    """Query and key-value heads of every kind of attention; a latent counts as one that is repeated."""
    return frozenset(
        (block.heads, 1 if isinstance(block, LatentAttention) else block.kv_heads)
        for layer in {*architecture.layers, *architecture.encoder}
        for block in layer.blocks
        if isinstance(block, Attention | LatentAttention | CrossAttention)
    )


def check_degree(architecture: Architecture, degree: int) -> None:
    """Refuse a tensor-parallel degree that the heads do not allow.

    Raises:
        PlanError: names the legal degrees.
    """
    if degree < 1:
        raise PlanError(f"tp is {degree}; expected 1 or more", field="tp")
    if not is_legal(architecture, degree):
        heads = sorted(_head_words(*counts) for counts in _head_counts(architecture))
        listed = ", ".join(map(str, legal_degrees(architecture)))
        raise PlanError(f"tp is {degree}, which does not divide {' and '.join(heads)}; legal: {listed}", field="tp")


def device_weight_bytes(inventory: Inventory, degree: int) -> int:
    """Weight bytes on the fullest of ``degree`` devices."""
    if degree == 1:
        return inventory.stored_bytes
    return sum(_share(op, degree) for op in inventory.operations if op.stored and op.stage is not Stage.DRAFT)


def device_cache_bytes(
    architecture: Architecture, inventory: Inventory, *, tokens: int, encoded: int, degree: int
) -> int:
    """Cache and state bytes of one sequence on one of ``degree`` devices."""
    whole = cache_bytes(inventory, tokens, encoded)
    if degree == 1:
        return whole + inventory.state_bytes
    blocks = _attention_blocks(architecture)
    latent = any(isinstance(block, LatentAttention) for block in blocks)
    kv_heads = min((block.kv_heads for block in blocks if isinstance(block, Attention)), default=degree)
    share = 1 if latent else min(degree, kv_heads)
    return -(-whole // share) + -(-inventory.state_bytes // degree)


def message_bytes(architecture: Architecture, activation_bytes: int = 2) -> int:
    """Bytes that tensor parallelism exchanges per token and step: the hidden vector, twice a layer."""
    mixing = sum(1 for layer in architecture.layers if layer.blocks)
    return ALL_REDUCES_PER_LAYER * mixing * architecture.hidden * activation_bytes


def _share(operation: Operation, degree: int) -> int:
    split = operation.use in (Use.MULTIPLIED, Use.ROUTED, Use.LOOKED_UP) and not operation.is_bias
    return -(-operation.stored_bytes // degree) if split else operation.stored_bytes


def _divides(degree: int, heads: int, kv_heads: int) -> bool:
    return heads % degree == 0 and (kv_heads % degree == 0 or degree % kv_heads == 0)


def _attention_blocks(architecture: Architecture) -> list[Attention | LatentAttention]:
    return [b for layer in set(architecture.layers) for b in layer.blocks if isinstance(b, Attention | LatentAttention)]


def _head_words(heads: int, kv_heads: int) -> str:
    return f"{heads} heads" if kv_heads in (1, heads) else f"{heads} heads with {kv_heads} KV heads"
