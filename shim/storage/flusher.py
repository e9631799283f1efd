"""One thread for what may block on a disk: fsync in groups, and removal of files."""

from __future__ import annotations

import errno
import logging
import os
import threading
from concurrent.futures import Future
from queue import SimpleQueue

from kafka_shim.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.faults import Faults

logger = logging.getLogger(__name__)

# One fsync costs a few milliseconds, syncfs little more than one of them.
WHOLE_FROM_FILES = 200


class Sync:
    """A wish that files be on the disk. `paths` are synced as they are when the thread comes to them; `done` is the
    future of the whole wish; `after`, or `failed` with the error, runs in the thread before it is set."""

    __slots__ = ("after", "done", "failed", "paths")

    def __init__(
        self, paths: list[str], after: Callable[[], None] | None, failed: Callable[[OSError], None] | None
    ) -> None:
        self.paths = paths
        self.after = after
        self.failed = failed
        self.done: Future[None] = Future()


class Flusher:
    """The thread, made at its first task and stopped by `stop`. Shared by all partitions of a broker.

    Wishes that gathered while one group was synced form the next group, and a file that several name is synced once."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._queue: SimpleQueue[Sync | Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def sync(
        self,
        paths: list[str],
        after: Callable[[], None] | None = None,
        failed: Callable[[OSError], None] | None = None,
    ) -> Future[None]:
        """fsync these files; a missing one (deleted meanwhile) is done. The future carries the OSError of a failure."""
        wish = Sync(paths, after, failed)
        self._put(wish)
        return wish.done

    def sync_all(self, paths: list[str], directories: list[str]) -> Future[None]:
        """fsync very many files: above `WHOLE_FROM_FILES` by one call for each file system of `directories`."""
        if len(paths) < WHOLE_FROM_FILES:
            return self.sync(paths)
        done: Future[None] = Future()

        def work() -> None:
            try:
                for directory in directories:
                    sync_file_system(directory)
            except OSError as err:
                done.set_exception(err)
            else:
                done.set_result(None)

        self._put(work)
        return done

    def run(self, task: Callable[[], None]) -> None:
        """Run `task` in the thread; what it raises is logged."""
        self._put(task)

    def stop(self) -> None:
        """Finish all tasks and end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _put(self, task: Sync | Callable[[], None]) -> None:
        self._queue.put(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="kafka-shim-flusher", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            group: list[Sync] = []
            task = self._queue.get()
            while True:
                if isinstance(task, Sync):
                    group.append(task)
                    if not self._queue.empty():
                        task = self._queue.get()
                        continue
                break
            if group:
                self._sync_group(group)
            if task is None:
                return
            if not isinstance(task, Sync):
                try:
                    task()
                except OSError as err:
                    logger.warning("background file work failed: %s", err)
                except Exception:
                    # The thread must live: others wait for it.
                    logger.exception("background file work failed")

    def _sync_group(self, group: list[Sync]) -> None:
        results: dict[str, OSError | None] = {}
        for wish in group:
            error: OSError | None = None
            for path in wish.paths:
                if path not in results:
                    results[path] = self._sync_file(path)
                error = error or results[path]
            if error is not None:
                if wish.failed is not None:
                    wish.failed(error)
                wish.done.set_exception(error)
                continue
            if wish.after is not None:
                wish.after()
            wish.done.set_result(None)

    def _sync_file(self, path: str) -> OSError | None:
        try:
            if self._faults.armed:
                self._faults.reach("log.before_fsync", path=path)
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as err:
            return err
        except KafkaError as err:  # a fault that a test armed
            return OSError(errno.EIO, str(err))
        try:
            os.fsync(fd)
        except OSError as err:
            return err
        finally:
            os.close(fd)
        return None


def sync_file_system(directory: str) -> None:
    """Put everything of the file system that holds `directory` on the disk. Raises OSError."""
    import ctypes

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:  # not Linux
        os.sync()
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        if syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), directory)
    finally:
        os.close(fd)
