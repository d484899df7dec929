"""GLM-4 dense models: fused gate and up matrix, biases on queries, keys and values only.

Reference: ``GlmForCausalLM`` (two norms a layer) and ``Glm4ForCausalLM`` (four) of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, fused_mlp, norms

MODEL_TYPES = ("glm", "glm4")

TWO_NORMS = ("input_layernorm", "post_attention_layernorm")
FOUR_NORMS = ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm")


class Config(Decoder):
    """Keys that decide the counts; the number of cached heads has no safe default here."""

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    attention_bias: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    names = TWO_NORMS if config.model_type == "glm" else FOUR_NORMS
    layer = glm_layer(config, width=config.intermediate_size, bias=config.attention_bias, norm_names=names)
    return decoder(config, family="glm", layers=(layer,) * config.num_hidden_layers)


def glm_layer(config: Decoder, *, width: int, bias: bool, norm_names: tuple[str, ...]) -> Layer:
    """Attention, gated block and norms of one layer."""
    hidden = config.hidden_size
    mlp = fused_mlp(hidden=hidden, width=width, names=("mlp.gate_up_proj", "mlp.down_proj"))
    return Layer((attention_of(config, bias=bias), mlp), norms(norm_names, hidden))
