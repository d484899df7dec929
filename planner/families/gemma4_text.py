"""Gemma 4's text model: full layers with wider heads, values made by the key projection, an embedding of its own for
every layer, last layers that read the cache of earlier ones, and experts beside the dense MLP, each by a switch.

Reference: ``Gemma4ForCausalLM`` and, without layer embeddings and experts, ``Gemma4UnifiedForCausalLM`` of
transformers. Files written by transformers 5 state the full layers' heads in ``per_layer_config``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.architecture import Architecture, Attention, Block, Layer, Mlp, Moe, Part, Use, Weight
from planner.blocks import buffer, gated_mlp, grouped_query_attention, linear, norm, vector
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import FULL, active_experts, decoder, norms, stack, windows
from planner.families._gemma import BOTH_SIDES, GemmaDecoder, causal, shares_cache, unused_projections
from planner.families._pattern import every
from planner.families.gemma3n_text import layer_input, layer_inputs

MODEL_TYPES = ("gemma4_text", "gemma4_unified_text")

EXPERT_NORMS = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")


class Config(GemmaDecoder):
    """Keys that decide the counts; the unified model has no layer embeddings and no experts."""

    num_key_value_heads: Count
    global_head_dim: Count = 512
    num_global_key_value_heads: Count | None = None
    per_layer_config: dict[str, dict[str, Any]] | None = None
    attention_k_eq_v: Switch = False
    sliding_window: Count
    layer_types: list[str] | None = None
    num_kv_shared_layers: CountOrZero = 0
    use_double_wide_mlp: Switch = False
    hidden_size_per_layer_input: CountOrZero | None = None
    vocab_size_per_layer_input: Count | None = None
    enable_moe_block: Switch = False
    num_experts: Count | None = None
    top_k_experts: Count | None = None
    moe_intermediate_size: Count | None = None

    def defaulted(self) -> tuple[str, ...]:
        """Without the full layers' heads where ``per_layer_config`` has them."""
        found = super().defaulted()
        return found if self.per_layer_config is None else tuple(t for t in found if not t.startswith("global_"))


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells one layer from another."""

    full: bool
    window: int | None
    shares: bool
    head_dim: int
    kv_heads: int


def read(config: Config) -> Architecture:
    """Layers by window, heads and shared cache."""
    causal(config)
    kinds = _kinds(config)
    width = _layer_input_width(config)
    outer = norm("model.norm", config.hidden_size)
    if width:
        outer += layer_inputs(
            hidden=config.hidden_size,
            width=width,
            layers=config.num_hidden_layers,
            rows=_needed(config, "vocab_size_per_layer_input", "the per-layer embedding"),
        )
    sharing = [(_attention(config, k, shares=True), _attention(config, k, shares=False)) for k in kinds if k.shares]
    return decoder(
        config,
        family="gemma4_text",
        layers=stack(kinds, lambda kind: _layer(config, kind, width)),
        outer=outer,
        notes=unused_projections(sharing),
    )


def _kinds(config: Config) -> list[Kind]:
    """The last layer is full, whatever the file says."""
    types = list(config.layer_types or every(6, config.num_hidden_layers))
    types[-1:] = [FULL]
    sizes = windows(config, types, config.sliding_window)
    shared = shares_cache(config, types, config.num_kv_shared_layers)
    return [
        Kind(name == FULL, window, shares, *_heads(config, number, full=name == FULL))
        for number, (name, window, shares) in enumerate(zip(types, sizes, shared, strict=True))
    ]


def _heads(config: Config, number: int, *, full: bool) -> tuple[int, int]:
    """Head dimension and cached heads of one layer."""
    head_dim, kv_heads = config.head_dim, config.key_value_heads
    if config.per_layer_config is not None:
        given = _overrides(config, config.per_layer_config).get(number, {})
        for key in given:
            if key not in ("head_dim", "num_key_value_heads"):
                raise config.refusal("per_layer_config", f"sets {key} for layer {number}, which is not read")
        head_dim, kv_heads = given.get("head_dim", head_dim), given.get("num_key_value_heads", kv_heads)
    elif full:
        head_dim = config.global_head_dim
        kv_heads = (config.num_global_key_value_heads if config.attention_k_eq_v else None) or kv_heads
    for name, value in (("head_dim", head_dim), ("num_key_value_heads", kv_heads)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise config.refusal("per_layer_config", f"gives layer {number} {name} {value!r}; expected a whole number")
    if config.num_attention_heads % kv_heads:
        key = "num_global_key_value_heads" if full else "num_key_value_heads"
        raise config.refusal(key, f"is {kv_heads} and does not divide the {config.num_attention_heads} query heads")
    return head_dim, kv_heads


def _overrides(config: Config, given: dict[str, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The full layers' heads by layer; transformers pads the numbers with zeros to equal length (``"05"``)."""
    found: dict[int, dict[str, Any]] = {}
    for key, values in given.items():
        number = int(key) if key.isascii() and key.isdigit() else -1
        if not 0 <= number < config.num_hidden_layers or number in found:
            raise config.refusal("per_layer_config", f"has the key {key!r}, expected each layer's number at most once")
        found[number] = values
    return found


