"""Trinity (AFMoE): windows and full layers, a gate on the attention's output, four norms, experts after dense layers.

Reference: ``AfmoeForCausalLM`` of transformers, where the routing correction is a parameter.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Layer, Mlp, Moe, Part
from planner.blocks import gated_mlp, linear, mixture_of_experts, vector
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import Decoder, active_experts, attention_of, decoder, norms, stack, windows

MODEL_TYPES = ("afmoe",)

NORMS = ("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm")


class Config(Decoder):
    """Keys that decide the counts. Without ``layer_types`` every n-th layer is full."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_expert_groups", "num_limited_groups"})

    head_dim: Count | None = 128
    intermediate_size: Count
    moe_intermediate_size: Count
    num_dense_layers: CountOrZero = 1
    num_experts: Count
    num_shared_experts: CountOrZero = 2
    num_experts_per_tok: Count
    global_attn_every_n_layers: Count = 4
    sliding_window: Count | None = 1024
    layer_types: list[str] | None = None
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """Layers by kind of block and window."""
    numbers, every = range(config.num_hidden_layers), config.global_attn_every_n_layers
    usual = ["sliding_attention" if (number + 1) % every else "full_attention" for number in numbers]
    sizes = windows(config, config.layer_types or usual, config.sliding_window)
    kinds = ((number >= config.num_dense_layers, window) for number, window in enumerate(sizes))
    return decoder(config, family="afmoe", layers=stack(kinds, lambda kind: _layer(config, *kind)))


def _layer(config: Config, has_experts: bool, window: int | None) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    width = config.num_attention_heads * config.head_size
    gate = linear("self_attn.gate_proj", inputs=hidden, outputs=width, part=Part.ATTENTION)
    attention = attention_of(config, bias=bias, output_bias=bias, head_norms=True, window=window, extra=gate)
    block: Mlp | Moe = _experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    return Layer((attention, block), norms(NORMS, hidden))


def _experts(config: Config) -> Moe:
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        shared_width=config.num_shared_experts * config.moe_intermediate_size,
        router_name="router.gate",
        extra=vector("mlp.expert_bias", config.num_experts, Part.ROUTER, is_bias=True),
    )
