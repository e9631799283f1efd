"""StreamsGroupMetadataValue, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class LastAssignmentConfig(Message):
    __slots__ = ("key", "value")
    FIELDS = (
        ("key", "string", "0+", ""),
        ("value", "string", "0+", ""),
    )

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is EMPTY else last_assignment_configs
        self.unknown_tags = None
