"""The files of one segment: where they are, their descriptors and indexes, renames and removal."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from kafka_shim.cext.segment import SegmentBase
from kafka_shim.storage import names
from kafka_shim.storage.index import OffsetIndex, TimeIndex
from kafka_shim.storage.regular_files import open_regular
from kafka_shim.storage.txn_index import TxnIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.storage.open_files import OpenFiles


class SegmentFiles(SegmentBase):
    """The base of `Segment`. Event-loop thread only. The descriptor and the indexes are opened at their first use."""

    __slots__ = (
        "_close_error",
        "_files",
        "_is_abandoned",
        "_retained",
        "_txn_index",
        "directory",
        "suffix",
    )

    def __init__(self, directory: str, base_offset: int, files: OpenFiles, suffix: str) -> None:
        # fixed
        self.base_offset = base_offset
        self._files = files
        # changed by a rename
        self.directory = directory
        self.suffix = suffix
        # the size of the .log file
        self.size_bytes = 0
        self._fd = -1
        # The error of the close in `make_room`: it may have lost what was appended.
        self._close_error: OSError | None = None
        # How many FileRecords refer to the file. While there is one, an abandoned segment stays readable.
        self._retained = 0
        self._is_abandoned = False
        self._offset_index = None
        self._time_index = None
        self._txn_index: TxnIndex | None = None

    def path(self, suffix: str) -> str:
        """Return the path of one of the segment's files; `suffix` is one of `names.SEGMENT_SUFFIXES`."""
        return f"{self.directory}/{self.base_offset:020d}{suffix}{self.suffix}"

    @property
    def fd(self) -> int:
        """The descriptor of the .log file, for reading and appending. Creates a missing file. Raises OSError."""
        if self._fd < 0:
            self._require_closed_well()
            flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
            if not self._is_abandoned:
                flags |= os.O_CREAT
                if not self.size_bytes:
                    self._make_index_files()
            self._fd = self._files.open(self.path(names.LOG), flags, self)
        return self._fd

    def _make_index_files(self) -> None:
        # Kafka logs an error for a .log file without index files when it opens the directory. Existing files are kept.
        for name in (names.INDEX, names.TIME_INDEX):
            os.close(open_regular(self.path(name), os.O_WRONLY | os.O_CREAT))

    @property
    def offset_index(self) -> OffsetIndex:
        """Loaded at its first use; empty when its file is missing. Raises OSError if it is damaged."""
        index: OffsetIndex | None = self._offset_index
        if index is None:
            index = OffsetIndex(self.path(names.INDEX), self._files)
            index.load()
            last_offset, last_position = index.at(index.count - 1) if index.count else (0, 0)
            if last_offset < 0 or not 0 <= last_position <= self.size_bytes:
                raise OSError(errno.EIO, "the index is damaged", index.path)
            self._offset_index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        """Loaded at its first use; empty when its file is missing."""
        index: TimeIndex | None = self._time_index
        if index is None:
            index = TimeIndex(self.path(names.TIME_INDEX), self._files)
            index.load()
            self._time_index = index
        return index

    @property
    def txn_index(self) -> TxnIndex:
        """Loaded at its first use; empty when its file is missing."""
        if self._txn_index is None:
            self._txn_index = TxnIndex(self.path(names.TXN_INDEX), self._files)
        return self._txn_index

    def close_file(self) -> None:
        """Close the descriptor; the next use opens it again. It stays open if the segment is abandoned and FileRecords
        still refer to the file, which may be unlinked. Raises OSError."""
        if self._fd >= 0 and not (self._is_abandoned and self._retained):
            fd, self._fd = self._fd, -1
            self._files.closed(self)
            # Last: where it fails, as for what a network's file system could not write, the descriptor is gone all the
            # same, and its number may be that of another partition's file next.
            os.close(fd)

    def make_room(self) -> None:
        """`close_file` for the sake of another file. If it fails, the next use of this segment raises the error: the
        partition whose file took the place has lost nothing."""
        try:
            self.close_file()
        except OSError as err:
            self._close_error = err

    def _require_closed_well(self) -> None:
        if (err := self._close_error) is not None:
            # EIO, also if the disk was full: unlike those of a refused write, these records were acknowledged.
            reason = f"what was appended may be lost, the file was closed with an error: {err.strerror}"
            raise OSError(errno.EIO, reason, self.path(names.LOG)) from err

    @property
    def is_abandoned(self) -> bool:
        """Whether its files may be gone, or another segment's."""
        return self._is_abandoned

    def abandon(self) -> None:
        """Close all files without storing anything (offline or deleted partition), whatever the close says. The .log
        descriptor stays open while FileRecords refer to it, because the file may be unlinked before their bytes are
        sent."""
        self._is_abandoned = True
        self._close_error = None
        self._drop_indexes()
        if self._retained:
            with suppress(OSError):  # those responses fail and their connections close, as in Kafka
                _ = self.fd
        else:
            self._close_for_good()

    def _close_for_good(self) -> None:
        with suppress(OSError):  # the files are deleted, or recovery reads them before they are used again
            self.close_file()

    def _drop_indexes(self) -> None:
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.close_file()
        self._offset_index = self._time_index = self._txn_index = None

    def retain(self) -> None:
        """Keep the file readable until `release`, because a FileRecords refers to it."""
        self._retained += 1

    def release(self) -> None:
        """Undo one `retain`; the last one closes the file of an abandoned segment."""
        self._retained -= 1
        if self._is_abandoned and not self._retained:
            self._close_for_good()

    def moved(self, directory: str, suffix: str | None = None) -> None:
        """Update the paths after the caller renamed the files."""
        self.directory = directory
        if suffix is not None:
            self.suffix = suffix
        for index, name in (
            (self._offset_index, names.INDEX),
            (self._time_index, names.TIME_INDEX),
            (self._txn_index, names.TXN_INDEX),
        ):
            if index is not None:
                index.path = self.path(name)

    def rename(self, suffix: str) -> None:
        """Rename all existing files to a new suffix (`.deleted`, `.swap` or none). Recovery handles a crash between the
        renames."""
        self.rename_files(f"{self.directory}/", suffix)
        self.moved(self.directory, suffix)

    def rename_files(self, prefix: str, suffix: str, directory_fd: int | None = None) -> None:
        """The renames of `rename`, of files whose names follow `prefix`, in the open directory if one is given.
        Changes nothing of this object, and may be called in any thread."""
        for name in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX, names.LOG):
            stem = f"{prefix}{self.base_offset:020d}{name}"
            try:
                os.rename(stem + self.suffix, stem + suffix, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
            except FileNotFoundError:
                continue

    def remove(self) -> None:
        """Delete all files. Missing files are ignored."""
        for name in names.SEGMENT_SUFFIXES:
            try:
                os.unlink(self.path(name))
            except FileNotFoundError:
                continue

    def sync_paths(self) -> list[str]:
        """Return the paths of the files that an fsync must cover."""
        return [self.path(name) for name in names.SEGMENT_SUFFIXES]

    def flush_paths(self, begin_offset: int) -> list[str]:
        """Return the paths that the fsync of what was appended from `begin_offset` on must cover, without the indexes,
        which the next start rebuilds after a crash."""
        paths = [self.path(names.LOG)]
        aborted = self._txn_index
        if aborted is not None and len(aborted) and aborted.last_offsets[-1] >= begin_offset:
            # Where the next segment begins behind it, that start takes what there is of this index for all.
            paths.append(self.path(names.TXN_INDEX))
        elif self.base_offset < begin_offset:
            return paths
        paths.append(self.directory)
        return paths
