"""What the data-path handlers share: from a name or an id in a request to the partition's log."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.message import ZERO_UUID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.metadata.image import Partition, Topic
    from kafka_shim.storage.log import PartitionLog

# What AclAuthorizer-less Kafka says that anyone may do: bits of AclOperation by resource type.
ALL_TOPIC_OPERATIONS = 0b1101_1111_1000
ALL_CLUSTER_OPERATIONS = 0b1_1111_1010_0000
NO_OPERATIONS = -2147483648


def topic_name(broker: Broker, topic_id: bytes) -> str | None:
    """The name of the topic with this id, None when there is none."""
    topic = broker.metadata.image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def topic_id(broker: Broker, name: str) -> bytes:
    """The id of the topic with this name, the zero id when there is none."""
    topic = broker.metadata.image.topics.get(name)
    return ZERO_UUID if topic is None else topic.topic_id


def check_leader_epoch(log: PartitionLog, current_leader_epoch: int) -> None:
    """The client's idea of the leader epoch against the partition's; -1 is no idea (KIP-320). Of the other negative
    ones Fetch, and it alone, makes no idea too."""
    if current_leader_epoch not in (-1, log.leader_epoch):
        code = (
            ErrorCode.FENCED_LEADER_EPOCH if current_leader_epoch < log.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(code, f"leader epoch {current_leader_epoch}, this partition is at {log.leader_epoch}")


def led_by(broker: Broker, topic: Topic, partition: Partition) -> int:
    """The leader to tell a client: -1 for a partition that is offline, which in Kafka nobody leads."""
    return -1 if broker.logs.is_offline(topic.name, partition.partition) else partition.leader
