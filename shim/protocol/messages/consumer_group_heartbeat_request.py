"""ConsumerGroupHeartbeatRequest, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicPartitions(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[int] = EMPTY


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )
    API_KEY = 68
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("group_id", "string", "0+", ""),
        ("member_id", "string", "0+", ""),
        ("member_epoch", "int32", "0+", 0),
        ("instance_id", "string", "0+", None, "0+"),
        ("rack_id", "string", "0+", None, "0+"),
        ("rebalance_timeout_ms", "int32", "0+", -1),
        ("subscribed_topic_names", "[]string", "0+", None, "0+"),
        ("subscribed_topic_regex", "string", "1+", None, "1+"),
        ("server_assignor", "string", "0+", None, "0+"),
        ("topic_partitions", "[]TopicPartitions", "0+", None, "0+"),
    )

    if TYPE_CHECKING:
        group_id: str = ""
        member_id: str = ""
        member_epoch: int = 0
        instance_id: str | None = None
        rack_id: str | None = None
        rebalance_timeout_ms: int = -1
        subscribed_topic_names: list[str] | None = None
        subscribed_topic_regex: str | None = None
        server_assignor: str | None = None
        topic_partitions: list[TopicPartitions] | None = None
