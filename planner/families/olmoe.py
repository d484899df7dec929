"""OLMoE: experts in every layer, norms before the blocks and over all heads' queries and keys together.

Reference: ``OlmoeForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import mixture_of_experts, pre_norm_layer
from planner.config import Count, Switch, either
from planner.families._decoder import Decoder, active_experts, decoder
from planner.families.olmo2 import olmo2_attention

MODEL_TYPES = ("olmoe",)


class Config(Decoder):
    """Keys that decide the counts; ``intermediate_size`` is the width of an expert."""

    intermediate_size: Count
    num_experts: Count = Field(validation_alias=either("num_experts", "num_local_experts"))
    num_experts_per_tok: Count
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers.

    Raises:
        PlanError: heads of another width than the hidden size gives them, which the norms would not fit.
    """
    hidden, width = config.hidden_size, config.head_size
    if width * config.num_attention_heads != hidden:
        raise config.refusal("head_dim", f"is {width}; the norms need heads that make up the hidden size {hidden:,}")
    experts = mixture_of_experts(
        hidden=hidden,
        width=config.intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
    )
    layer = pre_norm_layer(olmo2_attention(config, None, bias=config.attention_bias), experts, hidden=hidden)
    return decoder(config, family="olmoe", layers=(layer,) * config.num_hidden_layers)
