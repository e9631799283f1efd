"""Runs layers of the test suite one after the other and ends with their counts.

``suite.py test`` runs every layer that ``make test`` has; ``suite.py lint unit`` runs these; what follows ``--``
goes to pytest. A failed layer does not stop the others; the exit status says whether all passed. JUnit files lie in
``build/reports``; ``summary.txt`` there holds the closing line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
PYTHON = ROOT / ".venv" / "bin" / "python"
UNIT_TREES = ("cext/tests", "shim/tests")
# What the other Pythons run: no sockets, children or clients; their small environments have none of these.
PURE_TREES = (
    "cext/tests",
    *(f"shim/tests/{name}" for name in ("protocol", "storage", "metadata", "group", "txn", "history")),
)
NOT_PURE = "shim/tests/txn/test_stepwise.py"


@dataclass
class Step:
    """One command of a layer; a step with a report is a pytest run whose counts are added up."""

    name: str
    command: list[str]
    cwd: Path = ROOT
    environment: dict[str, str] | None = None
    report: Path | None = None


def pytest(name: str, *arguments: str, python: Path = PYTHON, cwd: Path = ROOT, **environment: str) -> Step:
    report = REPORTS / f"{name}.xml"
    command = [str(python), "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
    return Step(name, command, cwd, environment, report)


def trees(*names: str) -> list[str]:
    return [name for name in names if (ROOT / name).is_dir()]


def copy_tree(target: Path, **environment: str) -> Step:
    """A copy of the sources with its own in-place build, for builds that must not touch the main one."""
    for name in ("cext", "shim", "compat_tests", "setup.py", "pyproject.toml", "README.md", "docs"):
        source = ROOT / name
        if source.is_dir():
            skip = shutil.ignore_patterns("*.so", "__pycache__")
            shutil.copytree(source, target / name, dirs_exist_ok=True, ignore=skip)
        elif source.exists():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    command = [str(PYTHON), "setup.py", "-q", "build_ext", "--inplace", "-j2"]
    return Step(f"build {target.name}", command, target, environment)


def lint() -> list[Step]:
    python = str(PYTHON)
    cython = sorted(str(path) for suffix in ("pyx", "pxd") for path in (ROOT / "cext").glob(f"*.{suffix}"))
    return [
        Step("ruff", [python, "-m", "ruff", "check", "."]),
        Step("ruff format", [python, "-m", "ruff", "format", "--check", "--quiet", "."]),
        Step("mypy", [python, "-m", "mypy"]),
        Step("cython-lint", [str(PYTHON.parent / "cython-lint"), *cython]),
    ]


def unit() -> list[Step]:
    """Every unit test on the main Python with coverage of Python and Cython, then on the others without."""
    tree = ROOT / "build" / "linetrace"
    steps = [
        copy_tree(tree, KAFKA_SHIM_LINETRACE="1", KAFKA_SHIM_WERROR="0"),
        pytest("unit", *trees(*UNIT_TREES), "-m", "not soak"),
    ]
    for python in sorted(ROOT.glob(".venv-3.*/bin/python")):
        name = python.parent.parent.name.removeprefix(".venv-")
        chosen = (f"--ignore={NOT_PURE}", "-m", "not soak and not java and not slow")
        steps.append(pytest(f"unit-{name}", *trees(*PURE_TREES), *chosen, python=python))
    run = [str(PYTHON), "-m", "coverage", "run", "-m", "pytest", "-q", "--timeout=600", *trees(*UNIT_TREES)]
    # Coverage looks for the C file of a module beside its .pyx.
    generated = "import glob, shutil; [shutil.copy(path, 'cext') for path in glob.glob('build/cython/cext/*.c')]"
    steps += [
        Step("generated C", [str(PYTHON), "-c", generated], tree),
        Step("coverage run", [*run, "-m", "not soak and not java and not slow"], tree, {"KAFKA_SHIM_TRACED": "1"}),
        Step("coverage report", [str(PYTHON), str(ROOT / "scripts" / "coverage_report.py")], tree),
    ]
    return steps


def asan() -> list[Step]:
    """The fuzz targets and the tests of cext in an AddressSanitizer build."""
    tree = ROOT / "build" / "asan"
    compiler = os.environ.get("CC", "gcc")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout
    environment = {
        "LD_PRELOAD": str(Path(library.strip()).resolve()),
        # Python's own leaks at exit are not ours to report, and its pools would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",
    }
    return [
        copy_tree(tree, KAFKA_SHIM_ASAN="1"),
        pytest("asan", "cext/tests", "--timeout=600", "-m", "not soak and not java", cwd=tree, **environment),
    ]


def clients() -> list[Step]:
    """Real clients and tools on the shim, kills under load, and the same conversations held with Apache Kafka."""
    names = ("clients", "admin", "groups", "transactions", "crash")
    return [pytest("clients", *trees(*(f"compat_tests/tests/{name}" for name in names)), "--timeout=600")]


def compat() -> list[Step]:
    return [pytest("compat", *trees("compat_tests/tests/compat"), "-m", "not soak")]


def spark() -> list[Step]:
    return [pytest("spark", *trees("spark/tests"), "-m", "not soak", "--timeout=900")]


def soak() -> list[Step]:
    return [pytest("soak", *trees(*UNIT_TREES, "compat_tests/tests", "spark/tests"), "-m", "soak", "--timeout=7200")]


LAYERS: dict[str, Callable[[], list[Step]]] = {
    "lint": lint,
    "unit": unit,
    "asan": asan,
    "clients": clients,
    "compat": compat,
    "spark": spark,
    "soak": soak,
}
TEST = ("lint", "unit", "asan", "clients", "compat", "spark")


def run_step(step: Step, extra: list[str]) -> bool:
    print(f"--- {step.name}", flush=True)
    if step.report is not None:
        step.report.unlink(missing_ok=True)
    command = [*step.command, *extra] if step.report is not None else step.command
    path = os.pathsep.join([str(PYTHON.parent), os.environ.get("PATH", "")])  # cython-lint runs pycodestyle by its name
    environment = {**os.environ, "PATH": path, "KAFKA_SHIM_WERROR": "1", **(step.environment or {})}
    status = subprocess.run(command, cwd=step.cwd, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    if status != 0:
        print(f"--- {step.name} failed (exit status {status})", flush=True)
    return status == 0


def counts(report: Path | None) -> dict[str, int]:
    """Tests, failures, errors and skipped of one JUnit file."""
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    if report is not None and report.is_file():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            for key in total:
                total[key] += int(suite.get(key, "0"))
    return total


def main(arguments: list[str]) -> int:
    extra: list[str] = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, extra = arguments[:at], arguments[at + 1 :]
    names = [name for argument in arguments for name in (TEST if argument == "test" else (argument,))]
    unknown = [name for name in names if name not in LAYERS]
    if unknown or not names:
        print(f"layers: test {' '.join(LAYERS)}", file=sys.stderr)
        return 2
    REPORTS.mkdir(parents=True, exist_ok=True)
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    failed: list[str] = []
    rows: list[str] = []
    began = time.monotonic()
    for name in names:
        print(f"=== {name}", flush=True)
        layer_began = time.monotonic()
        layer = dict.fromkeys(total, 0)
        for step in LAYERS[name]():
            if not run_step(step, extra):
                failed.append(f"{name}: {step.name}")
            for key, value in counts(step.report).items():
                layer[key] += value
                total[key] += value
        passed = layer["tests"] - layer["failures"] - layer["errors"] - layer["skipped"]
        seconds = time.monotonic() - layer_began
        rows.append(
            f"{name:8} {passed:6} passed {layer['failures'] + layer['errors']:4} failed "
            f"{layer['skipped']:4} skipped {seconds:7.1f} s"
        )
    passed = total["tests"] - total["failures"] - total["errors"] - total["skipped"]
    minutes = (time.monotonic() - began) / 60
    verdict = f"failed steps: {', '.join(failed)}" if failed else "every step passed"
    line = (
        f"tests: {passed} passed, {total['failures'] + total['errors']} failed, {total['skipped']} skipped "
        f"in {minutes:.1f} min; {verdict}"
    )
    print("\n".join(["===", *rows, line]), flush=True)
    (REPORTS / "summary.txt").write_text(line + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
