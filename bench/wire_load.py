"""Clients in C that cost next to nothing (`wire_load.c`).

A client in Python takes 14 us of a core for a request, about as much as the broker: sixteen of them in one process
measure themselves.
"""

from __future__ import annotations

import subprocess
from array import array
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct

from bench.compiled import local_port, program
from bench.machine import put_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES = ("bench/wire_load.c", "cext/crc32c_native.c")
_PLAN, _CLIENT, _SECONDS = Struct("=IIdd"), Struct("=IiiI"), Struct("=d")


@dataclass(frozen=True)
class Work:
    """What one client sends again and again: a whole frame. `batch_at` is the place of the batch in a Produce, whose
    sequence and CRC the client sets, and which has so many records; its answer has the error code at `error_at`, the
    length counted. Without, the frame is sent as it is, and every answer must be the first again."""

    frame: bytes
    batch_at: int = -1
    records: int = 0
    error_at: int = 0


def run(bootstrap: str, works: Sequence[Work], seconds: float, rate: float = 0.0) -> tuple[array[float], float]:
    """Have a client for each of `works`, each with one request under way, for so many seconds; with a rate, so many
    requests a second of all together. Returns the latencies in microseconds and the seconds that it took. Raises
    RuntimeError with what the program says, for an answer with an error too."""
    plan = _plan(bootstrap, works, seconds, rate)
    done = subprocess.run([program("wire_load", SOURCES)], input=plan, capture_output=True, check=False)
    if done.returncode != 0:
        raise _failure(done.stderr)
    taken_us: array[float] = array("f")
    taken_us.frombytes(done.stdout[_SECONDS.size :])
    return taken_us, _SECONDS.unpack_from(done.stdout)[0]


@contextmanager
def running(bootstrap: str, works: Sequence[Work], rate: float) -> Iterator[array[float]]:
    """Have the clients of `run` send so many requests a second while the block runs, with a CPU before all others where
    the system allows that. They are connected before it begins, and one has had an answer. The latencies are in the
    array when the block has ended. Raises RuntimeError as `run` does."""
    taken_us: array[float] = array("f")
    with subprocess.Popen(
        [program("wire_load", SOURCES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            put_first(process.pid)
            process.stdin.write(_plan(bootstrap, works, 0, rate))
            if process.stdout.read(1):
                yield taken_us
            found, errors = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise _failure(errors)
    taken_us.frombytes(found[_SECONDS.size :])


def _plan(bootstrap: str, works: Sequence[Work], seconds: float, rate: float) -> bytes:
    plan = [_PLAN.pack(len(works), local_port(bootstrap), seconds, rate)]
    for work in works:
        plan += [_CLIENT.pack(len(work.frame), work.batch_at, work.records, work.error_at), work.frame]
    return b"".join(plan)


def _failure(errors: bytes) -> RuntimeError:
    return RuntimeError(errors.decode(errors="replace")[-2000:])
