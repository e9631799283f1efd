"""AlterReplicaLogDirsResponse, versions 1-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterReplicaLogDirPartitionResult(Message):
    __slots__ = ("partition_index", "error_code")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        error_code: int = 0


class AlterReplicaLogDirTopicResult(Message):
    __slots__ = ("topic_name", "partitions")
    FIELDS = (
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]AlterReplicaLogDirPartitionResult", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_name: str = ""
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY


class AlterReplicaLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("results", "[]AlterReplicaLogDirTopicResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        results: list[AlterReplicaLogDirTopicResult] = EMPTY
