"""Hunyuan dense models: a Llama with norms of queries and keys.

Reference: ``HunYuanDenseV1ForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch, either
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("hunyuan_v1_dense",)

# Keys of the code base that all Hunyuan files carry: a sharing of caches between layers that ``use_cla`` turns on,
# widths of towers that these models do not have, and settings of experts where there is one (no) expert.
UNUSED_KEYS = frozenset(
    {
        "cla_share_factor",
        "dense_list",
        "moe_drop_tokens",
        "moe_random_routing_dropped_token",
        "moe_topk",
        "num_shared_expert",
        "use_mixed_mlp_moe",
        "moe_intermediate_size",
        "position_embedding_xdrope",
        "num_media_embeds",
    }
)


class HunyuanConfig(Decoder):
    """Keys that dense and sparse Hunyuan models share."""

    intermediate_size: Count
    head_dim: Count | None = Field(default=None, validation_alias=either("head_dim", "attention_head_dim"))
    attention_bias: Switch = False
    use_qk_norm: Switch = True
    use_cla: Switch = False


class Config(HunyuanConfig):
    """Keys that decide the counts."""

    HARMLESS: ClassVar[frozenset[str]] = UNUSED_KEYS | {"attention_head_dim"}

    num_experts: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    if (config.num_experts or 1) > 1:
        raise config.refusal("num_experts", f"is {config.num_experts}, and this family is dense")
    hidden = config.hidden_size
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    layers = (pre_norm_layer(hunyuan_attention(config), mlp, hidden=hidden),) * config.num_hidden_layers
    return decoder(config, family="hunyuan_v1_dense", layers=layers)


def hunyuan_attention(config: HunyuanConfig) -> Attention:
    """Grouped-query attention with a norm over each head's query and key.

    Raises:
        PlanError: layers share caches, which no published model of these types does.
    """
    if config.use_cla:
        raise config.refusal("use_cla", "is true, and the layers that share a cache are not known")
    return attention_of(
        config,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        head_norms=config.use_qk_norm,
        norm_names=("query_layernorm", "key_layernorm"),
    )
