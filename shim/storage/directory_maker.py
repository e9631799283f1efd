"""Makes the directories of many new partitions in a thread: each new name waits for the file system's journal, for as
long as a slow disk takes, and the event loop serves others meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress

from kafka_shim.storage.data_dir import PARTITION_METADATA, write_topic_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.workers import Workers

    # The path of its directory, and the topic id.
    Place = tuple[Partition, str, bytes]


class DirectoryMaker:
    """Owned by `PartitionDirectories`, which makes itself what is not made here. Event-loop thread only.

    A thread and the loop never work on one partition: `take` and `undo` wait until the thread has left it, which takes
    as long as one directory."""

    __slots__ = ("_runs", "_workers")

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        # What was given to a thread, and not taken yet.
        self._runs: dict[Partition, _Run] = {}

    def has(self, key: Partition) -> bool:
        """Whether the directory is made in a thread, or was and is not taken yet."""
        return key in self._runs

    def begin(self, places: Sequence[Place]) -> None:
        """Have a thread make directories with their `partition.metadata`, each for a partition that has none. Those
        that cannot be made are left out."""
        run = _Run(places)
        self._runs.update(dict.fromkeys([key for key, _, _ in places], run))
        try:
            run.work = self._workers.begin(run)
        except BaseException as error:
            run.stop()
            if not isinstance(error, RuntimeError):
                raise
            # No loop runs, as in a tool, or the system starts no thread.

    async def wait(self, keys: Iterable[Partition]) -> None:
        """Wait until no thread makes any of these, whoever began it."""
        for run in {self._runs[key] for key in keys if key in self._runs}:
            if run.work is not None:
                await asyncio.shield(run.work)

    def take(self, key: Partition) -> bool:
        """Returns whether the thread made this directory, whole. It is the caller's from now on."""
        run = self._runs.pop(key, None)
        if run is None:
            return False
        if key not in run.made:
            run.stop()
        return key in run.made

    def undo(self, key: Partition) -> None:
        """Remove the directory of a partition that is deleted before anyone took it."""
        run = self._runs.pop(key, None)
        if run is not None:
            run.stop()
            path = run.made.get(key)
            if path is not None:
                remove_empty(path)

    def stop(self) -> None:
        """Wait until no thread makes directories. What is made and not taken stays."""
        for run in set(self._runs.values()):
            run.stop()


class _Run:
    """The directories that a thread makes one after the other."""

    __slots__ = ("_claim", "_ended", "_is_stopped", "made", "work")

    def __init__(self, places: Sequence[Place]) -> None:
        # Whoever takes this does the work, or has it undone.
        self._claim = [places]
        self._is_stopped = False
        self._ended = threading.Event()
        # The path of each directory that is whole. The thread adds, the loop reads.
        self.made: dict[Partition, str] = {}
        # Done when the thread has left it; None if none was asked for.
        self.work: asyncio.Future[None] | None = None

    def __call__(self) -> None:
        """The work of the thread. Raises nothing: what is missing is made by the loop, which tells what is wrong."""
        try:
            places = self._claim.pop()
        except IndexError:
            return
        try:
            with suppress(OSError, MemoryError):
                for key, path, topic_id in places:
                    if self._is_stopped:
                        break
                    _make(path, topic_id)
                    self.made[key] = path
        finally:
            self._ended.set()

    def stop(self) -> None:
        """Have the thread make no more, and wait for what it has begun. Blocks."""
        self._is_stopped = True
        try:
            self._claim.pop()
        except IndexError:
            self._ended.wait()
        else:
            self._ended.set()


def _make(path: str, topic_id: bytes) -> None:
    """Make a directory that is not there. Raises OSError, also if it is, and MemoryError; none is there then."""
    os.mkdir(path)
    try:
        write_topic_id(path, topic_id)
    except BaseException:
        remove_empty(path)
        raise


def remove_empty(path: str) -> None:
    """Remove the directory of a partition that could not be created, whose `partition.metadata` is this partition's
    own. A directory with other files stays, without that one. Needs no file descriptor."""
    for name in (PARTITION_METADATA, f"{PARTITION_METADATA}.tmp"):
        with suppress(OSError):
            os.unlink(f"{path}/{name}")
    with suppress(OSError):
        os.rmdir(path)
