"""What the DeepSeek line shares: latent attention, layers with and without experts, modules that predict ahead.

References: DeepSeek-V2 (arXiv:2405.04434), DeepSeek-V3 (arXiv:2412.19437) and their classes in transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Component, LatentAttention, Layer, Mlp, Moe, Part, Weight
from planner.blocks import (
    embedding,
    gated_mlp,
    grouped_query_attention,
    latent_attention,
    linear,
    lm_head,
    mixture_of_experts,
    norm,
)
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either


class MixtureConfig(FamilyConfig):
    """Keys that all of the line have, whatever their attention."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    attention_bias: Switch = False
    intermediate_size: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_experts", "num_local_experts"))
    num_experts_per_tok: Count
    n_shared_experts: CountOrZero
    first_k_dense_replace: CountOrZero
    moe_layer_freq: Count | list[CountOrZero] = 1
    topk_method: str | None = "noaux_tc"
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


class LatentConfig(MixtureConfig):
    """Keys of latent attention. Beside the latent's widths, ``num_key_value_heads`` and ``head_dim`` say nothing.

    ``q_lora_rank`` null is a full query projection, absent the class's default.
    """

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_key_value_heads", "head_dim", "qk_head_dim"})

    q_lora_rank: Count | None = 1536
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count


def latent_of(
    config: LatentConfig,
    *,
    selected: int | None = None,
    indexer_dim: int = 0,
    indexer_heads: int = 0,
    extra: tuple[Weight, ...] = (),
) -> LatentAttention:
    """The latent attention of a config, with what an indexer adds."""
    return latent_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        bias=config.attention_bias,
        selected=selected,
        indexer_dim=indexer_dim,
        indexer_heads=indexer_heads,
        extra=extra,
    )


def grouped_of(config: MixtureConfig, kv_heads: int | None) -> Attention:
    """The plain attention of DeepSeek-MoE and of the small models after it."""
    heads = config.num_attention_heads
    kv_heads = kv_heads or heads
    if heads % kv_heads:
        raise config.refusal("num_key_value_heads", f"is {kv_heads} and does not divide the {heads} heads")
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=config.head_width(config.hidden_size, heads),
        bias=config.attention_bias,
        output_bias=config.attention_bias,
    )


def indexer(*, hidden: int, query_rank: int, heads: int, head_dim: int) -> tuple[Weight, ...]:
    """The lightning indexer of DeepSeek-V3.2: queries from the query latent, one key, one weight per head."""
    path = "self_attn.indexer"
    return (
        linear(f"{path}.wq_b", inputs=query_rank, outputs=heads * head_dim, part=Part.ATTENTION)
        + linear(f"{path}.wk", inputs=hidden, outputs=head_dim, part=Part.ATTENTION)
        + norm(f"{path}.k_norm", head_dim, bias=True)
        + linear(f"{path}.weights_proj", inputs=hidden, outputs=heads, part=Part.ATTENTION)
    )


def experts_of(config: MixtureConfig) -> Moe:
    """Routed and shared experts; the router's correction bias is a buffer."""
    if config.num_experts_per_tok > config.n_routed_experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {config.n_routed_experts} experts")
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.n_routed_experts,
        active=config.num_experts_per_tok,
        correction_buffer=config.topk_method == "noaux_tc",
        shared_width=config.moe_intermediate_size * config.n_shared_experts,
    )


def dense_of(config: MixtureConfig) -> Mlp:
    """The feed-forward block of the layers without experts."""
    return gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)


def layers_with_experts(config: MixtureConfig, kinds: Sequence[str] | None = None) -> tuple[bool, ...]:
    """Per layer: whether it has experts; by a list, or from a first layer on, every so many layers.

    ``kinds`` is the newer list (``mlp_layer_types``), which overrules the older keys.
    """
    count, frequency = config.num_hidden_layers, config.moe_layer_freq
    if kinds is not None:
        names = listed(config, "mlp_layer_types", kinds, known=("dense", "sparse"), count=count)
        return tuple(name == "sparse" for name in names)
    if isinstance(frequency, list):
        if len(frequency) != count:
            raise config.refusal("moe_layer_freq", f"has {len(frequency)} entries for {count} layers")
        return tuple(bool(entry) for entry in frequency)
    if config.first_k_dense_replace > count:
        raise config.refusal("first_k_dense_replace", f"exceeds the {count} layers")
    return tuple(layer >= config.first_k_dense_replace and layer % frequency == 0 for layer in range(count))


def listed(
    config: FamilyConfig, key: str, kinds: Sequence[str], *, known: Sequence[str], count: int
) -> tuple[str, ...]:
    """A list with one of the ``known`` names per layer, checked."""
    if len(kinds) != count:
        raise config.refusal(key, f"has {len(kinds)} entries for {count} layers")
    for kind in kinds:
        if kind not in known:
            raise config.refusal(key, f"names {kind!r}; known are {', '.join(known)}")
    return tuple(kinds)


def check_layer_types(config: MixtureConfig, kinds: Sequence[str] | None) -> None:
    """Every layer of a model with an indexer is sparse; a list that says otherwise is refused."""
    if kinds is not None:
        known = ("indexed_attention", "deepseek_sparse_attention")
        listed(config, "layer_types", kinds, known=known, count=config.num_hidden_layers)


def prediction_modules(
    layer: Layer, *, count: int, hidden: int, first: int, path: str = "model.layers"
) -> tuple[Component, ...]:
    """Modules that predict further tokens (DeepSeek-V3, section 2.2): a layer behind one matrix and three norms.

    Files number them on from the last layer. Their copies of the embedding and the head are not counted.
    """
    around = linear("eh_proj", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    around += norm("enorm", hidden) + norm("hnorm", hidden) + norm("shared_head.norm", hidden)
    return tuple(module(layer, around, path=f"{path}.{first + index}") for index in range(count))


def module(layer: Layer, around: tuple[Weight, ...], *, path: str) -> Component:
    """One such module under its path in the file; with it goes the correction bias of its router."""
    inner = tuple(weight for block in layer.blocks for weight in block.weights) + layer.weights
    weights = tuple(
        replace(weight, name=f"{path}.{weight.name}", part=Part.MTP, buffer=False) for weight in inner + around
    )
    return Component("MTP module", weights, counted=False)


def stack(
    config: MixtureConfig,
    layers: tuple[Layer, ...],
    *,
    family: str,
    components: tuple[Component, ...] = (),
    notes: tuple[str, ...] = (),
) -> Architecture:
    """The whole model around its layers."""
    return Architecture(
        family=family,
        model_type=config.model_type,
        hidden=config.hidden_size,
        vocabulary=config.vocab_size,
        layers=layers,
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=config.hidden_size),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=config.hidden_size, tied=config.tie_word_embeddings),
        outer=norm("model.norm", config.hidden_size),
        components=components,
        notes=notes,
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )
