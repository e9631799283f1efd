"""A pytest plugin: for the map, which test is running and how long each took; for a mutant, which tests run and which
one noticed it.

- ``MUTATION_DURATIONS=FILE``: writes the seconds of each passed test there.
- ``MUTATION_TESTS=FILE``: runs these tests in this order, and no others.
- ``MUTATION_VERDICT=FILE``: writes the first test that failed, and its last line.
- ``MUTATION_CPU_S=N``: the process ends after so many seconds of CPU.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

_seconds: dict[str, float] = {}
_failed: set[str] = set()


def pytest_configure() -> None:
    limit = os.environ.get("MUTATION_CPU_S")
    if limit:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    chosen = os.environ.get("MUTATION_TESTS")
    if chosen:
        place = {test: number for number, test in enumerate(json.loads(Path(chosen).read_text()))}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def _measured() -> object:
    coverage = sys.modules.get("coverage")
    return coverage and coverage.Coverage.current()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measured = _measured()
    if measured is not None:
        measured.switch_context(item.nodeid)  # type: ignore[attr-defined]
    # The context of the coverage of processes that the test starts.
    os.environ["MUTATION_TEST"] = item.nodeid
    began = time.monotonic()
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] = time.monotonic() - began
        del os.environ["MUTATION_TEST"]
        if measured is not None:
            measured.switch_context("")  # type: ignore[attr-defined]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed or report.skipped:
        _failed.add(report.nodeid)
    if report.failed:
        _tell(report.nodeid, str(report.longrepr))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell(report.nodeid, str(report.longrepr))


def _tell(test: str, words: str) -> None:
    target = os.environ.get("MUTATION_VERDICT")
    if target and not Path(target).exists():
        lines = [line for line in words.splitlines() if line.startswith("E ")] or words.splitlines()[-1:]
        Path(target).write_text(json.dumps({"test": test, "reason": _shown(lines[0]) if lines else ""}))


def _shown(line: str) -> str:
    """The line of a failure without its mark, short, and without the path of the copied tree."""
    return " ".join(line[1:].split()).replace(str(Path.cwd()), "TREE")[:200]


def pytest_sessionfinish() -> None:
    target = os.environ.get("MUTATION_DURATIONS")
    if target:
        passed = {test: round(seconds, 3) for test, seconds in _seconds.items() if test not in _failed}
        Path(target).write_text(json.dumps(passed, indent=0))
