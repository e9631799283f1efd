"""The flusher: one thread for blocking disk work, which is grouped fsyncs and the removal of files.

What an answer waits for goes before what nobody waits for: a few thousand rolled segments would else hold up the next
CreateTopics for as long as their fsyncs take. With `flush.messages` on a slow disk there may always be another fsync
that is waited for, so that a step of the rest comes after every few of them."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from queue import PriorityQueue

from kafka_shim.errors import KafkaError
from kafka_shim.storage.durable import fsync
from kafka_shim.storage.open_files import OUT_OF_DESCRIPTORS, out_of_memory
from kafka_shim.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.clock import Clock
    from kafka_shim.faults import Faults

    Task = Callable[[], Iterator[object] | None]

logger = logging.getLogger(__name__)

# The order of the queue: what the event loop stands still for, what somebody waits for, the rest, the thread's end.
URGENT, WAITED, BACKGROUND, END = range(4)
# After how many fsyncs that somebody waits for a step of the rest comes, which would else never be done on a slow disk.
MOST_WAITED = 10
# How long the thread waits for memory before it begins a task again.
NO_MEMORY_PAUSE_S = 0.1
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

    def run(
        self,
        results: dict[str, OSError | None],
        sync_file: Callable[[str], OSError | None],
        let_others: Callable[[], None],
    ) -> None:
        """fsync the files that are not in `results` yet, calling `let_others` after each, and complete `done` in every
        case."""
        error: OSError | None = None
        try:
            for path in self.paths:
                if path not in results:
                    results[path] = sync_file(path)
                    let_others()
                error = error or results[path]
            if error is None and self.after is not None:
                self.after()
        except OSError as err:
            error = err
        except BaseException as err:
            # The thread must survive every error, because other requests wait for it.
            error = _unexpected(err)
        self.end(error)

    def end(self, error: OSError | None) -> None:
        """Complete `done`, if nobody has."""
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
            return
        try:
            if self.failed is not None:
                self.failed(error)
        finally:
            self.done.set_exception(error)


def _unexpected(error: BaseException) -> OSError:
    """To be called as `error` is handled, which is logged."""
    as_os_error = OSError(errno.EIO, f"{type(error).__name__}: {error}")
    with suppress(MemoryError):
        logger.exception("an fsync failed by an unexpected error")
    return as_os_error


def _shared_future() -> Future[None]:
    """Return a future that a waiter cannot cancel, because several requests may wait for the same fsync."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


