"""Bamba: Mamba-2 mixers with attention in the layers that the file lists, a gated MLP in each.

Reference: ``BambaForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Attention, Layer, StateSpace
from planner.blocks import gated_mlp, norm
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import attention_of, decoder, norms, stack
from planner.families._mamba import HybridDecoder, mixer_of, stated

MODEL_TYPES = ("bamba",)


class Config(HybridDecoder):
    """Keys that decide the counts; with ``attn_layer_indices`` null no layer attends."""

    intermediate_size: Count
    attn_layer_indices: list[CountOrZero] | None = None
    mlp_bias: Switch = False


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    stated(config, "num_key_value_heads", "attn_layer_indices")
    attending = config.attn_layer_indices or []
    for number in attending:
        if number >= config.num_hidden_layers:
            raise config.refusal("attn_layer_indices", f"names layer {number} of {config.num_hidden_layers}")
    kinds = [number in attending for number in range(config.num_hidden_layers)]
    return decoder(
        config,
        family="bamba",
        layers=stack(kinds, lambda attends: _layer(config, attends)),
        outer=norm("model.final_layernorm", config.hidden_size),
    )


def _layer(config: Config, attends: bool) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    mixer: Attention | StateSpace
    mixer = attention_of(config, bias=bias, output_bias=bias) if attends else mixer_of(config)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias, prefix="feed_forward")
    return Layer((mixer, mlp), norms(("input_layernorm", "pre_ff_layernorm"), hidden))
