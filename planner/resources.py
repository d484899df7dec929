"""Finds the package's own files and the two data folders, in the wheel or beside the package in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@cache
def package() -> Traversable:
    """The folder of this package; in a zipped wheel too. ``importlib.resources`` loads slowly, so it comes last."""
    folder = Path(__file__).parent
    if folder.is_dir():
        return folder
    from importlib.resources import files

    return files("planner")


@cache
def bundled(name: str) -> Traversable:
    """The folder ``hardware`` or ``models``; read with ``.read_text()``, so that a zipped wheel works too."""
    inside = package() / "_bundled" / name
    return inside if inside.is_dir() else Path(__file__).resolve().parents[1] / name
