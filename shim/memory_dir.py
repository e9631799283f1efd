"""The data directory of a broker that keeps nothing: a temporary one, on a file system in memory where there is one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

RAM_DISK = Path("/dev/shm")


def make() -> Path:
    """A fresh empty directory."""
    parent = RAM_DISK if RAM_DISK.is_dir() and os.access(RAM_DISK, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="kafka-shim-", dir=parent))


def remove(directory: Path) -> None:
    """Remove it with everything in it."""
    shutil.rmtree(directory, ignore_errors=True)
