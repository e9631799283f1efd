"""ConsumerGroupDescribeResponse, versions 0-1. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class TopicPartitions(Message):
    __slots__ = ("topic_id", "topic_name", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("topic_name", "string", "0+", ""),
        ("partitions", "[]int32", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        topic_name: str = ""
        partitions: list[int] = EMPTY


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIELDS = (("topic_partitions", "[]TopicPartitions", "0+", ()),)

    if TYPE_CHECKING:
        topic_partitions: list[TopicPartitions] = EMPTY


class Member(Message):
    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )
    FIELDS = (
        ("member_id", "string", "0+", ""),
        ("instance_id", "string", "0+", None, "0+"),
        ("rack_id", "string", "0+", None, "0+"),
        ("member_epoch", "int32", "0+", 0),
        ("client_id", "string", "0+", ""),
        ("client_host", "string", "0+", ""),
        ("subscribed_topic_names", "[]string", "0+", ()),
        ("subscribed_topic_regex", "string", "0+", None, "0+"),
        ("assignment", "Assignment", "0+", ()),
        ("target_assignment", "Assignment", "0+", ()),
        ("member_type", "int8", "1+", -1, "", True),
    )

    if TYPE_CHECKING:
        member_id: str = ""
        instance_id: str | None = None
        rack_id: str | None = None
        member_epoch: int = 0
        client_id: str = ""
        client_host: str = ""
        subscribed_topic_names: list[str] = EMPTY
        subscribed_topic_regex: str | None = None
        assignment: Assignment = EMPTY
        target_assignment: Assignment = EMPTY
        member_type: int = -1


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
        ("group_id", "string", "0+", ""),
        ("group_state", "string", "0+", ""),
        ("group_epoch", "int32", "0+", 0),
        ("assignment_epoch", "int32", "0+", 0),
        ("assignor_name", "string", "0+", ""),
        ("members", "[]Member", "0+", ()),
        ("authorized_operations", "int32", "0+", -2147483648),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        error_message: str | None = None
        group_id: str = ""
        group_state: str = ""
        group_epoch: int = 0
        assignment_epoch: int = 0
        assignor_name: str = ""
        members: list[Member] = EMPTY
        authorized_operations: int = -2147483648


class ConsumerGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 69
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("groups", "[]DescribedGroup", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        groups: list[DescribedGroup] = EMPTY
