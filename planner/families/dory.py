"""Dory: normalised transformer whose middle layers run several times, each pass with a cache of its own.

Reference: ``DoryForCausalLM`` of transformers. Published files count attention and MLP as layers of their own; norms
have no weights, learned scales stand in their place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from planner.architecture import Architecture, Attention, Layer, Mlp, Part, Weight
from planner.blocks import gated_mlp, linear, vector
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import Decoder, attention_of, decoder, stack, windows

MODEL_TYPES = ("dory",)


class Config(Decoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    head_dim: Count | None = 256
    intermediate_size: Count
    attention_bias: Switch = False
    mlp_bias: Switch = False
    sliding_window: Count | None = 1024
    layer_types: list[str] | None = None
    n_input_layers: CountOrZero = 8
    n_output_layers: CountOrZero = 8
    n_recurrent_layers: CountOrZero | None = None
    n_recurrent_loops: Count = 2
    recurrent_kv_cache_mode: Literal["per_loop", "last_loop"] = "per_loop"


def read(config: Config) -> Architecture:
    """The layers in the order in which a token passes them; a later pass stores nothing."""
    config = _halved(config)
    count, first, after = config.num_hidden_layers, config.n_input_layers, config.n_output_layers
    repeated = count - first - after if config.n_recurrent_layers is None else config.n_recurrent_layers
    if first + repeated + after != count:
        raise config.refusal("n_recurrent_layers", f"is {repeated}; with {first} before and {after} after, not {count}")
    usual = ["sliding_attention" if (number + 1) % 4 else "full_attention" for number in range(count)]
    sizes = windows(config, config.layer_types or usual, config.sliding_window)
    layers = stack(sizes, lambda window: _layer(config, window))
    middle = layers[first : first + repeated]
    again = tuple(_again(layer, caches=config.recurrent_kv_cache_mode == "per_loop") for layer in middle)
    passes = middle + again * (config.n_recurrent_loops - 1)
    return decoder(
        config,
        family="dory",
        layers=layers[:first] + passes + layers[first + repeated :],
        outer=vector("lm_head.logit_scale", config.vocab_size, Part.LM_HEAD),
    )


def _halved(config: Config) -> Config:
    """A file that lists MLPs as layers has twice as many of everything."""
    if config.layer_types is None or "mlp" not in config.layer_types:
        return config
    keys = ("num_hidden_layers", "n_input_layers", "n_output_layers", "n_recurrent_layers")
    halves = {key: getattr(config, key) and getattr(config, key) // 2 for key in keys}
    return config.model_copy(update={**halves, "layer_types": config.layer_types[::2]})


def _layer(config: Config, window: int | None) -> Layer:
    width, bias = config.num_attention_heads * config.head_size, config.attention_bias
    extra = linear("self_attn.g_proj", inputs=config.hidden_size, outputs=width, part=Part.ATTENTION)
    for name in ("sqk", "s_gate"):
        extra += vector(f"self_attn.{name}", width, Part.ATTENTION)
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size, bias=config.mlp_bias).weights
    for name in ("suv_gate", "suv_up"):
        mlp += vector(f"mlp.{name}", config.intermediate_size, Part.MLP)
    steps = vector("lambda_1", config.hidden_size, Part.OTHER) + vector("lambda_2", config.hidden_size, Part.OTHER)
    return Layer((attention_of(config, bias=bias, output_bias=bias, window=window, extra=extra), Mlp(mlp)), steps)


def _again(layer: Layer, *, caches: bool) -> Layer:
    """A further pass through the layer."""
    blocks = tuple(
        replace(block, weights=_elsewhere(block.weights), caches=caches)
        if isinstance(block, Attention)
        else replace(block, weights=_elsewhere(block.weights))
        for block in layer.blocks
    )
    return Layer(blocks, _elsewhere(layer.weights))


def _elsewhere(weights: tuple[Weight, ...]) -> tuple[Weight, ...]:
    return tuple(replace(weight, stored=False) for weight in weights)
