"""What a virtual machine adds to every figure, kept out of them: for all brokers alike.

A CPU that halts leaves the guest, and each wake-up of broker and client pays for its way back; so ``awake`` keeps
something running on every CPU that gives way to anything else. A page that the host took back while it was free costs
ten times the write that needs it next; so ``settle`` has the host give pages before a round writes a log. Both take
the same from each broker's figures, which makes ratios larger than on such a machine left as it is: ``--as-is``.
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


def settle(directory: Path, size_bytes: int) -> None:
    """What was written before is on the disk, so that no round pays for another's writing back; and the kernel has
    warm pages at hand for a log of this size on this file system: those of a file that was just removed."""
    os.sync()
    block = bytes(1 << 20)
    with tempfile.NamedTemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(size_bytes // len(block) * 3 // 2):
            file.write(block)
