"""Phi 1.5 and 2 as first published, with GPT-2's key names and a fused attention matrix.

Reference: the remote code of ``microsoft/phi-2`` (``model_type`` ``phi-msft``); its counts are those of
``PhiForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Part, Weight
from planner.blocks import embedding, norm, plain_mlp
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._dense import fused_attention, grouped, head_bias

MODEL_TYPES = ("phi-msft",)


class Config(FamilyConfig):
    """Keys that decide the counts; ``null`` is four times the width, and as many key heads as query heads."""

    n_embd: Count
    n_layer: Layers
    n_head: Count
    n_head_kv: Count | None = None
    n_inner: Count | None = None
    n_positions: Count | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers; the final norm belongs to the head's module."""
    hidden = config.n_embd
    if config.tie_word_embeddings:
        raise config.refusal("tie_word_embeddings", "is true; this model's head is always a matrix of its own")
    return Architecture(
        family="phi_msft",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(_layer(config),) * config.n_layer,
        embedding=embedding("transformer.embd.wte", rows=config.vocab_size, width=hidden),
        lm_head=Weight("lm_head.linear", (config.vocab_size, hidden), Part.LM_HEAD),
        outer=norm("lm_head.ln", hidden, bias=True) + head_bias("lm_head.linear", config.vocab_size),
        max_context=config.n_positions,
        layer_names="transformer.h",
        dtype=config.dtype,
    )


def _layer(config: Config) -> Layer:
    hidden, heads = config.n_embd, config.n_head
    attention = fused_attention(
        ("mixer.Wqkv", "mixer.out_proj"),
        hidden=hidden,
        heads=heads,
        kv_heads=grouped(config, heads, config.n_head_kv or heads, "n_head_kv"),
        head_dim=config.head_width(hidden, heads),
        bias=True,
        output_bias=True,
    )
    mlp = plain_mlp(hidden=hidden, width=config.n_inner or 4 * hidden, bias=True, names=("fc1", "fc2"))
    return Layer((attention, mlp), norm("ln", hidden, bias=True))
