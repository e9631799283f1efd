"""DeleteShareGroupOffsetsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DeleteShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name",)
    FIELDS = (("topic_name", "string", "0+", ""),)

    if TYPE_CHECKING:
        topic_name: str = ""


class DeleteShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics")
    API_KEY = 92
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("topics", "[]DeleteShareGroupOffsetsRequestTopic", "0+", ()),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY
