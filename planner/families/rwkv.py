"""RWKV 4: no attention and no cache, a state of five vectors per layer in fp32.

Reference: ``RwkvConfig`` and ``RwkvForCausalLM`` of transformers; Peng and others, arXiv:2305.13048.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Mlp, Part, StateSpace, Weight
from planner.blocks import embedding, linear, lm_head, norm, vector
from planner.config import Count, FamilyConfig, Layers, Switch, either

MODEL_TYPES = ("rwkv",)

# Last inputs of both mixers, numerator, denominator and running maximum of the weighted sum.
STATE_VECTORS = 5
# Per channel and token: two exponentials' sums and products each for the output and for the new state, and a division.
SCAN_FLOPS = 12


class Config(FamilyConfig):
    """Keys that decide the counts of an RWKV 4."""

    hidden_size: Count
    num_hidden_layers: Layers
    attention_hidden_size: Count | None = None
    intermediate_size: Count | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_context: Count | None = Field(default=None, validation_alias=either("context_length"))


def read(config: Config) -> Architecture:
    """Equal layers, but for one more norm in the first. A state has no longest context."""
    hidden = config.hidden_size
    layer = Layer(
        (_time_mixing(config), _channel_mixing(config)), norm("ln1", hidden, bias=True) + norm("ln2", hidden, bias=True)
    )
    first = Layer(layer.blocks, norm("pre_ln", hidden, bias=True) + layer.weights)
    return Architecture(
        family="rwkv",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(first, *(layer,) * (config.num_hidden_layers - 1)),
        embedding=embedding("rwkv.embeddings", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings, name="head"),
        outer=norm("rwkv.ln_out", hidden, bias=True),
        max_context=config.max_context,
        layer_names="rwkv.blocks",
        dtype=config.dtype,
    )


def _mixes(path: str, names: tuple[str, ...], hidden: int, part: Part) -> tuple[Weight, ...]:
    return tuple(weight for name in names for weight in vector(f"{path}.time_mix_{name}", (1, 1, hidden), part))


def _time_mixing(config: Config) -> StateSpace:
    hidden = config.hidden_size
    width = config.attention_hidden_size or hidden
    weights = vector("attention.time_decay", width, Part.STATE_SPACE)
    weights += vector("attention.time_first", width, Part.STATE_SPACE)
    weights += _mixes("attention", ("key", "value", "receptance"), hidden, Part.STATE_SPACE)
    for name in ("key", "value", "receptance"):
        weights += linear(f"attention.{name}", inputs=hidden, outputs=width, part=Part.STATE_SPACE)
    weights += linear("attention.output", inputs=width, outputs=hidden, part=Part.STATE_SPACE)
    state = STATE_VECTORS * hidden if width == hidden else 2 * hidden + 3 * width
    return StateSpace("rwkv", weights, state=state, scan_flops=SCAN_FLOPS * width)


def _channel_mixing(config: Config) -> Mlp:
    hidden = config.hidden_size
    width = config.intermediate_size or 4 * hidden
    return Mlp(
        _mixes("feed_forward", ("key", "receptance"), hidden, Part.MLP)
        + linear("feed_forward.key", inputs=hidden, outputs=width, part=Part.MLP)
        + linear("feed_forward.receptance", inputs=hidden, outputs=hidden, part=Part.MLP)
        + linear("feed_forward.value", inputs=width, outputs=hidden, part=Part.MLP)
    )
