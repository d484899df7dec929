"""Finds the two data folders, in the installed wheel or beside the package in a checkout."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


@cache
def bundled(name: str) -> Traversable:
    """The folder ``hardware`` or ``models``; read with ``.read_text()``, so that a zipped wheel works too."""
    inside = files("planner") / "_bundled" / name
    return inside if inside.is_dir() else Path(__file__).resolve().parents[1] / name
