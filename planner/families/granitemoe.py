"""Granite models with experts: every layer sparse, optionally with a shared MLP beside, windows and sinks.

Reference: ``GraniteMoeForCausalLM``, ``GraniteMoeSharedForCausalLM`` and ``GraniteMoeSWAForCausalLM`` of
transformers. Checkpoints keep all experts of a layer in one tensor, gate and up matrix fused.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Moe, Part, Use, Weight
from planner.blocks import linear, pre_norm_layer
from planner.config import Count, CountOrZero
from planner.families._decoder import active_experts, decoder, stack
from planner.families.granite import GraniteConfig, granite_attention

MODEL_TYPES = ("granitemoe", "granitemoeshared", "granitemoe_swa")


class Config(GraniteConfig):
    """Keys that decide the counts; ``intermediate_size`` is one expert's width."""

    num_local_experts: Count
    num_experts_per_tok: Count
    shared_intermediate_size: CountOrZero = 0


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    if config.model_type == "granitemoe" and config.shared_intermediate_size:
        raise config.refusal("shared_intermediate_size", "is set; models with a shared MLP are 'granitemoeshared'")
    layers = stack(config.window_sizes(), lambda window: _layer(config, window))
    return decoder(config, family="granitemoe", layers=layers)


def _layer(config: Config, window: int | None) -> Layer:
    return pre_norm_layer(granite_attention(config, window), _experts(config), hidden=config.hidden_size)


def _experts(config: Config) -> Moe:
    hidden, width, experts = config.hidden_size, config.intermediate_size, config.num_local_experts
    shared = config.shared_intermediate_size
    prefix = "block_sparse_moe"
    weights = linear(f"{prefix}.router.layer", inputs=hidden, outputs=experts, part=Part.ROUTER)
    weights += _routed(f"{prefix}.input_linear", hidden, 2 * width, experts)
    weights += _routed(f"{prefix}.output_linear", width, hidden, experts)
    if shared:
        weights += linear("shared_mlp.input_linear", inputs=hidden, outputs=2 * shared, part=Part.SHARED_EXPERTS)
        weights += linear("shared_mlp.output_linear", inputs=shared, outputs=hidden, part=Part.SHARED_EXPERTS)
    return Moe(experts, active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts), weights)


def _routed(name: str, inputs: int, outputs: int, experts: int) -> tuple[Weight, ...]:
    return linear(name, inputs=inputs, outputs=outputs, part=Part.EXPERTS, use=Use.ROUTED, copies=experts)
