"""The number of a port in what people write: addresses of listeners, of HTTP, of brokers; and the end of
its sockets where a process was forked meanwhile."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

HIGHEST_PORT = 65535
# Python refuses to convert thousands of digits, with an error of its own.
_MOST_DIGITS = 9
# By this name a transport with TLS gives its socket (`get_extra_info`): what is written to it must be encrypted.
SOCKET_BENEATH_TLS = "socket beneath TLS"


def parse_port(text: str) -> int | None:
    """Returns the number, which may be higher than any port, or None if the text is not digits."""
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text) if len(text) <= _MOST_DIGITS else HIGHEST_PORT + 1


def stop_listening(listening: socket.socket) -> None:
    """Call it before the socket is closed: a process that was forked meanwhile would keep the port, and listen."""
    with suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)


def is_listening(bound: socket.socket) -> bool:
    """Returns False after `stop_listening`."""
    return bool(bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def end_for_all(transport: asyncio.BaseTransport) -> None:
    """Call it before the connection is closed: its client would wait as long as a process that was forked meanwhile."""
    bare = transport.get_extra_info("socket") or transport.get_extra_info(SOCKET_BENEATH_TLS)
    with suppress(OSError, ValueError), socket.socket(fileno=os.dup(bare.fileno())) as connection:
        connection.shutdown(socket.SHUT_RDWR)
