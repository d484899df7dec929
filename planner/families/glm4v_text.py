"""The text part of GLM-4.1V: a GLM-4-0414 whose biases are not optional and whose head width may be left out.

Reference: ``Glm4vTextModel`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.config import Count, Switch
from planner.families._decoder import Decoder, decoder
from planner.families.glm import FOUR_NORMS, glm_layer

MODEL_TYPES = ("glm4v_text",)


class Config(Decoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    intermediate_size: Count
    attention_bias: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    if not config.attention_bias:
        raise config.refusal("attention_bias", "is false, and this family always has biases")
    layer = glm_layer(config, width=config.intermediate_size, bias=True, norm_names=FOUR_NORMS)
    return decoder(config, family="glm4v_text", layers=(layer,) * config.num_hidden_layers)
