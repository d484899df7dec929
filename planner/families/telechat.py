"""TeleChat and TeleChat 2: a Llama with biases on the two projections back to the residual, keys and values fused.

Reference: ``modeling_telechat.py`` and ``modeling_telechat2.py`` of the published checkpoints.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Mlp, Part
from planner.blocks import linear, norm
from planner.config import Count, Layers, Switch, either
from planner.families._decoder import Decoder, decoder, norms

MODEL_TYPES = ("telechat",)


class Config(Decoder):
    """Keys that decide the counts, under GPT-2's names in most files."""

    num_hidden_layers: Layers = Field(validation_alias=either("n_layer", "num_hidden_layers"))
    num_attention_heads: Count = Field(validation_alias=either("n_head", "num_attention_heads"))
    embed_layernorm: Switch = False
    intermediate_size: Count = Field(validation_alias=either("ffn_hidden_size", "intermediate_size"))
    max_position_embeddings: Count | None = Field(
        default=None, validation_alias=either("max_position_embeddings", "seq_length")
    )


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    if config.embed_layernorm:
        raise config.refusal("embed_layernorm", "is true, which no published model of this family has")
    layer_norms = norms(("input_layernorm", "post_attention_layernorm"), config.hidden_size)
    return decoder(
        config,
        family="telechat",
        layers=(Layer((_attention(config), _mlp(config)), layer_norms),) * config.num_hidden_layers,
        outer=norm("transformer.ln_f", config.hidden_size),
        embedding_name="transformer.word_embeddings",
        layer_names="transformer.h",
        notes=("counted from the published code as recalled, without a published total to compare",),
    )


def _attention(config: Config) -> Attention:
    hidden, heads, width, kv_heads = (
        config.hidden_size,
        config.num_attention_heads,
        config.head_size,
        config.key_value_heads,
    )
    weights = linear("self_attention.query", inputs=hidden, outputs=heads * width, part=Part.ATTENTION)
    weights += linear("self_attention.key_value", inputs=hidden, outputs=2 * kv_heads * width, part=Part.ATTENTION)
    weights += linear("self_attention.dense", inputs=heads * width, outputs=hidden, part=Part.ATTENTION, bias=True)
    return Attention(heads, kv_heads, width, width, weights)


def _mlp(config: Config) -> Mlp:
    hidden, width = config.hidden_size, config.intermediate_size
    return Mlp(
        linear("mlp.gate_proj", inputs=hidden, outputs=width, part=Part.MLP)
        + linear("mlp.up_proj", inputs=hidden, outputs=width, part=Part.MLP)
        + linear("mlp.down_proj", inputs=width, outputs=hidden, part=Part.MLP, bias=True)
    )
