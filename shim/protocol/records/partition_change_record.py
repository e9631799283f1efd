"""PartitionChangeRecord, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import ZERO_UUID, Message

TYPE_CHECKING = False


class PartitionChangeRecord(Message):
    __slots__ = (
        "partition_id",
        "topic_id",
        "isr",
        "leader",
        "replicas",
        "removing_replicas",
        "adding_replicas",
        "leader_recovery_state",
        "directories",
        "eligible_leader_replicas",
        "last_known_elr",
    )
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("partition_id", "int32", "0+", -1),
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("isr", "[]int32", "0+", None, "0+", False, 0, "0+"),
        ("leader", "int32", "0+", -2, "", False, 1, "0+"),
        ("replicas", "[]int32", "0+", None, "0+", False, 2, "0+"),
        ("removing_replicas", "[]int32", "0+", None, "0+", False, 3, "0+"),
        ("adding_replicas", "[]int32", "0+", None, "0+", False, 4, "0+"),
        ("leader_recovery_state", "int8", "0+", -1, "", False, 5, "0+"),
        ("directories", "[]uuid", "1+", None, "1+", False, 8, "1+"),
        ("eligible_leader_replicas", "[]int32", "2+", None, "2+", False, 6, "2+"),
        ("last_known_elr", "[]int32", "2+", None, "2+", False, 7, "2+"),
    )

    if TYPE_CHECKING:
        partition_id: int = -1
        topic_id: bytes = ZERO_UUID
        isr: list[int] | None = None
        leader: int = -2
        replicas: list[int] | None = None
        removing_replicas: list[int] | None = None
        adding_replicas: list[int] | None = None
        leader_recovery_state: int = -1
        directories: list[bytes] | None = None
        eligible_leader_replicas: list[int] | None = None
        last_known_elr: list[int] | None = None
