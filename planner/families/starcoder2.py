"""StarCoder 2: grouped-query attention in a sliding window, a plain MLP, LayerNorms, biases by one switch.

Reference: ``Starcoder2Config`` and ``Starcoder2ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import grouped_query_attention, plain_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._dense import DenseConfig, decoder

MODEL_TYPES = ("starcoder2",)


class Config(DenseConfig):
    """Keys that decide the counts of a StarCoder 2; the norms keep their biases without ``use_bias``."""

    num_key_value_heads: Count
    sliding_window: Count | None = None
    use_bias: Switch = True
    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    attention = grouped_query_attention(
        hidden=hidden,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_size,
        bias=config.use_bias,
        output_bias=config.use_bias,
        window=config.sliding_window,
    )
    mlp = plain_mlp(hidden=hidden, width=config.intermediate_size, bias=config.use_bias, names=("c_fc", "c_proj"))
    layer = pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=True)
    return decoder(config, family="starcoder2", layers=(layer,) * config.num_hidden_layers, norm_bias=True)
