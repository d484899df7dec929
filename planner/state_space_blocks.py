"""Builders for selective state-space mixers (Mamba-1 and Mamba-2), siblings of those in ``blocks``.

Every function takes keywords only and returns the tensors with the names that published checkpoints use, relative to
the layer. The convolution keeps as many columns per channel as its kernel is wide (engines may keep one fewer).

FLOP of a scan are counted per token and element of the state, exponentials and terms without the state left out, and
those of the causal convolution (one multiplication and one addition per channel and tap) are added:

* Mamba-1 (Gu and Dao, arXiv:2312.00752, algorithm 2): step · A 1, step · B · x 1, decay and sum 2, C · state 2 = 6.
* Mamba-2 (Dao and Gu, arXiv:2405.21060, section 3): one decay per head, so decay and sum 2, outer product 1,
  C · state 2 = 5.
"""

from __future__ import annotations

from planner.architecture import Part, StateSpace, Weight
from planner.blocks import linear, norm, vector

MAMBA_1_FLOPS = 6
MAMBA_2_FLOPS = 5


def mamba_1(
    *,
    hidden: int,
    inner: int,
    state: int,
    step_rank: int,
    kernel: int,
    convolution_bias: bool = True,
    bias: bool = False,
    norms: bool = False,
    prefix: str = "mixer",
    state_bytes: int = 4,
) -> StateSpace:
    """A Mamba-1 mixer: ``inner`` channels with ``state`` elements each, steps of rank ``step_rank``.

    ``norms`` adds Jamba's norms of the step and of both projections of the state. ``bias`` is that of the input and
    output projections.
    """
    weights = _matrix(f"{prefix}.in_proj", hidden, 2 * inner, bias)
    weights += causal_convolution(f"{prefix}.conv1d", channels=inner, kernel=kernel, bias=convolution_bias)
    weights += _matrix(f"{prefix}.x_proj", inner, step_rank + 2 * state)
    weights += _matrix(f"{prefix}.dt_proj", step_rank, inner, bias=True)
    weights += vector(f"{prefix}.A_log", (inner, state), Part.STATE_SPACE)
    weights += vector(f"{prefix}.D", inner, Part.STATE_SPACE)
    weights += _matrix(f"{prefix}.out_proj", inner, hidden, bias)
    if norms:
        for name, width in (("dt", step_rank), ("b", state), ("c", state)):
            weights += norm(f"{prefix}.{name}_layernorm", width)
    return StateSpace(
        kind="mamba",
        weights=weights,
        state=inner * state,
        convolution=inner * kernel,
        scan_flops=MAMBA_1_FLOPS * inner * state + 2 * inner * kernel,
        state_bytes=state_bytes,
    )


def mamba_2(
    *,
    hidden: int,
    heads: int,
    head_dim: int,
    groups: int,
    state: int,
    kernel: int,
    convolution_bias: bool = True,
    bias: bool = False,
    output_bias: bool | None = None,
    gated_norm: bool = True,
    prefix: str = "mixer",
    state_bytes: int = 4,
) -> StateSpace:
    """A Mamba-2 mixer: ``heads`` × ``head_dim`` channels with ``state`` elements each, inputs shared by ``groups``.

    ``bias`` is that of the input projection and, unless ``output_bias`` differs, of the output projection.
    ``gated_norm``: a norm before the output projection.
    """
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    weights = _matrix(f"{prefix}.in_proj", hidden, inner + channels + heads, bias)
    weights += causal_convolution(f"{prefix}.conv1d", channels=channels, kernel=kernel, bias=convolution_bias)
    weights += vector(f"{prefix}.dt_bias", heads, Part.STATE_SPACE, is_bias=True)
    weights += vector(f"{prefix}.A_log", heads, Part.STATE_SPACE)
    weights += vector(f"{prefix}.D", heads, Part.STATE_SPACE)
    if gated_norm:
        weights += norm(f"{prefix}.norm", inner)
    weights += _matrix(f"{prefix}.out_proj", inner, hidden, bias if output_bias is None else output_bias)
    return StateSpace(
        kind="mamba-2",
        weights=weights,
        state=inner * state,
        convolution=channels * kernel,
        scan_flops=MAMBA_2_FLOPS * inner * state + 2 * channels * kernel,
        state_bytes=state_bytes,
    )


def causal_convolution(name: str, *, channels: int, kernel: int, bias: bool) -> tuple[Weight, ...]:
    """A convolution over time, one kernel per channel; its arithmetic is part of the scan's."""
    weights = vector(name, (channels, 1, kernel), Part.STATE_SPACE)
    return weights + vector(name, channels, Part.STATE_SPACE, is_bias=True) if bias else weights


def _matrix(name: str, inputs: int, outputs: int, bias: bool = False) -> tuple[Weight, ...]:
    return linear(name, inputs=inputs, outputs=outputs, part=Part.STATE_SPACE, bias=bias)
