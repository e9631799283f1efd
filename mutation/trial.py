"""Runs the tests that touch a mutant on it: in a copy of the tree, in a process of their own, until one fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from mutation.forks import Forks
    from mutation.mutants import Mutant
    from mutation.testmap import LineMap
    from mutation.tree import Tree

# A test that was never late takes a multiple of its time on a busy machine; a mutant that loops takes all of it.
CPU_S = 20
TIMES_SLOWER = 4
WALL_S = 60
TEST_TIMEOUT_S = 25
FIRST_FILES = 3
# pytest's exit statuses for a file that is not there, and for no test of those that were chosen.
NO_TESTS = (4, 5)
YEAR_S = 365 * 86400

KILLED, SURVIVED, UNTESTED, TIMED_OUT, NOT_BUILT = "killed", "survived", "no test", "timed out", "not buildable"
# The tool failed: nothing is known of the mutant.
ERROR = "error"
# A process that ends so was ended by the mutant.
CRASHES = tuple(-each for each in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))
OUT_OF_TIME = "from pytest-timeout"
# A mutant on which the tests hang or burn their time was noticed.
NOTICED = (KILLED, TIMED_OUT)


@dataclass
class Trial:
    """What came of one mutant. `tests` ran or could have run; `killer` noticed it and said `reason`."""

    name: str
    path: str
    line: int
    function: str
    operator: str
    text: str
    outcome: str
    tests: int = 0
    killer: str = ""
    reason: str = ""
    seconds: float = 0.0

    def row(self) -> str:
        return json.dumps(asdict(self))


def attempt(
    mutant: Mutant,
    tree: Tree,
    tests: LineMap,
    budget_s: float,
    chosen: list[str] | None = None,
    forks: Forks | None = None,
) -> Trial:
    """Runs one mutant. Of the tests that touch it only those run whose time fits into `budget_s`; `chosen` replaces
    them. `forks` run what can be changed in a process that runs.
    """
    began = time.monotonic()
    trial = Trial(mutant.name, mutant.path, mutant.line, mutant.function, mutant.operator, mutant.text, UNTESTED)
    order = chosen if chosen is not None else within(tests, tests.touching(mutant, tree.path), budget_s)
    trial.tests = len(order)
    if not order:
        return trial
    target = tree.path / mutant.path
    right, when = target.read_bytes(), target.stat().st_mtime
    modules = tree.modules_of(mutant.path) if mutant.path.startswith("cext/") else []
    try:
        target.write_bytes(mutant.applied(right))
        # Python knows a compiled file by the seconds and the size of its source: the mutant is from another year.
        os.utime(target, (when, when - YEAR_S - int(mutant.name[:6], 16)))
        if modules and tree.build(modules):
            trial.outcome = NOT_BUILT
        else:
            # Most are noticed by the first files; to import all of them takes seconds.
            near, rest = split(order)
            for each in filter(None, (near, rest)):
                seconds = sum(tests.seconds.get(test, 1.0) for test in each)
                is_python = not modules and not mutant.is_import_time
                if not (is_python and forks and _fork(trial, tree, each, seconds, forks)):
                    _run(trial, tree, each, seconds)
                if trial.outcome != SURVIVED:
                    break
    finally:
        target.write_bytes(right)
        os.utime(target, (when, when))
        tree.put_back(modules)
    trial.seconds = round(time.monotonic() - began, 2)
    return trial


def judged(
    mutant: Mutant,
    tree: Tree,
    tests: LineMap,
    budget_s: float,
    chosen: list[str] | None,
    forks: Forks,
    sound: dict[str, bool],
) -> Trial:
    """As `attempt`, but a test that fails without the mutant too notices nothing: it is left out. `sound` remembers
    which tests pass without a mutant.
    """
    order = chosen if chosen is not None else within(tests, tests.touching(mutant, tree.path), budget_s)
    while True:
        trial = attempt(mutant, tree, tests, budget_s, [test for test in order if sound.get(test, True)], forks)
        killer = trial.killer
        if trial.outcome != KILLED or killer not in order:
            return trial
        if killer not in sound:
            verdict_of(tree).unlink(missing_ok=True)
            sound[killer] = forks.run("", [killer], _cpu_s(1.0), _wall_s(1.0)) == 0
        if sound[killer]:
            return trial


def unchanged(tree: Tree, order: list[str]) -> Trial:
    """Runs these tests on the tree as it is. The outcome is SURVIVED if all pass."""
    trial = Trial("unchanged", "", 0, "", "", "", UNTESTED, len(order))
    _run(trial, tree, order, float(len(order)))
    return trial


def is_noticed_by(trial: Trial, test: str) -> bool:
    """Whether this test noticed the mutant: it failed, and not because the machine was too busy to run it."""
    return trial.outcome == KILLED and trial.killer == test and OUT_OF_TIME not in trial.reason


def within(tests: LineMap, order: list[str], budget_s: float) -> list[str]:
    chosen: list[str] = []
    total = 0.0
    for test in order:
        total += tests.seconds.get(test, 1.0)
        if total > budget_s and chosen:
            break
        chosen.append(test)
    return chosen


def split(order: list[str]) -> tuple[list[str], list[str]]:
    """Returns the tests of the first files, and the rest."""
    files = dict.fromkeys(test.partition("::")[0] for test in order)
    first = tuple(f"{name}::" for name in list(files)[:FIRST_FILES])
    return [test for test in order if test.startswith(first)], [test for test in order if not test.startswith(first)]


def verdict_of(tree: Tree) -> Path:
    return tree.path / "build" / "verdict.json"


def _fork(trial: Trial, tree: Tree, order: list[str], expected_s: float, forks: Forks) -> bool:
    """Returns False if the mutant needs a process of its own."""
    verdict_of(tree).unlink(missing_ok=True)
    status = forks.run(trial.path, order, _cpu_s(expected_s), _wall_s(expected_s))
    if status is not None:
        _judge(trial, tree, status, "")
    return status is not None


def _cpu_s(expected_s: float) -> int:
    return int(CPU_S + TIMES_SLOWER * expected_s)


def _wall_s(expected_s: float) -> float:
    return WALL_S + 2 * TIMES_SLOWER * expected_s


def _run(trial: Trial, tree: Tree, order: list[str], expected_s: float) -> None:
    listed, verdict = tree.path / "build" / "chosen.json", verdict_of(tree)
    listed.write_text(json.dumps(order))
    verdict.unlink(missing_ok=True)
    files = list(dict.fromkeys(test.partition("::")[0] for test in order))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "mutation.plugin", "-p", "no:cacheprovider"]
    command += ["-m", "", f"--timeout={TEST_TIMEOUT_S}", "--no-header", *files]
    environment = tree.environment(
        MUTATION_TESTS=str(listed),
        MUTATION_VERDICT=str(verdict),
        MUTATION_CPU_S=str(_cpu_s(expected_s)),
    )
    process = subprocess.Popen(
        command,
        cwd=tree.path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_wall_s(expected_s))
    except subprocess.TimeoutExpired:
        output = ""
    finally:
        # What the tests started must not outlive the mutant.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    _judge(trial, tree, process.returncode, output)


def _judge(trial: Trial, tree: Tree, status: int, output: str) -> None:
    verdict = verdict_of(tree)
    if verdict.exists():
        told = json.loads(verdict.read_text())
        trial.outcome, trial.killer, trial.reason = KILLED, told["test"], told["reason"]
    elif status == 0:
        trial.outcome = SURVIVED
    elif status in NO_TESTS:
        trial.outcome = UNTESTED
    elif status in (-signal.SIGKILL, -signal.SIGXCPU):
        trial.outcome = TIMED_OUT
    else:
        last = [line for line in output.splitlines() if line.strip()][-1:]
        trial.outcome = KILLED if status in CRASHES else ERROR
        trial.reason = f"exit status {status}: {''.join(last)[:200]}"
