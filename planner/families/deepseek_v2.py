"""DeepSeek-V2 and V2-Lite, and the text models of DeepSeek-VL2 and DeepSeek-OCR: latent attention and experts.

Reference: ``DeepseekV2ForCausalLM`` of transformers; ``use_mla: false`` (plain multi-head attention) as in the
published code of DeepSeek-VL2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from planner.architecture import Architecture, LatentAttention, Moe, Part
from planner.blocks import gated_mlp, latent_attention, pre_norm_layer
from planner.config import Count, CountOrZero, Switch
from planner.families._deepseek import MixtureConfig, experts_of, grouped_of, layers_with_experts, stack

MODEL_TYPES = ("deepseek_v2",)


class Config(MixtureConfig):
    """Keys that decide the counts; the widths of the latent are null or 0 where ``use_mla`` is false."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"head_dim", "qk_head_dim"})

    num_key_value_heads: Count | None = None
    use_mla: Switch = True
    q_lora_rank: Count | None = 1536
    kv_lora_rank: CountOrZero = 0
    qk_nope_head_dim: CountOrZero = 0
    qk_rope_head_dim: CountOrZero = 0
    v_head_dim: CountOrZero = 0
    mlp_bias: Switch = False
    topk_method: str | None = "greedy"


def read(config: Config) -> Architecture:
    """Layers with a dense block, then with experts."""
    hidden = config.hidden_size
    attention = _latent(config) if config.use_mla else grouped_of(config, config.num_key_value_heads)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    dense = pre_norm_layer(attention, mlp, hidden=hidden)
    sparse = pre_norm_layer(attention, _experts(config), hidden=hidden)
    layers = tuple(sparse if has_experts else dense for has_experts in layers_with_experts(config))
    return stack(config, layers, family="deepseek_v2")


def _latent(config: Config) -> LatentAttention:
    for key in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
        if not getattr(config, key):
            raise config.refusal(key, "is missing or 0, and latent attention needs it")
    return latent_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        bias=config.attention_bias,
    )


def _experts(config: Config) -> Moe:
    """Shared experts have the dense block's bias, routed ones have none."""
    plain = experts_of(config)
    if not config.mlp_bias or not config.n_shared_experts:
        return plain
    shared = gated_mlp(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size * config.n_shared_experts,
        bias=True,
        prefix="mlp.shared_experts",
        part=Part.SHARED_EXPERTS,
    )
    others = tuple(weight for weight in plain.weights if weight.part is not Part.SHARED_EXPERTS)
    return replace(plain, weights=others + shared.weights)
