"""Under CI=true a test may be skipped only if pyproject.toml lists it with the reason (`tool.kafka-shim.skips`).

What a machine lacks (Docker, Go, a registry) would otherwise take tests away without anybody noticing. A test that is
expected to fail counts as skipped.
"""

from __future__ import annotations

import fnmatch
import gc
import os
import signal
import tomllib
from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

IS_CI = os.environ.get("CI") == "true"
_unlisted: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "option(name...): shows what these options of Kafka's do (scripts/options.py)")
    # What a shell starts in the background ignores Ctrl-C, and so would the console tools that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _allowed() -> list[dict[str, str]]:
    """The list. Raises KeyError for an entry without one of its fields."""
    text = (Path(__file__).parent / "pyproject.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text).get("tool", {}).get("kafka-shim", {}).get("skips", [])
    return [{key: row[key] for key in ("test", "says", "why")} for row in rows]


def _look_at(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not (IS_CI and report.skipped):
        return
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    said = getattr(report, "wasxfail", "") or said.removeprefix("Skipped: ")
    if not any(fnmatch.fnmatchcase(report.nodeid, row["test"]) and row["says"] in said for row in _allowed()):
        _unlisted.append(f"{report.nodeid}: {said}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _look_at(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _look_at(report)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leaves the tests and the modules that they import out of what the collector looks at: all live to the end, and a
    look at 10,000 tests takes a fifth of a second, behind each module.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _garbage_of_the_module() -> Iterator[None]:
    """Collects garbage behind each module, so that a warning of it (a socket or coroutine left open) fails a test of
    the module that made it, not whichever runs when the collector next comes by.
    """
    yield
    gc.collect()
    if gc.get_freeze_count() == 0:
        # A test of the broker's own collector has given back what was left out.
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unlisted and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _unlisted:
        terminalreporter.write_line(
            f"SKIPPED under CI=true and not listed in pyproject.toml (tool.kafka-shim.skips): {line}", red=True
        )
