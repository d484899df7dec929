"""The first GPT and CTRL: learned or computed positions, LayerNorms, biases everywhere, two-matrix MLPs.

Reference: ``OpenAIGPTLMHeadModel`` (norms after the blocks, no final one) and ``CTRLLMHeadModel`` (a bias on the
head) of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Mlp, Part, Use, Weight
from planner.blocks import norm, plain_mlp, vector
from planner.config import Count, Layers, Switch, either
from planner.families._decoder import Decoder, attention_of, decoder, fused_attention, norms

MODEL_TYPES = ("openai-gpt", "ctrl")


class Config(Decoder):
    """Keys that decide the counts; every query head has its own keys and values."""

    hidden_size: Count = Field(validation_alias=either("n_embd", "hidden_size"))
    num_hidden_layers: Layers = Field(validation_alias=either("n_layer", "num_hidden_layers"))
    num_attention_heads: Count = Field(validation_alias=either("n_head", "num_attention_heads"))
    max_position_embeddings: Count | None = Field(
        default=None, validation_alias=either("n_positions", "max_position_embeddings")
    )
    dff: Count | None = None
    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    return _gpt(config) if config.model_type == "openai-gpt" else _ctrl(config)


def _gpt(config: Config) -> Architecture:
    hidden, heads = config.hidden_size, config.num_attention_heads
    if config.max_position_embeddings is None:
        raise config.refusal("n_positions", "is missing; every position has a learned row")
    attention = fused_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        names=("attn.c_attn", "attn.c_proj"),
        bias=True,
        output_bias=True,
    )
    mlp = plain_mlp(hidden=hidden, width=4 * hidden, bias=True, names=("c_fc", "c_proj"))
    rows = (config.max_position_embeddings, hidden)
    return decoder(
        config,
        family="openai_gpt",
        layers=(Layer((attention, mlp), norms(("ln_1", "ln_2"), hidden, bias=True)),) * config.num_hidden_layers,
        outer=(Weight("transformer.positions_embed", rows, Part.OTHER, Use.LOOKED_UP),),
        embedding_name="transformer.tokens_embed",
        layer_names="transformer.h",
    )


def _ctrl(config: Config) -> Architecture:
    hidden = config.hidden_size
    if config.dff is None:
        raise config.refusal("dff", "is missing; it is the width of the MLP")
    names = ("Wq", "Wk", "Wv", "dense")
    attention = attention_of(config, bias=True, output_bias=True, prefix="multi_head_attention", names=names)
    mlp: Mlp = plain_mlp(hidden=hidden, width=config.dff, bias=True, prefix="ffn", names=("0", "2"))
    layer = Layer((attention, mlp), norms(("layernorm1", "layernorm2"), hidden, bias=True))
    head_bias = vector("lm_head", config.vocab_size, Part.LM_HEAD, is_bias=True)
    return decoder(
        config,
        family="openai_gpt",
        layers=(layer,) * config.num_hidden_layers,
        outer=norm("transformer.layernorm", hidden, bias=True) + head_bias,
        embedding_name="transformer.w",
        layer_names="transformer.h",
    )
