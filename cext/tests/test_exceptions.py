"""Errors that Cython catches when no memory is left for their traceback.

It releases what it holds of the error at a `return` among the statements of `except` as if there were a traceback: the
process ended with a segmentation fault.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kafka_shim.cext

SOURCES = sorted(Path(kafka_shim.cext.__path__[0]).glob("*.pyx"))
CHILD = """
import _testcapi
from kafka_shim.cext.frame_base import FrameBase

class Dispatcher:
    def handle(self, session, frame):
        _testcapi.set_nomemory(0, 0)
        raise MemoryError

class Receiver(FrameBase):
    def _failed(self, error):
        _testcapi.remove_mem_hooks()
        print(type(error).__name__, error.__traceback__)

receiver = Receiver()
receiver._dispatcher = Dispatcher()
for _ in range(3):
    receiver._handle_now(b"")
"""


def test_a_request_that_finds_no_memory_for_its_traceback_ends_with_its_connection() -> None:
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "MemoryError None\n" * 3)


def returns_with_an_error(lines: list[str]) -> list[int]:
    """Returns the numbers of the lines that return while an error is caught. Alone with a constant they hold none."""
    found, bodies, is_first = [], list[int](), False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        while bodies and depth <= bodies[-1]:
            bodies.pop()
        is_alone = is_first and re.match(r"return( (None|True|False|-?\d+))?( *#.*)?$", text)
        if bodies and text.startswith("return") and not is_alone:
            found.append(number)
        is_first = text.startswith("except")
        if is_first:
            bodies.append(depth)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_nothing_returns_among_the_statements_of_an_except(path: Path) -> None:
    assert returns_with_an_error(path.read_text(encoding="utf-8").splitlines()) == []


def test_returns_among_the_statements_of_an_except_are_found() -> None:
    body = ["try:", "  f()", "except E:", "    return 0  # ok", "except F:", "    # why", "    g()", "    return 0"]
    assert returns_with_an_error([*body, "return 1", "try:", "    pass", "except F:", "    return g()"]) == [8, 13]
