"""Flint: attention sinks, windows and full layers, dense layers by number, otherwise experts beside a shared one.

Reference: ``FlintForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Mlp, Moe, Part
from planner.blocks import gated_mlp, mixture_of_experts, pre_norm_layer, vector
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import Decoder, active_experts, attention_of, decoder, stack, windows

MODEL_TYPES = ("flint",)


class Config(Decoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    moe_intermediate_size: Count
    shared_expert_intermediate_size: CountOrZero = 1024
    num_experts: CountOrZero
    num_experts_per_tok: Count
    decoder_sparse_step: Count = 1
    mlp_only_layers: list[CountOrZero] | None = None
    layer_types: list[str] | None = None
    sliding_window: Count | None = 513
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """Layers by kind of block and window."""
    sizes = windows(config, config.layer_types or _usual_kinds(config), config.sliding_window)
    kinds = ((_is_sparse(config, number), window) for number, window in enumerate(sizes))
    return decoder(config, family="flint", layers=stack(kinds, lambda kind: _layer(config, *kind)))


def _usual_kinds(config: Config) -> list[str]:
    """Full are the first two layers, every fourth and the last."""
    last = config.num_hidden_layers - 1
    full = [number < 2 or number % 4 == 1 or number == last for number in range(config.num_hidden_layers)]
    return ["full_attention" if is_full else "sliding_attention" for is_full in full]


def _is_sparse(config: Config, number: int) -> bool:
    dense = (0, 1) if config.mlp_only_layers is None else config.mlp_only_layers
    return number not in dense and config.num_experts > 0 and (number + 1) % config.decoder_sparse_step == 0


def _layer(config: Config, has_experts: bool, window: int | None) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    sinks = vector("self_attn.softmax_offset", config.num_attention_heads, Part.ATTENTION)
    attention = attention_of(config, bias=bias, output_bias=bias, head_norms=True, window=window, extra=sinks)
    block: Mlp | Moe = _experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    return pre_norm_layer(attention, block, hidden=hidden)


def _experts(config: Config) -> Moe:
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        shared_width=config.shared_expert_intermediate_size,
        shared_name="shared_expert",
    )
