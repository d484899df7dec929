"""MPT: ALiBi instead of positions, fused attention, a plain MLP, no bias anywhere, a tied head.

Reference: ``MptConfig`` and ``MptForCausalLM`` of transformers. What it leaves out of the published remote code
(multi-query attention, other widths of the MLP, biases, norms on queries and keys) is refused.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import embedding, lm_head, norm, plain_mlp
from planner.config import Count, Factor, FamilyConfig, Layers, Switch, either
from planner.families._dense import fused_attention

MODEL_TYPES = ("mpt",)


class AttentionConfig(FamilyConfig):
    """Keys of ``attn_config``."""

    attn_type: str = "multihead_attention"
    qk_ln: Switch = False
    alibi: Switch = True


class Config(FamilyConfig):
    """Keys that decide the counts of an MPT."""

    d_model: Count = Field(validation_alias=either("d_model", "hidden_size"))
    n_layers: Layers = Field(validation_alias=either("n_layers", "num_hidden_layers"))
    n_heads: Count = Field(validation_alias=either("n_heads", "num_attention_heads"))
    vocab_size: Count
    expansion_ratio: Factor = 4
    max_seq_len: Count | None = None
    attn_config: AttentionConfig = AttentionConfig()
    no_bias: Switch = True
    learned_pos_emb: Switch = True
    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    _refuse_other_layouts(config)
    hidden, heads, vocabulary = config.d_model, config.n_heads, config.vocab_size
    attention = fused_attention(
        ("attn.Wqkv", "attn.out_proj"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
    )
    mlp = plain_mlp(hidden=hidden, width=4 * hidden, prefix="ffn")
    return Architecture(
        family="mpt",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(Layer((attention, mlp), norm("norm_1", hidden) + norm("norm_2", hidden)),) * config.n_layers,
        embedding=embedding("transformer.wte", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("transformer.norm_f", hidden),
        max_context=config.max_seq_len,
        layer_names="transformer.blocks",
        dtype=config.dtype,
    )


def _refuse_other_layouts(config: Config) -> None:
    """The reference class ignores these keys, the published remote code does not."""
    attention = config.attn_config
    if attention.attn_type != "multihead_attention":
        raise config.refusal("attn_config.attn_type", f"is {attention.attn_type!r}; only multihead_attention is read")
    if attention.qk_ln:
        raise config.refusal("attn_config.qk_ln", "is true; norms on queries and keys are not read")
    if not attention.alibi:
        raise config.refusal("attn_config.alibi", "is false; other positions than ALiBi are not read")
    if not config.no_bias:
        raise config.refusal("no_bias", "is false; an MPT with biases is not read")
    if config.expansion_ratio != 4:
        raise config.refusal("expansion_ratio", f"is {config.expansion_ratio:g}; the reference knows 4 only")
