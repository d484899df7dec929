"""Youtu-LLM: a dense model with latent attention and a tied head.

Reference: ``YoutuForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Switch
from planner.families._decoder import decoder
from planner.families.glm4_moe_lite import LatentConfig, attention_of_latent

MODEL_TYPES = ("youtu",)


class Config(LatentConfig):
    """Keys that decide the counts."""

    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    layer = pre_norm_layer(
        attention_of_latent(config), gated_mlp(hidden=hidden, width=config.intermediate_size), hidden=hidden
    )
    return decoder(config, family="youtu", layers=(layer,) * config.num_hidden_layers)
