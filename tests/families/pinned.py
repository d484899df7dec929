"""Counts that somebody else published, as test data: one ``Pinned`` per configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from planner.architecture import Part
from planner.counting import cache_layers, count_parameters, state_elements
from planner.families import read_architecture


@dataclass(frozen=True)
class Pinned:
    """A configuration and what is known about it.

    ``source`` says who counted: a published checkpoint's total, or the reference implementation (transformers 5.24.0
    on the meta device). ``kv_full`` and ``kv_windowed`` are cache bytes per token in 16 bit over all layers of that
    kind, ``state`` bytes per sequence. ``variants`` are changes (dotted key -> values; ``...`` deletes the key) that
    the optional ``oracle`` tests count with the reference implementation; ``reference`` is False where it has none.
    """

    name: str
    config: Mapping[str, Any]
    source: str
    total: int
    parts: Mapping[str, int] = field(default_factory=dict)
    active: int | None = None
    decode_read: int | None = None
    bias: int | None = None
    buffers: int | None = None
    mtp: int | None = None
    kv_full: int | None = None
    kv_windowed: int | None = None
    window: int | None = None
    state: int | None = None
    variants: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    reference: bool = True


def counted(pinned: Pinned) -> dict[str, Any]:
    """Our counts under the names of ``Pinned``."""
    architecture = read_architecture(pinned.config, source=pinned.name)
    counts = count_parameters(architecture)
    groups = cache_layers(architecture)
    state = state_elements(architecture)
    return {
        "total": counts.total,
        "active": counts.active,
        "decode_read": counts.decode_read,
        "bias": counts.bias,
        "buffers": counts.buffers,
        "mtp": counts.mtp,
        "kv_full": sum(2 * g.layers * g.elements for g in groups if g.window is None),
        "kv_windowed": sum(2 * g.layers * g.elements for g in groups if g.window is not None),
        "window": next((g.window for g in groups if g.window is not None), None),
        "state": state.recurrent_bytes + 2 * state.convolution,
        **{f"parts.{part}": n for part, n in counts.by_part.items()},
    }


def expected(pinned: Pinned) -> dict[str, Any]:
    """What ``pinned`` states, without the things it says nothing about."""
    names = ("total", "active", "decode_read", "bias", "buffers", "mtp", "kv_full", "kv_windowed", "window", "state")
    stated = {name: getattr(pinned, name) for name in names if getattr(pinned, name) is not None}
    return stated | {f"parts.{Part(part)}": n for part, n in pinned.parts.items()}


def counts_test(pinned: Sequence[Pinned]) -> Callable[[Pinned], None]:
    """A parametrised test over ``pinned``: ``test_counts = counts_test(PINNED)``."""

    @pytest.mark.parametrize("case", pinned, ids=[case.name for case in pinned])
    def test_counts(case: Pinned) -> None:
        ours = counted(case)
        wanted = expected(case)
        assert {name: ours[name] for name in wanted} == wanted, case.source
        assert sum(n for name, n in ours.items() if name.startswith("parts.")) == ours["total"]

    return test_counts
