"""One file per ``config.json`` dialect: ``MODEL_TYPES``, ``Config``, ``read(config) -> Architecture``.

A family file is found by its presence in this package. To keep the start fast, only the file that claims the
``model_type`` at hand is imported: the claims are read from the source text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from planner.architecture import Architecture
from planner.errors import PlanError, did_you_mean
from planner.resources import package

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_CLAIM = re.compile(r"^MODEL_TYPES = (\(.*?\))$", re.MULTILINE | re.DOTALL)


@cache
def claims() -> dict[str, str]:
    """``model_type`` -> name of the family file that reads it.

    Raises:
        RuntimeError: two files claim one ``model_type`` (a mistake in this package).
    """
    found: dict[str, str] = {}
    for entry in (package() / "families").iterdir():
        name = entry.name.removesuffix(".py")
        if not entry.name.endswith(".py") or name.startswith("_"):
            continue
        for model_type in _claimed(entry):
            if model_type in found:
                raise RuntimeError(f"{model_type} is claimed by {found[model_type]} and {name}")
            found[model_type] = name
    return found


def _claimed(entry: Traversable) -> tuple[str, ...]:
    match = _CLAIM.search(entry.read_text(encoding="utf-8"))
    return tuple(ast.literal_eval(match.group(1))) if match else ()


def _family_of(model_type: str) -> str | None:
    """The file that reads ``model_type``; one of that very name is looked at first, to leave the others unopened."""
    if model_type.isidentifier():
        entry = (package() / "families") / f"{model_type}.py"
        if entry.is_file() and model_type in _claimed(entry):
            return model_type
    return claims().get(model_type)


def read_architecture(raw: Mapping[str, Any], *, source: str) -> Architecture:
    """What the model of a ``config.json`` (already parsed, a JSON object) is made of.

    Raises:
        PlanError: unknown ``model_type``, a missing or invalid key, or a structural key that the family does not read.
    """
    return read_nested(raw, source=source)


def read_nested(
    raw: Mapping[str, Any], *, source: str, prefix: str = "", model_type: str | None = None
) -> Architecture:
    """The same for a config inside another one (``text_config``); ``model_type`` is the default for a silent one."""
    named = raw.get("model_type") or model_type
    if not isinstance(named, str):
        raise PlanError(
            f"{source}: {prefix}model_type is {'missing' if named is None else repr(named)}; it names the family that "
            "knows how to read the other keys",
            field=f"{prefix}model_type",
        )
    family = _family_of(named)
    if family is None:
        raise PlanError(
            f"{source}: {prefix}model_type {named!r} is not read by any family{did_you_mean(named, claims())}",
            field=f"{prefix}model_type",
        )
    module = import_module(f"{__name__}.{family}")
    config = module.Config.parse({**raw, "model_type": named}, source=source, prefix=prefix)
    architecture: Architecture = module.read(config)
    assumed = tuple(f"{prefix}{text} (absent in the config, the family's default)" for text in config.defaulted())
    return replace(architecture, assumed=assumed + architecture.assumed)
