"""The image's health check: status 0 when the broker of this container answers ApiVersions, else 1.

Nothing is imported but the socket: it runs every few seconds.
"""

import os
import socket
import sys

CORRELATION_ID = b"beat"
# Length, key 18, version 0, correlation id, no client id.
REQUEST = b"\x00\x00\x00\x0a" + b"\x00\x12\x00\x00" + CORRELATION_ID + b"\xff\xff"
# What the start scripts of Kafka's image and of Confluent's wrote.
WRITTEN = ("/opt/kafka/config/server.properties", "/etc/kafka/kafka.properties")
DEFAULT = "PLAINTEXT://0.0.0.0:9092"


def address(listeners: str) -> tuple[str, int]:
    """Where the first of `listeners` is reached from inside."""
    host, _, port = listeners.partition(",")[0].rpartition("://")[2].rpartition(":")
    return ("127.0.0.1" if host in {"", "0.0.0.0", "[::]"} else host.strip("[]")), int(port)


def speaks_plainly(listeners: str, mapping: str) -> bool:
    """Whether the first of `listeners` takes requests without TLS."""
    name = listeners.partition("://")[0].strip()
    protocols = dict(pair.strip().split(":", 1) for pair in mapping.split(",") if ":" in pair)
    return not protocols.get(name, name).endswith("SSL")


def written(paths: tuple[str, ...] = WRITTEN) -> dict[str, str]:
    """The options of the broker that runs here: those of the newest file."""
    found = [path for path in paths if os.path.exists(path)]
    if not found:
        return {}
    with open(max(found, key=os.path.getmtime), encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)


def is_healthy(host: str, port: int, is_plain: bool = True) -> bool:
    """Whether an answer comes; with TLS, whether the connection is accepted."""
    try:
        with socket.create_connection((host, port), 3) as connection:
            if not is_plain:
                return True
            connection.sendall(REQUEST)
            answer = connection.recv(8, socket.MSG_WAITALL)
    except OSError:
        return False
    return answer[4:] == CORRELATION_ID


if __name__ == "__main__":
    options = written()
    wanted = os.environ.get("KAFKA_LISTENERS") or options.get("listeners", DEFAULT)
    mapping = os.environ.get("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP") or options.get(
        "listener.security.protocol.map", ""
    )
    sys.exit(not is_healthy(*address(wanted), speaks_plainly(wanted, mapping)))
