"""The image's health check: status 0 when the broker of this container answers ApiVersions, else 1.

Nothing is imported but the socket: it runs every few seconds.
"""

import os
import socket
import sys

CORRELATION_ID = b"beat"
# Length, key 18, version 0, correlation id, no client id.
REQUEST = b"\x00\x00\x00\x0a" + b"\x00\x12\x00\x00" + CORRELATION_ID + b"\xff\xff"


def address(listeners: str) -> tuple[str, int]:
    """Where the first of `listeners` is reached from inside."""
    host, _, port = listeners.partition(",")[0].rpartition("://")[2].rpartition(":")
    return ("127.0.0.1" if host in {"", "0.0.0.0", "[::]"} else host.strip("[]")), int(port)


def is_healthy(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), 3) as connection:
            connection.sendall(REQUEST)
            answer = connection.recv(8, socket.MSG_WAITALL)
    except OSError:
        return False
    return answer[4:] == CORRELATION_ID


if __name__ == "__main__":
    sys.exit(not is_healthy(*address(os.environ.get("KAFKA_LISTENERS", "PLAINTEXT://0.0.0.0:9092"))))
