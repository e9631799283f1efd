"""Runs tests on a mutant in forks of one process that has collected them: the other end of `mutation.server`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from mutation.server import NOT_REPLACED
from mutation.testmap import MARKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from mutation.tree import Tree


class Forks:
    """A pytest process in a tree, which waits for requests. Everything is imported once it is made: a mutant that stood
    in the tree before would be part of all that follow."""

    def __init__(self, tree: Tree, verdict: str, timeout_s: int) -> None:
        self._path = tree.path
        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutation.plugin", "-p", "mutation.server"]
        command += ["-p", "no:cacheprovider", "-m", MARKS, f"--timeout={timeout_s}", "cext/tests", "shim/tests"]
        environment = tree.environment(
            MUTATION_VERDICT=verdict, MUTATION_REQUESTS=str(request_end), MUTATION_ANSWERS=str(answer_end)
        )
        with (tree.path / "build" / "forks.log").open("w") as log:
            self._process = subprocess.Popen(
                command,
                cwd=tree.path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(request_end, answer_end),
            )
        os.close(request_end)
        os.close(answer_end)
        self._requests = os.fdopen(requests, "w")
        self._answers = os.fdopen(answers)
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self._process.wait()
        self._answers.close()

    def run(self, path: str, tests: list[str], cpu_s: int, wall_s: float) -> int | None:
        """Returns the exit status, or None if the change cannot be made in a process that runs. Without a path nothing
        is changed."""
        asked = {"path": path and str(self._path / path), "tests": tests, "cpu_s": cpu_s, "wall_s": wall_s}
        self._requests.write(json.dumps(asked) + "\n")
        self._requests.flush()
        status = self._read()
        return None if status == NOT_REPLACED else status

    def _read(self) -> int:
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError(f"the tests cannot be collected: see {self._path}/build/forks.log")
        return int(json.loads(answer)["status"])
