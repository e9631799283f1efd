"""What an embedded broker may leave behind in this process: open files, threads, children."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import psutil


def open_files() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()))
    return found


def running() -> set[object]:
    """The threads and children of brokers. Those that other tests share run all the time."""
    children = psutil.Process().children(recursive=True)
    brokers = {child.pid for child in children if "kafka_shim" in child.as_dict(["cmdline"], [])["cmdline"]}
    return brokers | {thread for thread in threading.enumerate() if thread.name.startswith("kafka-shim")}
