"""Bounds the head of a request: the library bounds each of its lines and their number, which is megabytes."""

from __future__ import annotations

from http.client import HTTPException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedIOBase

# All lines together, with that of the request.
LARGEST_HEAD_BYTES = 1 << 16


class Head:
    """What the library reads the lines of a head from."""

    def __init__(self, file: BufferedIOBase, read_bytes: int) -> None:
        """`read_bytes`: what has been read of it, the line of the request."""
        self._file = file
        self._left = LARGEST_HEAD_BYTES - read_bytes

    def readline(self, size: int) -> bytes:
        """Return the next line. Raises HTTPException once the lines are too long together, which the library answers
        with the status 431."""
        line = self._file.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise HTTPException(f"a head has at most {LARGEST_HEAD_BYTES} bytes")
        return line
