"""DeepSeek-V3, R1, Moonlight, Kimi K2: latent attention, dense layers first, then layers with experts.

Reference: ``DeepseekV3ForCausalLM`` of transformers; ``moe_layer_freq`` and the MTP modules as in the published code.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import pre_norm_layer
from planner.config import CountOrZero, either
from planner.families._deepseek import (
    LatentConfig,
    dense_of,
    experts_of,
    latent_of,
    layers_with_experts,
    prediction_modules,
    stack,
)

MODEL_TYPES = ("deepseek_v3", "kimi_k2")

MTP_NOTE = "published files repeat the embedding and the head inside the MTP module; the copies are not counted"


class Config(LatentConfig):
    """Keys that decide the counts of a DeepSeek-V3."""

    predictors: CountOrZero = Field(default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers"))


def read(config: Config) -> Architecture:
    """Layers with a dense block, then with experts; every MTP module holds a layer with experts."""
    hidden, attention = config.hidden_size, latent_of(config)
    dense = pre_norm_layer(attention, dense_of(config), hidden=hidden)
    sparse = pre_norm_layer(attention, experts_of(config), hidden=hidden)
    return stack(
        config,
        tuple(sparse if has_experts else dense for has_experts in layers_with_experts(config)),
        family="deepseek_v3",
        components=prediction_modules(sparse, count=config.predictors, hidden=hidden, first=config.num_hidden_layers),
        notes=(MTP_NOTE,) if config.predictors else (),
    )
