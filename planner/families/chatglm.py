"""ChatGLM 2, 3 and GLM-4-9B as first published: one fused matrix, grouped queries under a name of their own.

Reference: ``configuration_chatglm.py`` and ``modeling_chatglm.py`` of the published checkpoints (THUDM/chatglm3-6b,
glm-4-9b). The first ChatGLM-6B has the same ``model_type`` and another layout; it is refused by its keys.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Layer, Weight
from planner.blocks import norm
from planner.config import Count, Layers, Switch, either
from planner.families._decoder import Decoder, decoder, fused_attention, fused_mlp

MODEL_TYPES = ("chatglm",)


class Config(Decoder):
    """Keys that decide the counts. The defaults are those of the published ``ChatGLMConfig``."""

    # Where the residual branches off, not what is stored.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"apply_residual_connection_post_layernorm", "rope_ratio"})

    num_hidden_layers: Layers = Field(validation_alias=either("num_layers", "num_hidden_layers"))
    head_dim: Count | None = Field(default=None, validation_alias=either("kv_channels", "head_dim"))
    vocab_size: Count = Field(default=65024, validation_alias=either("padded_vocab_size", "vocab_size"))
    ffn_hidden_size: Count = 13696
    max_position_embeddings: Count | None = Field(
        default=None, validation_alias=either("seq_length", "max_position_embeddings")
    )
    multi_query_attention: Switch = False
    multi_query_group_num: Count = 1
    add_bias_linear: Switch = False
    add_qkv_bias: Switch = False
    rmsnorm: Switch = True
    post_layer_norm: Switch = True

    def defaulted(self) -> tuple[str, ...]:
        """Without the number of groups where there are none."""
        return tuple(t for t in super().defaulted() if self.multi_query_attention or "multi_query_group" not in t)


def read(config: Config) -> Architecture:
    """A stack of equal layers inside the ``encoder``."""
    path = "transformer.encoder"
    return decoder(
        config,
        family="chatglm",
        layers=(_layer(config),) * config.num_hidden_layers,
        outer=_norm(config, f"{path}.final_layernorm") if config.post_layer_norm else (),
        embedding_name="transformer.embedding.word_embeddings",
        head_name="transformer.output_layer",
        layer_names=f"{path}.layers",
    )


def _layer(config: Config) -> Layer:
    hidden, heads, bias = config.hidden_size, config.num_attention_heads, config.add_bias_linear
    groups = config.multi_query_group_num if config.multi_query_attention else heads
    if heads % groups:
        raise config.refusal("multi_query_group_num", f"is {groups} and does not divide the {heads} query heads")
    attention = fused_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=groups,
        head_dim=config.head_size,
        names=("self_attention.query_key_value", "self_attention.dense"),
        bias=bias or config.add_qkv_bias,
        output_bias=bias,
    )
    names = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
    mlp = fused_mlp(hidden=hidden, width=config.ffn_hidden_size, names=names, bias=bias)
    return Layer((attention, mlp), _norm(config, "input_layernorm") + _norm(config, "post_attention_layernorm"))


def _norm(config: Config, name: str) -> tuple[Weight, ...]:
    return norm(name, config.hidden_size, bias=not config.rmsnorm)
