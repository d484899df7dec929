"""Qwen 3: Llama's layout with a norm on every query and key head.

Reference: ``Qwen3Config`` and ``Qwen3ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp, grouped_query_attention, pre_norm_layer
from planner.config import Count, Switch
from planner.families._dense import decoder, windows
from planner.families._qwen import WindowedConfig

MODEL_TYPES = ("qwen3",)


class Config(WindowedConfig):
    """Keys that decide the counts of a Qwen 3; a head is 128 wide whatever the hidden size."""

    head_dim: Count = 128
    attention_bias: Switch = False
    use_qk_norm: Switch = True


def read(config: Config) -> Architecture:
    """Layers from ``max_window_layers`` on slide, where windows are on."""
    if not config.use_qk_norm:
        raise config.refusal("use_qk_norm", "is false, and a Qwen 3 always has norms on queries and keys")
    hidden, window, first = config.hidden_size, config.window, config.window_layers
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    attention = {
        each: grouped_query_attention(
            hidden=hidden,
            heads=config.num_attention_heads,
            kv_heads=config.kv_heads,
            head_dim=config.head_dim,
            bias=config.attention_bias,
            output_bias=config.attention_bias,
            query_key_norm=(config.head_dim, config.head_dim),
            window=each,
        )
        for each in (None, window)
    }
    by_layer = windows(
        config,
        config.layer_types,
        layers=config.num_hidden_layers,
        window=window,
        slides=lambda index: index >= first,
    )
    layers = (pre_norm_layer(attention[each], mlp, hidden=hidden) for each in by_layer)
    return decoder(config, family="qwen3", layers=layers, notes=config.attention_notes)
