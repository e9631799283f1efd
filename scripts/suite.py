"""Runs layers of the test suite and prints their counts at the end.

``suite.py test`` runs every layer of ``make test``: three lanes take the layers in turn, because much of a layer with
brokers and clients is waiting (KAFKA_SHIM_LANES sets another number), and tests that measure time run alone at the end.
``suite.py quick`` is for development: lint, the unit tests and one matrix of clients in a few minutes. ``suite.py
soak`` runs the long forms. ``suite.py lint unit`` runs these layers one after the other. Arguments after ``--`` go to
pytest. A failed layer does not stop the others; the exit status says whether all passed. JUnit files and the layers'
output are in ``build/reports``; ``summary.txt`` there contains the closing line.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from layers import FORMS, LAYERS, PYTHON, REPORTS, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

COUNTS = ("tests", "failures", "errors", "skipped")
MOST_PRINTED = 60
MOST_OF_A_REASON = 1500
LANES = int(os.environ.get("KAFKA_SHIM_LANES", "3"))


@dataclass
class Result:
    """The result of a layer."""

    name: str
    failed: list[str]
    counts: dict[str, int]
    figures: list[str]
    reasons: list[str]
    seconds: float

    @property
    def passed(self) -> int:
        return self.counts["tests"] - self.missed - self.counts["skipped"]

    @property
    def missed(self) -> int:
        return self.counts["failures"] + self.counts["errors"]

    def __str__(self) -> str:
        skipped = self.counts["skipped"]
        return f"{self.name:8} {self.passed:6} passed {self.missed:4} failed {skipped:4} skipped {self.seconds:7.1f} s"


class Runner:
    """Runs layers and keeps their results. The output of a layer in a lane is printed when the layer has ended."""

    def __init__(self, extra: Sequence[str], variables: dict[str, str]) -> None:
        self._extra = extra
        self._variables = variables
        self._printing = threading.Lock()
        self.results: list[Result] = []

    def in_turn(self, names: Sequence[str]) -> None:
        for name in names:
            print(f"=== {name}", flush=True)
            self.results.append(self._layer(name, None))

    def in_lanes(self, names: Sequence[str]) -> None:
        left: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in names:
            left.put(name)
        lanes = [threading.Thread(target=self._lane, args=(left,)) for _ in range(min(LANES, len(names)))]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()

    def _lane(self, left: queue.SimpleQueue[str]) -> None:
        while True:
            try:
                name = left.get_nowait()
            except queue.Empty:
                return
            print(f"... {name} begins", flush=True)
            log = REPORTS / f"{name}.log"
            with log.open("w") as out:
                result = self._layer(name, out)
            with self._printing:
                self.results.append(result)
                print(f"=== {name}\n{log.read_text(errors='replace')}{result}", flush=True)

    def _layer(self, name: str, out: TextIO | None) -> Result:
        began = time.monotonic()
        total = dict.fromkeys(COUNTS, 0)
        failed, told, reasons = [], [], []
        steps = LAYERS[name]()
        if not steps:
            print(f"--- {name} has nothing to run here", flush=True, file=out)
            # What the machine lacks is no reason to pass where everything has to run.
            if os.environ.get("CI") == "true":
                failed.append(f"{name}: nothing to run")
        for step in steps:
            if not self._step(step, out):
                failed.append(f"{name}: {step.name}")
            for key, value in counts(step.report).items():
                total[key] += value
            told += figures(step.report)
            reasons += failures(step.report)
        return Result(name, failed, total, told, reasons, time.monotonic() - began)

    def _step(self, step: Step, out: TextIO | None) -> bool:
        print(f"--- {step.name}", flush=True, file=out)
        command = step.command
        if step.report is not None:
            step.report.unlink(missing_ok=True)
            command = [*command, *self._extra]
        path = os.pathsep.join([str(PYTHON.parent), os.environ.get("PATH", "")])  # cython-lint runs pycodestyle by name
        environment = {**os.environ, "PATH": path, "KAFKA_SHIM_WERROR": "1", **self._variables, **step.variables}
        done = subprocess.run(
            command,
            cwd=step.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
            stdout=out,
            stderr=None if out is None else subprocess.STDOUT,
        )
        if done.returncode != 0:
            print(f"--- {step.name} failed (exit status {done.returncode})", flush=True, file=out)
        return done.returncode == 0


def bytecode(folder: str) -> dict[str, str]:
    """Returns the variables by which Python writes bytecode to a folder, if the environment forbids it beside the
    sources. Thousands of processes would compile all that they import, each half a second or more.
    """
    is_forbidden = os.environ.get("PYTHONDONTWRITEBYTECODE")
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder} if is_forbidden else {}


def counts(report: Path | None) -> dict[str, int]:
    """Returns the tests, failures, errors and skips of one JUnit file."""
    total = dict.fromkeys(COUNTS, 0)
    for suite in _elements(report, "testsuite"):
        for key in total:
            total[key] += int(suite.get(key, "0"))
    return total


def figures(report: Path | None) -> list[str]:
    """Returns what the passed tests of one JUnit file printed."""
    found: list[str] = []
    for case in _elements(report, "testcase"):
        printed = (case.findtext("system-out") or "").strip().splitlines()
        # Jobs print their progress first. The output of the test itself is at the end.
        told = printed if len(printed) <= MOST_PRINTED else printed[-2:]
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        found += [f"{name}: {line[:300]}" for line in told if line.strip(" -") and "Captured Out" not in line]
    return found


def failures(report: Path | None) -> list[str]:
    """Returns the failed tests of one JUnit file, each with the end of its reason. A log that is cut keeps its end, so
    they are printed there.
    """
    found: list[str] = []
    for case in _elements(report, "testcase"):
        for failure in (*case.findall("failure"), *case.findall("error")):
            text = (failure.text or failure.get("message") or "").strip()
            found.append(f"{case.get('classname')}::{case.get('name')}: {failure.tag}\n{text[-MOST_OF_A_REASON:]}")
    return found


def _elements(report: Path | None, tag: str) -> Iterator[ElementTree.Element]:
    """Returns these elements of one JUnit file; none of a file that was not written."""
    if report is None or not report.is_file():
        return iter(())
    return ElementTree.parse(report).getroot().iter(tag)


def main(arguments: list[str]) -> int:
    extra: list[str] = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, extra = arguments[:at], arguments[at + 1 :]
    unknown = [name for name in arguments if name not in LAYERS and name not in FORMS]
    if unknown or not arguments:
        print(f"forms: {' '.join(FORMS)}; layers: {' '.join(LAYERS)}", file=sys.stderr)
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with TemporaryDirectory(prefix="bytecode-", dir=REPORTS.parent, ignore_cleanup_errors=True) as folder:
        runner = Runner(extra, bytecode(folder))
        for name in arguments:
            together, behind = FORMS.get(name, ((), (name,)))
            runner.in_lanes(together)
            runner.in_turn(behind)
    results = runner.results
    failed = [step for result in results for step in result.failed]
    skipped = sum(result.counts["skipped"] for result in results)
    minutes = (time.monotonic() - began) / 60
    verdict = f"failed steps: {', '.join(failed)}" if failed else "every step passed"
    line = (
        f"tests: {sum(result.passed for result in results)} passed, {sum(result.missed for result in results)} failed, "
        f"{skipped} skipped in {minutes:.1f} min; {verdict}"
    )
    told = [words for result in results for words in result.figures]
    reasons = [reason for result in results for reason in result.reasons]
    if reasons:
        told += ["=== failed", *reasons]
    print("\n".join(["=== printed by the tests", *told, "===", *map(str, results), line]), flush=True)
    (REPORTS / "summary.txt").write_text(line + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
