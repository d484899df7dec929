"""What must be in memory at once, what fits, and by how much.

Weights, cache and logits are exact. The activation peak is a lower estimate (the widest tensors of one layer that must
exist at the same time); the runtime's own share (context, graphs, workspace) differs by engine and is a calibrated
figure, absent until there is a calibration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from planner.architecture import Architecture, Attention, Block, Moe, Use
from planner.inventory import Inventory
from planner.sharding import device_cache_bytes, device_weight_bytes

LOGIT_BYTES = 4  # logits are sampled in fp32
# Engines read long prompts in pieces, so a step never holds the activations of more tokens than this (vLLM's and
# SGLang's default token budgets on large devices). An assumption, named in the output.
STEP_TOKENS = 8192
MAXIMUM_CONTEXT = 2**40
# Beyond every published window, so that a cache grows here at its final rate.
FAR = 2**24


class Budget(NamedTuple):
    """Bytes that one device offers: ``usable`` as programs see them, of which ``utilisation`` may be used."""

    usable: int
    utilisation: float

    @property
    def bytes(self) -> int:
        """Bytes that the plan may fill."""
        return int(self.usable * self.utilisation)


class Memory(NamedTuple):
    """Bytes on the fullest device. ``runtime`` is None where no calibration states it.

    ``max_batch``: requests of this length that fit at once (0: not even one). ``max_context``: tokens per request
    that fit at this batch, None where the model keeps no growing cache.
    """

    weights: int
    cache: int
    cache_per_request: int
    activations: int
    logits: int
    runtime: int | None
    budget: Budget | None
    max_batch: int | None
    max_context: int | None

    @property
    def total(self) -> int:
        """Everything that was counted."""
        return self.weights + self.cache + self.activations + self.logits + (self.runtime or 0)

    @property
    def spare(self) -> int | None:
        """Bytes left over; negative where the plan does not fit."""
        return None if self.budget is None else self.budget.bytes - self.total

    @property
    def fits(self) -> bool | None:
        """Whether everything fits; None without a known capacity."""
        return None if self.spare is None else self.spare >= 0


def memory_of(
    architecture: Architecture,
    inventory: Inventory,
    *,
    batch: int,
    prompt: int,
    out: int,
    degree: int,
    budget: Budget | None,
    activation_bytes: int = 2,
) -> Memory:
    """The memory of ``batch`` requests of ``prompt`` + ``out`` tokens on each of ``degree`` devices."""
    weights = device_weight_bytes(inventory, degree)
    per_token = activation_bytes_per_token(architecture, activation_bytes) // degree

    def request(prompt_tokens: int, total_tokens: int) -> int:
        encoded = prompt_tokens if inventory.encoder_decoder else 0
        tokens = total_tokens - encoded
        return device_cache_bytes(architecture, inventory, tokens=tokens, encoded=encoded, degree=degree)

    def needed(requests: int, prompt_tokens: int, total_tokens: int) -> int:
        step = min(requests * prompt_tokens, STEP_TOKENS) * per_token
        logits = requests * LOGIT_BYTES * architecture.vocabulary
        return weights + requests * request(prompt_tokens, total_tokens) + step + logits

    each = request(prompt, prompt + out)
    max_batch = max_context = None
    if budget is not None:
        free = budget.bytes - weights
        step = min(prompt * batch, STEP_TOKENS) * per_token
        guess = (free - step) // (each + LOGIT_BYTES * architecture.vocabulary)
        max_batch = _largest(lambda n: needed(n, prompt, prompt + out) <= budget.bytes, guess)
        growth = request(FAR + 1024, FAR + 1024) - request(FAR, FAR)
        if growth:
            left = free - STEP_TOKENS * per_token - batch * LOGIT_BYTES * architecture.vocabulary
            guess = FAR - (batch * request(FAR, FAR) - left) * 1024 // (batch * growth) - out
            longest = _largest(lambda n: needed(batch, n, n + out) <= budget.bytes, guess)
            max_context = longest + out if longest else 0
    return Memory(
        weights=weights,
        cache=batch * each,
        cache_per_request=each,
        activations=min(batch * prompt, STEP_TOKENS) * per_token,
        logits=batch * LOGIT_BYTES * architecture.vocabulary,
        runtime=None,
        budget=budget,
        max_batch=max_batch,
        max_context=max_context,
    )


@lru_cache(maxsize=1024)
def activation_bytes_per_token(architecture: Architecture, activation_bytes: int) -> int:
    """Bytes per token of the tensors of one block that must live together.

    bytes = width · (2 · hidden + Σ outputs of the block's input projections): residual, normalised input, and what
    the projections make of it (queries, keys and values; gate and up halves, of the experts that one token uses).
    """
    blocks = {block for layer in set(architecture.layers) for block in layer.blocks}
    widest = max((_projected(block, architecture.hidden) for block in blocks), default=0)
    return activation_bytes * (2 * architecture.hidden + widest)


def _projected(block: Block, hidden: int) -> int:
    """Elements per token that a block's matrices on the hidden vector put out."""
    if isinstance(block, Attention):
        return block.heads * block.key_dim + block.kv_heads * (block.key_dim + block.value_dim)
    active = block.active if isinstance(block, Moe) else 1
    return sum(
        weight.shape[0] * (active if weight.use is Use.ROUTED else 1)
        for weight in block.weights
        if len(weight.shape) == 2 and weight.shape[1] == hidden and weight.use in (Use.MULTIPLIED, Use.ROUTED)
    )


def _largest(holds: Callable[[int], bool], guess: int) -> int:
    """The largest n ≥ 0 for which ``holds``, which turns false once and for good; ``guess`` is where to look first."""
    low = max(0, min(guess, MAXIMUM_CONTEXT))
    reach = 1
    while low and not holds(low):
        low, reach = max(0, low - reach), reach * 2
    high, reach = low + 1, 1
    while high < MAXIMUM_CONTEXT and holds(high):
        low, high, reach = high, high + reach * 2, reach * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
