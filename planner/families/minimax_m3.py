"""The text model of MiniMax-M3: grouped-query attention, in most layers over blocks of keys that an indexer picks.

Reference: ``MiniMaxM3VLTextConfig`` and ``MiniMaxM3VLForCausalLM`` of transformers, names as in the published files.
The indexer picks whole blocks of keys; their number times their size is what a query attends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Moe, Part, Use, Weight
from planner.blocks import (
    buffer,
    embedding,
    gated_mlp,
    grouped_query_attention,
    linear,
    lm_head,
    norm,
    pre_norm_layer,
)
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either
from planner.families._deepseek import listed

MODEL_TYPES = ("minimax_m3_vl_text", "minimax_m3")

SPARSE = "minimax_m3_sparse"
# What the published file says and the reference takes for granted.
TAKEN = {
    "use_qk_norm": True,
    "qk_norm_type": "per_head",
    "attention_output_gate": False,
    "n_shared_experts": 1,
    "use_routing_bias": True,
}


class SparseConfig(FamilyConfig):
    """``sparse_attention_config``; an indexer without values of its own."""

    sparse_attention_freq: list[CountOrZero] | None = None
    sparse_num_index_heads: Count | None = None
    sparse_index_dim: Count | None = None
    sparse_block_size: Count | None = None
    sparse_topk_blocks: Count | None = None
    sparse_disable_index_value: list[CountOrZero] | None = None
    use_sparse_attention: Switch = True


class Config(FamilyConfig):
    """Keys that decide the counts; ``intermediate_size`` is the width of an expert."""

    # Local blocks are among the chosen ones.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"index_local_blocks"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count
    head_dim: Count
    use_qk_norm: Switch = True
    qk_norm_type: str = "per_head"
    attention_output_gate: Switch = False
    sparse_attention_config: dict[str, Any] | None = None
    layer_types: list[str] | None = None
    index_n_heads: Count | None = None
    index_head_dim: Count | None = None
    index_block_size: Count | None = None
    index_topk_blocks: Count | None = None
    intermediate_size: Count
    dense_intermediate_size: Count | None = None
    shared_intermediate_size: Count
    n_shared_experts: Count = 1
    use_routing_bias: Switch = True
    num_local_experts: Count = Field(validation_alias=either("num_local_experts", "num_experts"))
    num_experts_per_tok: Count
    moe_layer_freq: list[CountOrZero] | None = None
    mlp_layer_types: list[str] | None = None
    num_mtp_modules: CountOrZero = 0
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their attention and their feed-forward block."""
    for key, value in TAKEN.items():
        if getattr(config, key) != value:
            raise config.refusal(key, f"is {getattr(config, key)!r}; only {value!r} is known, as in the published file")
    hidden, kinds, with_experts = config.hidden_size, _kinds(config), _layers_with_experts(config)
    attention = {kind: _attention(config, sparse=kind == SPARSE) for kind in set(kinds)}
    dense = None if all(with_experts) else gated_mlp(hidden=hidden, width=_dense_width(config))
    experts = _experts(config)
    return Architecture(
        family="minimax_m3",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(
            pre_norm_layer(attention[kind], experts if dense is None or has_experts else dense, hidden=hidden)
            for kind, has_experts in zip(kinds, with_experts, strict=True)
        ),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        unread=_left_out(config),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _sparse(config: Config) -> SparseConfig:
    prefix = f"{config.prefix}sparse_attention_config."
    found = SparseConfig.parse(config.sparse_attention_config or {}, source=config.source, prefix=prefix)
    if not found.use_sparse_attention:
        raise found.refusal("use_sparse_attention", "is false, and the reference does not read it")
    return found


def _kinds(config: Config) -> tuple[str, ...]:
    count, sparse = config.num_hidden_layers, _sparse(config)
    frequency = sparse.sparse_attention_freq
    kinds = config.layer_types
    if kinds is None and frequency is not None:
        kinds = [SPARSE if entry else "full_attention" for entry in frequency]
        values = sparse.sparse_disable_index_value or frequency
        if any(entry and not disabled for entry, disabled in zip(frequency, values, strict=False)):
            raise sparse.refusal("sparse_disable_index_value", "leaves values to an indexer; the reference has none")
    kinds = ["full_attention"] * count if kinds is None else kinds
    return listed(config, "layer_types", kinds, known=("full_attention", SPARSE), count=count)


def _layers_with_experts(config: Config) -> tuple[bool, ...]:
    count, kinds = config.num_hidden_layers, config.mlp_layer_types
    if kinds is None and config.moe_layer_freq is not None:
        kinds = ["sparse" if entry else "dense" for entry in config.moe_layer_freq]
    kinds = ["sparse"] * count if kinds is None else kinds
    return tuple(
        kind == "sparse" for kind in listed(config, "mlp_layer_types", kinds, known=("dense", "sparse"), count=count)
    )


def _dense_width(config: Config) -> int:
    if config.dense_intermediate_size is None:
        raise config.refusal("dense_intermediate_size", "is missing, and there are layers without experts")
    return config.dense_intermediate_size


def _index(config: Config, nested: str, flat: str) -> int:
    """A number of the indexer: from the nested config first, as the reference does."""
    found = getattr(_sparse(config), nested) or getattr(config, flat)
    if found is None:
        raise config.refusal(f"sparse_attention_config.{nested}", f"is missing, and so is {flat}")
    return int(found)


def _attention(config: Config, *, sparse: bool) -> Attention:
    heads, kv_heads, head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    if heads % kv_heads:
        raise config.refusal("num_key_value_heads", f"is {kv_heads} and does not divide the {heads} heads")
    full = grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        query_key_norm=(head_dim, head_dim),
        extra=_indexer(config) if sparse else (),
    )
    if not sparse:
        return full
    blocks = _index(config, "sparse_topk_blocks", "index_topk_blocks")
    return replace(
        full,
        selected=blocks * _index(config, "sparse_block_size", "index_block_size"),
        indexer_dim=_index(config, "sparse_index_dim", "index_head_dim"),
        indexer_heads=_index(config, "sparse_num_index_heads", "index_n_heads"),
    )


