"""The direction of imports, who prints, who opens files, and what a start does not load.

A module imports from lower rows only. A package is one entry; inside it imports may go any way that makes no circle.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

# Lowest first. "families" is the registry (the package itself), "families.*" the family files.
ROWS = (
    "errors units resources architecture prediction quantity",
    "formulas workload engines config blocks precision counting",
    "inventory quantization vision_blocks state_space_blocks delta_blocks families hardware.*",
    "families.* work hardware",
    "models roofline sharding ceilings",
    "storage machine memory measurement",
    "planning",
    "derivation scenario",
    "render.*",
    "commands.*",
    "cli",
    "__main__",
)
PACKAGE = Path(__file__).parents[1] / "planner"
RANKS = {name: rank for rank, row in enumerate(ROWS) for name in row.split()}

FILES_ARE_READ_BY = {"families", "models", "hardware.catalogue", "hardware.reading", "commands.files"}
PRINTERS = {"cli", "commands"}
# Heavy, and needed by some commands alone: imported inside the function that needs them, or never.
NEVER_AT_THE_TOP = {"huggingface_hub", "pint", "torch", "transformers", "numpy"}
NETWORK = {"socket", "ssl", "http", "urllib", "requests", "httpx", "ftplib"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module below ``planner`` by its name without that prefix."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name and "_bundled" not in parts:
            found[name] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def package(name: str) -> str:
    """The first part of a dotted name."""
    return name.partition(".")[0]


def rank(name: str) -> int | None:
    """The row of a module: its own entry, or that of its package's files."""
    own = RANKS.get(name)
    return RANKS.get(f"{package(name)}.*") if own is None else own


def imported(tree: ast.Module) -> Iterator[str]:
    """Full names of everything that a module imports, at the top or inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dependencies(name: str) -> set[str]:
    """Modules of the package that a module imports."""
    found = set()
    for full in imported(modules()[name]):
        parts = full.split(".")
        if parts[0] == "planner":
            inner = ".".join(parts[1:])
            found.add(inner if inner in modules() else ".".join(parts[1:-1]))
    return found - {"", name}


def names_used(name: str) -> set[str]:
    """Names and attributes that a module's code mentions."""
    nodes = list(ast.walk(modules()[name]))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def test_every_module_has_a_row() -> None:
    assert [name for name in modules() if rank(name) is None] == [], "give the new module a row in ROWS"


def test_every_entry_of_the_table_is_a_module() -> None:
    stale = [name for name in RANKS if name.removesuffix(".*") not in modules()]
    assert stale == []


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_from_lower_rows_only(name: str) -> None:
    own = rank(name)
    assert own is not None
    for other in dependencies(name):
        if package(name) != package(other):
            theirs = rank(other)
            assert theirs is not None
            assert theirs < own, f"planner.{name} (row {own}) imports planner.{other} (row {theirs})"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: dependencies(name) for name in modules()}
    assert set(TopologicalSorter(graph).static_order()) >= set(modules())  # raises CycleError on a circle


def test_the_check_sees_an_import_that_goes_up() -> None:
    upwards = ast.parse("def late():\n    from planner.planning import plan\n    import planner.cli\n")
    assert set(imported(upwards)) == {"planner.planning.plan", "planner.cli"}
    for higher in ("planning", "cli"):
        theirs, own = rank(higher), rank("units")
        assert theirs is not None
        assert own is not None
        assert theirs > own


@pytest.mark.parametrize("name", modules())
def test_only_the_command_line_prints(name: str) -> None:
    if package(name) not in PRINTERS:
        assert not names_used(name) & {"print", "stdout", "stderr", "stdin"}


@pytest.mark.parametrize("name", modules())
def test_only_readers_open_files(name: str) -> None:
    if name not in FILES_ARE_READ_BY:
        assert not names_used(name) & {"open", "read_text", "read_bytes"}


@pytest.mark.parametrize("name", modules())
def test_nobody_opens_connections(name: str) -> None:
    assert not {package(full) for full in imported(modules()[name])} & NETWORK


@pytest.mark.parametrize("name", modules())
def test_heavy_libraries_are_imported_where_they_are_needed(name: str) -> None:
    top = ast.Module([node for node in modules()[name].body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    assert not {package(full) for full in imported(top)} & NEVER_AT_THE_TOP


@pytest.mark.parametrize("name", modules())
def test_the_clock_and_chance_play_no_part(name: str) -> None:
    assert not {package(full) for full in imported(modules()[name])} & {"time", "random", "secrets"}


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh process has loaded after ``code``."""
    ending = "\nimport sys\nprint('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_by("import planner") & NEVER_AT_THE_TOP


def test_the_main_job_loads_neither_the_hub_nor_a_units_library() -> None:
    job = "--model meta/llama-3.1-8b --gpu h100-sxm --prompt 2000 --out 256"
    code = f"""
import sys
from planner.cli import main
sys.argv = ["plan", *"{job}".split()]
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
"""
    assert not loaded_by(code) & {"huggingface_hub", "pint", "torch", "transformers", "numpy", "requests"}
