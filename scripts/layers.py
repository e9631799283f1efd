"""The layers of the test suite: which commands each has, and which layers a form of it has. `suite.py` runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
PYTHON = ROOT / ".venv" / "bin" / "python"
COVERED = ROOT / "build" / "coverage" / "unit"
UNIT_TREES = ("cext/tests", "shim/tests")
# What the other Python versions run: tests without sockets, child processes or clients, which their small environments
# lack.
PURE_TREES = (
    "cext/tests",
    *(f"shim/tests/{name}" for name in ("protocol", "storage", "metadata", "group", "txn", "history")),
)
# And those of TLS and HTTPS: Python's library does a part of these, and is stricter in newer versions.
TLS_TREES = (
    "shim/tests/http",
    "shim/tests/monitoring/test_https.py",
    "shim/tests/security/test_tls.py",
    "shim/tests/security/test_token_endpoints.py",
    "shim/tests/test_tls_handshakes.py",
)
NOT_PURE = "shim/tests/txn/test_stepwise.py"
QUICK = "not soak and not slow and not alone and not java"
# The quick unit tests are three layers of about the same run time: these folders, the tests of the whole broker, which
# are the files directly in shim/tests, and the other folders.
STATE_TREES = ("shim/tests/storage", "shim/tests/txn", "shim/tests/group")
# Of each run of `late`: its name, and what `late.c` makes late in it, in microseconds.
LATE = {
    "late-after-responses": {"LATE_AFTER_RESPONSE_US": "2000"},
    "late-turns": {"LATE_TURN_US": "1500"},
    "late-requests": {"LATE_REQUEST_US": "1500"},
    "late-files": {"LATE_FILE_US": "2000", "LATE_THREAD_US": "30000"},
}
# Answers are held for a crowd by the time that a send takes.
TIMES_A_SEND = "held_for_others or each_client_gets_its_answers_in_order"


@dataclass
class Step:
    """One command of a layer. A step with a report is a pytest run whose counts are added up."""

    name: str
    command: list[str]
    cwd: Path = ROOT
    environment: dict[str, str] | None = None
    report: Path | None = None

    @property
    def variables(self) -> dict[str, str]:
        """A tree beside the main one is not installed: `kafka_shim` is its folder of links there, made by setup.py."""
        names = {} if self.cwd == ROOT else {"PYTHONPATH": str(self.cwd / "build" / "names")}
        return {**names, **(self.environment or {})}


def pytest(
    name: str,
    *arguments: str,
    python: Path = PYTHON,
    cwd: Path = ROOT,
    is_traced: bool = False,
    environment: dict[str, str] | None = None,
) -> Step:
    """Returns a pytest run. `is_traced` writes Python coverage to build/coverage."""
    report = REPORTS / f"{name}.xml"
    tracing = ["-m", "coverage", "run", f"--data-file={COVERED}"] if is_traced else []
    logging = ("-o", "junit_logging=system-out")
    command = [str(python), *tracing, "-m", "pytest", "-q", f"--junitxml={report}", *logging, *arguments]
    return Step(name, command, cwd, environment or {}, report)


def copy_tree(target: Path, **environment: str) -> Step:
    """Copies the sources and builds them in place there, for builds that must not affect the main one."""
    for name in (
        "cext",
        "shim",
        "targets",
        "compat_tests",
        "setup.py",
        "pyproject.toml",
        "conftest.py",
        "README.md",
        "docs",
    ):
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
        # What mypy looks at, with the files that are new since the last build.
        Step("links", [python, "setup.py", "links"]),
        Step("ruff", [python, "-m", "ruff", "check", "."]),
        Step("ruff format", [python, "-m", "ruff", "format", "--check", "--quiet", "."]),
        Step("mypy", [python, "-m", "mypy"]),
        Step("cython-lint", [str(PYTHON.parent / "cython-lint"), *cython]),
    ]


def unit() -> list[Step]:
    """The unit tests on the main Python: under coverage, except those that take seconds each. Checks
    each file's floor.
    """
    COVERED.parent.mkdir(parents=True, exist_ok=True)
    COVERED.unlink(missing_ok=True)
    floors = [str(PYTHON), str(ROOT / "scripts" / "coverage_report.py"), str(COVERED)]
    return [
        pytest("unit", *UNIT_TREES, "-m", "not soak and not slow and not alone", is_traced=True),
        pytest("unit-slow", *UNIT_TREES, "-m", "slow and not soak and not alone"),
        Step("coverage of Python", floors),
        pytest("mutation", "mutation/tests"),
        Step("sampled mutants", [str(PYTHON), "-m", "mutation", "sample"]),
    ]


def quick_whole() -> list[Step]:
    """The quick unit tests of the whole broker. Quick is: without coverage and without tests that take seconds."""
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "shim" / "tests").glob("test_*.py"))
    return [pytest("quick-whole", *files, "-m", QUICK)]


def quick_parts() -> list[Step]:
    """The quick unit tests of the broker's parts and of cext."""
    skipped = [f"--ignore={name}" for name in STATE_TREES]
    return [pytest("quick-parts", *UNIT_TREES, *skipped, "--ignore-glob=shim/tests/test_*.py", "-m", QUICK)]


def quick_state() -> list[Step]:
    """The quick unit tests of logs, groups and transactions."""
    return [pytest("quick-state", *STATE_TREES, "-m", QUICK)]


