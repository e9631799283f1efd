"""Removes two effects of virtual machines from the figures, for all brokers alike.

A halted CPU leaves the guest, and each wake-up of broker and client pays for the return. ``awake`` therefore runs a
process on every CPU that yields to everything else. Writing to a page that the host reclaimed while it was free costs
ten times as much as usual. ``settle`` therefore makes the host provide pages before a round writes a log. Both remove
the same amount from each broker's figures, which makes ratios larger than on an unmodified machine: ``--as-is``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# It ends together with the process that started it.
_SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = int(sys.argv[1])
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@contextmanager
def awake(wanted: bool = True) -> Iterator[None]:
    """Keeps all CPUs of this process from halting. Raises RuntimeError at the end if that failed."""
    cpus = sorted(os.sched_getaffinity(0)) if wanted else []
    command = [sys.executable, "-c", _SPIN, str(os.getpid())]
    spinning = [subprocess.Popen([*command, str(cpu)]) for cpu in cpus]
    try:
        yield
        if any(process.poll() is not None for process in spinning):
            raise RuntimeError("a CPU was not kept awake")
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def settle(directory: Path, size_bytes: int) -> None:
    """Writes earlier data to disk, so that no round pays for another's write-back. Then writes and removes a file of
    `size_bytes` on this file system, so that the kernel has warm pages for a log of this size.
    """
    os.sync()
    block = bytes(1 << 20)
    with tempfile.NamedTemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(size_bytes // len(block) * 3 // 2):
            file.write(block)
