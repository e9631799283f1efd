"""Segments that retention deletes: off the log's list at once, `.deleted` once their files are renamed.

A rename waits for the journal of the file system, for as long as an fsync of another program takes, so that the flusher
thread does it while the event loop goes on."""

from __future__ import annotations

import os
import threading

from kafka_shim.storage import names
from kafka_shim.storage.open_files import out_of_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.local_log import LocalLog
    from kafka_shim.storage.segments import Segment
    from kafka_shim.storage.services import LogServices

# How often it is looked whether a thread has renamed all, by one who cannot go on before.
POLL_S = 0.001


class Leaving:
    """The oldest segments of one log, on their way out. Until `end` they are the log's `leaving`: their files may still
    have their names, so that the checkpoint keeps the log start offset. Event-loop thread only, but for `rename`."""

    __slots__ = (
        "_directory",
        "_directory_fds",
        "_error",
        "_is_over",
        "_log",
        "_renamed",
        "_segments",
        "_services",
        "_start_offset",
    )

    def __init__(self, log: LocalLog, services: LogServices, count: int) -> None:
        """Take the first `count` segments off the list. The log start offset has been raised above them."""
        self._log = log
        self._services = services
        self._directory = log.directory
        self._segments = log.segments[:count]
        self._start_offset = log.segments[count].base_offset
        # Changed by the thread that renames: whether it has ended, how many segments have their new name, and what
        # ended it before the last. No lock guards them: where memory ends, a lock may stay locked.
        self._is_over = False
        self._renamed = 0
        self._error: OSError | MemoryError | None = None
        # The open directory, for whoever takes it first.
        self._directory_fds: list[int] = []
        for segment in self._segments:
            segment.abandon()
        del log.segments[:count]
        log.leaving = self
        log.content_changed()

    @property
    def base_offset(self) -> int:
        """The base offset of the oldest of them."""
        return self._segments[0].base_offset

    @property
    def is_under_way(self) -> bool:
        """Whether `rename` has not ended yet."""
        return not self._is_over

    def rename_aside(self) -> None:
        """Have the flusher thread rename the files. Raises OSError and MemoryError; then nothing was begun."""
        # The topic may be deleted and created again meanwhile: the directory that is open stays the one meant.
        self._directory_fds.append(os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            self._services.flusher.run(self._rename_in_directory)
        except BaseException:
            if (directory_fd := self._take_directory()) >= 0:  # else the thread has begun
                os.close(directory_fd)
                raise

    def _rename_in_directory(self) -> None:
        if (directory_fd := self._take_directory()) >= 0:
            try:
                self.rename("", directory_fd)
            finally:
                os.close(directory_fd)

    def _take_directory(self) -> int:
        try:
            return self._directory_fds.pop()
        except IndexError:
            return -1

    def rename(self, prefix: str, directory_fd: int | None = None) -> None:
        """Rename the files, whose names follow `prefix`, and remove the snapshots. May be called in any thread. What
        fails ends it, and `end` tells of it. Buffers that readers hold stay valid."""
        try:
            for segment in self._segments:
                segment.rename_files(prefix, names.DELETED, directory_fd)
                self._renamed += 1
                if segment.base_offset != self._start_offset:
                    remove_snapshot(prefix, segment.base_offset, directory_fd)
        except (OSError, MemoryError) as err:
            self._error = err
        finally:
            self._is_over = True

    def settle(self) -> None:
        """Wait until `rename` has ended, and `end`. Raises as that does."""
        pause = threading.Event()
        while not self._is_over:
            pause.wait(POLL_S)
        self.end()

    def end(self) -> None:
        """Have what was renamed removed after `file.delete.delay.ms`, and list the others again, for the next round.
        Does nothing if it was called before. Raises the error of `rename`, or MemoryError."""
        log = self._log
        if log.leaving is not self:
            return
        log.leaving = None
        left = self._segments
        try:
            while self._renamed:
                left[0].moved(self._directory, names.DELETED)
                self._services.removals.after(log.config.file_delete_delay_ms, left[0].remove)
                del left[0]
                self._renamed -= 1
        finally:
            if left and not log.is_closed and not log.is_offline and log.directory == self._directory:
                try:
                    log.segments[:0] = left
                    log.content_changed()
                except MemoryError:
                    log.fail(out_of_memory(), torn=True)  # what is opened again lists what its directory has
        if self._error is not None:
            raise self._error


def retire_segment(segment: Segment, services: LogServices, delay_ms: int) -> None:
    """Rename a segment's files to `.deleted` and remove them after `delay_ms` (`file.delete.delay.ms`). Buffers that
    readers hold stay valid."""
    segment.abandon()
    segment.rename(names.DELETED)
    services.removals.after(delay_ms, segment.remove)


def remove_snapshot(prefix: str, offset: int, directory_fd: int | None = None) -> None:
    """Remove the producer snapshot of a deleted segment, whose name follows `prefix`. Does nothing if there is none."""
    try:
        os.unlink(f"{prefix}{names.file_name(offset, names.SNAPSHOT)}", dir_fd=directory_fd)
    except FileNotFoundError:
        return
