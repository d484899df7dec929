"""Every console block of the README is run, and must print exactly what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def console_blocks() -> list[tuple[str, str]]:
    """Command and output of every ``$`` line in a console block."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            while command.endswith("\\"):
                more, _, output = output.partition("\n")
                command = command[:-1] + more
            found.append((command, output))
    return found


def test_the_readme_has_console_blocks() -> None:
    assert len(console_blocks()) >= 8


@pytest.mark.parametrize(("command", "output"), console_blocks(), ids=[command for command, _ in console_blocks()])
def test_a_console_block_prints_what_it_shows(command: str, output: str, tmp_path: Path) -> None:
    plan = f"{shlex.quote(sys.executable)} -m planner"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PLAN_")} | {"COLUMNS": "80"}
    shell = f'plan() {{ {plan} "$@"; }}\ncd {shlex.quote(str(tmp_path))}\n{command} 2>&1'
    if "hardware/" in command or "models/" in command:
        shell = shell.replace(f"cd {shlex.quote(str(tmp_path))}", f"cd {shlex.quote(str(ROOT))}")
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, env=environment | {"PYTHONPATH": str(ROOT)}
    )
    assert done.stdout.rstrip("\n") == output.rstrip("\n")


def test_the_recipes_name_files_that_exist() -> None:
    for path in re.findall(r"`((?:hardware|models|planner|tests)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path
