"""What LFM2 shares with and without experts: short convolutions in most layers, attention with head norms in others.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, StateSpace
from planner.blocks import norm
from planner.config import Count, Switch, either
from planner.delta_blocks import short_convolution
from planner.families._decoder import FULL, Decoder, attention_of, decoder, norms, per_layer

CONVOLUTION = "conv"
MATRICES = ("w1", "w3", "w2")


class Lfm2Config(Decoder):
    """Keys of the mixers. The tie flag has two spellings, and files without any are tied."""

    num_key_value_heads: Count
    tie_word_embeddings: Switch = Field(default=True, validation_alias=either("tie_embedding", "tie_word_embeddings"))
    max_position_embeddings: Count | None = 128_000
    layer_types: list[str] | None = None
    kernel: Count = Field(validation_alias="conv_L_cache")
    conv_bias: Switch = False


def listed_kinds(config: Lfm2Config, kinds: list[str]) -> tuple[str, ...]:
    """``layer_types``, checked.

    Raises:
        PlanError: a list of the wrong length or with an unknown entry.
    """
    for kind in per_layer(config, "layer_types", kinds):
        if kind not in (FULL, CONVOLUTION):
            raise config.refusal("layer_types", f"holds {kind!r}; an entry is {FULL!r} or {CONVOLUTION!r}")
    return tuple(kinds)


def mixers_of(config: Lfm2Config) -> dict[str, Attention | StateSpace]:
    """Both mixers by their name in ``layer_types``."""
    attention = attention_of(
        config,
        head_norms=True,
        norm_names=("q_layernorm", "k_layernorm"),
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
    )
    convolution = short_convolution(hidden=config.hidden_size, kernel=config.kernel, bias=config.conv_bias)
    return {FULL: attention, CONVOLUTION: convolution}


def lfm2_layer(config: Lfm2Config, mixer: Attention | StateSpace, feed_forward: Mlp | Moe) -> Layer:
    """A mixer and a feed-forward block, each behind a norm."""
    return Layer((mixer, feed_forward), norms(("operator_norm", "ffn_norm"), config.hidden_size))


def lfm2_model(config: Lfm2Config, *, family: str, layers: tuple[Layer, ...]) -> Architecture:
    """The whole model; its last norm is named after the embedding."""
    return decoder(config, family=family, layers=layers, outer=norm("model.embedding_norm", config.hidden_size))
