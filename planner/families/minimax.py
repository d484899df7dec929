"""MiniMax-Text-01 and M1: lightning attention in most layers, softmax attention in the others, experts in all.

Reference: ``MiniMaxForCausalLM`` of transformers, names as in the published files. That class keeps tables of decays as
buffers (``slope_rate``, ``query_decay``, …); they follow from the layer's number, published files hold none of them
(456,089,655,296 elements are the parameters alone), and they are not counted here.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Moe, StateSpace
from planner.blocks import grouped_query_attention, mixture_of_experts
from planner.config import Count, CountOrZero, Switch, either
from planner.delta_blocks import lightning_attention
from planner.families._decoder import FULL, Decoder, active_experts, decoder, norms, per_layer, renamed, stack
from planner.families._qwen_hybrid import LAYER_NORMS, RECURRENT

MODEL_TYPES = ("minimax", "minimax_text_01", "minimax_m1")


class Config(Decoder):
    """Keys that decide the counts. ``attn_type_list`` of the first files: 0 is lightning attention, 1 softmax."""

    # Factors of the residual sums, under the names of transformers and of the first files.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"shared_moe_mode"}
        | {f"{kind}_{factor}_factor" for kind in ("full_attn", "linear_attn", "mlp") for factor in ("alpha", "beta")}
        | {
            f"layernorm_{kind}_{factor}"
            for kind in ("full_attention", "linear_attention", "mlp")
            for factor in ("alpha", "beta")
        }
    )

    num_key_value_heads: Count
    intermediate_size: Count
    num_local_experts: Count = Field(validation_alias=either("num_local_experts", "num_experts"))
    num_experts_per_tok: Count
    shared_intermediate_size: CountOrZero = 0
    attention_bias: Switch = False
    layer_types: list[str] | None = None
    attn_type_list: list[int] | None = None
    sliding_window: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    for key in ("shared_intermediate_size", "attention_bias"):
        if getattr(config, key):
            raise config.refusal(key, f"is {getattr(config, key)}, and the reference of this family has no such part")
    mixers: dict[str, Attention | StateSpace] = {
        FULL: _attention(config),
        RECURRENT: lightning_attention(
            hidden=config.hidden_size, heads=config.num_attention_heads, head_dim=config.head_size
        ),
    }
    experts, behind = _experts(config), norms(LAYER_NORMS, config.hidden_size)
    layers = stack(_kinds(config), lambda kind: Layer((mixers[kind], experts), behind))
    return decoder(config, family="minimax", layers=layers)


def _kinds(config: Config) -> tuple[str, ...]:
    if config.layer_types is not None:
        for kind in per_layer(config, "layer_types", config.layer_types):
            if kind not in (FULL, RECURRENT):
                raise config.refusal("layer_types", f"holds {kind!r}; an entry is {FULL!r} or {RECURRENT!r}")
        return tuple(config.layer_types)
    if config.attn_type_list is None:
        raise config.refusal("layer_types", "is missing or null, and so is attn_type_list")
    for number in per_layer(config, "attn_type_list", config.attn_type_list):
        if number not in (0, 1):
            raise config.refusal("attn_type_list", f"holds {number}; an entry is 0 (lightning) or 1 (softmax)")
    return tuple(FULL if number else RECURRENT for number in config.attn_type_list)


def _attention(config: Config) -> Attention:
    """Softmax attention; a window that reaches the longest context caps nothing."""
    window, longest = config.sliding_window, config.max_position_embeddings
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=config.head_size,
        window=None if window is not None and longest is not None and window >= longest else window,
    )


def _experts(config: Config) -> Moe:
    experts = config.num_local_experts
    moe = mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        prefix="block_sparse_moe",
    )
    return renamed(moe, {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"})
