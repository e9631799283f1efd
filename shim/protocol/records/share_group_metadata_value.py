"""ShareGroupMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ShareGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash")
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("epoch", "int32", "0+", 0),
        ("metadata_hash", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        epoch: int = 0
        metadata_hash: int = 0
