"""What a virtual machine adds to every figure, kept out of them: for all brokers alike.

A CPU that halts leaves the guest, and each wake-up of broker and client pays for its way back; so ``awake`` keeps
something running on every CPU that gives way to anything else. A page that the host took back while it was free costs
ten times the write that needs it next; so ``settle`` has the host give pages before a round writes a log. Both take
the same from each broker's figures, which makes ratios larger than on such a machine left as it is: ``--as-is``.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Ends with the process that started it.
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
    """While this lasts no CPU of ours halts. Raises RuntimeError at the end when that was not so."""
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


def settle(size_bytes: int) -> None:
    """What was written before is on the disk, so that no round pays for another's writing back; and the kernel has
    pages at hand for a log of this size, as far as they are free."""
    os.sync()
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    size_bytes = min(2 * size_bytes, free_bytes // 2)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, max(size_bytes, mmap.PAGESIZE), flags=flags).close()
