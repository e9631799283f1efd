"""The flusher: one thread for blocking disk work, which is grouped fsyncs and the removal of files.

What an answer waits for goes before what nobody waits for: a few thousand rolled segments would else hold up the next
CreateTopics for as long as their fsyncs take."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from queue import PriorityQueue

from kafka_shim.errors import KafkaError
from kafka_shim.storage.durable import fsync
from kafka_shim.storage.open_files import OUT_OF_DESCRIPTORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.clock import Clock
    from kafka_shim.faults import Faults

logger = logging.getLogger(__name__)

# The order of the queue: what somebody waits for, the rest, the end of the thread.
WAITED, BACKGROUND, END = range(3)
# An fsync takes a few milliseconds per file; one syncfs takes little longer. From this many files on, syncfs is used.
WHOLE_FROM_FILES = 200


class Sync:
    """A request to fsync the files `paths`. `done` is the future of the whole request. Before it is completed, `after`
    runs in the thread, or `failed` with the error. `after` may raise OSError: then the request has failed too."""

    __slots__ = ("after", "done", "failed", "paths")

    def __init__(
        self, paths: list[str], after: Callable[[], None] | None, failed: Callable[[OSError], None] | None
    ) -> None:
        self.paths = paths
        self.after = after
        self.failed = failed
        self.done = _shared_future()

    def run(self, results: dict[str, OSError | None], sync_file: Callable[[str], OSError | None]) -> None:
        """fsync the files that are not in `results` yet, and complete `done` in every case."""
        error: OSError | None = None
        try:
            for path in self.paths:
                if path not in results:
                    results[path] = sync_file(path)
                error = error or results[path]
            if error is None and self.after is not None:
                self.after()
        except OSError as err:
            error = err
        except BaseException as err:
            # The thread must survive every error, because other requests wait for it.
            logger.exception("an fsync failed by an unexpected error")
            error = OSError(errno.EIO, f"{type(err).__name__}: {err}")
        if error is None:
            self.done.set_result(None)
            return
        try:
            if self.failed is not None:
                self.failed(error)
        finally:
            self.done.set_exception(error)


def _shared_future() -> Future[None]:
    """Return a future that a waiter cannot cancel, because several requests may wait for the same fsync."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


