"""The public names of the package."""

from __future__ import annotations

import subprocess
import sys

import planner


def test_every_public_name_can_be_had() -> None:
    for name in planner.__all__:
        assert getattr(planner, name) is not None


def test_the_public_names_stay_functions_after_the_command_line_was_loaded() -> None:
    code = (
        "import planner.cli, planner.planning, planner.derivation; import planner; "
        "assert callable(planner.plan) and callable(planner.explain)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import planner, sys; assert not {'pydantic', 'yaml', 'typer', 'huggingface_hub'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
