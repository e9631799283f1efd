"""FetchRequest, versions 4-18. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class ReplicaState(Message):
    __slots__ = ("replica_id", "replica_epoch")
    FIELDS = (
        ("replica_id", "int32", "15+", -1),
        ("replica_epoch", "int64", "15+", -1),
    )

    if TYPE_CHECKING:
        replica_id: int = -1
        replica_epoch: int = -1


class FetchPartition(Message):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("current_leader_epoch", "int32", "9+", -1, "", True),
        ("fetch_offset", "int64", "0+", 0),
        ("last_fetched_epoch", "int32", "12+", -1),
        ("log_start_offset", "int64", "5+", -1, "", True),
        ("partition_max_bytes", "int32", "0+", 0),
        ("replica_directory_id", "uuid", "17+", ZERO_UUID, "", True, 0, "17+"),
        ("high_watermark", "int64", "18+", 9223372036854775807, "", True, 1, "18+"),
    )

    if TYPE_CHECKING:
        partition: int = 0
        current_leader_epoch: int = -1
        fetch_offset: int = 0
        last_fetched_epoch: int = -1
        log_start_offset: int = -1
        partition_max_bytes: int = 0
        replica_directory_id: bytes = ZERO_UUID
        high_watermark: int = 9223372036854775807


class FetchTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    FIELDS = (
        ("topic", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partitions", "[]FetchPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[FetchPartition] = EMPTY


class ForgottenTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    FIELDS = (
        ("topic", "string", "7-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partitions", "[]int32", "7+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        topic_id: bytes = ZERO_UUID
        partitions: list[int] = EMPTY


class FetchRequest(Message):
    __slots__ = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_FROM = 12
    FIELDS = (
        ("cluster_id", "string", "12+", None, "12+", True, 0, "12+"),
        ("replica_id", "int32", "0-14", -1),
        ("replica_state", "ReplicaState", "15+", (), "", False, 1, "15+"),
        ("max_wait_ms", "int32", "0+", 0),
        ("min_bytes", "int32", "0+", 0),
        ("max_bytes", "int32", "3+", 2147483647, "", True),
        ("isolation_level", "int8", "4+", 0, "", True),
        ("session_id", "int32", "7+", 0, "", True),
        ("session_epoch", "int32", "7+", -1, "", True),
        ("topics", "[]FetchTopic", "0+", ()),
        ("forgotten_topics_data", "[]ForgottenTopic", "7+", ()),
        ("rack_id", "string", "11+", "", "", True),
    )

    if TYPE_CHECKING:
        cluster_id: str | None = None
        replica_id: int = -1
        replica_state: ReplicaState = EMPTY
        max_wait_ms: int = 0
        min_bytes: int = 0
        max_bytes: int = 2147483647
        isolation_level: int = 0
        session_id: int = 0
        session_epoch: int = -1
        topics: list[FetchTopic] = EMPTY
        forgotten_topics_data: list[ForgottenTopic] = EMPTY
        rack_id: str = ""
