"""Every pinned configuration and its variants, counted by the reference implementation too."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import tests.families
from planner.counting import count_parameters
from planner.families import read_architecture
from tests.families.pinned import Pinned
from tests.oracle.reference import unique_parameters, variants

pytestmark = pytest.mark.oracle


def cases() -> Iterator[Any]:
    for module in pkgutil.iter_modules(tests.families.__path__, "tests.families."):
        if not module.name.startswith("tests.families.test_"):
            continue
        pinned: Pinned
        for pinned in getattr(import_module(module.name), "PINNED", ()):
            if pinned.reference:
                for label, config in variants(pinned.config, pinned.variants):
                    yield pytest.param(config, id=f"{pinned.name}: {label}")


@pytest.mark.parametrize("config", list(cases()))
def test_the_count_equals_the_reference_implementation(config: dict[str, Any]) -> None:
    ours = count_parameters(read_architecture(config, source="config.json")).total
    assert ours == unique_parameters(config)
