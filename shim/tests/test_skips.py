"""The list of allowed skips (conftest.py at the root), in small runs of pytest with a list of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

def test_that_runs():
    assert True

def test_that_needs_docker():
    pytest.skip("no containers: no Docker here")

@pytest.mark.skipif(True, reason="no Go")
def test_that_needs_go():
    raise AssertionError

@pytest.mark.xfail(reason="known")
def test_that_fails():
    raise AssertionError

@pytest.fixture
def engine():
    pytest.skip("no engine")

def test_that_needs_a_fixture(engine):
    raise AssertionError
"""
WHOLE_MODULE = 'import pytest\nno_such = pytest.importorskip("no_such_module")\n'
# Node id -> what pytest says.
SKIPPED = {
    "test_some.py::test_that_needs_docker": "no containers: no Docker here",
    "test_some.py::test_that_needs_go": "no Go",
    "test_some.py::test_that_fails": "known",
    "test_some.py::test_that_needs_a_fixture": "no engine",
    "test_module.py": "could not import 'no_such_module'",
}


def run(tree: Path, rows: dict[str, str], ci: str = "true") -> tuple[int, list[str]]:
    """Exit status of a run with this list, and the tests that it names as not listed."""
    shutil.copy(ROOT / "conftest.py", tree)
    entries = (
        f'[[tool.kafka-shim.skips]]\ntest = "{name}"\nsays = "{says}"\nwhy = "-"\n' for name, says in rows.items()
    )
    (tree / "pyproject.toml").write_text("[tool.pytest.ini_options]\n" + "\n".join(entries))
    (tree / "test_some.py").write_text(TESTS)
    (tree / "test_module.py").write_text(WHOLE_MODULE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=inner"]
    environment = {**os.environ, "CI": ci, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert "1 passed, 4 skipped, 1 xfailed" in done.stdout
    found = [line.partition("(tool.kafka-shim.skips): ")[2] for line in done.stdout.splitlines()]
    return done.returncode, [line for line in found if line]


def test_skips_that_are_not_listed_fail_the_run_of_ci_alone(tmp_path: Path) -> None:
    status, unlisted = run(tmp_path, {})
    assert status == pytest.ExitCode.TESTS_FAILED
    assert len(unlisted) == len(SKIPPED)
    for name, says in SKIPPED.items():
        assert sum(line.startswith(f"{name}: {says}") for line in unlisted) == 1, name
    assert run(tmp_path, {}, ci="") == (0, [])


def test_skip_is_allowed_by_its_test_and_its_reason(tmp_path: Path) -> None:
    assert run(tmp_path, SKIPPED) == (0, [])
    (test, says), *others = SKIPPED.items()
    for wrong in ({test: "another reason"}, {"test_other.py::*": says}):
        status, unlisted = run(tmp_path, {**dict(others), **wrong})
        assert (status, unlisted) == (1, [f"{test}: {says}"])


def test_every_entry_of_the_list_has_a_reason_and_a_test() -> None:
    rows = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["kafka-shim"]["skips"]
    assert rows
    for row in rows:
        path, _, name = row["test"].partition("::")
        assert len(row["why"]) > 40
        text = (ROOT / path).read_text()
        assert not name or f"def {name.partition('[')[0]}(" in text  # without a name: the whole module


def test_layer_that_has_nothing_to_run_fails_under_ci(tmp_path: Path) -> None:
    """No second Python: the layer `pythons` has no steps."""
    (tmp_path / "scripts").mkdir()
    for name in ("suite.py", "layers.py"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    command = [sys.executable, str(tmp_path / "scripts" / "suite.py"), "pythons"]
    for ci, status, told in (("true", 1, "failed steps: pythons: nothing to run"), ("", 0, "every step passed")):
        environment = {**os.environ, "CI": ci}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, told in done.stdout) == (status, True), done.stdout + done.stderr
