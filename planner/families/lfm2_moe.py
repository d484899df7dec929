"""LFM2 with experts: LFM2's mixers, the first layers with an MLP as wide as the file says, experts in the others.

Reference: ``Lfm2MoeForCausalLM`` of transformers, names as in the published files.
"""

from __future__ import annotations

from planner.architecture import Architecture, Mlp, Moe, Part
from planner.blocks import buffer, gated_mlp, mixture_of_experts
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import active_experts, renamed, stack
from planner.families._lfm2 import MATRICES, Lfm2Config, lfm2_layer, lfm2_model, listed_kinds, mixers_of

MODEL_TYPES = ("lfm2_moe",)


class Config(Lfm2Config):
    """Keys that decide the counts."""

    intermediate_size: Count
    moe_intermediate_size: Count
    num_dense_layers: CountOrZero
    num_experts: Count
    num_experts_per_tok: Count
    use_expert_bias: Switch = True


def read(config: Config) -> Architecture:
    """Layers by their mixer and their feed-forward block."""
    if config.layer_types is None:
        raise config.refusal("layer_types", "is missing or null, and it says which layers are convolutions")
    count, dense = config.num_hidden_layers, config.num_dense_layers
    if dense > count:
        raise config.refusal("num_dense_layers", f"is {dense}, more than the {count} layers")
    mixers = mixers_of(config)
    blocks: dict[bool, Mlp | Moe] = {
        False: gated_mlp(
            hidden=config.hidden_size, width=config.intermediate_size, prefix="feed_forward", names=MATRICES
        ),
        True: _experts(config),
    }
    kinds = zip(listed_kinds(config, config.layer_types), (index >= dense for index in range(count)), strict=True)
    layers = stack(kinds, lambda kind: lfm2_layer(config, mixers[kind[0]], blocks[kind[1]]))
    return lfm2_model(config, family="lfm2_moe", layers=layers)


def _experts(config: Config) -> Moe:
    correction = buffer("feed_forward.expert_bias", config.num_experts, Part.ROUTER)
    moe = mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        prefix="feed_forward",
        extra=correction if config.use_expert_bias else (),
    )
    return renamed(moe, {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"})
