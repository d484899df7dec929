"""BioGPT and XGLM: an OPT-like decoder; BioGPT with learned positions (two rows more), XGLM with computed ones.

Reference: ``BioGptForCausalLM`` and ``XGLMForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Weight
from planner.blocks import embedding, grouped_query_attention, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch, either
from planner.families._dense import bare_mlp, positions

MODEL_TYPES = ("biogpt", "xglm")
_OFFSET = 2


class Config(FamilyConfig):
    """Keys that decide the counts, under BioGPT's or XGLM's names."""

    hidden_size: Count = Field(validation_alias=either("hidden_size", "d_model"))
    num_hidden_layers: Layers = Field(validation_alias=either("num_hidden_layers", "num_layers"))
    num_attention_heads: Count = Field(validation_alias=either("num_attention_heads", "attention_heads"))
    intermediate_size: Count = Field(validation_alias=either("intermediate_size", "ffn_dim"))
    max_position_embeddings: Count
    vocab_size: Count
    tie_word_embeddings: Switch = True
    add_cross_attention: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    if config.add_cross_attention:
        raise config.refusal("add_cross_attention", "is true; the cross-attention of an outer model is not read here")
    hidden, vocabulary, biogpt = config.hidden_size, config.vocab_size, config.model_type == "biogpt"
    root, head = ("biogpt", "output_projection") if biogpt else ("model", "lm_head")
    outer: tuple[Weight, ...] = norm(f"{root}.layer_norm", hidden, bias=True)
    if biogpt:
        outer += (positions(f"{root}.embed_positions", rows=config.max_position_embeddings + _OFFSET, width=hidden),)
    return Architecture(
        family="biogpt",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(_layer(config),) * config.num_hidden_layers,
        embedding=embedding(f"{root}.embed_tokens", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings, name=head),
        outer=outer,
        max_context=config.max_position_embeddings,
        layer_names=f"{root}.layers",
        dtype=config.dtype,
    )


def _layer(config: Config) -> Layer:
    hidden, heads = config.hidden_size, config.num_attention_heads
    attention = grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        bias=True,
        output_bias=True,
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
    )
    mlp = bare_mlp(hidden=hidden, width=config.intermediate_size)
    return Layer(
        (attention, mlp), norm("self_attn_layer_norm", hidden, bias=True) + norm("final_layer_norm", hidden, bias=True)
    )
