"""FetchRequest, versions 4-18. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class ReplicaState(Message):
    __slots__ = ("replica_id", "replica_epoch")
    FIELDS = (
        ("replica_id", "int32", "15+", -1),
        ("replica_epoch", "int64", "15+", -1),
    )

    def __init__(self, *, replica_id: int = -1, replica_epoch: int = -1) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark
        self.unknown_tags = None


class FetchTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    FIELDS = (
        ("topic", "string", "0-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partitions", "[]FetchPartition", "0+", ()),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class ForgottenTopic(Message):
    __slots__ = ("topic", "topic_id", "partitions")
    FIELDS = (
        ("topic", "string", "7-12", "", "", True),
        ("topic_id", "uuid", "13+", ZERO_UUID, "", True),
        ("partitions", "[]int32", "7+", ()),
    )

    def __init__(self, *, topic: str = "", topic_id: bytes = ZERO_UUID, partitions: list[int] = EMPTY) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState = EMPTY,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = ReplicaState() if replica_state is EMPTY else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id = rack_id
        self.unknown_tags = None
