"""DescribeLogDirsRequest, versions 1-5. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribableLogDirTopic(Message):
    __slots__ = ("topic", "partitions")
    FIELDS = (
        ("topic", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic: str = ""
        partitions: list[int] = EMPTY


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 5
    FLEXIBLE_FROM = 2
    FIELDS = (("topics", "[]DescribableLogDirTopic", "0+", (), "0+"),)

    if TYPE_CHECKING:
        topics: list[DescribableLogDirTopic] | None = EMPTY
