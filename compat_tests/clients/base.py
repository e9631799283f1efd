"""The interface of a client of the matrix: it writes messages and reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

MAX_REQUEST_BYTES = 32 * 1024 * 1024
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("0", "1", "all")


@dataclass(frozen=True)
class Message:
    """One record. If `timestamp_ms` is None, the client sets the timestamp."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())

    def same_as(self, other: Message) -> bool:
        """Returns whether the messages are equal, apart from a timestamp that the client set."""
        if self.timestamp_ms is not None and self.timestamp_ms != other.timestamp_ms:
            return False
        mine = (self.value, self.key, self.partition, self.headers)
        return mine == (other.value, other.key, other.partition, other.headers)

    def brief(self) -> str:
        """Returns a short text for failed tests, with sizes instead of long values."""
        value = None if self.value is None else f"{len(self.value)} B"
        return f"p{self.partition} key={self.key!r} value={value} at {self.timestamp_ms} headers={self.headers!r}"


class Client:
    """`write` returns when the broker has acknowledged (with acks=0: when the client has flushed)."""

    name = ""
    chooses_partition = True

    def can_write(self, message: Message) -> bool:
        """Returns whether this client can express the message."""
        return True

    def can_read(self, message: Message) -> bool:
        """Returns whether this client returns the message completely."""
        return True

    def write(self, bootstrap: str, topic: str, messages: Sequence[Message], *, acks: str, codec: str) -> None:
        raise NotImplementedError

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
        """Returns `count` messages from the start of the partitions, in order within each partition, or those that have
        arrived after a minute.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Ends what the client keeps running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
