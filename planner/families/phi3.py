"""Phi 3, 3.5, 4 and 4-mini: Llama's layout with fused projections and an optional sliding window.

Reference: ``Phi3Config`` and ``Phi3ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Mlp, Part
from planner.blocks import linear, pre_norm_layer
from planner.config import Count
from planner.families._dense import DenseConfig, decoder, fused_attention

MODEL_TYPES = ("phi3",)


class Config(DenseConfig):
    """Keys that decide the counts of a Phi 3; its matrices have no biases (a bias flag that is true is refused)."""

    sliding_window: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers; a window longer than the context never cuts anything."""
    hidden, width = config.hidden_size, config.intermediate_size
    attention = fused_attention(
        ("self_attn.qkv_proj", "self_attn.o_proj"),
        hidden=hidden,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_size,
        window=config.sliding_window,
    )
    mlp = Mlp(
        linear("mlp.gate_up_proj", inputs=hidden, outputs=2 * width, part=Part.MLP)
        + linear("mlp.down_proj", inputs=width, outputs=hidden, part=Part.MLP)
    )
    layer = pre_norm_layer(attention, mlp, hidden=hidden)
    return decoder(config, family="phi3", layers=(layer,) * config.num_hidden_layers)
