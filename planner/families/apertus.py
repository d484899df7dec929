"""Apertus: a two-matrix MLP whose activation (xIELU) has two learned numbers, norms of queries and keys.

Reference: ``ApertusForCausalLM`` and ``Apertus1p5TextForCausalLM`` of transformers; the latter's head may be narrower
than its embedding.
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture import Architecture, Layer, Mlp, Part
from planner.blocks import lm_head, plain_mlp, vector
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, norms

MODEL_TYPES = ("apertus", "apertus1p5_text")


class Config(Decoder):
    """Keys that decide the counts. Published files state ``qk_norm`` and ``post_norm`` without choosing otherwise."""

    intermediate_size: Count
    attention_bias: Switch = False
    hidden_act: str = "xielu"
    qk_norm: Switch = True
    post_norm: Switch = False
    output_vocab_size: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    if not config.qk_norm or config.post_norm:
        key = "post_norm" if config.qk_norm else "qk_norm"
        raise config.refusal(key, "differs from every published file, and the layout it would give is not known")
    attention = attention_of(config, bias=config.attention_bias, output_bias=config.attention_bias, head_norms=True)
    layer_norms = norms(("attention_layernorm", "feedforward_layernorm"), config.hidden_size)
    layer = Layer((attention, _mlp(config)), layer_norms)
    whole = decoder(config, family="apertus", layers=(layer,) * config.num_hidden_layers)
    return whole if config.output_vocab_size is None else _narrow_head(config, whole, config.output_vocab_size)


def _narrow_head(config: Config, whole: Architecture, rows: int) -> Architecture:
    if config.tie_word_embeddings and rows != config.vocab_size:
        raise config.refusal("output_vocab_size", f"is {rows:,}, and a tied head has one row per embedded token")
    head = lm_head(vocabulary=rows, hidden=config.hidden_size, tied=config.tie_word_embeddings)
    return replace(whole, lm_head=head)


def _mlp(config: Config) -> Mlp:
    mlp = plain_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    if config.hidden_act != "xielu":
        return mlp
    learned = vector("mlp.act_fn.alpha_p", 1, Part.MLP) + vector("mlp.act_fn.alpha_n", 1, Part.MLP)
    return Mlp(mlp.weights + learned)