def _needed(config: Config, key: str, what: str) -> int:
    value = getattr(config, key)
    if value is None:
        raise config.refusal(key, f"is missing or null, and {what} needs it")
    return int(value)


def _layer_input_width(config: Config) -> int:
    if config.model_type == "gemma4_unified_text":
        if config.hidden_size_per_layer_input or config.enable_moe_block:
            raise config.refusal(
                "hidden_size_per_layer_input" if config.hidden_size_per_layer_input else "enable_moe_block",
                "is set; the unified model has neither layer embeddings nor experts",
            )
        return 0
    return _needed(config, "hidden_size_per_layer_input", "the size of the per-layer embedding (0: none)")


def _attention(config: Config, kind: Kind, *, shares: bool) -> Attention:
    """Norms on the heads of queries and keys; the values' norm has no weight."""
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=kind.kv_heads,
        head_dim=kind.head_dim,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(kind.head_dim, kind.head_dim),
        window=kind.window,
        caches=not shares,
        shares_key=config.attention_k_eq_v and kind.full,
    )


def _layer(config: Config, kind: Kind, width: int) -> Layer:
    hidden = config.hidden_size
    doubled = config.use_double_wide_mlp and kind.shares
    mlp: Mlp = gated_mlp(hidden=hidden, width=config.intermediate_size * (2 if doubled else 1))
    blocks: tuple[Block, ...] = (_attention(config, kind, shares=kind.shares), mlp)
    weights = norms(BOTH_SIDES, hidden) + buffer("layer_scalar", 1, Part.OTHER)
    if width:
        weights += layer_input(hidden, width)
    if config.enable_moe_block:
        blocks += (_experts(config),)
        weights += norms(EXPERT_NORMS, hidden)
    return Layer(blocks, weights)


def _experts(config: Config) -> Moe:
    """Experts that run beside the dense MLP, and a router with a scale per channel and per expert."""
    hidden = config.hidden_size
    experts = _needed(config, "num_experts", "enable_moe_block")
    active = active_experts(config, "top_k_experts", _needed(config, "top_k_experts", "enable_moe_block"), experts)
    width = _needed(config, "moe_intermediate_size", "enable_moe_block")
    weights: tuple[Weight, ...] = (
        linear("router.proj", inputs=hidden, outputs=experts, part=Part.ROUTER)
        + vector("router.scale", hidden, Part.ROUTER)
        + vector("router.per_expert_scale", experts, Part.ROUTER)
    )
    for name, inputs, outputs in (
        ("gate_proj", hidden, width),
        ("up_proj", hidden, width),
        ("down_proj", width, hidden),
    ):
        weights += linear(
            f"experts.*.{name}", inputs=inputs, outputs=outputs, part=Part.EXPERTS, use=Use.ROUTED, copies=experts
        )
    return Moe(experts, active, weights)
