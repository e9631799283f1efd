"""What the collector of garbage looks at during the tests (conftest.py at the root), in small runs of pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRST = """
import gc

def test_that_is_left_out():
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    assert not any(one is test_that_is_left_out for one in gc.get_objects())

def test_that_gives_back():
    gc.unfreeze()
    assert gc.get_freeze_count() == 0
"""
SECOND = """
import gc

def test_that_is_left_out_again():
    assert gc.get_freeze_count() > 10_000
"""
LEAVES = """
import socket

def test_that_leaves_a_socket_in_a_cycle():
    left = [socket.socket()]
    left.append(left)
    assert len(left) == 2
"""


def run(tree: Path, **modules: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "conftest.py", tree)
    (tree / "pyproject.toml").write_text('[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n')
    for name, text in modules.items():
        (tree / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=inner"]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def test_tests_are_left_out_also_behind_one_that_gave_them_back(tmp_path: Path) -> None:
    done = run(tmp_path, first=FIRST, second=SECOND)
    assert done.returncode == 0, done.stdout


def test_what_a_test_leaves_open_still_fails_its_module(tmp_path: Path) -> None:
    done = run(tmp_path, leaves=LEAVES)
    assert (done.returncode, "unclosed <socket" in done.stdout) == (1, True), done.stdout
