"""MiniMax-M2: every layer sparse with full attention, norms over all heads' queries and keys at once.

Reference: ``MiniMaxM2ForCausalLM`` of transformers. Files announce MTP modules (``num_mtp_modules``) that no
published checkpoint holds.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Moe, Part
from planner.blocks import buffer, grouped_query_attention, mixture_of_experts, pre_norm_layer
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import Decoder, active_experts, decoder, per_layer, renamed

MODEL_TYPES = ("minimax_m2",)

DRAFT_NOTE = "the config announces MTP modules (num_mtp_modules); published checkpoints of this family hold none"


class Config(Decoder):
    """Keys that decide the counts. ``attn_type_list``: 1 is full attention."""

    # Beside the drafts': widths and factors of MiniMax-01's dense and lightning layers, of which there are none here.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {
            "mtp_transformer_layers",
            "use_mtp",
            "mlp_intermediate_size",
            "shared_moe_mode",
            "layernorm_full_attention_beta",
            "layernorm_linear_attention_beta",
            "layernorm_mlp_beta",
        }
    )

    head_dim: Count | None = 128
    intermediate_size: Count
    num_local_experts: Count = Field(validation_alias=either("num_local_experts", "num_experts"))
    num_experts_per_tok: Count
    shared_intermediate_size: CountOrZero = 0
    use_qk_norm: Switch = True
    qk_norm_type: str = "per_layer"
    use_routing_bias: Switch = True
    attn_type_list: list[int] | None = None
    num_mtp_modules: CountOrZero = 0


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    _refuse_relatives(config)
    hidden, heads, width = config.hidden_size, config.num_attention_heads, config.head_size
    attention = grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=config.key_value_heads,
        head_dim=width,
        query_key_norm=(heads * width, config.key_value_heads * width) if config.use_qk_norm else None,
    )
    layer = pre_norm_layer(attention, _experts(config), hidden=hidden)
    return decoder(
        config,
        family="minimax_m2",
        layers=(layer,) * config.num_hidden_layers,
        notes=(DRAFT_NOTE,) if config.num_mtp_modules else (),
    )


def _refuse_relatives(config: Config) -> None:
    """MiniMax-Text-01 mixes lightning attention in, and shared experts would be stored under unknown names."""
    if config.attn_type_list is not None and set(per_layer(config, "attn_type_list", config.attn_type_list)) != {1}:
        raise config.refusal("attn_type_list", "holds entries other than 1; this family has full attention only")
    if config.shared_intermediate_size:
        raise config.refusal("shared_intermediate_size", "is set, and this family has no shared expert")
    if config.qk_norm_type != "per_layer":
        raise config.refusal("qk_norm_type", f"is {config.qk_norm_type!r}; this family has 'per_layer' only")


def _experts(config: Config) -> Moe:
    experts = config.num_local_experts
    correction = buffer("block_sparse_moe.e_score_correction_bias", experts, Part.ROUTER)
    moe = mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        prefix="block_sparse_moe",
        extra=correction if config.use_routing_bias else (),
    )
    return renamed(moe, {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"})
