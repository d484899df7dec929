"""RecurrentGemma (Griffin, arXiv:2402.19427): two recurrent layers to one with sliding attention, in turns.

Reference: ``RecurrentGemmaForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Attention, Layer, Part, StateSpace, Weight
from planner.blocks import gated_mlp, grouped_query_attention, linear, norm, vector
from planner.config import Count, Switch
from planner.families._decoder import Decoder, decoder, norms, stack

MODEL_TYPES = ("recurrent_gemma",)

RECURRENT, ATTENTION = "recurrent", "attention"


class Config(Decoder):
    """Keys that decide the counts; ``intermediate_size`` is twice the width of the MLP."""

    intermediate_size: Count
    lru_width: Count | None = None
    conv1d_width: Count = 4
    attention_window_size: Count = 2048
    block_types: list[str] | None = None
    attention_bias: Switch = False
    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """Layers by their mixer; positions are rotary and within the window, so nothing limits the context."""
    hidden = config.hidden_size
    kinds = config.block_types or [RECURRENT, RECURRENT, ATTENTION]
    for kind in kinds:
        if kind not in (RECURRENT, ATTENTION):
            raise config.refusal("block_types", f"holds {kind!r}; an entry is 'recurrent' or 'attention'")
    sequence = (kinds[number % len(kinds)] for number in range(config.num_hidden_layers))
    return decoder(
        config,
        family="recurrent_gemma",
        layers=stack(sequence, lambda kind: _layer(config, kind)),
        outer=norm("model.final_norm", hidden),
    )


def _layer(config: Config, kind: str) -> Layer:
    hidden = config.hidden_size
    if config.intermediate_size % 2:
        raise config.refusal("intermediate_size", f"is {config.intermediate_size}, and it must halve")
    mixer = _attention(config) if kind == ATTENTION else _recurrence(config)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size // 2, bias=True, prefix="mlp_block")
    return Layer((mixer, mlp), norms(("temporal_pre_norm", "channel_pre_norm"), hidden))


def _attention(config: Config) -> Attention:
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=config.head_size,
        bias=config.attention_bias,
        output_bias=True,
        window=config.attention_window_size,
        prefix="temporal_block",
    )


def _recurrence(config: Config) -> StateSpace:
    """The real-gated linear recurrent unit; its gates are block-diagonal, a block per head.

    Its scan costs 6 FLOP per channel and token: gate the input 1, normalise it 1, decay 1, add 1, multiply by the
    other branch 1, square of the decay 1; the convolution's taps are counted with its weights.
    """
    hidden, width, heads = config.hidden_size, config.lru_width or config.hidden_size, config.num_attention_heads
    if width % heads:
        raise config.refusal("lru_width", f"is {width} and does not divide into {heads} blocks")
    block, path = width // heads, "temporal_block"
    weights: tuple[Weight, ...] = ()
    for name, inputs, outputs in (
        ("linear_y", hidden, width),
        ("linear_x", hidden, width),
        ("linear_out", width, hidden),
    ):
        weights += linear(f"{path}.{name}", inputs=inputs, outputs=outputs, part=Part.STATE_SPACE, bias=True)
    weights += (Weight(f"{path}.conv_1d", (width, config.conv1d_width), Part.STATE_SPACE),)
    weights += vector(f"{path}.conv_1d", width, Part.STATE_SPACE, is_bias=True)
    weights += vector(f"{path}.rg_lru.recurrent_param", width, Part.STATE_SPACE)
    for gate in ("input_gate", "recurrent_gate"):
        weights += (Weight(f"{path}.rg_lru.{gate}_weight", (heads, block, block), Part.STATE_SPACE),)
        weights += vector(f"{path}.rg_lru.{gate}_bias", (heads, block), Part.STATE_SPACE, is_bias=True)
    return StateSpace(
        kind="rg-lru",
        weights=weights,
        state=width,
        convolution=width * (config.conv1d_width - 1),  # the reference keeps the past inputs only
        scan_flops=6 * width,
    )
