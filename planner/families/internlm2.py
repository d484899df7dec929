"""InternLM 2 and 2.5: a Llama with one fused attention matrix and names of its own.

Reference: ``modeling_internlm2.py`` of the published checkpoints.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count, Switch
from planner.families._decoder import Decoder, decoder, fused_attention, norms

MODEL_TYPES = ("internlm2",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count
    bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    attention = fused_attention(
        hidden=hidden,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=config.head_size,
        names=("attention.wqkv", "attention.wo"),
        bias=config.bias,
        output_bias=config.bias,
    )
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, prefix="feed_forward", names=("w1", "w3", "w2"))
    layer = Layer((attention, mlp), norms(("attention_norm", "ffn_norm"), hidden))
    return decoder(
        config,
        family="internlm2",
        layers=(layer,) * config.num_hidden_layers,
        embedding_name="model.tok_embeddings",
        head_name="output",
    )
