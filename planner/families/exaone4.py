"""EXAONE 4: sliding and full layers mixed, norms of queries and keys, norms after the blocks instead of before.

Reference: ``Exaone4ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count, CountOrZero
from planner.families._decoder import Decoder, attention_of, decoder, norms, stack, windows

MODEL_TYPES = ("exaone4",)


class Config(Decoder):
    """Keys that decide the counts. A null window means full attention everywhere."""

    intermediate_size: Count
    sliding_window: Count | None = 4096
    sliding_window_pattern: CountOrZero | str | None = None
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    kinds = layer_kinds(config, config.layer_types, config.sliding_window, config.sliding_window_pattern)
    sizes = windows(config, kinds, config.sliding_window)
    return decoder(config, family="exaone4", layers=stack(sizes, lambda window: _layer(config, window)))


def layer_kinds(config: Decoder, kinds: list[str] | None, window: int | None, pattern: int | str | None) -> list[str]:
    """``layer_types`` of the file, or every ``pattern``-th layer full and the rest sliding.

    Raises:
        PlanError: neither is given; a pattern of letters is a comment beside the list, not a rule.
    """
    if kinds is not None:
        return kinds
    if window is None:
        return ["full_attention"] * config.num_hidden_layers
    if not isinstance(pattern, int) or not pattern:
        raise config.refusal("layer_types", "is missing, and sliding_window_pattern is not a number that replaces it")
    full = [(number + 1) % pattern == 0 for number in range(config.num_hidden_layers)]
    return ["full_attention" if is_full else "sliding_attention" for is_full in full]


def _layer(config: Config, window: int | None) -> Layer:
    hidden = config.hidden_size
    attention = attention_of(config, head_norms=True, window=window)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    return Layer((attention, mlp), norms(("post_attention_layernorm", "post_feedforward_layernorm"), hidden))
