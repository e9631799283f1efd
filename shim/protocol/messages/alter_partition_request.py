"""AlterPartitionRequest, versions 2-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class BrokerState(Message):
    __slots__ = ("broker_id", "broker_epoch")
    FIELDS = (
        ("broker_id", "int32", "3+", 0),
        ("broker_epoch", "int64", "3+", -1),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        broker_epoch: int = -1


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "leader_epoch",
        "new_isr",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
    )
    FIELDS = (
        ("partition_index", "int32", "0+", 0),
        ("leader_epoch", "int32", "0+", 0),
        ("new_isr", "[]int32", "0-2", ()),
        ("new_isr_with_epochs", "[]BrokerState", "3+", ()),
        ("leader_recovery_state", "int8", "1+", 0),
        ("partition_epoch", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        partition_index: int = 0
        leader_epoch: int = 0
        new_isr: list[int] = EMPTY
        new_isr_with_epochs: list[BrokerState] = EMPTY
        leader_recovery_state: int = 0
        partition_epoch: int = 0


class TopicData(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "2+", ZERO_UUID, "", True),
        ("partitions", "[]PartitionData", "0+", ()),
    )

    if TYPE_CHECKING:
        topic_id: bytes = ZERO_UUID
        partitions: list[PartitionData] = EMPTY


class AlterPartitionRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "topics")
    API_KEY = 56
    MIN_VERSION = 2
    MAX_VERSION = 3
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("broker_epoch", "int64", "0+", -1),
        ("topics", "[]TopicData", "0+", ()),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        broker_epoch: int = -1
        topics: list[TopicData] = EMPTY
