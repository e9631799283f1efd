"""DescribeProducersRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class TopicRequest(Message):
    __slots__ = ("name", "partition_indexes")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("partition_indexes", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        name: str = ""
        partition_indexes: list[int] = EMPTY


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("topics", "[]TopicRequest", "0+", ()),)

    if TYPE_CHECKING:
        topics: list[TopicRequest] = EMPTY
