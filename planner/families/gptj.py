"""GPT-J and CodeGen: rotary positions, one norm before attention and MLP side by side, a bias on the output head.

Reference: ``GPTJForCausalLM`` and ``CodeGenForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Attention, Layer
from planner.blocks import grouped_query_attention, norm, plain_mlp
from planner.config import Switch
from planner.families._dense import fused_attention
from planner.families._gpt import GptConfig, transformer

MODEL_TYPES = ("gptj", "codegen")


class Config(GptConfig):
    """Keys that decide the counts of a GPT-J."""

    tie_word_embeddings: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers; the MLP has biases, attention has none."""
    hidden = config.n_embd
    mlp = plain_mlp(hidden=hidden, width=config.inner, bias=True, names=("fc_in", "fc_out"))
    return transformer(
        config,
        family="gptj",
        layer=Layer((_attention(config), mlp), norm("ln_1", hidden, bias=True)),
        has_head_bias=True,
    )


def _attention(config: Config) -> Attention:
    """CodeGen holds query, key and value in one matrix."""
    hidden, heads, head_dim = config.n_embd, config.n_head, config.head_dim
    if config.model_type == "codegen":
        return fused_attention(
            ("attn.qkv_proj", "attn.out_proj"), hidden=hidden, heads=heads, kv_heads=heads, head_dim=head_dim
        )
    return grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        prefix="attn",
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
    )
