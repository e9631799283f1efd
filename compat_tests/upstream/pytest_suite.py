"""A client's pytest tests, run by a separate pytest process with its own root, settings and plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from xml.etree import ElementTree

from kafka_shim.compat.upstream.base import FAILED, PASSED, SKIPPED, Outcome, Suite, Unavailable
from kafka_shim.compat.upstream.packages import ROOT, source_distribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import ClassVar

ADDRESS = "KAFKA_SHIM_UPSTREAM_BROKER"
"""The variable that tells a plugin of ours the broker's address."""


class PytestSuite(Suite):
    """The tests in `files` of the source distribution of `package`; ids are node ids from `root` on."""

    package: str
    pinned: str | None = None
    """The version of a package that is not installed; else the installed version's tests run."""
    unpacked: ClassVar[Sequence[str]]
    """The folders of the distribution that are needed."""
    root = "."
    files: ClassVar[Sequence[str]] = ()
    """Without any, all below `root`."""
    plugin: str | None = None
    """A module of ours that is loaded before their conftest."""
    timeout_s = 120
    """Of one test."""

    _root: Path

    @property
    def version(self) -> str:
        return self.pinned or version(self.package)

    def prepare(self) -> None:
        self._root = (source_distribution(self.package, self.version, self.unpacked) / self.root).resolve()

    def environment(self, bootstrap: str) -> dict[str, str]:
        """The environment that tells the tests the broker's address."""
        return {}

    def tests(self) -> list[str]:
        done = self._pytest("", ["--collect-only", "--quiet", *self.files])
        found = [line for line in done.stdout.splitlines() if "::" in line and not line.startswith(" ")]
        if done.returncode != 0 or not found:
            said = done.stdout[-2000:] + done.stderr[-2000:]
            raise Unavailable(f"{self.name}: its tests cannot be collected:\n{said}")
        return found

    def run(self, bootstrap: str, tests: Sequence[str], scratch: Path, *, long: bool) -> dict[str, Outcome]:
        report = scratch / f"{self.name}.xml"
        report.unlink(missing_ok=True)
        done = self._pytest(bootstrap, [f"--junitxml={report}", f"--timeout={self.timeout_s}", "--quiet", *tests])
        (scratch / f"{self.name}.log").write_text(done.stdout + done.stderr)
        return outcomes(report.read_text(), tests) if report.is_file() else {}

    def _pytest(self, bootstrap: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "pytest", "-p", "pytest_timeout", "-p", "no:cacheprovider"]
        line += ["-p", self.plugin] if self.plugin else []
        # Without its own settings file pytest would use that of this project, some folders up.
        line += [f"--rootdir={self._root}", "-c", os.devnull, "--color=no"]
        environment = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
            ADDRESS: bootstrap,
            **self.environment(bootstrap),
        }
        environment.pop("PYTEST_ADDOPTS", None)
        line += arguments
        return subprocess.run(
            line, cwd=self._root, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )


def outcomes(junit: str, tests: Sequence[str]) -> dict[str, Outcome]:
    """Reads a JUnit file: the outcome of each of `tests` (node ids) that it has."""
    by_case = {_case(test): test for test in tests}
    found: dict[str, Outcome] = {}
    for case in ElementTree.fromstring(junit).iter("testcase"):
        test = by_case.get((case.get("classname", ""), case.get("name", "")))
        if test is None:
            continue
        status, text = PASSED, ""
        for child in case:
            # A test that failed and a fixture of it that could not end are two children, or two cases.
            if child.tag in ("failure", "error"):
                status, text = FAILED, f"{text}{child.text or child.get('message', '')}\n"
            elif child.tag == "skipped" and status == PASSED:
                status, text = SKIPPED, child.get("message", "")
        if test in found and found[test].status == FAILED:
            continue
        found[test] = Outcome(status, float(case.get("time", "0")), text)
    return found


def _case(test: str) -> tuple[str, str]:
    """A node id as JUnit has it: path/test_x.py::Class::name[a] is name[a] of the class path.test_x.Class."""
    path, _, rest = test.partition(".py::")
    head, bracket, parameters = rest.partition("[")
    *classes, name = head.split("::")
    return ".".join([path.replace("/", "."), *classes]), name + bracket + parameters
