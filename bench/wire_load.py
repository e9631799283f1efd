"""Clients in C that cost next to nothing (`wire_load.c`).

A client in Python takes 14 us of a core for a request, about as much as the broker: sixteen of them in one process
measure themselves.
"""

from __future__ import annotations

import subprocess
from array import array
from dataclasses import dataclass
from struct import Struct

from bench.compiled import local_port, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    port = local_port(bootstrap)
    plan = [_PLAN.pack(len(works), port, seconds, rate)]
    for work in works:
        plan += [_CLIENT.pack(len(work.frame), work.batch_at, work.records, work.error_at), work.frame]
    done = subprocess.run([program("wire_load", SOURCES)], input=b"".join(plan), capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
    taken_us: array[float] = array("f")
    taken_us.frombytes(done.stdout[_SECONDS.size :])
    return taken_us, _SECONDS.unpack_from(done.stdout)[0]
