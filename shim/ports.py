"""The number of a port in what people write: addresses of listeners, of HTTP, of brokers; and its end."""

from __future__ import annotations

import socket
from contextlib import suppress

HIGHEST_PORT = 65535
# Python refuses to convert thousands of digits, with an error of its own.
_MOST_DIGITS = 9


def parse_port(text: str) -> int | None:
    """Returns the number, which may be higher than any port, or None if the text is not digits."""
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text) if len(text) <= _MOST_DIGITS else HIGHEST_PORT + 1


def stop_listening(listening: socket.socket) -> None:
    """Call it before the socket is closed: a process that was forked meanwhile would keep the port, and listen."""
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)
