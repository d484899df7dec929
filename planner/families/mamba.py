"""Mamba: nothing but Mamba-1 mixers, no attention and no feed-forward block; Falcon Mamba is the same.

Reference: ``MambaForCausalLM`` and ``FalconMambaForCausalLM`` of transformers. The norms that Falcon Mamba adds inside
its mixers have no weights. ``intermediate_size`` decides where the file has it, ``expand`` only where it has not.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from planner.architecture import Architecture, Layer
from planner.blocks import embedding, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._mamba import step_rank
from planner.state_space_blocks import mamba_1

MODEL_TYPES = ("mamba", "falcon_mamba")


class Config(FamilyConfig):
    """Keys that decide the counts."""

    # Left from the checkpoint's conversion (vocab_size is padded already); switches between scans that do the same.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"n_layer", "pad_vocab_size_multiple", "use_mambapy", "use_falcon_mambapy"}
    )

    hidden_size: Count
    num_hidden_layers: Layers
    state_size: Count
    conv_kernel: Count
    intermediate_size: Count | None = None
    expand: Count | None = None
    time_step_rank: Count | Literal["auto"] = "auto"
    use_bias: Switch = False
    use_conv_bias: Switch = True
    vocab_size: Count
    tie_word_embeddings: Switch = True

    @property
    def inner(self) -> int:
        """Channels of a mixer."""
        if self.intermediate_size is None and self.expand is None:
            raise self.refusal("intermediate_size", "and expand are both missing; one of them gives the mixer's width")
        return self.intermediate_size or self.hidden_size * (self.expand or 0)


def read(config: Config) -> Architecture:
    """A stack of equal layers, each one norm and one mixer."""
    hidden = config.hidden_size
    mixer = mamba_1(
        hidden=hidden,
        inner=config.inner,
        state=config.state_size,
        step_rank=step_rank(hidden, config.time_step_rank),
        kernel=config.conv_kernel,
        convolution_bias=config.use_conv_bias,
        bias=config.use_bias,
    )
    return Architecture(
        family="mamba",
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
