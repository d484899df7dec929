"""OLMo Hybrid: three layers of a gated delta net to one of OLMo 2's attention.

Reference: ``OlmoHybridForCausalLM`` of transformers, names as in the published files (three convolutions, which the
class joins, and norms of the recurrent layers under their older names).
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Part, StateSpace, Weight
from planner.blocks import gated_mlp, linear, norm, vector
from planner.config import Count, Switch
from planner.families._decoder import FULL, Decoder, decoder, norms, per_layer, stack
from planner.families.olmo2 import BEHIND, olmo2_attention

MODEL_TYPES = ("olmo_hybrid",)

RECURRENT = "linear_attention"


class Config(Decoder):
    """Keys that decide the counts; heads of the delta net follow from the attention's where the file has none."""

    intermediate_size: Count
    attention_bias: Switch = False
    layer_types: list[str] | None = None
    linear_num_key_heads: Count | None = None
    linear_num_value_heads: Count | None = None
    linear_key_head_dim: Count | None = None
    linear_value_head_dim: Count | None = None
    linear_conv_kernel_dim: Count = 4


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    kinds = per_layer(config, "layer_types", config.layer_types or _usual(config.num_hidden_layers))
    for kind in (FULL, RECURRENT):
        if kind not in kinds:
            raise config.refusal("layer_types", f"has no {kind!r} layer, and this family needs one")
    for kind in kinds:
        if kind not in (FULL, RECURRENT):
            raise config.refusal("layer_types", f"holds {kind!r}, which this family does not have")
    return decoder(config, family="olmo_hybrid", layers=stack(kinds, lambda kind: _layer(config, kind)))


def _usual(layers: int) -> list[str]:
    """Every fourth layer is full, or else the last one."""
    kinds = [FULL if number % 4 == 3 else RECURRENT for number in range(layers)]
    return kinds if FULL in kinds else [*kinds[:-1], FULL]


def _layer(config: Config, kind: str) -> Layer:
    hidden = config.hidden_size
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    if kind == FULL:
        return Layer((olmo2_attention(config, None, bias=config.attention_bias), mlp), norms(BEHIND, hidden))
    return Layer((_delta_net(config), mlp), norms(("attention_layer_norm", "feedforward_layer_norm"), hidden))


def _delta_net(config: Config) -> StateSpace:
    """A gated delta net (arXiv:2412.06464) with a gate of its own.

    Its scan costs, per value head and token, 7 × key width × value width FLOP: decay 1, key · state 2, outer product
    2, query · state 2.
    """
    hidden, heads, path = config.hidden_size, config.num_attention_heads, "linear_attn"
    key_heads, value_heads = config.linear_num_key_heads or heads, config.linear_num_value_heads or heads
    key_dim = config.linear_key_head_dim or 3 * hidden // (4 * key_heads)
    value_dim = config.linear_value_head_dim or 2 * key_dim
    if value_heads % key_heads:
        raise config.refusal(
            "linear_num_key_heads", f"is {key_heads} and does not divide the {value_heads} value heads"
        )
    keys, values, kernel = key_heads * key_dim, value_heads * value_dim, config.linear_conv_kernel_dim

    def matrix(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
        return linear(f"{path}.{name}", inputs=inputs, outputs=outputs, part=Part.STATE_SPACE)

    weights: tuple[Weight, ...] = ()
    for name, width in (("q", keys), ("k", keys), ("v", values)):
        weights += matrix(f"{name}_proj", hidden, width)
        weights += vector(f"{path}.{name}_conv1d", (width, kernel), Part.STATE_SPACE)
    weights += matrix("a_proj", hidden, value_heads) + matrix("b_proj", hidden, value_heads)
    weights += matrix("g_proj", hidden, values) + matrix("o_proj", values, hidden)
    weights += vector(f"{path}.A_log", value_heads, Part.STATE_SPACE)
    weights += vector(f"{path}.dt_bias", value_heads, Part.STATE_SPACE, is_bias=True)
    weights += norm(f"{path}.o_norm", value_dim)
    return StateSpace(
        kind="gated delta net",
        weights=weights,
        state=value_heads * key_dim * value_dim,
        convolution=(2 * keys + values) * kernel,
        scan_flops=7 * value_heads * key_dim * value_dim,
    )
