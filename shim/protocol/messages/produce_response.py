"""ProduceResponse, versions 3-13. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class BatchIndexAndErrorMessage(Message):
    __slots__ = ("batch_index", "batch_index_error_message")
    FIELDS = (
        ("batch_index", "int32", "8+", 0),
        ("batch_index_error_message", "string", "8+", None, "8+"),
    )

    if TYPE_CHECKING:
        batch_index: int = 0
        batch_index_error_message: str | None = None


class LeaderIdAndEpoch(Message):
    __slots__ = ("leader_id", "leader_epoch")
    FIELDS = (
        ("leader_id", "int32", "10+", -1),
        ("leader_epoch", "int32", "10+", -1),
    )

    if TYPE_CHECKING:
        leader_id: int = -1
        leader_epoch: int = -1


class PartitionProduceResponse(Message):
    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )
    FIELDS = (
        ("index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("base_offset", "int64", "0+", 0),
        ("log_append_time_ms", "int64", "2+", -1, "", True),
        ("log_start_offset", "int64", "5+", -1, "", True),
        ("record_errors", "[]BatchIndexAndErrorMessage", "8+", (), "", True),
        ("error_message", "string", "8+", None, "8+", True),
        ("current_leader", "LeaderIdAndEpoch", "10+", (), "", False, 0, "10+"),
    )

    if TYPE_CHECKING:
        index: int = 0
        error_code: int = 0
        base_offset: int = 0
        log_append_time_ms: int = -1
        log_start_offset: int = -1
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY
        error_message: str | None = None
        current_leader: LeaderIdAndEpoch = EMPTY


class TopicProduceResponse(Message):
    __slots__ = ("name", "topic_id", "partition_responses")
    FIELDS = (
        ("name", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partition_responses", "[]PartitionProduceResponse", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        topic_id: bytes = ZERO_UUID
        partition_responses: list[PartitionProduceResponse] = EMPTY


class NodeEndpoint(Message):
    __slots__ = ("node_id", "host", "port", "rack")
    FIELDS = (
        ("node_id", "int32", "10+", 0),
        ("host", "string", "10+", ""),
        ("port", "int32", "10+", 0),
        ("rack", "string", "10+", None, "10+"),
    )

    if TYPE_CHECKING:
        node_id: int = 0
        host: str = ""
        port: int = 0
        rack: str | None = None


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")
    API_KEY = 0
    MIN_VERSION = 3
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    FIELDS = (
        ("responses", "[]TopicProduceResponse", "0+", ()),
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("node_endpoints", "[]NodeEndpoint", "10+", (), "", False, 0, "10+"),
    )

    if TYPE_CHECKING:
        responses: list[TopicProduceResponse] = EMPTY
        throttle_time_ms: int = 0
        node_endpoints: list[NodeEndpoint] = EMPTY
