"""What the system tells of the broker's process, with the names that every Prometheus client gives it.

The library's collector lists all open descriptors of the process to count them, which takes milliseconds where there
are thousands; Linux tells their number alone.
"""

from __future__ import annotations

import os
import resource
from functools import cache
from pathlib import Path

from kafka_shim.monitoring.families import Family, counter, gauge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PROC = Path("/proc")
DESCRIPTORS = PROC / "self" / "fd"
# The index of the start time among the fields of /proc/self/stat that follow the name of the program.
START_TICKS = 19


def process() -> Iterator[Family]:
    """Yields the families of this process; none where there is no /proc. In any thread."""
    try:
        virtual_pages, resident_pages = (PROC / "self" / "statm").read_text().split()[:2]
        started_s = _started_s()
        # Before Linux 6.2 it is 0 there.
        open_count = DESCRIPTORS.stat().st_size or sum(1 for _ in DESCRIPTORS.iterdir())
    except OSError:
        return
    page_bytes, times = resource.getpagesize(), os.times()
    yield gauge("process_virtual_memory_bytes", "Virtual memory.", int(virtual_pages) * page_bytes)
    yield gauge("process_resident_memory_bytes", "Resident memory.", int(resident_pages) * page_bytes)
    yield gauge("process_start_time_seconds", "When the process began, since 1970.", started_s)
    yield counter("process_cpu_seconds", "Time of the CPU, of the process and of the system for it.", sum(times[:2]))
    yield gauge("process_open_fds", "Open descriptors.", open_count)
    yield gauge("process_max_fds", "The most of them.", resource.getrlimit(resource.RLIMIT_NOFILE)[0])


@cache
def _started_s() -> float:
    """Raises OSError."""
    stat = (PROC / "self" / "stat").read_text().rpartition(")")[2].split()
    boot = next(line for line in (PROC / "stat").read_text().splitlines() if line.startswith("btime "))
    return int(boot.split()[1]) + int(stat[START_TICKS]) / os.sysconf("SC_CLK_TCK")
