"""Granite 4.0: Mamba-2 mixers with attention between, a shared MLP in every layer, experts beside it or none.

Reference: ``GraniteMoeHybridForCausalLM`` of transformers, names as in the published files (all experts of a layer in
one tensor, gate and up matrix fused). The dense models have ``num_local_experts`` 0, and some have attention only.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, Part, StateSpace, Use, Weight
from planner.blocks import linear
from planner.config import Count, CountOrZero, either
from planner.families._decoder import active_experts, attention_of, decoder, norms, per_layer, stack
from planner.families._mamba import MIXERS, HybridDecoder, mixer_of, needed

MODEL_TYPES = ("granitemoehybrid",)


class Config(HybridDecoder):
    """Keys that decide the counts; ``intermediate_size`` is one expert's width, unused without experts."""

    intermediate_size: Count | None = None
    shared_intermediate_size: Count
    num_local_experts: CountOrZero
    num_experts_per_tok: CountOrZero | None = None
    layer_types: list[str] = Field(validation_alias=either("layer_types", "layers_block_type"))


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    for kind in per_layer(config, "layer_types", config.layer_types):
        if kind not in MIXERS:
            raise config.refusal("layer_types", f"holds {kind!r}, which this family does not have")
    kinds = [MIXERS[kind] for kind in config.layer_types]
    return decoder(config, family="granitemoehybrid", layers=stack(kinds, lambda kind: _layer(config, kind)))


def _layer(config: Config, kind: str) -> Layer:
    bias = config.attention_bias
    mixer: Attention | StateSpace
    mixer = attention_of(config, bias=bias, output_bias=bias) if kind == "attention" else mixer_of(config)
    return Layer(
        (mixer, _feed_forward(config)), norms(("input_layernorm", "post_attention_layernorm"), config.hidden_size)
    )


def _feed_forward(config: Config) -> Mlp | Moe:
    """The shared MLP, with the experts beside it where there are any."""
    hidden, shared, experts = config.hidden_size, config.shared_intermediate_size, config.num_local_experts
    weights = linear("shared_mlp.input_linear", inputs=hidden, outputs=2 * shared, part=Part.SHARED_EXPERTS)
    weights += linear("shared_mlp.output_linear", inputs=shared, outputs=hidden, part=Part.SHARED_EXPERTS)
    if not experts:
        return Mlp(weights)
    prefix, width = "block_sparse_moe", needed(config, "intermediate_size", "experts")
    weights += linear(f"{prefix}.router.layer", inputs=hidden, outputs=experts, part=Part.ROUTER)
    weights += _routed(f"{prefix}.input_linear", hidden, 2 * width, experts)
    weights += _routed(f"{prefix}.output_linear", width, hidden, experts)
    active = needed(config, "num_experts_per_tok", "experts")
    return Moe(experts, active_experts(config, "num_experts_per_tok", active, experts), weights)


def _routed(name: str, inputs: int, outputs: int, experts: int) -> tuple[Weight, ...]:
    return linear(name, inputs=inputs, outputs=outputs, part=Part.EXPERTS, use=Use.ROUTED, copies=experts)
