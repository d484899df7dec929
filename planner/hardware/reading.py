"""Reads a device's YAML file, strictly: every malformed file ends in one sentence that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import yaml

from planner.errors import PlanError, brief
from planner.hardware.records import Device, device_from_mapping

_LARGEST_FILE = 200_000
_DEEPEST = 20


def read_device(path: Path | str) -> Device:
    """The device that a YAML file describes; ``id`` and ``name`` default to the file's name.

    Raises:
        PlanError: no such file, not YAML, or a figure that is missing, malformed or in another unit.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise PlanError(f"{path}: too large for a device; expected at most {_LARGEST_FILE:,} bytes", "gpu")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError(f"{path}: not a text file in UTF-8; expected YAML that describes a device", "gpu") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "cannot be read").lower()
        raise PlanError(f"{path}: {reason}; expected a YAML file that describes a device", "gpu") from None
    return device_from_text(text, str(path), path.stem)


def device_from_text(text: str, where: str, stem: str, *, bundled: bool = False) -> Device:
    """The device that a YAML text describes; ``where`` begins the messages, ``stem`` stands in for a missing id.

    A ``bundled`` text is taken as checked, unless it cannot be read.
    """
    if bundled:
        try:
            return device_from_mapping(yaml.load(text, _Loader))
        except (yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError):
            pass  # the schema says below what is wrong
    from planner.hardware.schema import check

    found = yaml_mapping(text, where)
    whole = {"id": stem, "name": found.get("id", stem)} | found
    check(whole, where)
    return device_from_mapping(whole)


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Safe YAML in which a key may stand only once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is not plain text", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands twice", key.start_mark)
            seen.add(key.value)
        return cast("dict[Any, Any]", super().construct_mapping(node, deep=deep))


def yaml_mapping(text: str, where: str) -> dict[str, Any]:
    """The top-level mapping of a YAML text."""
    try:
        _check_structure(text, where)
        found = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise PlanError(f"{where}: not valid YAML{line}: {error.problem}", "gpu") from None
    except (yaml.YAMLError, ValueError) as error:
        raise PlanError(f"{where}: not valid YAML: {str(error).splitlines()[0]}", "gpu") from None
    if not isinstance(found, dict):
        held = "nothing" if found is None else "a list" if isinstance(found, list) else brief(found)
        raise PlanError(f"{where}: holds {held}; expected a mapping such as 'bandwidth: 3.35 TB/s'", "gpu")
    return found


def _check_structure(text: str, where: str) -> None:
    """Refuse aliases and deep nesting before anything is built: both can make a small file huge or crash the reader."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        line = event.start_mark.line + 1 if event.start_mark else 1
        if depth > _DEEPEST:
            raise PlanError(f"{where}: nested more than {_DEEPEST} deep at line {line}", "gpu")
        if isinstance(event, yaml.AliasEvent):
            raise PlanError(f"{where}: line {line} repeats a value by a YAML alias; expected it written out", "gpu")