class Flusher:
    """The thread, started by the first task and stopped by `stop`. All partitions of a broker share it.

    A file is synced once for all requests that name it and came before. Between two files of a task that nobody waits
    for, which may have thousands, comes what somebody waits for. A thread that died is replaced at the next task. If
    the system refuses to start a thread, the caller does the work."""

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self._faults = faults
        self._clock = clock
        # (URGENT, WAITED, BACKGROUND or END; in the order of their coming; the task if it is waited for).
        self._queue: PriorityQueue[tuple[int, int, Sync | Task | None]] = PriorityQueue()
        # (in the order of their coming, the task): what nobody waits for. Their turn in the queue comes at the latest.
        self._background: deque[tuple[int, Sync | Task]] = deque()
        # The `sync_count` from which the oldest of these goes before what is waited for.
        self._background_due = MOST_WAITED
        self._numbers = count()
        # What the fsyncs have found that began after a task of this number would have come, by path.
        self._results: dict[str, OSError | None] = {}
        self._results_since = -1
        self._thread: Thread | None = None
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
        *,
        is_urgent: bool = False,
    ) -> Future[None]:
        """Request an fsync of these files, for which somebody waits; `is_urgent`: with the event loop, so that it goes
        before the others. A missing file counts as synced, because it was deleted in the meantime. After a failure the
        future has the OSError."""
        request = Sync(paths, after, failed)
        self._put(request, URGENT if is_urgent else WAITED)
        return request.done

    def sync_later(
        self,
        paths: list[str],
        after: Callable[[], None] | None = None,
        failed: Callable[[OSError], None] | None = None,
    ) -> Future[None]:
        """Request an fsync as `sync` does, after what somebody waits for, or between every few fsyncs of that."""
        request = Sync(paths, after, failed)
        self._put(request, BACKGROUND)
        return request.done

    def sync_all(self, paths: list[str], directories: list[str]) -> Future[None]:
        """Request an fsync of many files. From `WHOLE_FROM_FILES` on, one syncfs call for each of `directories`, and
        for each other file system that has some of the files, replaces them, where the system has it."""
        if len(paths) < WHOLE_FROM_FILES or not has_syncfs():
            return self.sync(paths)
        done = _shared_future()

        def work() -> None:
            try:
                for directory in [*directories, *_elsewhere(paths, directories)]:
                    self._measured(partial(sync_file_system, directory))
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

    def run(self, task: Task) -> None:
        """Run `task` in the thread, after what somebody waits for, or between every few fsyncs of that. What is waited
        for also comes between two steps of the iterator that it may return. Its exceptions are logged."""
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

    def _put(self, task: Sync | Task, priority: int) -> None:
        self._clock.begin_work()
        number = next(self._numbers)
        if priority == BACKGROUND:
            self._background.append((number, task))
        self._queue.put((priority, number, None if priority == BACKGROUND else task))
        if self._thread is None or not self._thread.is_alive():
            self._start_thread()

    def _start_thread(self) -> None:
        self._thread = Thread(target=self._work, name="kafka-shim-flusher", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as err:
            logger.warning("no thread for fsync, it is done by the event loop: %s", err)
            self._thread = None
            self._drain()

    def _drain(self) -> None:
        """Run all queued tasks in the calling thread."""
        while not self._queue.empty():
            self._take()

    def _work(self) -> None:
        while True:
            try:
                if not self._take():
                    return
                if not self._background:
                    self._background_due = self.sync_count + MOST_WAITED
                elif self.sync_count >= self._background_due:
                    self._do_background()
            except MemoryError:
                time.sleep(NO_MEMORY_PAUSE_S)  # the queue still has the task

    def _take(self) -> bool:
        """Wait for a task, and do it. Returns False if the thread must end."""
        priority, number, task = self._queue.get()
        while priority != END:
            try:
                if task is not None:
                    self._do(task, number, _nothing)
                while task is None and self._background and self._background[0][0] <= number:
                    self._do_background()
            except MemoryError:
                time.sleep(NO_MEMORY_PAUSE_S)  # it is not done, and nobody else has it
            else:
                return True
        return False

    def _do_background(self) -> None:
        """Do the oldest task that nobody waits for."""
        number, task = self._background[0]
        self._do(task, number, self._do_waited)
        del self._background[0]  # only now: it is begun again where memory ends
        self._background_due = self.sync_count + MOST_WAITED

    def _do_waited(self) -> None:
        """Do what somebody waits for, but not for ever."""
        waiting = self._queue.queue
        end_count = self.sync_count + MOST_WAITED
        with suppress(MemoryError):  # then it comes next
            while waiting and waiting[0][0] <= WAITED and self.sync_count < end_count:  # no other thread takes it away
                self._take()

    def _do(self, task: Sync | Task, number: int, let_others: Callable[[], None]) -> None:
        try:
            self._run(task, number, let_others)
        except OSError as err:
            with suppress(MemoryError):  # else `_take` would begin it again
                logger.warning("background file work failed: %s", err)
        except BaseException as err:
            _give_up(task, err)
        # Not where memory ends on the way: the caller begins the task again.
        self._clock.end_work()

    def _run(self, task: Sync | Task, number: int, let_others: Callable[[], None]) -> None:
        if isinstance(task, Sync):
            task.run(self._results_of(number), self._sync_file, let_others)
        else:
            for _ in task() or ():
                let_others()

    def _results_of(self, number: int) -> dict[str, OSError | None]:
        """Return what fsyncs have found that began after the task of this number came, to be added to."""
        if number > self._results_since:
            self._results_since = next(self._numbers)
            self._results = {}
        return self._results

    def _sync_file(self, path: str) -> OSError | None:
        try:
            fd = self._open(path)
        except FileNotFoundError:
            return None
        except OSError as err:
            return err
        except KafkaError as err:  # a fault that a test armed
            return OSError(errno.EIO, str(err))
        try:
            return self._sync_descriptor(fd)
        finally:
            os.close(fd)
            if not self._spare:
                self._open_spare()

    def _sync_descriptor(self, fd: int) -> OSError | None:
        try:
            self._measured(lambda: fsync(fd))
        except OSError as err:
            return err
        return None

    def _open(self, path: str) -> int:
        if self._faults.armed:
            self._faults.reach("log.before_fsync", path=path)
        try:
            return os.open(path, os.O_RDONLY)
        except OSError as err:
            if err.errno not in OUT_OF_DESCRIPTORS or not self._spare:
                raise
        with suppress(IndexError):  # another thread was faster
            os.close(self._spare.pop())
        return os.open(path, os.O_RDONLY)

    def _open_spare(self) -> None:
        with suppress(OSError):
            self._spare.append(os.open(os.devnull, os.O_RDONLY))

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


def _give_up(task: Sync | Task, error: BaseException) -> None:
    """End a task that raised what is no error of the disk. To be called as `error` is handled, which is logged."""
    if isinstance(task, Sync):
        task.end(out_of_memory() if isinstance(error, MemoryError) else OSError(errno.EIO, type(error).__name__))
    with suppress(MemoryError):
        logger.exception("background file work failed")


def _nothing() -> None:
    """Let nobody else go first."""


def _elsewhere(paths: list[str], directories: list[str]) -> list[str]:
    """Return a directory of each file system that has some of the files and none of `directories`: a partition's may be
    a link. Raises OSError."""
    found: dict[int, str] = {}
    for directory in [*directories, *dict.fromkeys(map(os.path.dirname, paths))]:
        with suppress(FileNotFoundError):
            found.setdefault(os.stat(directory).st_dev, directory)
    return [directory for directory in found.values() if directory not in directories]


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
