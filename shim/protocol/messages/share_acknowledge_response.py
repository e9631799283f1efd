"""ShareAcknowledgeResponse, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    FIELDS = (
        ("leader_id", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        leader_id: int = 0
        leader_epoch: int = 0


class PartitionData(Message):
    __slots__ = ("partition_index", "error_code", "error_message", "current_leader")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("current_leader", "LeaderIdAndEpoch", "0+", ()),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0
        error_message: str | None = None
        current_leader: LeaderIdAndEpoch = EMPTY


class ShareAcknowledgeTopicResponse(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionData] = EMPTY


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    FIELDS = (
        ("node_id", "int32", "0+", 0),
        ("host", "string", "0+", ""),
        ("port", "int32", "0+", 0),
        ("rack", "string", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None


class ShareAcknowledgeResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    API_KEY = 79
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("acquisition_lock_timeout_ms", "int32", "2+", 0, "", True),
        ("responses", "[]ShareAcknowledgeTopicResponse", "0+", ()),
        ("node_endpoints", "[]NodeEndpoint", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = None
        acquisition_lock_timeout_ms: int = 0
        responses: list[ShareAcknowledgeTopicResponse] = EMPTY
        node_endpoints: list[NodeEndpoint] = EMPTY
