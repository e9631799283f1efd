"""What setup.py asks of the machine before it translates the extensions."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.targets.shim_process import ROOT


@pytest.fixture
def setup_py(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs setup.py beside the extensions alone, of which nothing is translated yet."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "cext", tree / "cext", ignore=shutil.ignore_patterns("*.so", "tests", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy2(ROOT / name, tree)
    (tree / "shim").mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "setup.py", "-q", *words]
        variables = {**os.environ, "CC": "/nowhere/cc"}
        return subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
def test_a_missing_compiler_is_said_in_a_line_before_anything_is_translated(setup_py) -> None:
    """It was found after a minute, with as many messages as there are modules."""
    done = setup_py("build_ext")
    assert done.returncode == 1
    says = "error: a C compiler is needed, and there is no /nowhere/cc (Debian: apt-get install gcc)"
    assert (done.stdout.strip(), done.stderr.strip()) == ("", says)


def test_missing_headers_are_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPATH", raising=False)
    need_compiler = runpy.run_path(str(ROOT / "setup.py"))["need_compiler"]
    with pytest.raises(SystemExit, match=r"Python\.h is needed, and is not in .*: apt-get install python3-dev"):
        need_compiler(sys.executable, [str(tmp_path)])
    (tmp_path / "Python.h").touch()
    need_compiler(sys.executable, [str(tmp_path)])
    monkeypatch.setenv("CPATH", f"/nowhere{os.pathsep}{tmp_path}")
    need_compiler(sys.executable, ["/nowhere"])


@pytest.mark.slow
def test_metadata_need_neither_a_compiler_nor_c_files(setup_py, tmp_path: Path) -> None:
    """pip asks for them before it builds: all modules were translated for that."""
    done = setup_py("egg_info", "--egg-base", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "tree/build/cython").exists()
    assert "cext/batch.pyx" in (tmp_path / "kafka_shim.egg-info/SOURCES.txt").read_text().split("\n")
