"""The machine under the bench: what it is, and the two states in which figures are taken.

A halted CPU leaves the guest, and each wake-up of broker and client pays for the return. `Spinners` keep every CPU busy
with processes that yield to everything else. Writing to a page that the host reclaimed while it was free costs ten
times as much as usual. ``settle`` therefore makes the host provide pages before a step writes a log. Both happen in the
state QUIET, for all brokers alike; AS_IS leaves the machine alone.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from kafka_shim.targets.kafka_native import java_version
from kafka_shim.targets.waiting import wait_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

QUIET, AS_IS = "quiet", "as it is"
STATES = (QUIET, AS_IS)

ROOM_BYTES, ROOM_COMES_S = 15 << 30, 150.0

# It ends together with the process that started it. A process at idle priority still has its share of a CPU, three
# thousandths, and the scheduler gives it that a tick of 4 ms at a time, for which a broker or client then waits: the
# p99.9 of a small produce was that tick. `sched_yield` forfeits the share.
_SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[2])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = int(sys.argv[1])
while os.getppid() == parent:
    for _ in range(1000):
        for _ in range(300):
            pass
        os.sched_yield()
"""


class Spinners:
    """One process for each CPU of this process, stopped until `awake`. A context manager."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _SPIN, str(os.getpid())]
        self._processes = [subprocess.Popen([*command, str(cpu)]) for cpu in sorted(os.sched_getaffinity(0))]
        self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)

    @contextmanager
    def awake(self, wanted: bool = True) -> Iterator[None]:
        """Keeps all CPUs from halting. Raises RuntimeError at the end if that failed."""
        if not wanted:
            yield
            return
        self._signal(signal.SIGCONT)
        try:
            yield
            if any(process.poll() is not None for process in self._processes):
                raise RuntimeError("a CPU was not kept awake")
        finally:
            self._signal(signal.SIGSTOP)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def awake(wanted: bool = True) -> Iterator[None]:
    """Keeps all CPUs of this process from halting, for a bench with one state."""
    with Spinners() as spinners, spinners.awake(wanted):
        yield


def put_first(pid: int) -> None:
    """Have this process run before all others that want a CPU. Does nothing where the system does not allow that."""
    with suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def settle(directory: Path, size_bytes: int) -> None:
    """Writes earlier data to disk, so that no round pays for another's write-back. Then writes and removes a file of
    `size_bytes` on this file system, so that the kernel has warm pages for a log of this size.
    """
    os.sync()
    block = bytes(1 << 20)
    with tempfile.NamedTemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(size_bytes // len(block) * 3 // 2):
            file.write(block)


def wait_for_room(directory: Path) -> None:
    """Waits until the disk has room for a step: a broker deletes the files of a topic a minute after the topic. Raises
    AssertionError if the room does not come."""
    wait_until(lambda: shutil.disk_usage(directory).free >= ROOM_BYTES, f"{ROOM_BYTES >> 30} GB are free", ROOM_COMES_S)


def description() -> dict[str, Any]:
    """What a reader has to know of this machine; no names of hosts, users or folders."""
    models = (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpus_of_machine": os.cpu_count(),
        "cpu": next(models, platform.machine()),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": java_version(),
        "tcp": next(iter(_lines("/proc/sys/net/ipv4/tcp_congestion_control")), "unknown"),
    }


def load() -> float:
    """The average number of processes that ran or waited for a CPU in the last minute: a quiet machine has few."""
    return round(os.getloadavg()[0], 2)


def jvm_flags(pid: int) -> list[str]:
    """The flags of a running JVM, its heap and collector among them, without those that hold a path."""
    done = subprocess.run(["jcmd", str(pid), "VM.flags"], capture_output=True, text=True, check=False)
    return [word for word in done.stdout.split() if word.startswith("-XX:") and "/" not in word]


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
