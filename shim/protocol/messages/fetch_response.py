"""FetchResponse, versions 4-18. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message, Records

TYPE_CHECKING = False


class EpochEndOffset(Message):
    __slots__ = ("epoch", "end_offset")
    FIELDS = (
        ("epoch", "int32", "12+", -1),
        ("end_offset", "int64", "12+", -1),
    )

    if TYPE_CHECKING:
        epoch: int = -1
        end_offset: int = -1


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    FIELDS = (
        ("leader_id", "int32", "12+", -1),
        ("leader_epoch", "int32", "12+", -1),
    )

    if TYPE_CHECKING:
        leader_id: int = -1
        leader_epoch: int = -1


class SnapshotId(Message):
    __slots__ = ("end_offset", "epoch")
    FIELDS = (
        ("end_offset", "int64", "0+", -1),
        ("epoch", "int32", "0+", -1),
    )

    if TYPE_CHECKING:
        end_offset: int = -1
        epoch: int = -1


class AbortedTransaction(Message):
    __slots__ = ("producer_id", "first_offset")
    FIELDS = (
        ("producer_id", "int64", "4+", 0),
        ("first_offset", "int64", "4+", 0),
    )

    if TYPE_CHECKING:
        producer_id: int = 0
        first_offset: int = 0


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("high_watermark", "int64", "0+", 0),
        ("last_stable_offset", "int64", "4+", -1, "", True),
        ("log_start_offset", "int64", "5+", -1, "", True),
        ("diverging_epoch", "EpochEndOffset", "12+", (), "", False, 0, "12+"),
        ("current_leader", "LeaderIdAndEpoch", "12+", (), "", False, 1, "12+"),
        ("snapshot_id", "SnapshotId", "12+", (), "", False, 2, "12+"),
        ("aborted_transactions", "[]AbortedTransaction", "4+", (), "4+", True),
        ("preferred_read_replica", "int32", "11+", -1),
        ("records", "records", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        high_watermark: int = 0
        last_stable_offset: int = -1
        log_start_offset: int = -1
        diverging_epoch: EpochEndOffset = EMPTY
        current_leader: LeaderIdAndEpoch = EMPTY
        snapshot_id: SnapshotId = EMPTY
        aborted_transactions: list[AbortedTransaction] | None = EMPTY
        preferred_read_replica: int = -1
        records: Records | None = None


class FetchableTopicResponse(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    FIELDS = (
        ("topic", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionData] = EMPTY


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    FIELDS = (
        ("node_id", "int32", "16+", 0),
        ("host", "string", "16+", ""),
        ("port", "int32", "16+", 0),
        ("rack", "string", "16+", None, "16+"),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_FROM = 12
    FIELDS = (
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("error_code", "int16", "7+", 0, "", True),
        ("session_id", "int32", "7+", 0),
        ("responses", "[]FetchableTopicResponse", "0+", ()),
        ("node_endpoints", "[]NodeEndpoint", "16+", (), "", False, 0, "16+"),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        session_id: int = 0
        responses: list[FetchableTopicResponse] = EMPTY
        node_endpoints: list[NodeEndpoint] = EMPTY