class Flusher:
    """The thread, started by the first task and stopped by `stop`. All partitions of a broker share it.

    Requests that somebody waits for and that arrive during one group of fsyncs form the next group. A file that several
    requests of a group name is synced once. A thread that died is replaced at the next task. If the system refuses to
    start a thread, the caller does the work."""

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self._faults = faults
        self._clock = clock
        # (WAITED, BACKGROUND or END; in the order of their coming; the task, None at the end).
        self._queue: PriorityQueue[tuple[int, int, Sync | Callable[[], None] | None]] = PriorityQueue()
        self._numbers = count()
        self._thread: threading.Thread | None = None
        # At most one descriptor, given up for an fsync when the process has no other: what was appended is kept, so
        # that its request must not fail for lack of one. A list, whose `pop` gives it to one thread.
        self._spare: list[int] = []
        # For metrics: the calls of fsync and syncfs, the time that they took, those that failed.
        self.sync_count = self.sync_ns = self.sync_failures = 0

    def sync(
        self,
        paths: list[str],
        after: Callable[[], None] | None = None,
        failed: Callable[[OSError], None] | None = None,
    ) -> Future[None]:
        """Request an fsync of these files, for which somebody waits. A missing file counts as synced, because it was
        deleted in the meantime. After a failure the future has the OSError."""
        request = Sync(paths, after, failed)
        self._put(request, WAITED)
        return request.done

    def sync_later(
        self,
        paths: list[str],
        after: Callable[[], None] | None = None,
        failed: Callable[[OSError], None] | None = None,
    ) -> Future[None]:
        """Request an fsync as `sync` does, after all that somebody waits for."""
        request = Sync(paths, after, failed)
        self._put(request, BACKGROUND)
        return request.done

    def sync_all(self, paths: list[str], directories: list[str]) -> Future[None]:
        """Request an fsync of many files. From `WHOLE_FROM_FILES` on, one syncfs call for each of `directories`
        replaces them, where the system has it."""
        if len(paths) < WHOLE_FROM_FILES or not has_syncfs():
            return self.sync(paths)
        done = _shared_future()

        def work() -> None:
            try:
                for directory in directories:
                    self._measured(lambda: sync_file_system(directory))  # noqa: B023
            except BaseException as err:
                done.set_exception(err if isinstance(err, OSError) else OSError(errno.EIO, str(err)))
            else:
                done.set_result(None)

        self._put(work, WAITED)
        return done

    def sync_now(self, paths: list[str]) -> None:
        """fsync a few small files in the calling thread, without waiting for what is queued. Raises OSError."""
        for path in paths:
            error = self._sync_file(path)
            if error is not None:
                raise error

    def run(self, task: Callable[[], None]) -> None:
        """Run `task` in the thread, after all that somebody waits for. Its exceptions are logged."""
        self._put(task, BACKGROUND)

    def stop(self) -> None:
        """Finish all tasks and end the thread."""
        if self._thread is not None:
            self._queue.put((END, next(self._numbers), None))
            self._thread.join()
            self._thread = None
        self._drain()  # tasks left by a thread that died
        while self._spare:
            os.close(self._spare.pop())

    def _put(self, task: Sync | Callable[[], None], priority: int) -> None:
        self._clock.begin_work()
        self._queue.put((priority, next(self._numbers), task))
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="kafka-shim-flusher", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as err:
                logger.warning("no thread for fsync, it is done by the event loop: %s", err)
                self._thread = None
                self._drain()

    def _drain(self) -> None:
        """Run all queued tasks in the calling thread."""
        while not self._queue.empty():
            self._run([self._queue.get()[2]])

    def _work(self) -> None:
        while self._run(self._next_group()):
            pass

    def _next_group(self) -> list[Sync | Callable[[], None] | None]:
        """Wait for a task. Returns it, and after an fsync that somebody waits for all tasks that follow in the queue,
        up to and including the first of another kind."""
        group = []
        while True:
            priority, _, task = self._queue.get()
            group.append(task)
            if priority != WAITED or not isinstance(task, Sync) or self._queue.empty():
                return group

    def _run(self, group: list[Sync | Callable[[], None] | None]) -> bool:
        """Run a group of tasks. Returns False if the thread must end."""
        results: dict[str, OSError | None] = {}
        for task in group:
            if task is None:
                return False
            try:
                if isinstance(task, Sync):
                    task.run(results, self._sync_file)
                else:
                    task()
            except OSError as err:
                logger.warning("background file work failed: %s", err)
            except BaseException:
                logger.exception("background file work failed")
            finally:
                self._clock.end_work()
        return True

    def _sync_file(self, path: str) -> OSError | None:
        try:
            if self._faults.armed:
                self._faults.reach("log.before_fsync", path=path)
            fd = self._open(path)
        except FileNotFoundError:
            return None
        except OSError as err:
            return err
        except KafkaError as err:  # a fault that a test armed
            return OSError(errno.EIO, str(err))
        try:
            self._measured(lambda: fsync(fd))
        except OSError as err:
            return err
        finally:
            os.close(fd)
            if not self._spare:
                with suppress(OSError):
                    self._spare.append(os.open(os.devnull, os.O_RDONLY))
        return None

    def _open(self, path: str) -> int:
        try:
            return os.open(path, os.O_RDONLY)
        except OSError as err:
            if err.errno not in OUT_OF_DESCRIPTORS or not self._spare:
                raise
        with suppress(IndexError):  # another thread was faster
            os.close(self._spare.pop())
        return os.open(path, os.O_RDONLY)

    def _measured(self, sync: Callable[[], None]) -> None:
        """Run one fsync. Raises its OSError."""
        began_ns = time.perf_counter_ns()
        try:
            sync()
        except OSError:
            self.sync_failures += 1
            raise
        finally:
            self.sync_count += 1
            self.sync_ns += time.perf_counter_ns() - began_ns


def has_syncfs() -> bool:
    """Whether the C library has syncfs, which is Linux's: `sync` of other systems neither waits nor tells of errors."""
    import ctypes

    return hasattr(ctypes.CDLL(None), "syncfs")


def sync_file_system(directory: str) -> None:
    """Sync the file system that contains `directory`. Raises OSError."""
    import ctypes

    syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    fd = os.open(directory, os.O_RDONLY)
    try:
        if syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), directory)
    finally:
        os.close(fd)
