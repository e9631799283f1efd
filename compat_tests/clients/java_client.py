"""The Java producer and consumer, in one JVM of our small driver for the life of this object."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from kafka_shim.compat.clients.base import MAX_REQUEST_BYTES, Client, Message
from kafka_shim.targets import jvm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = Path(__file__).parent.parent / "java" / "ClientDriver.java"
NULL = struct.pack(">i", -1)


class JavaClient(Client):
    name = "java"

    def __init__(self) -> None:
        line = jvm.command("ClientDriver", level="error", extra=(jvm.compiled(SOURCE),))
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "enable.idempotence": str(acks == "all").lower(),
            "compression.type": codec,
            "max.request.size": str(MAX_REQUEST_BYTES),
            "buffer.memory": str(2 * MAX_REQUEST_BYTES),
            "linger.ms": "20",
        }
        body = bytearray(struct.pack(">i", len(messages)))
        for m in messages:
            body += struct.pack(">iq", m.partition, -1 if m.timestamp_ms is None else m.timestamp_ms)
            body += _bytes(m.key) + _bytes(m.value) + struct.pack(">i", len(m.headers))
            for name, value in m.headers:
                body += _bytes(name.encode()) + _bytes(value)
        self._call("write", settings, topic, bytes(body))

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        settings = {
            "bootstrap.servers": bootstrap,
            "enable.auto.commit": "false",
            "fetch.max.bytes": str(MAX_REQUEST_BYTES),
            "max.partition.fetch.bytes": str(MAX_REQUEST_BYTES),
        }
        answer = self._call("read", settings, topic, struct.pack(">ii", partitions, count))
        at = 0

        def number(form: str) -> int:
            nonlocal at
            (value,) = struct.unpack_from(form, answer, at)
            at += struct.calcsize(form)
            return int(value)

        def content() -> bytes | None:
            nonlocal at
            length = number(">i")
            if length < 0:
                return None
            at += length
            return answer[at - length : at]

        found = []
        while at < len(answer):
            partition, timestamp, key, value = number(">i"), number(">q"), content(), content()
            headers = tuple(((content() or b"").decode(), content()) for _ in range(number(">i")))
            found.append(Message(value, key, partition, timestamp, headers))
        return found

    def _call(self, command: str, settings: Mapping[str, str], topic: str, body: bytes) -> bytes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        head = _text(command) + struct.pack(">i", len(settings))
        head += b"".join(_text(name) + _text(value) for name, value in settings.items())
        self.process.stdin.write(head + _text(topic) + body)
        self.process.stdin.flush()
        (length,) = struct.unpack(">H", self.process.stdout.read(2))
        error = self.process.stdout.read(length).decode()
        (size_bytes,) = struct.unpack(">i", self.process.stdout.read(4))
        answer = self.process.stdout.read(size_bytes)
        if error:
            raise RuntimeError(error)
        return answer

    def close(self) -> None:
        if self.process.stdin is not None and self.process.stdout is not None:
            self.process.stdin.close()
            self.process.wait(30)
            self.process.stdout.close()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _bytes(value: bytes | None) -> bytes:
    return NULL if value is None else struct.pack(">i", len(value)) + value