def quick_clients() -> list[Step]:
    """Lint, and a round trip of each Python client."""
    clients = ["compat_tests/tests/clients/test_matrix.py", "-k", "not java and not kcat"]
    return [*lint(), pytest("quick-clients", *clients)]


def pythons() -> list[Step]:
    """The pure unit tests, and those of TLS, on the other Python versions."""
    chosen = (*PURE_TREES, *TLS_TREES, f"--ignore={NOT_PURE}", "-m", "not soak and not java and not slow and not alone")
    return [
        pytest(f"unit-{python.parent.parent.name.removeprefix('.venv-')}", *chosen, python=python)
        for python in sorted(ROOT.glob(".venv-3.*/bin/python"))
    ]


def coverage() -> list[Step]:
    """The long form: the unit tests in a build with line tracing, and the coverage of Cython."""
    tree = ROOT / "build" / "linetrace"
    run = [str(PYTHON), "-m", "coverage", "run", "--rcfile=scripts/coverage_cython.toml", "-m", "pytest", "-q"]
    # Coverage looks for the C file of a module beside its .pyx.
    generated = "import glob, shutil; [shutil.copy(path, 'cext') for path in glob.glob('build/cython/cext/*.c')]"
    chosen = ("--timeout=600", *UNIT_TREES, "-m", "not soak and not java and not slow and not alone")
    return [
        copy_tree(tree, KAFKA_SHIM_LINETRACE="1", KAFKA_SHIM_WERROR="0"),
        Step("generated C", [str(PYTHON), "-c", generated], tree),
        Step("coverage run", [*run, *chosen], tree, {"KAFKA_SHIM_TRACED": "1"}),
        Step("coverage of Cython", [str(PYTHON), str(ROOT / "scripts" / "coverage_report.py"), "--cython"], tree),
    ]


def asan() -> list[Step]:
    """The fuzz targets and the tests of cext in an AddressSanitizer build."""
    tree = ROOT / "build" / "asan"
    compiler = os.environ.get("CC", "gcc")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout
    environment = {
        "LD_PRELOAD": str(Path(library.strip()).resolve()),
        # Ignore Python's own leaks at exit. Disable its memory pools, because they would hide overruns.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",
    }
    return [
        copy_tree(tree, KAFKA_SHIM_ASAN="1"),
        pytest("asan", "cext/tests", "--timeout=600", "-m", "not soak and not java", cwd=tree, environment=environment),
    ]


def compat_trees(name: str, *folders: str) -> list[Step]:
    trees = (f"compat_tests/tests/{folder}" for folder in folders)
    return [pytest(name, *trees, "--timeout=600", "-m", "not soak and not alone")]


def clients() -> list[Step]:
    """Real clients and tools on the shim, and the same conversations held with Apache Kafka."""
    return compat_trees("clients", "clients", "admin", "console")


def groups() -> list[Step]:
    """Groups and transactions of real clients, and kills under load."""
    return compat_trees("groups", "groups", "transactions", "crash")


def compat() -> list[Step]:
    return compat_trees("compat", "compat", "security", "containers", "upstream")


def spark() -> list[Step]:
    return [pytest("spark", "spark/tests", "-m", "not soak and not alone", "--timeout=900")]


def alone() -> list[Step]:
    """Tests that measure time. Nothing runs beside them."""
    return [pytest("alone", *UNIT_TREES, "compat_tests/tests", "-m", "alone and not soak", "--timeout=600")]


def mutation() -> list[Step]:
    """The long form: the seeded sample of mutants, and its figure."""
    return [
        Step("map of the tests", [str(PYTHON), "-m", "mutation", "map"]),
        Step("mutants", [str(PYTHON), "-m", "mutation", "run", "--all"]),
    ]


def late() -> list[Step]:
    """The long form: the quick unit tests while something that is soon on most machines is late. It finds tests that
    pass by luck."""
    library = ROOT / "build" / "late.so"
    library.parent.mkdir(exist_ok=True)
    source = str(ROOT / "scripts" / "late.c")
    options = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    chosen = (*UNIT_TREES, "--timeout=600", "-m", QUICK, "-k", f"not ({TIMES_A_SEND})")
    return [
        Step("late.so", [os.environ.get("CC", "gcc"), *options, "-o", str(library), source, "-ldl"]),
        *(pytest(name, *chosen, environment={"LD_PRELOAD": str(library), **what}) for name, what in LATE.items()),
    ]


def soak() -> list[Step]:
    return [pytest("soak", *UNIT_TREES, "compat_tests/tests", "spark/tests", "-m", "soak", "--timeout=7200")]


LAYERS: dict[str, Callable[[], list[Step]]] = {
    "lint": lint,
    "unit": unit,
    "pythons": pythons,
    "asan": asan,
    "clients": clients,
    "groups": groups,
    "compat": compat,
    "spark": spark,
    "alone": alone,
    "quick-whole": quick_whole,
    "quick-parts": quick_parts,
    "quick-state": quick_state,
    "quick-clients": quick_clients,
    "coverage": coverage,
    "mutation": mutation,
    "late": late,
    "soak": soak,
}
# The layers of a form: first those for the lanes, in an order in which the lanes end together, then those that run
# alone.
FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "test": (("lint", "unit", "compat", "clients", "pythons", "spark", "groups", "asan"), ("alone",)),
    "quick": (("quick-whole", "quick-parts", "quick-clients", "quick-state"), ()),
    "soak": ((), ("coverage", "mutation", "late", "soak")),
}
