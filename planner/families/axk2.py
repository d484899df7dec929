"""A.X-K2: latent attention with a sparse indexer, an output gate fused with the queries, low-rank gates on norms.

Reference: ``AXK2ForCausalLM`` of transformers. The query projection reads the latent twice as wide and gives the gate
of each head's output too.
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture import Architecture, LatentAttention, Layer, Mlp, Moe, Part, Weight
from planner.blocks import gated_mlp, latent_attention, linear, norm
from planner.config import Count
from planner.families._decoder import decoder, per_layer, sparse_layers, stack
from planner.families.glm4_moe_lite import Config as LatentMoe
from planner.families.glm4_moe_lite import latent_experts

MODEL_TYPES = ("axk2",)


class Config(LatentMoe):
    """Keys that decide the counts."""

    q_lora_rank: Count
    index_topk: Count
    index_head_dim: Count
    index_n_heads: Count
    gated_norm_rank: Count = 16
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Dense layers first, sparse ones after."""
    kinds = per_layer(config, "layer_types", config.layer_types or ["indexed_attention"] * config.num_hidden_layers)
    if set(kinds) != {"indexed_attention"}:
        raise config.refusal("layer_types", "holds entries other than 'indexed_attention', the only kind here")
    sparse = sparse_layers(config, config.mlp_layer_types, dense_first=config.first_k_dense_replace)
    drafts = config.num_nextn_predict_layers
    return decoder(
        config,
        family="axk2",
        layers=stack(sparse, lambda has_experts: _layer(config, has_experts)),
        unread=("MTP module (num_nextn_predict_layers)",) if drafts else (),
    )


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden = config.hidden_size
    block: Mlp | Moe = latent_experts(config)
    if not has_experts:
        block = gated_mlp(hidden=hidden, width=config.intermediate_size)
    after = _gated_norm if has_experts else _plain_norm
    weights = _gated_norm(config, "input_layernorm") + after(config, "post_attention_layernorm")
    return Layer((_attention(config), block), weights)


def _plain_norm(config: Config, name: str) -> tuple[Weight, ...]:
    return norm(name, config.hidden_size)


def _gated_norm(config: Config, name: str) -> tuple[Weight, ...]:
    hidden, rank = config.hidden_size, config.gated_norm_rank
    return (
        norm(f"{name}.norm", hidden)
        + linear(f"{name}.W_down", inputs=hidden, outputs=rank, part=Part.OTHER)
        + linear(f"{name}.W_up", inputs=rank, outputs=hidden, part=Part.OTHER)
    )


def _attention(config: Config) -> LatentAttention:
    attention = latent_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        bias=config.attention_bias,
        selected=config.index_topk,
        indexer_dim=config.index_head_dim,
        indexer_heads=config.index_n_heads,
        extra=_indexer(config),
    )
    per_head = config.qk_nope_head_dim + config.qk_rope_head_dim + config.v_head_dim
    fused = (config.num_attention_heads * per_head, 2 * config.q_lora_rank)
    weights = tuple(
        replace(weight, shape=fused) if weight.name == "self_attn.q_b_proj" else weight for weight in attention.weights
    )
    return replace(attention, weights=weights)


def _indexer(config: Config) -> tuple[Weight, ...]:
    heads, width, path = config.index_n_heads, config.index_head_dim, "self_attn.indexer"
    return (
        linear(f"{path}.wq_b", inputs=config.q_lora_rank, outputs=heads * width, part=Part.ATTENTION)
        + linear(f"{path}.wk", inputs=config.hidden_size, outputs=width, part=Part.ATTENTION)
        + norm(f"{path}.k_norm", width, bias=True)
        + linear(f"{path}.weights_proj", inputs=config.hidden_size, outputs=heads, part=Part.ATTENTION)
    )
