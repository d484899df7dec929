"""SantaCoder and StarCoder 1: GPT-2 with one key and value head for all query heads.

Reference: ``GPTBigCodeConfig`` and ``GPTBigCodeForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import norm, plain_mlp
from planner.config import Count, Switch, either
from planner.families._dense import fused_attention, positions
from planner.families._gpt import GptConfig, transformer

MODEL_TYPES = ("gpt_bigcode",)


class Config(GptConfig):
    """Keys that decide the counts of a GPT-BigCode."""

    n_positions: Count = Field(validation_alias=either("n_positions", "max_position_embeddings"))
    multi_query: Switch = True
    num_key_value_heads: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.n_embd, config.n_head
    kv_heads = 1 if config.multi_query else heads
    if config.num_key_value_heads not in (None, kv_heads):
        raise config.refusal("num_key_value_heads", f"is {config.num_key_value_heads}, and multi_query says {kv_heads}")
    attention = fused_attention(
        ("attn.c_attn", "attn.c_proj"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=config.head_dim,
        bias=True,
        output_bias=True,
    )
    mlp = plain_mlp(hidden=hidden, width=config.inner, bias=True, names=("c_fc", "c_proj"))
    return transformer(
        config,
        family="gpt_bigcode",
        layer=Layer((attention, mlp), norm("ln_1", hidden, bias=True) + norm("ln_2", hidden, bias=True)),
        position_table=positions("transformer.wpe", rows=config.n_positions, width=hidden),
    )
