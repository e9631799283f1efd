"""Clients in C that cost next to nothing (`wire_load.c`), compiled at their first use.

A client in Python takes 14 us of a core for a request, about as much as the broker: sixteen of them in one process
measure themselves.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from array import array
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from kafka_shim.wire_client import parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
SOURCES = (HERE / "wire_load.c", HERE.parent / "cext" / "crc32c_native.c")
PROGRAM = HERE.parent / "build" / "bench" / "wire_load"
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")
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


def program() -> Path:
    """The path of the compiled program. Raises CalledProcessError if the compiler refuses it."""
    if not PROGRAM.exists() or any(source.stat().st_mtime > PROGRAM.stat().st_mtime for source in SOURCES):
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.mktemp(dir=PROGRAM.parent)
        subprocess.run([os.environ.get("CC", "cc"), *FLAGS, "-o", made, *map(str, SOURCES)], check=True)
        Path(made).replace(PROGRAM)  # others may do the same
    return PROGRAM


def run(bootstrap: str, works: Sequence[Work], seconds: float, rate: float = 0.0) -> tuple[array[float], float]:
    """Have a client for each of `works`, each with one request under way, for so many seconds; with a rate, so many
    requests a second of all together. Returns the latencies in microseconds and the seconds that it took. Raises
    RuntimeError with what the program says, for an answer with an error too."""
    host, port = parse_address(bootstrap)
    if host not in ("127.0.0.1", "localhost"):
        raise ValueError(f"the bench is for brokers on this machine, not at {bootstrap}")
    plan = [_PLAN.pack(len(works), port, seconds, rate)]
    for work in works:
        plan += [_CLIENT.pack(len(work.frame), work.batch_at, work.records, work.error_at), work.frame]
    done = subprocess.run([program()], input=b"".join(plan), capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
    taken_us: array[float] = array("f")
    taken_us.frombytes(done.stdout[_SECONDS.size :])
    return taken_us, _SECONDS.unpack_from(done.stdout)[0]
