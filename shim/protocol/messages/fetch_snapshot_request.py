"""FetchSnapshotRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class SnapshotId(Message):
    __slots__ = ("end_offset", "epoch")
    FIELDS = (
        ("end_offset", "int64", "0+", 0),
        ("epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        end_offset: int = 0
        epoch: int = 0


class PartitionSnapshot(Message):
    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("current_leader_epoch", "int32", "0+", 0),
        ("snapshot_id", "SnapshotId", "0+", ()),
        ("position", "int64", "0+", 0),
        ("replica_directory_id", "uuid", "1+", ZERO_UUID, "", True, 0, "1+"),
    )

    if TYPE_CHECKING:
        partition: int = 0
        current_leader_epoch: int = 0
        snapshot_id: SnapshotId = EMPTY
        position: int = 0
        replica_directory_id: bytes = ZERO_UUID


class TopicSnapshot(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]PartitionSnapshot", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[PartitionSnapshot] = EMPTY


class FetchSnapshotRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "max_bytes", "topics")
    API_KEY = 59
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("cluster_id", "string", "0+", None, "0+", False, 0, "0+"),
        ("replica_id", "int32", "0+", -1),
        ("max_bytes", "int32", "0+", 2147483647),
        ("topics", "[]TopicSnapshot", "0+", ()),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = None
        replica_id: int = -1
        max_bytes: int = 2147483647
        topics: list[TopicSnapshot] = EMPTY
