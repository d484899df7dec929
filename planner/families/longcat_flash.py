"""LongCat-Flash: layers of two latent attentions, two dense blocks and one mixture, some of whose experts do nothing.

Reference: ``LongcatFlashForCausalLM`` of transformers, which allocates the zero experts too; the published files hold
the real ones only (560,664,958,976 parameters). The MTP module as in the published LongCat-Flash-Chat.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, LatentAttention, Layer, Moe, Part, Use
from planner.blocks import buffer, embedding, gated_mlp, latent_attention, linear, lm_head, norm
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either
from planner.families._deepseek import module

MODEL_TYPES = ("longcat_flash",)


class Config(FamilyConfig):
    """Keys that decide the counts; ``num_hidden_layers``, where given, counts attentions."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_key_value_heads", "head_dim", "qk_head_dim"})

    hidden_size: Count
    num_layers: Layers
    num_hidden_layers: Layers | None = None
    num_attention_heads: Count
    q_lora_rank: Count
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    attention_bias: Switch = False
    dense_width: Count = Field(validation_alias=either("ffn_hidden_size", "intermediate_size"))
    expert_width: Count = Field(validation_alias=either("expert_ffn_hidden_size", "moe_intermediate_size"))
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_local_experts"))
    zero_expert_num: CountOrZero
    zero_expert_type: str = "identity"
    moe_topk: Count = Field(validation_alias=either("moe_topk", "num_experts_per_tok"))
    router_bias: Switch = False
    predictors: CountOrZero = Field(default=0, validation_alias=either("num_nextn_predict_layers", "mtp_num_layers"))
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    _check(config)
    hidden = config.hidden_size
    return Architecture(
        family="longcat_flash",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(_layer(config),) * config.num_layers,
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        components=tuple(_module(config, index) for index in range(config.predictors)),
        notes=_notes(config),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _check(config: Config) -> None:
    if config.moe_topk > config.n_routed_experts + config.zero_expert_num:
        raise config.refusal("moe_topk", f"exceeds the {config.n_routed_experts + config.zero_expert_num} experts")
    if config.zero_expert_type != "identity":
        raise config.refusal("zero_expert_type", f"is {config.zero_expert_type!r}; only identity is known")
    if config.num_hidden_layers not in (None, config.num_layers, 2 * config.num_layers):
        raise config.refusal("num_hidden_layers", f"is {config.num_hidden_layers} beside {config.num_layers} layers")


def _notes(config: Config) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if config.zero_expert_num:
        found += (
            f"{config.zero_expert_num} of the router's choices are zero experts; a token is taken to use "
            f"{_active(config)} real ones, the mean of an even routing",
        )
    if config.predictors:
        found += ("published files repeat the embedding beside the MTP module; the copy is not counted",)
    return found


def _active(config: Config) -> int:
    """Real experts per token where all experts, zero ones too, are chosen equally often."""
    return max(1, config.moe_topk * config.n_routed_experts // (config.n_routed_experts + config.zero_expert_num))


def _layer(config: Config) -> Layer:
    """The mixture reads what the first dense block reads, and its output joins after the second."""
    hidden = config.hidden_size
    weights = norm("input_layernorm.0", hidden) + norm("post_attention_layernorm.0", hidden)
    weights += norm("input_layernorm.1", hidden) + norm("post_attention_layernorm.1", hidden)
    first, second = (gated_mlp(hidden=hidden, width=config.dense_width, prefix=f"mlps.{index}") for index in (0, 1))
    return Layer(
        (_attention(config, "self_attn.0"), _experts(config), first, _attention(config, "self_attn.1"), second), weights
    )


def _attention(config: Config, prefix: str) -> LatentAttention:
    return latent_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        bias=config.attention_bias,
        prefix=prefix,
    )


def _experts(config: Config) -> Moe:
    """The router chooses among real and zero experts."""
    hidden, width, experts = config.hidden_size, config.expert_width, config.n_routed_experts
    choices = experts + config.zero_expert_num
    path = "mlp.router"
    weights = linear(
        f"{path}.classifier", inputs=hidden, outputs=choices, part=Part.ROUTER, bias=config.router_bias
    ) + buffer(f"{path}.e_score_correction_bias", choices, Part.ROUTER)
    for name, inputs, outputs in (
        ("gate_proj", hidden, width),
        ("up_proj", hidden, width),
        ("down_proj", width, hidden),
    ):
        weights += linear(
            f"mlp.experts.*.{name}", inputs=inputs, outputs=outputs, part=Part.EXPERTS, use=Use.ROUTED, copies=experts
        )
    return Moe(experts, _active(config), weights)


def _module(config: Config, index: int) -> Component:
    """A layer with one attention and one dense block behind a matrix, three norms around."""
    hidden = config.hidden_size
    layer = Layer(
        (_attention(config, "self_attn"), gated_mlp(hidden=hidden, width=config.dense_width)),
        norm("input_layernorm", hidden) + norm("post_attention_layernorm", hidden),
    )
    around = linear("eh_proj", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    around += norm("enorm", hidden) + norm("hnorm", hidden) + norm("norm", hidden)
    return module(layer, around, path=f"model.mtp.layers.{index}")
