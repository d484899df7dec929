"""Kolibri 1: four norms a layer, every layer sparse with a shared expert, every fifth layer full.

Reference: ``Kolibri1ForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Layer, Part
from planner.blocks import buffer, mixture_of_experts
from planner.config import Count, CountOrZero, either
from planner.families._decoder import Decoder, active_experts, attention_of, decoder, norms, stack, windows

MODEL_TYPES = ("kolibri1",)

NORMS = ("input_layernorm", "post_attn_norm", "post_attention_layernorm", "post_ffn_norm")


class Config(Decoder):
    """Keys that decide the counts; there is no dense MLP, whatever its width."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"intermediate_size"})

    num_key_value_heads: Count
    head_dim: Count | None = 128
    moe_intermediate_size: Count
    shared_expert_intermediate_size: CountOrZero = 512
    num_experts: Count = Field(validation_alias=either("num_experts", "num_local_experts"))
    num_experts_per_tok: Count
    layer_types: list[str] | None = None
    sliding_window: Count | None = 513


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    numbers = range(config.num_hidden_layers)
    usual = ["sliding_attention" if (number + 1) % 5 else "full_attention" for number in numbers]
    sizes = windows(config, config.layer_types or usual, config.sliding_window)
    return decoder(config, family="kolibri1", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    moe = mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        shared_width=config.shared_expert_intermediate_size,
        extra=buffer("moe.router.expert_bias", config.num_experts, Part.ROUTER),
    )
    return Layer((attention_of(config, head_norms=True, window=window), moe), norms(NORMS, config.hidden_size))
