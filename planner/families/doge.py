"""Doge: dynamic masks (a small matrix on the values), learned residual weights, and a million-expert MLP as an option.

Reference: ``DogeForCausalLM`` of transformers. An expert is one row of two tables (cross-domain mixture of experts).
"""

from __future__ import annotations

from math import isqrt

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, Part, Use, Weight
from planner.blocks import gated_mlp, linear, norm, vector
from planner.config import Count, Switch
from planner.families._decoder import Decoder, active_experts, attention_of, decoder

MODEL_TYPES = ("doge",)


class Config(Decoder):
    """Keys that decide the counts; those of the experts count with ``is_moe`` only."""

    intermediate_size: Count
    attention_bias: Switch = False
    mlp_bias: Switch = False
    keep_window_size: Count = 2048
    sliding_window: Count | None = None
    is_moe: Switch = False
    num_experts: Count = 16384
    num_experts_per_tok: Count = 64

    def defaulted(self) -> tuple[str, ...]:
        """Without what a dense model does not use."""
        return tuple(text for text in super().defaulted() if self.is_moe and "window" not in text)


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    blocks = (_attention(config), _experts(config) if config.is_moe else _mlp(config))
    weights = norm("input_layernorm", hidden) + norm("post_attention_layernorm", hidden)
    for name in ("input_residual", "post_attention_residual"):
        weights += vector(name, hidden, Part.OTHER)
    note = f"a query attends the {config.keep_window_size:,} keys that its mask keeps; counted as full attention"
    return decoder(config, family="doge", layers=(Layer(blocks, weights),) * config.num_hidden_layers, notes=(note,))


def _attention(config: Config) -> Attention:
    heads, bias = config.key_value_heads, config.attention_bias
    mask = vector("self_attn.A", heads, Part.ATTENTION)
    mask += linear("self_attn.dt_proj", inputs=heads * config.head_size, outputs=heads, part=Part.ATTENTION, bias=bias)
    return attention_of(config, bias=bias, output_bias=bias, head_norms=True, window=config.sliding_window, extra=mask)


def _mlp(config: Config) -> Mlp:
    return gated_mlp(hidden=config.hidden_size, width=config.intermediate_size, bias=config.mlp_bias)


def _experts(config: Config) -> Moe:
    """Two keys pick an expert, so the router has twice the square root of their number."""
    hidden, experts = config.hidden_size, config.num_experts
    router = linear("mlp.router_gate", inputs=hidden, outputs=2 * isqrt(experts), part=Part.ROUTER)
    tables = tuple(
        Weight(f"mlp.{name}", (hidden,), Part.EXPERTS, Use.ROUTED, experts) for name in ("down_embed", "up_embed")
    )
    active = active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts)
    return Moe(experts, active, _mlp(config).weights + router + tables)
