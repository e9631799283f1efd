"""Kafka's console producer and consumer: text, one line a record."""

from __future__ import annotations

from kafka_shim.compat.clients.base import MAX_REQUEST_BYTES, Client, Message
from kafka_shim.targets import jvm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NULL = "(none)"


class JavaConsole(Client):
    name = "java-console"
    chooses_partition = False

    def can_write(self, message: Message) -> bool:
        content = (message.value or b"x") + (message.key or b"x")
        is_text = content.isascii() and not any(byte < 32 for byte in content)
        headers = all(value is not None and value.isalnum() and name.isalnum() for name, value in message.headers)
        return is_text and headers and message.timestamp_ms is None and message.partition == 0

    can_read = can_write

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        options = ["--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec]
        for name, value in (("acks", acks), ("max.request.size", str(MAX_REQUEST_BYTES))):
            options += ["--command-property", f"{name}={value}"]
        for name, value in (("parse.key", "true"), ("parse.headers", "true"), ("null.marker", NULL)):
            options += ["--reader-property", f"{name}={value}"]
        lines = []
        for m in messages:
            headers = ",".join(f"{name}:{(value or b'').decode()}" for name, value in m.headers) or NULL
            lines.append(f"{headers}\t{_text(m.key)}\t{_text(m.value)}\n")
        jvm.tool("kafka-console-producer", *options, stdin="".join(lines).encode())

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        options = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"]
        options += ["--max-messages", str(count), "--timeout-ms", "30000"]
        options += ["--command-property", f"max.partition.fetch.bytes={MAX_REQUEST_BYTES}"]
        for name in ("print.timestamp", "print.key", "print.headers"):
            options += ["--formatter-property", f"{name}=true"]
        options += ["--formatter-property", f"null.literal={NULL}"]
        found = []
        for line in jvm.tool("kafka-console-consumer", *options).splitlines():
            time, headers, key, value = line.split("\t", 3)
            pairs = [pair.partition(":") for pair in headers.split(",") if headers != "NO_HEADERS"]
            text = tuple((name, content.encode()) for name, _, content in pairs)
            found.append(Message(_bytes(value), _bytes(key), 0, int(time.partition(":")[2]), text))
        return found


def _text(value: bytes | None) -> str:
    return NULL if value is None else value.decode()


def _bytes(text: str) -> bytes | None:
    return None if text == NULL else text.encode()
