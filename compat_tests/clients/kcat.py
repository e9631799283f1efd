"""kcat, in its line mode for writing and by lengths for reading."""

from __future__ import annotations

import itertools
import subprocess

from kafka_shim.compat.clients.base import MAX_REQUEST_BYTES, Client, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

KEY_END = b"\x1f"
RECORD_END = b"\x1e"
FORMAT = "%p %T %K %S %h\\n%k%s"


class Kcat(Client):
    name = "kcat"

    def can_write(self, message: Message) -> bool:
        # An empty key or value is written as null (-Z), times are the client's, headers are text.
        content = (message.value or b"") + (message.key or b"")
        is_plain = KEY_END not in content and RECORD_END not in content
        return (
            is_plain
            and bool(message.value)
            and message.key != b""
            and message.timestamp_ms is None
            and not message.headers
        )

    def can_read(self, message: Message) -> bool:
        return all(value is not None and value.isalnum() and key.isalnum() for key, value in message.headers)

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        for partition, group in itertools.groupby(messages, lambda message: message.partition):
            line = ["kcat", "-P", "-b", bootstrap, "-t", topic, "-p", str(partition), "-z", codec, "-Z", "-e"]
            line += ["-X", f"acks={acks}", "-X", f"message.max.bytes={MAX_REQUEST_BYTES}"]
            line += ["-K", KEY_END.decode(), "-D", RECORD_END.decode()]
            records = [(m.key or b"") + KEY_END + (m.value or b"") for m in group]
            subprocess.run(line, input=RECORD_END.join(records), check=True, timeout=60)

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        line = ["kcat", "-C", "-b", bootstrap, "-t", topic, "-o", "beginning", "-q", "-e", "-f", FORMAT]
        line += ["-X", f"fetch.message.max.bytes={MAX_REQUEST_BYTES}", "-X", f"fetch.max.bytes={MAX_REQUEST_BYTES}"]
        line += ["-X", f"receive.message.max.bytes={2 * MAX_REQUEST_BYTES}"]
        output = subprocess.run(line, check=True, timeout=60, capture_output=True).stdout
        found = []
        at = 0
        while at < len(output):
            end = output.index(b"\n", at)
            partition, timestamp, key_bytes, value_bytes, headers = output[at:end].split(b" ", 4)
            at = end + 1
            parts: list[bytes | None] = []
            for length in (int(key_bytes), int(value_bytes)):
                parts.append(None if length < 0 else output[at : at + length])
                at += max(length, 0)
            pairs = [pair.partition(b"=") for pair in headers.split(b",") if pair]
            text = tuple((name.decode(), value) for name, _, value in pairs)
            found.append(Message(parts[1], parts[0], int(partition), int(timestamp), text))
        return found
