"""A pytest plugin that collects the tests once, and then runs some of them on each mutant in a fork of this process.

To import the broker and its tests takes longer than most tests. In the fork, the functions of the mutated file get the
code that the file has now; modules that are imported later, and processes that a test starts, read the file itself.
What runs at import cannot be changed so: `mutation.trial` starts a process for it.

Requests are JSON lines on the descriptor MUTATION_REQUESTS, answers on MUTATION_ANSWERS. The first answer, without a
request, says that everything is imported.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import pytest

POLL_S = 0.01
NOT_REPLACED = 77
READY = 0


def pytest_runtestloop(session: pytest.Session) -> bool:
    items = {item.nodeid: item for item in session.items}
    functions: dict[str, list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType:
            functions.setdefault(os.path.realpath(each.__code__.co_filename), []).append(each)
    gc.collect()
    gc.freeze()
    requests = os.fdopen(int(os.environ["MUTATION_REQUESTS"]))
    with os.fdopen(int(os.environ["MUTATION_ANSWERS"]), "w") as answers:
        # No mutant may stand in the tree before: this process would import it for good.
        answers.write(json.dumps({"status": READY}) + "\n")
        answers.flush()
        for line in requests:
            asked = json.loads(line)
            status = _in_a_fork(session, items, functions, asked)
            answers.write(json.dumps({"status": status}) + "\n")
            answers.flush()
    return True


def _in_a_fork(
    session: pytest.Session, items: dict[str, pytest.Item], functions: dict[str, list[FunctionType]], asked: Any
) -> int:
    """Returns the exit status as `subprocess` has it: negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (asked["cpu_s"], asked["cpu_s"] + 5))
            path = os.path.realpath(asked["path"] or "")
            if not asked["path"] or replace(functions.get(path, []), path) or not functions.get(path):
                status = _tests(session, [items[name] for name in asked["tests"] if name in items])
            else:
                status = NOT_REPLACED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    until = time.monotonic() + asked["wall_s"]
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        time.sleep(POLL_S)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not found:
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def replace(functions: list[FunctionType], path: str) -> int:
    """Gives the functions of a file the code that it has now. Returns how many have changed."""
    codes = {
        (code.co_qualname, code.co_firstlineno): code for code in _codes(compile(Path(path).read_bytes(), path, "exec"))
    }
    count = 0
    for function in functions:
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        if new is not None and new != old:
            function.__code__ = new
            count += 1
    return count


def _codes(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return inner + [deeper for each in inner for deeper in _codes(each)]


def _tests(session: pytest.Session, chosen: list[pytest.Item]) -> int:
    factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    factory._given_basetemp = Path.cwd() / "build" / "tmp"
    verdict = Path(os.environ["MUTATION_VERDICT"])
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if verdict.exists():
            return 1
    sys.stdout.flush()
    return 0
