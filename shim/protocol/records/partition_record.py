"""PartitionRecord, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionRecord(Message):
    __slots__ = (
        "partition_id",
        "topic_id",
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "leader",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("partition_id", "int32", "0+", -1),
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("replicas", "[]int32", "0+", ()),
        ("isr", "[]int32", "0+", ()),
        ("removing_replicas", "[]int32", "0+", ()),
        ("adding_replicas", "[]int32", "0+", ()),
        ("leader", "int32", "0+", -1),
        ("leader_recovery_state", "int8", "0+", 0, "", False, 0, "0+"),
        ("leader_epoch", "int32", "0+", -1),
        ("partition_epoch", "int32", "0+", -1),
        ("directories", "[]uuid", "1+", ()),
        ("eligible_leader_replicas", "[]int32", "2+", None, "2+", False, 1, "2+"),
        ("last_known_elr", "[]int32", "2+", None, "2+", False, 2, "2+"),
    )

    if TYPE_CHECKING:
        partition_id: int = -1
        topic_id: bytes = ZERO_UUID
        replicas: list[int] = EMPTY
        isr: list[int] = EMPTY
        removing_replicas: list[int] = EMPTY
        adding_replicas: list[int] = EMPTY
        leader: int = -1
        leader_recovery_state: int = 0
        leader_epoch: int = -1
        partition_epoch: int = -1
        directories: list[bytes] = EMPTY
        eligible_leader_replicas: list[int] | None = None
        last_known_elr: list[int] | None = None
