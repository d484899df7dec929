"""Nemotron-H and Nemotron 3: a layer is one norm and one block, a Mamba-2 mixer, attention, an MLP or experts.

Reference: ``NemotronHForCausalLM`` of transformers, names as in the published files. MLPs and experts have two
matrices. With ``moe_latent_size`` the experts work on narrower vectors, between two projections. The MTP module is
not in the reference; its shape follows from the published totals of Nemotron 3 Super and Ultra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from planner.architecture import Architecture, Attention, Component, Layer, Mlp, Moe, Part, StateSpace, Use
from planner.blocks import buffer, embedding, grouped_query_attention, linear, lm_head, norm, plain_mlp, vector
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either
from planner.families._decoder import active_experts, as_draft, stack
from planner.families._mamba import MIXERS, check_groups, needed
from planner.state_space_blocks import mamba_2

MODEL_TYPES = ("nemotron_h",)

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
KINDS = MIXERS | {"mlp": "mlp", "moe": "moe"}
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Config(FamilyConfig):
    """Keys that decide the counts; which of them a model needs depends on its layers."""

    # The mixer's width is heads × head width, whatever the expansion; the rest steers the scan and the schedule.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"mamba_expand", "chunk_size", "mamba_chunk_size", "moe_shared_expert_overlap"}
        | {"mamba_dt_min", "mamba_dt_max", "mamba_dt_limit", "mamba_dt_init_floor"}
    )

    hidden_size: Count
    num_hidden_layers: Layers | None = None
    hybrid_override_pattern: str | None = None
    layers_block_type: list[str] | None = Field(
        default=None, validation_alias=either("layers_block_type", "layer_types")
    )
    num_attention_heads: Count | None = None
    num_key_value_heads: Count | None = None
    head_dim: Count | None = Field(default=None, validation_alias=either("head_dim", "attention_head_dim"))
    attention_bias: Switch = False
    sliding_window: Count | None = None
    intermediate_size: Count | None = None
    mlp_bias: Switch = False
    mamba_num_heads: Count | None = None
    mamba_head_dim: Count | None = None
    n_groups: Count | None = Field(default=None, validation_alias=either("mamba_n_groups", "n_groups"))
    ssm_state_size: Count | None = None
    conv_kernel: Count | None = Field(default=None, validation_alias=either("mamba_d_conv", "conv_kernel"))
    use_conv_bias: Switch = Field(default=True, validation_alias=either("mamba_conv_bias", "use_conv_bias"))
    use_bias: Switch = False
    mamba_proj_bias: Switch = False
    mamba_ssm_cache_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    n_routed_experts: CountOrZero | None = None
    num_experts_per_tok: CountOrZero | None = None
    moe_intermediate_size: Count | None = None
    n_shared_experts: CountOrZero | None = None
    moe_shared_expert_intermediate_size: Count | None = None
    moe_latent_size: Count | None = None
    num_nextn_predict_layers: CountOrZero = 0
    mtp_hybrid_override_pattern: str | None = None
    mtp_layers_block_type: list[str] | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their only block."""
    _check_switches(config)
    hidden = config.hidden_size
    components, unread = _drafts(config)
    return Architecture(
        family="nemotron_h",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=stack(_kinds(config), lambda kind: _layer(config, kind)),
        embedding=embedding("backbone.embeddings", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=False),
        outer=norm("backbone.norm_f", hidden),
        components=components,
        unread=unread,
        layer_names="backbone.layers",
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _check_switches(config: Config) -> None:
    """Refuse what the files can say and the reference does not do."""
    for key in ("attention_bias", "mamba_proj_bias", "tie_word_embeddings"):
        if getattr(config, key):
            raise config.refusal(key, "is true, and the reference of this family has nothing like it")
    if config.sliding_window is not None:
        raise config.refusal("sliding_window", f"is {config.sliding_window}, and the reference has no windows")


def _kinds(config: Config) -> tuple[str, ...]:
    """The block of every layer, by the pattern or the list; where the file has both they have to agree."""
    pattern = _spelled(config, "hybrid_override_pattern", config.hybrid_override_pattern)
    listed = _listed(config, "layers_block_type", config.layers_block_type)
    kinds = listed or pattern
    if not kinds:
        raise config.refusal("hybrid_override_pattern", "and layers_block_type are both missing; one names the layers")
    if listed and pattern and listed != pattern:
        raise config.refusal("layers_block_type", "and hybrid_override_pattern describe different layers")
    if config.num_hidden_layers not in (None, len(kinds)):
        raise config.refusal("num_hidden_layers", f"is {config.num_hidden_layers}; {len(kinds)} layers are described")
    return kinds


def _spelled(config: Config, key: str, pattern: str | None) -> tuple[str, ...]:
    unknown = sorted(set(pattern or "") - set(LETTERS))
    if unknown:
        raise config.refusal(key, f"holds {unknown[0]!r}; known are {' '.join(LETTERS)}")
    return tuple(LETTERS[letter] for letter in pattern or "")


def _listed(config: Config, key: str, kinds: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [kind for kind in kinds or () if kind not in KINDS]
    if unknown:
        raise config.refusal(key, f"holds {unknown[0]!r}, which this family does not have")
    return tuple(KINDS[kind] for kind in kinds or ())


def _layer(config: Config, kind: str) -> Layer:
    return Layer((_block(config, kind),), norm("norm", config.hidden_size))


def _block(config: Config, kind: str) -> Attention | StateSpace | Mlp | Moe:
    if kind == "mamba":
        return _mamba(config)
    if kind == "attention":
        return _attention(config)
    if kind == "moe":
        return _experts(config)
    width = needed(config, "intermediate_size", "MLP layers")
    return plain_mlp(hidden=config.hidden_size, width=width, bias=config.mlp_bias, prefix="mixer")


def _mamba(config: Config) -> StateSpace:
    owner = "Mamba layers"
    heads, groups = needed(config, "mamba_num_heads", owner), needed(config, "n_groups", owner)
    check_groups(config, "n_groups", groups, heads)
    return mamba_2(
        hidden=config.hidden_size,
        heads=heads,
        head_dim=needed(config, "mamba_head_dim", owner),
        groups=groups,
        state=needed(config, "ssm_state_size", owner),
        kernel=needed(config, "conv_kernel", owner),
        convolution_bias=config.use_conv_bias,
        bias=config.use_bias,
        state_bytes=STATE_BYTES[config.mamba_ssm_cache_dtype],
    )


def _attention(config: Config) -> Attention:
    owner = "attention layers"
    heads = needed(config, "num_attention_heads", owner)
    kv_heads = needed(config, "num_key_value_heads", owner)
    if heads % kv_heads:
        raise config.refusal("num_key_value_heads", f"is {kv_heads} and does not divide the {heads} query heads")
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=needed(config, "head_dim", owner),
        prefix="mixer",
    )


def _experts(config: Config) -> Moe:
    """Routed experts between the latent projections, and one shared expert on the full width; only it has biases."""
    hidden, owner = config.hidden_size, "layers of experts"
    experts, active = needed(config, "n_routed_experts", owner), needed(config, "num_experts_per_tok", owner)
    if needed(config, "n_shared_experts", owner) != 1:
        raise config.refusal("n_shared_experts", f"is {config.n_shared_experts}; the reference has one shared expert")
    latent, width = config.moe_latent_size or hidden, needed(config, "moe_intermediate_size", owner)
    shared = needed(config, "moe_shared_expert_intermediate_size", owner)
    weights = linear("mixer.gate", inputs=hidden, outputs=experts, part=Part.ROUTER)
    weights += buffer("mixer.gate.e_score_correction_bias", experts, Part.ROUTER)
    for name, inputs, outputs in (("up_proj", latent, width), ("down_proj", width, latent)):
        path = f"mixer.experts.*.{name}"
        weights += linear(path, inputs=inputs, outputs=outputs, part=Part.EXPERTS, use=Use.ROUTED, copies=experts)
    for name, inputs, outputs in (("up_proj", hidden, shared), ("down_proj", shared, hidden)):
        path = f"mixer.shared_experts.{name}"
        weights += linear(path, inputs=inputs, outputs=outputs, part=Part.SHARED_EXPERTS, bias=config.mlp_bias)
    if config.moe_latent_size is not None:
        for name, inputs, outputs in (("fc1_latent_proj", hidden, latent), ("fc2_latent_proj", latent, hidden)):
            weights += linear(f"mixer.{name}", inputs=inputs, outputs=outputs, part=Part.MLP, bias=config.mlp_bias)
    return Moe(experts, active_experts(config, "num_experts_per_tok", active, experts), weights)


def _drafts(config: Config) -> tuple[tuple[Component, ...], tuple[str, ...]]:
    """The MTP module, and what is left uncounted: only models with a single one are known."""
    modules = config.num_nextn_predict_layers
    if not modules:
        return (), ()
    if modules > 1:
        return (), (f"MTP modules (num_nextn_predict_layers = {modules})",)
    kinds = _listed(config, "mtp_layers_block_type", config.mtp_layers_block_type)
    kinds = kinds or _spelled(config, "mtp_hybrid_override_pattern", config.mtp_hybrid_override_pattern)
    if not kinds:
        raise config.refusal(
            "mtp_layers_block_type", "and mtp_hybrid_override_pattern are both missing; an MTP needs one"
        )
    return (_draft(config, kinds),), ()


def _draft(config: Config, kinds: Sequence[str]) -> Component:
    """A projection of two joined vectors, a norm for each of them, the layers, and a last norm."""
    hidden, path = config.hidden_size, "mtp.layers"
    weights = linear(f"{path}.0.eh_proj", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    for name in ("0.enorm", "0.hnorm", f"{len(kinds) - 1}.final_layernorm"):
        weights += vector(f"{path}.{name}", hidden, Part.MTP)
    for number, kind in enumerate(kinds):
        layer = as_draft(_layer(config, kind))
        weights += tuple(replace(weight, name=f"{path}.{number}.{weight.name}") for weight in layer)
    return Component("MTP module (mtp)", weights, counted=False)
