"""Mamba-2: nothing but Mamba-2 mixers (Mamba-Codestral).

Reference: ``Mamba2ForCausalLM`` of transformers, names as in the published files.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Layer
from planner.blocks import embedding, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._mamba import check_groups
from planner.state_space_blocks import mamba_2

MODEL_TYPES = ("mamba2",)


class Config(FamilyConfig):
    """Keys that decide the counts; heads and their width give the mixer's channels."""

    # The scan's blocking, a rank of Mamba-1, and what a conversion left (vocab_size is padded already).
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"chunk_size", "time_step_rank", "n_layer", "pad_vocab_size_multiple"}
    )

    hidden_size: Count
    num_hidden_layers: Layers
    num_heads: Count
    head_dim: Count
    n_groups: Count
    state_size: Count
    conv_kernel: Count
    expand: Count | None = None
    intermediate_size: Count | None = None
    use_bias: Switch = False
    use_conv_bias: Switch = True
    vocab_size: Count
    tie_word_embeddings: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers, each one norm and one mixer."""
    hidden = config.hidden_size
    _check_width(config)
    mixer = mamba_2(
        hidden=hidden,
        heads=config.num_heads,
        head_dim=config.head_dim,
        groups=config.n_groups,
        state=config.state_size,
        kernel=config.conv_kernel,
        convolution_bias=config.use_conv_bias,
        bias=config.use_bias,
    )
    return Architecture(
        family="mamba2",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(Layer((mixer,), norm("norm", hidden)),) * config.num_hidden_layers,
        embedding=embedding("backbone.embeddings", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("backbone.norm_f", hidden),
        layer_names="backbone.layers",
        dtype=config.dtype,
    )


def _check_width(config: Config) -> None:
    """Every statement of the file about the mixer's channels has to agree."""
    inner = config.num_heads * config.head_dim
    if config.expand is not None and config.expand * config.hidden_size != inner:
        raise config.refusal("expand", f"is {config.expand}; times the hidden size that is not the {inner:,} channels")
    if config.intermediate_size not in (None, inner):
        raise config.refusal("intermediate_size", f"is {config.intermediate_size}; heads make {inner:,} channels")
    check_groups(config, "n_groups", config.n_groups, config.num_heads)
