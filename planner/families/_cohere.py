"""What the Cohere dialects share: their key set, and blocks that stand side by side behind one norm.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Attention, Layer, Mlp, Moe
from planner.blocks import grouped_query_attention, norm
from planner.config import Count, Switch, either
from planner.families._decoder import Decoder


class CohereDecoder(Decoder):
    """Keys of every Cohere model; Command R says how long its context is in ``model_max_length``."""

    intermediate_size: Count
    attention_bias: Switch = False
    tie_word_embeddings: Switch = True
    max_position_embeddings: Count | None = Field(
        default=None, validation_alias=either("model_max_length", "max_position_embeddings")
    )


def attention_of(
    config: CohereDecoder, *, window: int | None = None, query_key_norm: tuple[int, int] | None = None
) -> Attention:
    """Grouped-query attention whose one bias flag is that of all four projections."""
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=config.head_size,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=query_key_norm,
        window=window,
    )


def parallel(*blocks: Attention | Mlp | Moe, hidden: int) -> Layer:
    """A layer whose blocks read the same norm."""
    return Layer(blocks, norm("input_layernorm", hidden))
