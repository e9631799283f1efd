"""Which test runs which line: the unit tests once, under coverage with a context for each test.

Processes that a test starts count for it too, as far as they end by themselves. Lines that run at import belong to no
test; every test that runs something of their file may notice them. Extension modules are known by module: their tests
in `cext/tests`, then the tests of what imports them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from mutation.tree import HOME, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mutation.mutants import Mutant

MAP = HOME / "map.json"
MARKS = "not soak and not slow and not alone and not java"
SETTINGS = """\
[tool.coverage.run]
core = "ctrace"
source = ["{tree}/shim"]
omit = ["*/tests/*", "*/protocol/messages/*", "*/protocol/records/*"]
"""
OF_CHILDREN = """\
context = "${{MUTATION_TEST-}}"
data_file = "{data}/child"
parallel = true
sigterm = true
"""
IMPORTS = re.compile(r"kafka_shim\.cext\.(\w+) import|from kafka_shim\.cext import ([\w, ]+)")


@dataclass
class LineMap:
    """`lines[path][line]` are numbers of `tests`; `seconds` by test, as measured under coverage."""

    tests: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    @classmethod
    def load(cls) -> LineMap:
        return cls(**json.loads(MAP.read_text()))

    def of_file(self, path: str) -> set[str]:
        return {self.tests[number] for numbers in self.lines.get(path, {}).values() for number in numbers}

    def touching(self, mutant: Mutant, tree: Path) -> list[str]:
        """Returns the tests that may notice a mutant, those most likely to first."""
        if mutant.path.startswith("cext/"):
            found = self._of_module(Path(mutant.path).stem, tree)
        elif mutant.is_import_time:
            found = self.of_file(mutant.path)
        else:
            rows = self.lines.get(mutant.path, {})
            wanted = range(mutant.lines[0], mutant.lines[1] + 1)
            found = {self.tests[number] for line in wanted for number in rows.get(str(line), ())}
        return self._in_order(found, mutant.path)

    def _of_module(self, module: str, tree: Path) -> set[str]:
        found = {test for test in self.tests if test.startswith("cext/tests/")}
        for source in sorted((tree / "shim").rglob("*.py")):
            names = {
                name.strip() for one, more in IMPORTS.findall(source.read_text()) for name in (one or more).split(",")
            }
            if module in names:
                path = source.relative_to(tree).as_posix()
                found |= self.of_file(path) or {test for test in self.tests if test.startswith(f"{path}::")}
        return found

    def _in_order(self, found: set[str], path: str) -> list[str]:
        """The mirrored test file first, then those of its folder, then the others: of each group one test of each file
        in turn, the cheapest first."""
        stem = Path(path).stem
        files: dict[str, list[str]] = {}
        for test in sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test)):
            files.setdefault(test.partition("::")[0], []).append(test)
        mirrored = [name for name in files if Path(name).stem in (f"test_{stem}", f"test_fuzz_{stem}")]
        order = [test for name in mirrored for test in files.pop(name)]
        folder = _tests_of(path)
        near = [queue for name, queue in files.items() if folder and name.startswith(folder)]
        far = [queue for name, queue in files.items() if not folder or not name.startswith(folder)]
        for queues in (near, far):
            for turn in range(max(map(len, queues), default=0)):
                order += [queue[turn] for queue in queues if turn < len(queue)]
        return order


def _tests_of(path: str) -> str:
    """The folder of the tests of a file's folder; of a file that stands in shim/ itself there is none."""
    match path.split("/")[:-1]:
        case ["shim", folder, *_]:
            return f"shim/tests/{folder}/"
        case ["cext"]:
            return "cext/tests/"
    return ""


def make(arguments: list[str]) -> None:
    """Runs the unit tests in a copy of the tree and writes the map. `arguments` go to pytest."""
    tree = Tree(0)
    tree.make()
    data = HOME / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    run(tree, data, "all", arguments or ["cext/tests", "shim/tests"])
    collect(tree, data)


def run(tree: Tree, data: Path, name: str, chosen: list[str]) -> None:
    """Runs some tests under coverage; several runs may stand beside each other."""
    main, children = data / "main.toml", data / "children.toml"
    main.write_text(SETTINGS.format(tree=tree.path))
    children.write_text((SETTINGS + OF_CHILDREN).format(tree=tree.path, data=data))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={main}", f"--data-file={data}/main-{name}"]
    command += ["-m", "pytest", "-q", "-p", "mutation.plugin", "-p", "no:cacheprovider", "-m", MARKS, *chosen]
    environment = tree.environment(
        COVERAGE_PROCESS_START=str(children), MUTATION_DURATIONS=f"{data}/passed-{name}.json"
    )
    # A test that fails here is left out of the map: it could not tell a mutant from the original.
    subprocess.run(command, cwd=tree.path, env=environment, check=False)


def collect(tree: Tree, data: Path) -> None:
    import coverage

    found = LineMap()
    for path in sorted(data.glob("passed-*.json")):
        found.seconds |= json.loads(path.read_text())
    found.tests = sorted(found.seconds)
    numbers = {test: number for number, test in enumerate(found.tests)}
    lines: dict[str, dict[str, set[int]]] = {}
    for path in sorted([*data.glob("main-*"), *data.glob("child.*")]):
        measured = coverage.CoverageData(basename=str(path))
        try:
            measured.read()
        except coverage.exceptions.DataError:
            continue  # a process that was killed while it wrote
        for name in measured.measured_files():
            rows = lines.setdefault(Path(name).relative_to(tree.path).as_posix(), {})
            for line, contexts in measured.contexts_by_lineno(name).items():
                rows.setdefault(str(line), set()).update(numbers[test] for test in contexts if test in numbers)
    found.lines = {name: {line: sorted(tests) for line, tests in rows.items() if tests} for name, rows in lines.items()}
    MAP.write_text(json.dumps({"tests": found.tests, "seconds": found.seconds, "lines": found.lines}))
    print(f"{len(found.tests)} tests, {len(found.lines)} files in {MAP}")
