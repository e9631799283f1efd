"""DescribeLogDirsResponse, versions 1-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeLogDirsPartition(Message):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("partition_size", "int64", "0+", 0),
        ("offset_lag", "int64", "0+", 0),
        ("is_future_key", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        partition_size: int = 0
        offset_lag: int = 0
        is_future_key: bool = False


class DescribeLogDirsTopic(Message):
    __slots__ = ("name", "partitions")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partitions", "[]DescribeLogDirsPartition", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partitions: list[DescribeLogDirsPartition] = EMPTY


class DescribeLogDirsResult(Message):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("log_dir", "string", "0+", ""),
        ("topics", "[]DescribeLogDirsTopic", "0+", ()),
        ("total_bytes", "int64", "4+", -1, "", True),
        ("usable_bytes", "int64", "4+", -1, "", True),
        ("is_cordoned", "bool", "5+", False, "", True),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        log_dir: str = ""
        topics: list[DescribeLogDirsTopic] = EMPTY
        total_bytes: int = -1
        usable_bytes: int = -1
        is_cordoned: bool = False


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results")
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "3+", 0, "", True),
        ("results", "[]DescribeLogDirsResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        results: list[DescribeLogDirsResult] = EMPTY
