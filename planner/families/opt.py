"""OPT: learned positions with two rows more than the context, a plain MLP, biases and LayerNorms by switch.

Reference: ``OPTConfig`` and ``OPTForCausalLM`` of transformers. OPT-350m embeds into a narrower space and norms after
its blocks.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Part, Weight
from planner.blocks import embedding, grouped_query_attention, linear, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._dense import bare_mlp, positions

MODEL_TYPES = ("opt",)
_OFFSET = 2


class Config(FamilyConfig):
    """Keys that decide the counts of an OPT."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    ffn_dim: Count
    vocab_size: Count
    max_position_embeddings: Count
    word_embed_proj_dim: Count | None = None
    do_layer_norm_before: Switch = True
    remove_final_layer_norm: Switch = Field(default=False, validation_alias="_remove_final_layer_norm")
    enable_bias: Switch = True
    layer_norm_elementwise_affine: Switch = True
    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    width = config.word_embed_proj_dim or config.hidden_size
    return Architecture(
        family="opt",
        model_type=config.model_type,
        hidden=config.hidden_size,
        vocabulary=config.vocab_size,
        layers=(_layer(config),) * config.num_hidden_layers,
        embedding=embedding("model.decoder.embed_tokens", rows=config.vocab_size, width=width),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=width, tied=config.tie_word_embeddings),
        outer=_outer(config, width),
        max_context=config.max_position_embeddings,
        layer_names="model.decoder.layers",
        dtype=config.dtype,
    )


def _layer(config: Config) -> Layer:
    hidden, heads, bias = config.hidden_size, config.num_attention_heads, config.enable_bias
    attention = grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        bias=bias,
        output_bias=bias,
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
    )
    mlp = bare_mlp(hidden=hidden, width=config.ffn_dim, bias=bias)
    norms = _norm(config, "self_attn_layer_norm") + _norm(config, "final_layer_norm")
    return Layer((attention, mlp), norms)


def _outer(config: Config, width: int) -> tuple[Weight, ...]:
    hidden = config.hidden_size
    rows = config.max_position_embeddings + _OFFSET
    weights: tuple[Weight, ...] = (positions("model.decoder.embed_positions", rows=rows, width=hidden),)
    if width != hidden:
        weights += linear("model.decoder.project_in", inputs=width, outputs=hidden, part=Part.OTHER)
        weights += linear("model.decoder.project_out", inputs=hidden, outputs=width, part=Part.OTHER)
    if config.do_layer_norm_before and not config.remove_final_layer_norm:
        weights += _norm(config, "model.decoder.final_layer_norm")
    return weights


def _norm(config: Config, name: str) -> tuple[Weight, ...]:
    return norm(name, config.hidden_size, bias=True) if config.layer_norm_elementwise_affine else ()
