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

    from kafka_shim.clock import Clock
    from kafka_shim.faults import Faults

logger = logging.getLogger(__name__)

# One fsync costs a few milliseconds, syncfs little more than one of them.
WHOLE_FROM_FILES = 200


class Sync:
    """A request to fsync files. `paths` are synced as they are when the thread comes to them; `done` is the future of
    the whole request; `after`, or `failed` with the error, runs in the thread before it is set."""

    __slots__ = ("after", "done", "failed", "paths")

    def __init__(
        self, paths: list[str], after: Callable[[], None] | None, failed: Callable[[OSError], None] | None
    ) -> None:
        self.paths = paths
        self.after = after
        self.failed = failed
        self.done = _shared_future()

    def run(self, results: dict[str, OSError | None], sync_file: Callable[[str], OSError | None]) -> None:
        """fsync what is not in `results` yet, and set `done`, whatever happens."""
        error: OSError | None = None
        try:
            for path in self.paths:
                if path not in results:
                    results[path] = sync_file(path)
                error = error or results[path]
            if error is None and self.after is not None:
                self.after()
        except BaseException as err:
            # The thread must live, whatever it was: others wait for it.
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
    """A future that no waiter can cancel: several wait for one fsync, and one that gives up concerns no other."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


class Flusher:
    """The thread, made at its first task and stopped by `stop`. Shared by all partitions of a broker.

    Requests that gathered while one group was synced form the next group, and a file that several name is synced once.
    A thread that died is replaced at the next task; when the system refuses a thread, the caller does the work."""

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self._faults = faults
        self._clock = clock
        self._queue: SimpleQueue[Sync | Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def sync(
        self,
        paths: list[str],
        after: Callable[[], None] | None = None,
        failed: Callable[[OSError], None] | None = None,
    ) -> Future[None]:
        """fsync these files; a missing one (deleted meanwhile) is done. The future carries the OSError of a failure."""
        request = Sync(paths, after, failed)
        self._put(request)
        return request.done

    def sync_all(self, paths: list[str], directories: list[str]) -> Future[None]:
        """fsync very many files: above `WHOLE_FROM_FILES` by one call for each file system of `directories`."""
        if len(paths) < WHOLE_FROM_FILES:
            return self.sync(paths)
        done = _shared_future()

        def work() -> None:
            try:
                for directory in directories:
                    sync_file_system(directory)
            except BaseException as err:
                done.set_exception(err if isinstance(err, OSError) else OSError(errno.EIO, str(err)))
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
        self._drain()  # what a thread that died left

    def _put(self, task: Sync | Callable[[], None]) -> None:
        self._clock.begin_work()
        self._queue.put(task)
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="kafka-shim-flusher", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as err:
                logger.warning("no thread for fsync, it is done by the event loop: %s", err)
                self._thread = None
                self._drain()

    def _drain(self) -> None:
        """Do everything that is queued, here and now."""
        while not self._queue.empty():
            self._run([self._queue.get()])

    def _work(self) -> None:
        while self._run(self._next_group()):
            pass

    def _next_group(self) -> list[Sync | Callable[[], None] | None]:
        """Waits for a task; then everything queued up to the first task that is no fsync, which is the last."""
        group = [self._queue.get()]
        while isinstance(group[-1], Sync) and not self._queue.empty():
            group.append(self._queue.get())
        return group

    def _run(self, group: list[Sync | Callable[[], None] | None]) -> bool:
        """False when the group ends the thread."""
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
