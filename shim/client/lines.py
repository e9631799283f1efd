"""`Lines`: the lines of a stream as they come, and when no more come."""

from __future__ import annotations

import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

CHUNK_BYTES = 1 << 16


class Lines:
    """Yields the lines of `source` without their ends, and None where nothing came for `pause_s`: then is the time to
    send what waits. `with_returns`: a carriage return ends a line too, alone or before a newline, as for Java's
    readLine."""

    def __init__(self, source: BinaryIO, pause_s: float, *, with_returns: bool = False) -> None:
        self._source = source
        self._pause_s = pause_s
        self._with_returns = with_returns
        self._is_stopped = False
        try:
            self._fd: int | None = source.fileno()
        except OSError:  # no file, which nobody waits for
            self._fd = None
        self._woken, self._wake = os.pipe()
        self._hears_signals = False

    def stop(self) -> None:
        """End the lines with those that are read, also where more are waited for. A handler of signals may call it."""
        self._is_stopped = True
        if self._wake >= 0:
            os.write(self._wake, b"\0")

    def hear_signals(self) -> None:
        """Let a signal end the wait for a line, so that its handler runs at once and may call `stop`. Python runs a
        handler after the call of the system that the signal interrupts; one that comes just before the wait interrupts
        nothing. Of the main thread alone, and until the lines end."""
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._hears_signals = True

    def __iter__(self) -> Iterator[bytes | None]:
        try:
            yield from self._lines()
        finally:
            if self._hears_signals:
                signal.set_wakeup_fd(-1)
            wake, self._wake = self._wake, -1
            os.close(wake)
            os.close(self._woken)

    def _lines(self) -> Iterator[bytes | None]:
        parts: list[bytes] = []
        is_after_return = False
        while (data := self._read()) != b"":
            if data is None:
                yield None
                continue
            if is_after_return and data.startswith(b"\n"):
                data = data[1:]
            is_after_return = self._with_returns and data.endswith(b"\r")
            lines = data.splitlines() if self._with_returns else data.split(b"\n")
            if self._with_returns and data.endswith((b"\n", b"\r")):
                lines.append(b"")
            if lines:
                parts.append(lines.pop(0))
            for line in lines:
                yield b"".join(parts)
                parts = [line]
        if any(parts) and not self._is_stopped:
            yield b"".join(parts)

    def _read(self) -> bytes | None:
        if self._fd is None:
            return b"" if self._is_stopped else self._source.read(CHUNK_BYTES)
        while True:
            ready, _, _ = select.select([self._fd, self._woken], [], [], self._pause_s)
            if self._is_stopped:
                return b""
            if not ready:
                return None
            if self._fd in ready:
                return os.read(self._fd, CHUNK_BYTES)
            os.read(self._woken, CHUNK_BYTES)  # of a signal that ends nothing
