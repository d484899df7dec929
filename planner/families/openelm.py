"""OpenELM: query heads, key heads and the MLP's width grow from layer to layer.

Reference: ``OpenELMConfig`` and ``OpenELMForCausalLM`` of the published repositories (remote code).
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Mlp, Part
from planner.blocks import embedding, linear, lm_head, norm
from planner.config import Count, Factor, FamilyConfig, Layers, Switch
from planner.families._dense import fused_attention, grouped

MODEL_TYPES = ("openelm",)


class Config(FamilyConfig):
    """Keys that decide the counts; published files write the lists out, one entry a layer."""

    model_dim: Count
    num_transformer_layers: Layers
    head_dim: Count
    num_query_heads: list[Count]
    num_kv_heads: list[Count]
    ffn_multipliers: list[Factor]
    ffn_dim_divisor: Count = 256
    ffn_with_glu: Switch = True
    normalize_qk_projections: Switch = True
    normalization_layer_name: str = "rms_norm"
    share_input_output_layers: Switch = True
    vocab_size: Count
    max_context_length: Count | None = None


def read(config: Config) -> Architecture:
    """One layer per entry of the lists."""
    for key in ("num_query_heads", "num_kv_heads", "ffn_multipliers"):
        if len(getattr(config, key)) != config.num_transformer_layers:
            entries = len(getattr(config, key))
            raise config.refusal(key, f"has {entries} entries for {config.num_transformer_layers} layers")
    if config.normalization_layer_name != "rms_norm":
        raise config.refusal("normalization_layer_name", f"is {config.normalization_layer_name!r}, not 'rms_norm'")
    hidden, tied = config.model_dim, config.share_input_output_layers
    return Architecture(
        family="openelm",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(_layer(config, index) for index in range(config.num_transformer_layers)),
        embedding=embedding("transformer.token_embeddings", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=tied),
        outer=norm("transformer.norm", hidden),
        max_context=config.max_context_length,
        layer_names="transformer.layers",
        dtype=config.dtype,
    )


def _layer(config: Config, index: int) -> Layer:
    hidden, heads = config.model_dim, config.num_query_heads[index]
    head_norms = norm("attn.q_norm", config.head_dim) + norm("attn.k_norm", config.head_dim)
    attention = fused_attention(
        ("attn.qkv_proj", "attn.out_proj"),
        hidden=hidden,
        heads=heads,
        kv_heads=grouped(config, heads, config.num_kv_heads[index], "num_kv_heads"),
        head_dim=config.head_dim,
        extra=head_norms if config.normalize_qk_projections else (),
    )
    width = _divisible(config.ffn_multipliers[index] * hidden, config.ffn_dim_divisor)
    mlp = Mlp(
        linear("ffn.proj_1", inputs=hidden, outputs=(2 if config.ffn_with_glu else 1) * width, part=Part.MLP)
        + linear("ffn.proj_2", inputs=width, outputs=hidden, part=Part.MLP)
    )
    return Layer((attention, mlp), norm("attn_norm", hidden) + norm("ffn_norm", hidden))


def _divisible(width: float, divisor: int) -> int:
    """The nearest multiple of ``divisor`` that is not more than a tenth below ``width``."""
    nearest = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * width else nearest
