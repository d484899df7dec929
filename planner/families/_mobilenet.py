"""MobileNetV5's encoder, the picture tower of Gemma 3n.

No dialect by itself (the name begins with an underscore). Reference: ``mobilenetv5_300m_enc`` of timm 1.0, whose names
are kept; batch norms are RMS norms there, and no convolution but the stem's has a bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.architecture import Part, Weight
from planner.vision_blocks import convolution, matrix, scale_norm, table

STEM = 64
FUSED = 2048  # channels behind the fusion of the last two stages


@dataclass(frozen=True, slots=True)
class Edge:
    """A full convolution that expands, and a matrix that contracts."""

    kernel: int
    expansion: int


@dataclass(frozen=True, slots=True)
class Inverted:
    """A universal inverted bottleneck; a kernel of 0 means that there is no such convolution."""

    first: int
    middle: int
    expansion: int


@dataclass(frozen=True, slots=True)
class MultiQuery:
    """Attention with one key and value head; ``kernel``: keys and values come from a coarser grid."""

    heads: int
    width: int
    kernel: int


Kind = Edge | Inverted | MultiQuery
Stage = tuple[int, Sequence[Kind]]  # channels, blocks

_TAIL = Inverted(0, 0, 2)
MOBILENET_V5_300M: tuple[Stage, ...] = (
    (128, (Edge(3, 4),) * 3),
    (256, (Inverted(3, 5, 6), Inverted(5, 0, 4), Inverted(3, 0, 4), Inverted(5, 0, 4), Inverted(3, 0, 4))),
    (
        640,
        (Inverted(5, 5, 6), *(Inverted(5, 0, 4),) * 7, Inverted(0, 0, 1), *(MultiQuery(12, 64, 3), _TAIL) * 14),
    ),
    (1280, (Inverted(5, 5, 6), *(MultiQuery(16, 96, 0), _TAIL) * 19)),
)


def mobilenet_v5(path: str, stages: Sequence[Stage]) -> tuple[Weight, ...]:
    """Stem, stages, and the fusion of the last two stages."""
    found = convolution(f"{path}.conv_stem.conv", channels=3, kernel=(3, 3), outputs=STEM)
    found += scale_norm(f"{path}.conv_stem.bn", STEM)
    channels = STEM
    for stage, (outputs, blocks) in enumerate(stages):
        for number, block in enumerate(blocks):
            found += _block(f"{path}.blocks.{stage}.{number}", block, channels, outputs)
            channels = outputs
    fused = sum(outputs for outputs, _ in stages[-2:])
    return (
        found
        + _bottleneck(f"{path}.msfa.ffn", _TAIL, fused, FUSED, scaled=False)
        + scale_norm(f"{path}.msfa.norm", FUSED)
    )


def _block(path: str, block: Kind, inputs: int, outputs: int) -> tuple[Weight, ...]:
    match block:
        case Edge():
            return _edge(path, block, inputs, outputs)
        case Inverted():
            return _bottleneck(path, block, inputs, outputs)
        case MultiQuery():
            return _attention(path, block, inputs)


def _edge(path: str, block: Edge, inputs: int, outputs: int) -> tuple[Weight, ...]:
    middle, kernel = inputs * block.expansion, (block.kernel, block.kernel)
    return (
        convolution(f"{path}.conv_exp", channels=inputs, kernel=kernel, outputs=middle, bias=False)
        + scale_norm(f"{path}.bn1", middle)
        + matrix(f"{path}.conv_pwl", inputs=middle, outputs=outputs, bias=False)
        + scale_norm(f"{path}.bn2", outputs)
    )


def _bottleneck(path: str, block: Inverted, inputs: int, outputs: int, *, scaled: bool = True) -> tuple[Weight, ...]:
    middle = inputs * block.expansion
    return (
        (_depthwise(f"{path}.dw_start", inputs, block.first, names=("conv", "bn")) if block.first else ())
        + matrix(f"{path}.pw_exp.conv", inputs=inputs, outputs=middle, bias=False)
        + scale_norm(f"{path}.pw_exp.bn", middle)
        + (_depthwise(f"{path}.dw_mid", middle, block.middle, names=("conv", "bn")) if block.middle else ())
        + matrix(f"{path}.pw_proj.conv", inputs=middle, outputs=outputs, bias=False)
        + scale_norm(f"{path}.pw_proj.bn", outputs)
        + (table(f"{path}.layer_scale.gamma", outputs) if scaled else ())
    )


def _attention(path: str, block: MultiQuery, channels: int) -> tuple[Weight, ...]:
    inner = block.heads * block.width
    found = scale_norm(f"{path}.norm", channels)
    found += matrix(f"{path}.attn.query.proj", inputs=channels, outputs=inner, bias=False)
    for name in ("key", "value"):
        if block.kernel:
            found += _depthwise(f"{path}.attn.{name}", channels, block.kernel, names=("down_conv", "norm"))
        found += matrix(f"{path}.attn.{name}.proj", inputs=channels, outputs=block.width, bias=False)
    found += matrix(f"{path}.attn.output.proj", inputs=inner, outputs=channels, bias=False)
    return found + table(f"{path}.layer_scale.gamma", channels)


def _depthwise(path: str, channels: int, kernel: int, *, names: tuple[str, str]) -> tuple[Weight, ...]:
    """A convolution of each channel with itself, and a norm."""
    taps = Weight(f"{path}.{names[0]}", (channels, 1, kernel, kernel), Part.VISION)
    return (taps, *scale_norm(f"{path}.{names[1]}", channels))
