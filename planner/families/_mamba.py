"""What the families with Mamba mixers share: checks of their widths and the keys of the hybrids with Mamba-2.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from typing import ClassVar, Literal

from planner.architecture import StateSpace
from planner.config import Count, FamilyConfig, Switch
from planner.families._decoder import Decoder
from planner.state_space_blocks import mamba_2

# The names of layer kinds, old ones first.
MIXERS = {"mamba": "mamba", "linear_attention": "mamba", "attention": "attention", "full_attention": "attention"}


class HybridDecoder(Decoder):
    """A decoder of which some or all layers hold a Mamba-2 mixer; models without one may lack its keys.

    ``tie_word_embeddings`` and the other keys of a decoder keep their usual meaning.
    """

    # The scan's blocking, and the order of two operations without weights.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"mamba_chunk_size", "mamba_norm_before_gate"})

    mamba_n_heads: Count | None = None
    mamba_d_head: Count | Literal["auto"] = "auto"
    mamba_n_groups: Count | None = None
    mamba_d_state: Count | None = None
    mamba_d_conv: Count | None = None
    mamba_expand: Count | None = None
    mamba_conv_bias: Switch = True
    mamba_proj_bias: Switch = False
    attention_bias: Switch = False


def needed(config: FamilyConfig, key: str, owner: str) -> int:
    """A number that only some layers need.

    Raises:
        PlanError: the file does not give it, or gives zero.
    """
    value = getattr(config, key)
    if not isinstance(value, int) or not value:
        raise config.refusal(key, f"is {'0' if value == 0 else 'missing or null'}, and the model has {owner}")
    return value


def stated(config: FamilyConfig, *keys: str) -> None:
    """Check that the file has these keys, be it with null, which then has a meaning of its own.

    Raises:
        PlanError: one of them is absent.
    """
    for key in keys:
        if key not in config.model_fields_set:
            raise config.refusal(key, f"is missing, and model_type {config.model_type!r} has no default for it")


def mixer_of(
    config: HybridDecoder,
    *,
    inner: int | None = None,
    gated_norm: bool = True,
    output_bias: bool | None = None,
) -> StateSpace:
    """The Mamba-2 mixer of a hybrid; ``inner`` channels, ``mamba_expand`` × ``hidden_size`` where not given."""
    owner = "Mamba layers"
    heads, groups = needed(config, "mamba_n_heads", owner), needed(config, "mamba_n_groups", owner)
    width = inner or needed(config, "mamba_expand", owner) * config.hidden_size
    if width % heads or config.mamba_d_head not in ("auto", width // heads):
        raise config.refusal(
            "mamba_d_head", f"is {config.mamba_d_head!r}; {heads} heads of it do not make the {width:,} channels"
        )
    check_groups(config, "mamba_n_groups", groups, heads)
    return mamba_2(
        hidden=config.hidden_size,
        heads=heads,
        head_dim=width // heads,
        groups=groups,
        state=needed(config, "mamba_d_state", owner),
        kernel=needed(config, "mamba_d_conv", owner),
        convolution_bias=config.mamba_conv_bias,
        bias=config.mamba_proj_bias,
        output_bias=output_bias,
        gated_norm=gated_norm,
        prefix="mamba",
    )


def check_groups(config: FamilyConfig, key: str, groups: int, heads: int) -> None:
    """Refuse groups that heads do not divide into.

    Raises:
        PlanError: the division leaves a remainder.
    """
    if heads % groups:
        raise config.refusal(key, f"is {groups} and does not divide the {heads} heads of the Mamba mixer")


def step_rank(hidden: int, rank: int | Literal["auto"]) -> int:
    """The rank of a Mamba-1 mixer's steps; ``auto`` is a sixteenth of the hidden size, rounded up."""
    return -(-hidden // 16) if rank == "auto" else rank
