"""DeepSeek-MoE (arXiv:2401.06066): Llama's attention, fine-grained and shared experts behind a first dense layer.

Reference: the published ``modeling_deepseek.py``; transformers has no class of its own for it.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import pre_norm_layer
from planner.config import Count
from planner.families._deepseek import MixtureConfig, dense_of, experts_of, grouped_of, layers_with_experts, stack

MODEL_TYPES = ("deepseek",)


class Config(MixtureConfig):
    """Keys that decide the counts of a DeepSeek-MoE; its router has no correction bias."""

    num_key_value_heads: Count | None = None
    topk_method: str | None = "greedy"


def read(config: Config) -> Architecture:
    """Layers with a dense block, then with experts."""
    hidden, attention = config.hidden_size, grouped_of(config, config.num_key_value_heads)
    dense = pre_norm_layer(attention, dense_of(config), hidden=hidden)
    sparse = pre_norm_layer(attention, experts_of(config), hidden=hidden)
    layers = tuple(sparse if has_experts else dense for has_experts in layers_with_experts(config))
    return stack(config, layers, family="deepseek")
