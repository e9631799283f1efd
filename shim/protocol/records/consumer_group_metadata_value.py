"""ConsumerGroupMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ConsumerGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash")
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("epoch", "int32", "0+", 0),
        ("metadata_hash", "int64", "0+", 0, "", False, 0, "0+"),
    )

    if TYPE_CHECKING:
        epoch: int = 0
        metadata_hash: int = 0