def _indexer(config: Config) -> tuple[Weight, ...]:
    heads = _index(config, "sparse_num_index_heads", "index_n_heads")
    head_dim = _index(config, "sparse_index_dim", "index_head_dim")

    def weight(name: str, outputs: int) -> tuple[Weight, ...]:
        return linear(f"self_attn.{name}", inputs=config.hidden_size, outputs=outputs, part=Part.ATTENTION)

    norms = norm("self_attn.index_q_norm", head_dim) + norm("self_attn.index_k_norm", head_dim)
    return weight("index_q_proj", heads * head_dim) + weight("index_k_proj", head_dim) + norms


def _experts(config: Config) -> Moe:
    hidden, width, experts = config.hidden_size, config.intermediate_size, config.num_local_experts
    if config.num_experts_per_tok > experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {experts} experts")
    path = "block_sparse_moe"
    weights = linear(f"{path}.gate", inputs=hidden, outputs=experts, part=Part.ROUTER)
    weights += buffer(f"{path}.e_score_correction_bias", experts, Part.ROUTER)
    for name, inputs, outputs in (("w1", hidden, width), ("w3", hidden, width), ("w2", width, hidden)):
        weights += linear(
            f"{path}.experts.*.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            use=Use.ROUTED,
            copies=experts,
        )
    shared = gated_mlp(
        hidden=hidden,
        width=config.shared_intermediate_size,
        prefix=f"{path}.shared_experts",
        part=Part.SHARED_EXPERTS,
    )
    return Moe(experts, config.num_experts_per_tok, weights + shared.weights)


def _left_out(config: Config) -> tuple[str, ...]:
    if not config.num_mtp_modules:
        return ()
    return (f"MTP modules (num_mtp_modules = {config.num_mtp_modules}), whose layout is not published",)
