"""`scripts/bootstrap` says so where it cannot make the checkout ready."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A checkout with nothing to compile, whose .venv has what builds it, and no pip that could install more."""
    for name in ("scripts/bootstrap", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "cext").mkdir()
    (tmp_path / "setup.py").touch()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    requires = tomllib.loads((tmp_path / "pyproject.toml").read_text())["build-system"]["requires"]
    (tmp_path / ".venv/.installed-build").write_text("\n".join(requires) + "\n")
    return tmp_path


def test_packages_that_do_not_install_end_it(tree):
    """It went on, and did not try again the next time."""
    done = subprocess.run(["bash", tree / "scripts/bootstrap", "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, "cannot go on: this tree or the Python packages" in done.stderr) == (1, True), done.stderr
    assert not (tree / ".venv/.installed-run").exists()
    assert not (tree / ".venv/.installed-self").exists()


def test_a_machine_without_a_fitting_python_is_told_which_fit(tree):
    shutil.rmtree(tree / ".venv")
    tools = tree / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "mkdir", "flock"):
        (tools / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        ["bash", tree / "scripts/bootstrap", "run"],
        env={key: value for key, value in os.environ.items() if key != "PYTHON"} | {"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "cannot go on: no Python from 3.11 to 3.14 found; set PYTHON=/path/to/python3\n",
    )
