"""GPT-2: learned positions, fused attention, a plain MLP, biases everywhere, a tied head.

Reference: ``GPT2Config`` and ``GPT2LMHeadModel`` of transformers. Old checkpoints also hold causal masks
(``attn.bias``), which are no parameters and are not counted.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import norm, plain_mlp
from planner.config import Count, either
from planner.families._dense import fused_attention, positions
from planner.families._gpt import GptConfig, transformer

MODEL_TYPES = ("gpt2",)


class Config(GptConfig):
    """Keys that decide the counts of a GPT-2; every position has a row of its own."""

    n_positions: Count = Field(validation_alias=either("n_positions", "max_position_embeddings"))


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.n_embd, config.n_head
    attention = fused_attention(
        ("attn.c_attn", "attn.c_proj"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_dim,
        bias=True,
        output_bias=True,
    )
    mlp = plain_mlp(hidden=hidden, width=config.inner, bias=True, names=("c_fc", "c_proj"))
    return transformer(
        config,
        family="gpt2",
        layer=Layer((attention, mlp), norm("ln_1", hidden, bias=True) + norm("ln_2", hidden, bias=True)),
        position_table=positions("transformer.wpe", rows=config.n_positions, width=hidden),
    )
