"""StreamsGroupMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class LastAssignmentConfig(Message):
    __slots__ = ("key", "value")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        key: str = ""
        value: str = ""


class StreamsGroupMetadataValue(Message):
    __slots__ = ("epoch", "metadata_hash", "validated_topology_epoch", "last_assignment_configs")
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("epoch", "int32", "0+", 0),
        ("metadata_hash", "int64", "0+", 0),
        ("validated_topology_epoch", "int32", "0+", -1, "", False, 0, "0+"),
        ("last_assignment_configs", "[]LastAssignmentConfig", "0+", (), "0+", False, 1, "0+"),
    )

    if TYPE_CHECKING:
        epoch: int = 0
        metadata_hash: int = 0
        validated_topology_epoch: int = -1
        last_assignment_configs: list[LastAssignmentConfig] | None = EMPTY
