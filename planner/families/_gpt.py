"""What GPT-2's descendants share: its key names and its outer tensors.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Weight
from planner.blocks import embedding, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch, either
from planner.families._dense import head_bias


class GptConfig(FamilyConfig):
    """GPT-2's keys, or their later names; an absent or ``null`` inner width is four times the hidden one."""

    n_embd: Count = Field(validation_alias=either("n_embd", "hidden_size"))
    n_layer: Layers = Field(validation_alias=either("n_layer", "num_hidden_layers"))
    n_head: Count = Field(validation_alias=either("n_head", "num_attention_heads"))
    n_inner: Count | None = Field(default=None, validation_alias=either("n_inner", "intermediate_size"))
    n_positions: Count | None = Field(default=None, validation_alias=either("n_positions", "max_position_embeddings"))
    vocab_size: Count
    tie_word_embeddings: Switch = True
    add_cross_attention: Switch = False

    @property
    def inner(self) -> int:
        """The width of the MLP."""
        return self.n_inner or 4 * self.n_embd

    @property
    def head_dim(self) -> int:
        """The width of a head."""
        return self.head_width(self.n_embd, self.n_head)


def transformer(
    config: GptConfig,
    *,
    family: str,
    layer: Layer,
    position_table: Weight | None = None,
    has_head_bias: bool = False,
) -> Architecture:
    """Equal layers with GPT-2's outer tensors around them: ``transformer.wte``, ``transformer.ln_f``, ``lm_head``."""
    hidden, vocabulary = config.n_embd, config.vocab_size
    if config.add_cross_attention:
        raise config.refusal("add_cross_attention", "is true; the cross-attention of an outer model is not read here")
    outer = norm("transformer.ln_f", hidden, bias=True)
    outer += () if position_table is None else (position_table,)
    return Architecture(
        family=family,
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(layer,) * config.n_layer,
        embedding=embedding("transformer.wte", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=outer + (head_bias("lm_head", vocabulary) if has_head_bias else ()),
        max_context=config.n_positions,
        layer_names="transformer.h",
        dtype=config.dtype,
    )
