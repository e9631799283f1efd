"""A client's Go tests: the module comes from the module proxy, is compiled once for each version, and runs as a
process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kafka_shim.compat.upstream.allow_list import OUT
from kafka_shim.compat.upstream.base import FAILED, PASSED, SKIPPED, Outcome, Suite, Unavailable
from kafka_shim.compat.upstream.packages import CACHE, go_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar

STATUS = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
# With -test.v=test2json this byte precedes the output of the test runner itself, even after an incomplete line of a
# test.
MARK = "\x16"
RESULT = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)")
STEP = re.compile(r"=== \w+\s+(\S+)")
KEPT_CHARACTERS = 4000


class GoSuite(Suite):
    """The tests of one package of the Go module `module` at `pinned`; ids are the names of the top tests."""

    module: str
    pinned: str
    """The version of the module: Go has none installed to go by."""
    package: str = "."
    timeout_s = 900
    """Of the whole run."""
    build_options: ClassVar[Sequence[str]] = ()

    @property
    def version(self) -> str:
        return self.pinned.removeprefix("v")

    @property
    def _binary(self) -> Path:
        return CACHE / f"{self.name}-{self.pinned}.test"

    @property
    def source(self) -> Path:
        """Where the tests run: they may read files beside them."""
        return self._source / self.package

    _source: Path

    def prepare(self) -> None:
        self._source = self.sources()
        if not self._binary.exists():
            self._compile()

    def sources(self) -> Path:
        """The module's folder, by default the read-only one of Go's cache."""
        return go_module(self.module, self.pinned)

    def _compile(self) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=CACHE) as scratch:
            made = Path(scratch) / "made.test"
            line = ["go", "test", *self.build_options, "-c", "-o", str(made), "."]
            done = subprocess.run(line, cwd=self.source, capture_output=True, text=True, check=False)
            if not made.exists():
                raise Unavailable(f"the tests of {self.module} {self.pinned} do not compile:\n{done.stderr[-2000:]}")
            made.rename(self._binary)

    def environment(self, bootstrap: str, *, long: bool) -> dict[str, str]:
        """The environment that tells the tests the broker's address and how much to do."""
        raise NotImplementedError

    def tests(self) -> list[str]:
        done = subprocess.run(
            [self._binary, "-test.list", "^Test"], cwd=self.source, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    def run(self, bootstrap: str, tests: Sequence[str], scratch: Path, *, long: bool) -> dict[str, Outcome]:
        left_out = [line.test for line in self.allow_list.lines if line.kind == OUT and "/" in line.test]
        line = [str(self._binary), "-test.v=test2json", f"-test.timeout={self.timeout_s}s"]
        line += ["-test.run", f"^({'|'.join(map(re.escape, tests))})$"]
        if left_out:
            # Each part between slashes is a separate pattern.
            patterns = ["/".join(f"^{re.escape(part)}$" for part in name.split("/")) for name in left_out]
            line += ["-test.skip", "|".join(patterns)]
        environment = {**os.environ, **self.environment(bootstrap, long=long)}
        log = scratch / f"{self.name}.log"
        with log.open("wb") as output:
            subprocess.run(
                line,
                cwd=self.source,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        found = outcomes(log.read_text(errors="replace"))
        return {test: found[test] for test in tests if test in found}


def outcomes(log: str) -> dict[str, Outcome]:
    """Reads the output of a test binary run with -test.v=test2json: every test and subtest that ended."""
    texts: dict[str, str] = {}
    results: dict[str, tuple[str, float]] = {}
    current = ""
    for row in log.splitlines():
        printed, mark, said = row.partition(MARK)
        if printed or not mark:
            texts[current] = f"{texts.get(current, '')}{printed}\n"[-KEPT_CHARACTERS:]
        if (ended := RESULT.match(said)) is not None:
            results[ended[2]] = (STATUS[ended[1]], float(ended[3]))
            current = ended[2]
        elif (step := STEP.match(said)) is not None:
            current = step[1]
    found: dict[str, Outcome] = {}
    for test, (status, seconds) in results.items():
        text = ""
        if status != PASSED:
            # A failed subtest is more specific than its parent test.
            failed = [name for name, (other, _) in results.items() if other == status and name.startswith(f"{test}/")]
            text = "".join(f"{name}:\n{texts.get(name, '')}" for name in [test, *failed])[-KEPT_CHARACTERS:]
        found[test] = Outcome(status, seconds, text)
    return found


def copy_of(module: Path, target: Path) -> None:
    """A new writable copy of a module's folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(module, target, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("examples"))
    for folder in [target, *(path for path in target.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
