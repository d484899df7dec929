"""HRM-Text: two stacks that take turns, a fast one several times for each pass of a slow one; every pass caches.

Reference: ``HrmTextForCausalLM`` of transformers. Norms have no weights.
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture import Architecture, Layer, Mlp, Part, Weight
from planner.blocks import gated_mlp, linear, vector
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("hrm_text",)


class Config(Decoder):
    """Keys that decide the counts. ``num_hidden_layers`` counts passes where ``num_layers_per_stack`` is given."""

    head_dim: Count | None = 128
    intermediate_size: Count
    attention_bias: Switch = False
    mlp_bias: Switch = False
    H_cycles: Count = 2
    L_cycles: Count = 3
    num_layers_per_stack: Count | None = None


def read(config: Config) -> Architecture:
    """The layers in the order in which a token passes them; a later pass of a stack stores nothing."""
    if config.key_value_heads != config.num_attention_heads:
        raise config.refusal("num_key_value_heads", "differs from the query heads, and there is one per head here")
    size = config.num_layers_per_stack or config.num_hidden_layers
    passes = config.H_cycles * (config.L_cycles + 1)
    if config.num_layers_per_stack and config.num_hidden_layers != size * passes:
        raise config.refusal("num_hidden_layers", f"is {config.num_hidden_layers}, not {size} layers × {passes} passes")
    stored, again = _layer(config, stored=True), _layer(config, stored=False)
    return decoder(
        config,
        family="hrm_text",
        layers=(stored,) * (2 * size) + (again,) * (size * (passes - 2)),
        outer=vector("model.z_L_init", config.hidden_size, Part.OTHER),
        layer_names="model.L_module.layers",
    )


def _layer(config: Config, *, stored: bool) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    width = config.num_attention_heads * config.head_size
    gate = linear("self_attn.gate_proj", inputs=hidden, outputs=width, part=Part.ATTENTION, bias=bias)
    attention = attention_of(config, bias=bias, output_bias=bias, extra=gate)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    return Layer(
        (
            replace(attention, weights=_marked(attention.weights, stored)),
            Mlp(_marked(mlp.weights, stored)),
        )
    )


def _marked(weights: tuple[Weight, ...], stored: bool) -> tuple[Weight, ...]:
    return tuple(replace(weight, stored=stored) for weight in weights)
