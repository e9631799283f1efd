"""FetchSnapshotResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message, Records

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


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    FIELDS = (
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        leader_id: int = 0
        leader_epoch: int = 0


class PartitionSnapshot(Message):
    __slots__ = ("index", "error_code", "snapshot_id", "current_leader", "size", "position", "unaligned_records")
    FIELDS = (
        ("index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("snapshot_id", "SnapshotId", "0+", ()),
        ("current_leader", "LeaderIdAndEpoch", "0+", (), "", False, 0, "0+"),
        ("size", "int64", "0+", 0),
        ("position", "int64", "0+", 0),
        ("unaligned_records", "records", "0+", None),
    )

    if TYPE_CHECKING:
        index: int = 0
        error_code: int = 0
        snapshot_id: SnapshotId = EMPTY
        current_leader: LeaderIdAndEpoch = EMPTY
        size: int = 0
        position: int = 0
        unaligned_records: Records | None = None


class TopicSnapshot(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]PartitionSnapshot", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[PartitionSnapshot] = EMPTY


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port")
    FIELDS = (
        ("node_id", "int32", "1+", 0),
        ("host", "string", "1+", ""),
        ("port", "uint16", "1+", 0),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        host: str = ""
        port: int = 0


class FetchSnapshotResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints")
    API_KEY = 59
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0, "", True),
        ("error_code", "int16", "0+", 0),
        ("topics", "[]TopicSnapshot", "0+", ()),
        ("node_endpoints", "[]NodeEndpoint", "1+", (), "", False, 0, "1+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        topics: list[TopicSnapshot] = EMPTY
        node_endpoints: list[NodeEndpoint] = EMPTY
