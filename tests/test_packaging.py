"""The wheel holds the code and both data folders, and works from another directory without the repository."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the build backend of this environment."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.mark.parametrize(("folder", "pattern"), [("hardware", "*.yaml"), ("models", "*.json"), ("models", "*.yaml")])
def test_the_wheel_holds_every_file_of_the_data_folders(wheel: Path, folder: str, pattern: str) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packed = {
        name.removeprefix("planner/_bundled/")
        for name in names
        if name.startswith(f"planner/_bundled/{folder}/") and Path(name).match(pattern)
    }
    assert packed == {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob(pattern)}
    assert packed


def test_the_wheel_holds_every_module(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "planner").rglob("*.py")} <= names
    assert "planner/py.typed" in names


def test_the_main_job_runs_from_the_wheel_in_another_directory(wheel: Path, tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(wheel)!r}); sys.argv[0] = 'plan'; from planner.cli import main; main()"
    command = [sys.executable, "-c", code, "--model", "meta/llama-3.1-8b", "--gpu", "h100", "--prompt", "2000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "8,030,261,248" in done.stdout
    assert "32.5 ms" in done.stdout
