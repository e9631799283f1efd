"""A slow disk for one process: the kernel lets its writes to the device of a directory through at a low rate.

By the block I/O controller of cgroup v1 (`blkio.throttle.write_iops_device`) or v2 (`io.max`), which needs root. A
write to the page cache is as fast as ever, and an fsync waits for its writes.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUPS = Path("/sys/fs/cgroup")
V1 = CGROUPS / "blkio"


def _device(directory: Path) -> str:
    """The numbers of the disk that holds the directory; of a partition, those of its disk."""
    number = directory.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if (device / "partition").exists():
        device = device.parent
    return (device / "dev").read_text().strip()


@contextmanager
def slow_disk(pid: int, directory: Path, writes_a_second: int) -> Iterator[None]:
    """Slows the process down while it lasts. Raises OSError where the kernel or the user's rights do not allow it."""
    group = (V1 if V1.is_dir() else CGROUPS) / f"bench-{pid}"
    file, limit = (
        ("blkio.throttle.write_iops_device", f"{_device(directory)} {writes_a_second}")
        if V1.is_dir()
        else ("io.max", f"{_device(directory)} wiops={writes_a_second}")
    )
    if not V1.is_dir():
        (CGROUPS / "cgroup.subtree_control").write_text("+io")
    before = _group_of(pid)
    group.mkdir()
    try:
        (group / file).write_text(limit)
        (group / "cgroup.procs").write_text(str(pid))
        try:
            yield
        finally:
            (before / "cgroup.procs").write_text(str(pid))
    finally:
        group.rmdir()


def _group_of(pid: int) -> Path:
    """The folder of the group that the process is in now."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if V1.is_dir() and "blkio" in controllers.split(","):
            return V1 / path.lstrip("/")
        if not V1.is_dir() and not controllers:
            return CGROUPS / path.lstrip("/")
    raise FileNotFoundError(f"process {pid} is in no group of the block I/O controller")
