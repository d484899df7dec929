"""MiniCPM (2B, 8x2B, MiniCPM4): a tied Llama with scaled residuals, dense or with Mixtral's experts.

Reference: ``modeling_minicpm.py`` of the published checkpoints (MiniCPM-2B, MiniCPM-MoE-8x2B). The sparse attention
of MiniCPM4 (``sparse_config``) has no weights of its own; its shortened reads of long contexts are left out.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Mlp, Moe
from planner.blocks import gated_mlp, mixture_of_experts, pre_norm_layer
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import Decoder, active_experts, attention_of, decoder, renamed

MODEL_TYPES = ("minicpm",)


class Config(Decoder):
    """Keys that decide the counts."""

    # Scales of muP: they multiply activations.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"dim_model_base", "mup_denominator"})

    intermediate_size: Count
    tie_word_embeddings: Switch = True
    attention_bias: Switch = False
    num_experts: CountOrZero = 0
    num_experts_per_tok: Count | None = None
    sparse_config: dict[str, Any] | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    attention = attention_of(config, bias=config.attention_bias, output_bias=config.attention_bias)
    dense = gated_mlp(hidden=hidden, width=config.intermediate_size)
    block: Mlp | Moe = _experts(config) if config.num_experts else dense
    note = "sparse attention over long contexts (sparse_config) is counted as full attention"
    return decoder(
        config,
        family="minicpm",
        layers=(pre_norm_layer(attention, block, hidden=hidden),) * config.num_hidden_layers,
        notes=(note,) if config.sparse_config else (),
    )


def _experts(config: Config) -> Moe:
    active = config.num_experts_per_tok
    if active is None:
        raise config.refusal("num_experts_per_tok", "is missing, and the model has experts")
    moe = mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", active, config.num_experts),
    )
    return renamed(moe, {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"})
