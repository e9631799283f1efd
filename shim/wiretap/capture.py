"""The capture file: every frame of a recording, in the order in which the recorder saw it.

The file starts with MAGIC. Each entry has a header, big-endian: kind (1 byte), connection number (4 bytes),
microseconds since the start of the recording (8 bytes), frame size in bytes (4 bytes). The frame follows. A frame is
stored as the client or broker sent it, without its length prefix and before addresses are rewritten.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"kafka-shim capture 1\n"
ENTRY = Struct(">BIQI")


class Kind(IntEnum):
    """The kind of an entry."""

    OPENED = 0
    REQUEST = 1
    RESPONSE = 2
    CLOSED = 3


KINDS = frozenset(Kind)


class Entry(NamedTuple):
    kind: Kind
    connection: int
    time_us: int
    frame: bytes


class CaptureError(Exception):
    """The file is not a capture, or a damaged one."""


class CaptureWriter:
    """Appends entries to a new file, which its owner alone may read: it has the records and the passwords that clients
    send. A context manager; not thread-safe."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._file: BinaryIO = os.fdopen(fd, "wb")
        if stat.S_ISREG(os.fstat(fd).st_mode):
            with suppress(PermissionError):  # another user's
                os.fchmod(fd, 0o600)  # it was there, for others too
        self._file.write(MAGIC)
        self._began_ns = time.monotonic_ns()
        # How many entries of each kind were written, and the bytes of their frames.
        self.counts = dict.fromkeys(Kind, 0)
        self.frame_bytes = 0

    def write(self, kind: Kind, connection: int, frame: bytes = b"") -> Entry:
        """Appends an entry with the current time and returns it."""
        entry = Entry(kind, connection, (time.monotonic_ns() - self._began_ns) // 1000, frame)
        self._file.write(ENTRY.pack(kind, connection, entry.time_us, len(frame)) + frame)
        self.counts[kind] += 1
        self.frame_bytes += len(frame)
        return entry

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_capture(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """Yields the entries of a capture file. Skips an incomplete entry at the end, which a killed recorder leaves.
    Raises CaptureError if the file does not start with MAGIC, or has an entry that is none.
    """
    with Path(path).open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise CaptureError(f"{os.fspath(path)} is not a capture")
        while len(head := file.read(ENTRY.size)) == ENTRY.size:
            kind, connection, time_us, size_bytes = ENTRY.unpack(head)
            if kind not in KINDS:
                position = file.tell() - ENTRY.size
                raise CaptureError(f"{os.fspath(path)} is damaged: no entry is of kind {kind} (position {position})")
            frame = file.read(size_bytes)
            if len(frame) < size_bytes:
                return
            yield Entry(Kind(kind), connection, time_us, frame)
