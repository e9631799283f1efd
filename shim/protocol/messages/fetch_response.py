"""FetchResponse, versions 4-18. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message, Records


class EpochEndOffset(Message):
    __slots__ = ("epoch", "end_offset")
    FIELDS = (
        ("epoch", "int32", "12+", -1),
        ("end_offset", "int64", "12+", -1),
    )

    def __init__(self, *, epoch: int = -1, end_offset: int = -1) -> None:
        self.epoch = epoch
        self.end_offset = end_offset
        self.unknown_tags = None


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    FIELDS = (
        ("leader_id", "int32", "12+", -1),
        ("leader_epoch", "int32", "12+", -1),
    )

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = None


class SnapshotId(Message):
    __slots__ = ("end_offset", "epoch")
    FIELDS = (
        ("end_offset", "int64", "0+", -1),
        ("epoch", "int32", "0+", -1),
    )

    def __init__(self, *, end_offset: int = -1, epoch: int = -1) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = None


class AbortedTransaction(Message):
    __slots__ = ("producer_id", "first_offset")
    FIELDS = (
        ("producer_id", "int64", "4+", 0),
        ("first_offset", "int64", "4+", 0),
    )

    def __init__(self, *, producer_id: int = 0, first_offset: int = 0) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset = EMPTY,
        current_leader: LeaderIdAndEpoch = EMPTY,
        snapshot_id: SnapshotId = EMPTY,
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,
        preferred_read_replica: int = -1,
        records: Records | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = EpochEndOffset() if diverging_epoch is EMPTY else diverging_epoch
        self.current_leader = LeaderIdAndEpoch() if current_leader is EMPTY else current_leader
        self.snapshot_id = SnapshotId() if snapshot_id is EMPTY else snapshot_id
        self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records
        self.unknown_tags = None


class FetchableTopicResponse(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    FIELDS = (
        ("topic", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    FIELDS = (
        ("node_id", "int32", "16+", 0),
        ("host", "string", "16+", ""),
        ("port", "int32", "16+", 0),
        ("rack", "string", "16+", None, "16+"),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags = None
