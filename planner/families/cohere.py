"""Command R and Aya 23: attention and MLP side by side behind one norm without a bias, a tied head.

Reference: ``CohereForCausalLM`` of transformers. Command R+ has a norm on each head, with weights of its own.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp
from planner.config import Switch
from planner.families._cohere import CohereDecoder, attention_of, parallel
from planner.families._decoder import decoder

MODEL_TYPES = ("cohere",)


class Config(CohereDecoder):
    """Keys that decide the counts."""

    use_qk_norm: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    width = config.head_size
    norms = (config.num_attention_heads * width, config.key_value_heads * width) if config.use_qk_norm else None
    layer = parallel(
        attention_of(config, query_key_norm=norms),
        gated_mlp(hidden=config.hidden_size, width=config.intermediate_size),
        hidden=config.hidden_size,
    )
    return decoder(config, family="cohere", layers=(layer,) * config.num_hidden_layers)
