"""Finds a device by id, alias or file. Names come from file names; only the device asked for is read and parsed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from planner.errors import PlanError, brief, did_you_mean
from planner.hardware.reading import device_from_text, read_device
from planner.hardware.records import Device
from planner.resources import bundled

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# Folders of `hardware/` that hold other things than devices.
_OTHER_FOLDERS = frozenset({"calibration", "clouds", "engines", "links", "measured", "nodes", "prices"})
# Words that programs put before a device's name: "NVIDIA GeForce RTX 4090".
_PREFIXES = re.compile(r"^(nvidia|geforce|tesla|amd|radeon|instinct|apple|intel|google|aws|huawei)+")


@cache
def _files() -> Mapping[str, Traversable]:
    """Device id to file, from the file names alone."""
    folders = [f for f in bundled("hardware").iterdir() if f.is_dir() and f.name not in _OTHER_FOLDERS]
    found = {file.name[:-5]: file for folder in folders for file in folder.iterdir() if file.name.endswith(".yaml")}
    return dict(sorted(found.items()))


def device_ids() -> list[str]:
    """Ids of the catalogue in alphabetic order; no file is opened."""
    return list(_files())


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.lower())


@cache
def _spellings() -> Mapping[str, str]:
    """Squeezed alias or id to id. Reads the text of every file for its one line ``aliases: [...]``, parses none."""
    spellings: dict[str, str] = {}
    for device_id, file in _files().items():
        line = re.search(r"^aliases: \[(.*)\]$", file.read_text(encoding="utf-8"), re.MULTILINE)
        words = re.findall(r"[^\s,'\"]+", line.group(1)) if line else []
        spellings |= {_squeezed(word): device_id for word in (*words, device_id)}
    return spellings


def resolve(name: str) -> tuple[str, bool]:
    """The catalogue id meant by ``name``, and whether an alias or another spelling was taken for it.

    Upper and lower case, spaces, dashes and underscores do not matter, nor does a leading vendor's name.

    >>> resolve("H100"), resolve("h100-sxm"), resolve("NVIDIA GeForce RTX 4090")
    (('h100-sxm', True), ('h100-sxm', False), ('rtx-4090', True))

    Raises:
        PlanError: unknown, or several devices start so and none is declared to be meant.
    """
    if name in _files():
        return name, False
    squeezed = _squeezed(name)
    for spelling in (squeezed, _PREFIXES.sub("", squeezed)):
        if spelling in _spellings():
            return _spellings()[spelling], True
    candidates = [known for known in _files() if len(squeezed) > 1 and _squeezed(known).startswith(squeezed)]
    if len(candidates) > 1:
        listed = ", ".join(candidates[:12]) + (", …" if len(candidates) > 12 else "")
        raise PlanError(f"device {brief(name)} could be any of {listed}; name one of them", "gpu")
    hint = f"; did you mean {candidates[0]}?" if candidates else did_you_mean(name, _files())
    raise PlanError(f"unknown device {brief(name)}{hint or '; `plan gpus` lists the known ones'}", "gpu")


def find_device(name: str) -> Device:
    """The device with this id, alias or YAML file; reads exactly that one file when ``name`` is an id or a file.

    Raises:
        PlanError: unknown or ambiguous name, missing or malformed file.
    """
    if name.lower().endswith((".yaml", ".yml")):
        return read_device(Path(name))
    if name not in _files() and os.path.isfile(name):
        return read_device(Path(name))
    return _catalogue_device(resolve(name)[0])


def all_devices() -> list[Device]:
    """Every device of the catalogue, by id."""
    return [_catalogue_device(device_id) for device_id in _files()]


@cache
def _catalogue_device(device_id: str) -> Device:
    file = _files()[device_id]
    where = f"hardware/{cast(Path, file).parent.name}/{file.name}"
    device = device_from_text(file.read_text(encoding="utf-8"), where, device_id, bundled=True)
    if device.id != device_id:
        raise PlanError(f"{where}: id is {device.id!r}, which differs from the file's name", "id")
    return device
