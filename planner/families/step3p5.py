"""The text model of Step 3.5 and 3.7: grouped-query attention with a gate per head, windows, experts.

Reference: ``Step3p7TextConfig`` and ``Step3p7TextModel`` of transformers, names as in the published files, which
stack the experts (``moe.gate_proj``). Windowed layers can have more query heads than full ones.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Component, Layer, Moe, Part, Use
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
from planner.families._deepseek import listed, prediction_modules

MODEL_TYPES = ("step3p5",)

WINDOWED = "sliding_attention"
KINDS = (WINDOWED, "full_attention")


class OtherAttention(FamilyConfig):
    """``attention_other_setting``: the heads of the windowed layers; their other numbers are the full layers'."""

    num_attention_heads: Count
    num_attention_groups: Count | None = None
    head_dim: Count | None = None
    true_head_dim: Count | None = None


class Config(FamilyConfig):
    """Keys that decide the counts. A list of layers may go on into the MTP modules."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"use_moe", "moe_every_n_layer"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    kv_heads: Count = Field(validation_alias=either("num_key_value_heads", "num_attention_groups"))
    head_dim: Count
    attention_bias: Switch = False
    use_head_wise_attn_gate: Switch = True
    sliding_window: Count | None = None
    layer_types: list[str] | None = None
    num_sliding_attention_heads: Count | None = None
    attention_other_setting: dict[str, Any] | None = None
    intermediate_size: Count
    mlp_bias: Switch = False
    moe_intermediate_size: Count
    experts: Count = Field(
        validation_alias=either("n_routed_experts", "moe_num_experts", "num_local_experts", "num_experts")
    )
    active: Count = Field(validation_alias=either("num_experts_per_tok", "moe_top_k"))
    share_expert_dim: Count = Field(validation_alias=either("share_expert_dim", "share_expert_dims"))
    n_shared_experts: CountOrZero | None = None
    use_moe_router_bias: Switch = True
    first_k_dense_replace: CountOrZero = 3
    mlp_layer_types: list[str] | None = None
    moe_layers_enum: str | list[CountOrZero] | None = None
    mtp_layer_types: list[str] | None = None
    mtp_mlp_layer_types: list[str] | None = None
    predictors: CountOrZero = Field(default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers"))
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their window and their feed-forward block, MTP modules after them."""
    if not config.use_head_wise_attn_gate:
        raise config.refusal("use_head_wise_attn_gate", "is false, and the reference has the gate in any case")
    if config.n_shared_experts not in (None, 1):
        raise config.refusal("n_shared_experts", f"is {config.n_shared_experts}; the reference has one shared expert")
    kinds, predicting = _split(config, "layer_types", config.layer_types, "mtp_layer_types", KINDS)
    blocks, predicting_blocks = _feed_forward(config)
    layers = tuple(_layer(config, kind, block) for kind, block in zip(kinds, blocks, strict=True))
    known = len(predicting) == len(predicting_blocks) == config.predictors
    unread = f"MTP modules (num_nextn_predict_layers = {config.predictors}): layer_types says nothing of them"
    return Architecture(
        family="step3p5",
        model_type=config.model_type,
        hidden=config.hidden_size,
        vocabulary=config.vocab_size,
        layers=layers,
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=config.hidden_size),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=config.hidden_size, tied=config.tie_word_embeddings),
        outer=norm("model.norm", config.hidden_size),
        components=_modules(config, predicting, predicting_blocks) if known else (),
        unread=() if known else (unread,),
        assumed=_assumed(config, kinds),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _split(
    config: Config, key: str, given: list[str] | None, mtp_key: str, known: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the layers and those of the MTP modules, which one list may hold together."""
    count, modules = config.num_hidden_layers, config.predictors
    names = given if given is not None else ["full_attention"] * (count + modules)
    if len(names) == count + modules:
        names = list(listed(config, key, names, known=known, count=count + modules))
        return tuple(names[:count]), tuple(names[count:])
    beside = getattr(config, mtp_key) or []
    if beside:
        beside = list(listed(config, mtp_key, beside, known=known, count=modules))
    return listed(config, key, names, known=known, count=count), tuple(beside)


def _feed_forward(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Dense or sparse, for the layers and for the MTP modules; those are dense unless a list says otherwise."""
    count, modules = config.num_hidden_layers, config.predictors
    if config.mlp_layer_types is not None:
        return _split(config, "mlp_layer_types", config.mlp_layer_types, "mtp_mlp_layer_types", ("dense", "sparse"))
    sparse = _enumerated(config)
    names = tuple("sparse" if index in sparse else "dense" for index in range(count + modules))
    return names[:count], names[count:]


def _enumerated(config: Config) -> frozenset[int]:
    given = config.moe_layers_enum
    if given is None:
        return frozenset(range(config.first_k_dense_replace, config.num_hidden_layers))
    items = given.split(",") if isinstance(given, str) else [str(item) for item in given]
    if not all(item.strip().isdecimal() for item in items if item.strip()):
        raise config.refusal("moe_layers_enum", f"is {given!r}; expected numbers of layers")
    return frozenset(int(item) for item in items if item.strip())


def _windowed_heads(config: Config) -> int:
    """The windowed layers' query heads. The reference has one number of kv heads and one head width for all."""
    if config.num_sliding_attention_heads is not None:
        return config.num_sliding_attention_heads
    if not config.attention_other_setting:
        return config.num_attention_heads
    prefix = f"{config.prefix}attention_other_setting."
    other = OtherAttention.parse(
        {key: value for key, value in config.attention_other_setting.items() if key != "attention_type"},
        source=config.source,
        prefix=prefix,
    )
    same = {"num_attention_groups": config.kv_heads, "head_dim": config.head_dim, "true_head_dim": config.head_dim}
    for key, value in same.items():
        if getattr(other, key) not in (None, value):
            raise other.refusal(key, f"is {getattr(other, key)}, and full layers have {value}; the reference has one")
    return other.num_attention_heads


def _assumed(config: Config, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Published models have more heads in windowed layers; a file that lost the key says nothing of them."""
    if config.num_sliding_attention_heads is not None or config.attention_other_setting or WINDOWED not in kinds:
        return ()
    return (
        f"{config.prefix}num_sliding_attention_heads = {config.num_attention_heads} (attention_other_setting is absent "
        "in the config, the class's default; the published Step 3.5 and 3.7 have 96)",
    )


def _layer(config: Config, kind: str, block: str) -> Layer:
    hidden = config.hidden_size
    if block == "dense":
        mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
        return pre_norm_layer(_attention(config, kind), mlp, hidden=hidden)
    return pre_norm_layer(_attention(config, kind), _experts(config), hidden=hidden)


def _attention(config: Config, kind: str) -> Attention:
    windowed = kind == WINDOWED
    heads = _windowed_heads(config) if windowed else config.num_attention_heads
    if heads % config.kv_heads:
        raise config.refusal("num_key_value_heads", f"is {config.kv_heads} and does not divide the {heads} heads")
    if windowed and config.sliding_window is None:
        raise config.refusal("sliding_window", "is missing or null, and there are windowed layers")
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(config.head_dim, config.head_dim),
        window=config.sliding_window if windowed else None,
        extra=linear("self_attn.g_proj", inputs=config.hidden_size, outputs=heads, part=Part.ATTENTION),
    )


def _experts(config: Config) -> Moe:
    hidden, width, experts = config.hidden_size, config.moe_intermediate_size, config.experts
    if config.active > experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {experts} experts")
    weights = linear("moe.gate", inputs=hidden, outputs=experts, part=Part.ROUTER)
    if config.use_moe_router_bias:
        weights += buffer("moe.router_bias", experts, Part.ROUTER)
    for name, inputs, outputs in (
        ("gate_proj", hidden, width),
        ("up_proj", hidden, width),
        ("down_proj", width, hidden),
    ):
        weights += linear(
            f"moe.{name}", inputs=inputs, outputs=outputs, part=Part.EXPERTS, use=Use.ROUTED, copies=experts
        )
    shared = gated_mlp(
        hidden=hidden,
        width=config.share_expert_dim,
        bias=config.mlp_bias,
        prefix="share_expert",
        part=Part.SHARED_EXPERTS,
    )
    return Moe(experts, config.active, weights + shared.weights)


def _modules(config: Config, kinds: tuple[str, ...], blocks: tuple[str, ...]) -> tuple[Component, ...]:
    found: tuple[Component, ...] = ()
    for index, (kind, block) in enumerate(zip(kinds, blocks, strict=True)):
        first = config.num_hidden_layers + index
        found += prediction_modules(_layer(config, kind, block), count=1, hidden=config.hidden_size, first=first)
    return found
