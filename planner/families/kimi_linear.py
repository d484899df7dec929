"""Kimi Linear: Kimi Delta Attention in most layers, latent attention in the others, experts.

Reference: ``KimiLinearForCausalLM`` of transformers, names as in the published files. Published configs list the
layers in ``linear_attn_config``, counted from 1; transformers writes ``layer_types``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, LatentAttention, Layer, Moe, Part, StateSpace, Use, Weight
from planner.blocks import (
    buffer,
    embedding,
    gated_mlp,
    latent_attention,
    linear,
    lm_head,
    norm,
    vector,
)
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either
from planner.families._deepseek import listed

MODEL_TYPES = ("kimi_linear",)


class DeltaConfig(FamilyConfig):
    """``linear_attn_config``; layers are counted from 1."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"gate_lower_bound"})

    full_attn_layers: list[Count] | None = None
    kda_layers: list[Count] | None = None
    head_dim: Count | None = None
    num_heads: Count | None = None
    short_conv_kernel_size: Count | None = None
    use_full_rank_gate: Switch = False


class Config(FamilyConfig):
    """Keys that decide the counts. Beside the latent's widths, ``head_dim`` and ``num_key_value_heads`` say nothing."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"num_key_value_heads", "head_dim", "qk_head_dim", "moe_renormalize", "moe_router_activation_func"}
    )

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    attention_bias: Switch = False
    mla_use_output_gate: Switch = False
    attn_res_block_size: Count | None = None
    linear_attn_config: dict[str, Any] | None = None
    layer_types: list[str] | None = None
    linear_head_dim: Count | None = None
    linear_num_heads: Count | None = None
    linear_conv_kernel_dim: Count | None = None
    intermediate_size: Count
    moe_intermediate_size: Count
    experts: Count = Field(validation_alias=either("num_experts", "num_local_experts", "n_routed_experts"))
    active: Count = Field(validation_alias=either("num_experts_per_token", "num_experts_per_tok"))
    shared: CountOrZero = Field(validation_alias=either("num_shared_experts", "n_shared_experts"))
    first_k_dense_replace: CountOrZero | None = None
    moe_layer_freq: Count | None = None
    mlp_layer_types: list[str] | None = None
    num_nextn_predict_layers: CountOrZero = 0
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_context: Count | None = Field(
        default=None, validation_alias=either("model_max_length", "max_position_embeddings")
    )


def read(config: Config) -> Architecture:
    """Layers by their mixer and their feed-forward block."""
    _refuse_later_parts(config)
    hidden = config.hidden_size
    latent, delta = _latent_attention(config), _delta_attention(config)
    dense, experts = gated_mlp(hidden=hidden, width=config.intermediate_size), _experts(config)
    norms = norm("input_layernorm", hidden) + norm("post_attention_layernorm", hidden)
    return Architecture(
        family="kimi_linear",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(
            Layer((latent if kind == "full_attention" else delta, experts if has_experts else dense), norms)
            for kind, has_experts in zip(_kinds(config), _layers_with_experts(config), strict=True)
        ),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=False),
        outer=norm("model.norm", hidden),
        max_context=config.max_context,
        dtype=config.dtype,
    )


def _delta(config: Config) -> DeltaConfig:
    return DeltaConfig.parse(
        config.linear_attn_config or {}, source=config.source, prefix=f"{config.prefix}linear_attn_config."
    )


def _refuse_later_parts(config: Config) -> None:
    """What later models of this type have and the reference has not."""
    for key in ("mla_use_output_gate", "attn_res_block_size", "num_nextn_predict_layers"):
        if getattr(config, key):
            raise config.refusal(key, f"is {getattr(config, key)}; the reference has no such part")
    if _delta(config).use_full_rank_gate:
        raise config.refusal("linear_attn_config.use_full_rank_gate", "is true; the reference has a low-rank gate only")
    if config.tie_word_embeddings:
        raise config.refusal("tie_word_embeddings", "is true, and the reference cannot tie this model's head")
    if config.active > config.experts:
        raise config.refusal("num_experts_per_token", f"exceeds the {config.experts} experts")


def _kinds(config: Config) -> tuple[str, ...]:
    count, delta = config.num_hidden_layers, _delta(config)
    if config.layer_types is not None:
        known = ("full_attention", "linear_attention")
        return listed(config, "layer_types", config.layer_types, known=known, count=count)
    full, linear_layers = delta.full_attn_layers, delta.kda_layers
    if full is None or linear_layers is None:
        raise config.refusal("layer_types", "is missing, and so are the lists of layers in linear_attn_config")
    if sorted(full + linear_layers) != list(range(1, count + 1)):
        raise config.refusal("linear_attn_config", f"must list each of the layers 1 to {count} exactly once")
    return tuple("full_attention" if layer in full else "linear_attention" for layer in range(1, count + 1))


def _layers_with_experts(config: Config) -> tuple[bool, ...]:
    count, first = config.num_hidden_layers, config.first_k_dense_replace
    if config.mlp_layer_types is not None:
        names = listed(config, "mlp_layer_types", config.mlp_layer_types, known=("dense", "sparse"), count=count)
        return tuple(name == "sparse" for name in names)
    if first is None:
        raise config.refusal("first_k_dense_replace", "is missing, and so is mlp_layer_types")
    return tuple(layer >= first and layer % (config.moe_layer_freq or 1) == 0 for layer in range(count))


def _latent_attention(config: Config) -> LatentAttention:
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


def _width(config: Config, inner: str, outer: str) -> int:
    """A width of the delta attention, from the nested config or from the flat key."""
    found = getattr(_delta(config), inner) or getattr(config, outer)
    if found is None:
        raise config.refusal(f"linear_attn_config.{inner}", f"is missing, and so is {outer}")
    return int(found)


def _delta_attention(config: Config) -> StateSpace:
    """Kimi Delta Attention (arXiv:2510.26692): a delta rule with a decay per channel.

    Its scan costs, per head and token, 7 × head_dim² FLOP: decay 1, keys · state 2, outer product 2, query · state 2.
    """
    head_dim = _width(config, "head_dim", "linear_head_dim")
    heads = _width(config, "num_heads", "linear_num_heads")
    kernel = _width(config, "short_conv_kernel_size", "linear_conv_kernel_dim")
    hidden, width = config.hidden_size, heads * head_dim

    def weight(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
        return linear(f"self_attn.{name}", inputs=inputs, outputs=outputs, part=Part.STATE_SPACE)

    weights: tuple[Weight, ...] = ()
    for name in ("q", "k", "v"):
        weights += weight(f"{name}_proj", hidden, width)
        weights += vector(f"self_attn.{name}_conv1d", (width, kernel), Part.STATE_SPACE)
    weights += weight("f_a_proj", hidden, head_dim) + weight("f_b_proj", head_dim, width)
    weights += vector("self_attn.A_log", heads, Part.STATE_SPACE)
    weights += vector("self_attn.dt_bias", width, Part.STATE_SPACE, is_bias=True)
    weights += weight("b_proj", hidden, heads)
    weights += weight("g_a_proj", hidden, head_dim) + weight("g_b_proj", head_dim, width)
    weights += norm("self_attn.o_norm", head_dim) + weight("o_proj", width, hidden)
    return StateSpace(
        kind="kimi delta attention",
        weights=weights,
        state=heads * head_dim * head_dim,
        convolution=3 * width * kernel,
        scan_flops=7 * heads * head_dim * head_dim,
    )


def _experts(config: Config) -> Moe:
    hidden, width, path = config.hidden_size, config.moe_intermediate_size, "block_sparse_moe"
    weights = linear(f"{path}.gate", inputs=hidden, outputs=config.experts, part=Part.ROUTER)
    weights += buffer(f"{path}.gate.e_score_correction_bias", config.experts, Part.ROUTER)
    for name, inputs, outputs in (("w1", hidden, width), ("w3", hidden, width), ("w2", width, hidden)):
        weights += linear(
            f"{path}.experts.*.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            use=Use.ROUTED,
            copies=config.experts,
        )
    if config.shared:
        shared = width * config.shared
        weights += gated_mlp(
            hidden=hidden, width=shared, prefix=f"{path}.shared_experts", part=Part.SHARED_EXPERTS
        ).weights
    return Moe(config.experts, config.active, weights)
