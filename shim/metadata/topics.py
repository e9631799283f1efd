"""Rules for topics: names, partition counts, replica assignments, and the records that create or grow a topic. Pure
functions.

Source: org.apache.kafka.controller.ReplicationControlManager and org.apache.kafka.common.internals.Topic of 4.3.1.
Error messages are those that Kafka's clients see.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.metadata.assignments import UNASSIGNED, all_cordoned
from kafka_shim.protocol.records.partition_record import PartitionRecord
from kafka_shim.protocol.records.topic_record import TopicRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.image import Image

MAX_NAME_LENGTH = 249
MAX_SHOWN_LENGTH = 512
# The most partitions that one request may create (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
MAX_PARTITIONS_PER_REQUEST = 10_000
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def shown_name(name: str) -> str:
    """Return a topic's name as errors show it: of one that is far too long, the beginning. A request may have
    any number of partitions of it, each with an error of its own."""
    return name if len(name) <= MAX_SHOWN_LENGTH else f"{name[:MAX_SHOWN_LENGTH]}..."


def check_name(name: str) -> None:
    """Raises KafkaError INVALID_TOPIC_EXCEPTION if `name` is not a valid topic name."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{shown_name(name)}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def check_new_name(image: Image, name: str) -> None:
    """Raises TOPIC_ALREADY_EXISTS or INVALID_TOPIC_EXCEPTION if a topic of this name cannot be created."""
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = image.colliding_names.get(name.replace(".", "_")) if "." in name or "_" in name else None
    if colliding:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {min(colliding)}"
        )
    check_name(name)


def check_request_size(counts: Sequence[int], default_partitions: int) -> None:
    """Raises POLICY_VIOLATION if the topics of one request together have more than `MAX_PARTITIONS_PER_REQUEST`
    partitions."""
    if sum(default_partitions if count == -1 else max(count, 0) for count in counts) > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def place(image: Image, partitions: int, replication_factor: int, node_id: int) -> list[list[int]]:
    """Return the replicas of `partitions` new partitions. Each has this node, which is the only active broker.

    Raises INVALID_REPLICATION_FACTOR if `replication_factor` is not 1, or if no directory takes new partitions."""
    if all_cordoned(image, node_id):
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    if replication_factor == 1:
        return [[node_id]] * partitions
    registered = len(image.brokers)
    if replication_factor > registered:
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{registered} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    else:
        reason = "All brokers are currently fenced or in controlled shutdown."
    raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


def check_assignment(
    image: Image, replicas: Sequence[int], replication_factor: int | None, node_id: int, partition: int
) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT if a manual assignment is invalid. `replication_factor` is that of the previous
    partitions, or None for the first one."""
    if not replicas:
        reason = "The manual partition assignment includes an empty replica list."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    previous = None
    for broker in sorted(replicas):
        if broker not in image.brokers and broker != node_id:
            reason = f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        if broker == previous:
            reason = f"The manual partition assignment includes the broker {broker} more than once."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        reason = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    if node_id not in replicas:
        reason = (
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
            "controlled shutdown."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def decide_replicas(
    image: Image,
    partitions: int,
    replication_factor: int,
    assignments: Sequence[tuple[int, list[int]]],
    node_id: int,
    defaults: tuple[int, int],
) -> list[list[int]]:
    """Return the replicas of each partition of a new topic. `assignments` are (partition, brokers), or empty.
    `defaults` are the broker's partition count and replication factor, which replace -1.

    Raises INVALID_REQUEST, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT."""
    if assignments:
        return _manual_replicas(image, partitions, replication_factor, assignments, node_id)
    if replication_factor < -1 or replication_factor == 0:
        reason = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    if partitions < -1 or partitions == 0:
        reason = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
    if partitions == -1:
        partitions = defaults[0]
    if replication_factor == -1:
        replication_factor = defaults[1]
    try:
        return place(image, partitions, replication_factor, node_id)
    except KafkaError as err:
        reason = f"Unable to replicate the partition {replication_factor} time(s): {err.message}"
        raise KafkaError(err.code, reason) from None


def _manual_replicas(
    image: Image, partitions: int, replication_factor: int, assignments: Sequence[tuple[int, list[int]]], node_id: int
) -> list[list[int]]:
    for value, what in ((replication_factor, "replication factor"), (partitions, "numPartitions")):
        if value != -1:
            reason = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    replicas: dict[int, list[int]] = {}
    factor = None
    for partition, brokers in assignments:
        if partition in replicas:
            reason = f"Found multiple manual partition assignments for partition {partition}"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        check_assignment(image, brokers, factor, node_id, partition)
        factor = len(brokers)
        replicas[partition] = brokers
    if sorted(replicas) != list(range(len(replicas))):
        reason = "partitions should be a consecutive 0-based integer sequence"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    return [replicas[partition] for partition in range(len(replicas))]


def decide_growth(
    image: Image,
    name: str,
    total: int,
    assignments: Sequence[list[int]] | None,
    node_id: int,
    most: int = MAX_PARTITIONS_PER_REQUEST,
) -> list[list[int]]:
    """Return the replicas of the partitions that a topic needs to grow to `total` partitions.

    Raises UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, and
    as Kafka UNKNOWN_SERVER_ERROR for more new partitions than `most`."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if total == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if total < present:
        reason = f"The topic {name} currently has {present} partition(s); {total} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
    added = total - present
    if added > most:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Excessively large number of partitions per request.")
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return place(image, added, factor, node_id)
    if len(assignments) != added:
        reason = (
            f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    for number, brokers in enumerate(assignments):
        check_assignment(image, brokers, factor, node_id, present + number)
    return list(assignments)


def topic_records(name: str, topic_id: bytes, configs: list[Any]) -> list[Any]:
    """Return the records that create a topic, in Kafka's order: the topic, its options. Those of its partitions
    follow."""
    return [TopicRecord(name=name, topic_id=topic_id), *configs]


def partition_records(
    topic_id: bytes, first: int, replicas: Sequence[list[int]], node_id: int, directory_id: bytes | None
) -> list[PartitionRecord]:
    """Return a PartitionRecord for each new partition, numbered from `first`. This node is the leader and the only
    in-sync replica. `directory_id` is None if the finalised metadata.version does not record directories."""
    return [
        PartitionRecord(
            partition_id=first + number,
            topic_id=topic_id,
            replicas=brokers,
            isr=[node_id],
            leader=node_id,
            leader_epoch=0,
            partition_epoch=0,
            directories=[]
            if directory_id is None
            else [directory_id if broker == node_id else UNASSIGNED for broker in brokers],
        )
        for number, brokers in enumerate(replicas)
    ]


# The least that LogConfig takes for `segment.bytes` of a topic.
MIN_SEGMENT_BYTES = 1 << 20
UNKNOWN_TOPIC_MESSAGE = "This server does not host this topic-partition."
UNKNOWN_TOPIC_ID_MESSAGE = "This server does not host this topic ID."


def internal_options(config: BrokerConfig, name: str) -> tuple[int, dict[str, str]]:
    """Return the partition count and the options of an internal topic. Raises KafkaError INVALID_TOPIC_EXCEPTION for
    another name, and INVALID_CONFIG for a size of segments that no topic may have: Apache Kafka does not start on a
    directory with such a topic."""
    # GroupCoordinatorService.groupMetadataTopicConfigs, TransactionCoordinator.transactionStateTopicConfigs,
    # ShareCoordinatorService.shareGroupStateTopicConfigs.
    if name == GROUP_METADATA_TOPIC:
        return config.offsets_topic_num_partitions, {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": _segment_bytes("offsets.topic.segment.bytes", config.offsets_topic_segment_bytes),
        }
    if name == TRANSACTION_STATE_TOPIC:
        return config.transaction_state_log_num_partitions, {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": "1",
            "segment.bytes": _segment_bytes(
                "transaction.state.log.segment.bytes", config.transaction_state_log_segment_bytes
            ),
        }
    if name == SHARE_GROUP_STATE_TOPIC:
        return config.share_coordinator_state_topic_num_partitions, {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
            "segment.bytes": _segment_bytes(
                "share.coordinator.state.topic.segment.bytes", config.share_coordinator_state_topic_segment_bytes
            ),
        }
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is not an internal topic of this broker")


def _segment_bytes(option: str, size_bytes: int) -> str:
    if size_bytes < MIN_SEGMENT_BYTES:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {size_bytes} for configuration segment.bytes: Value must be at least {MIN_SEGMENT_BYTES} "
            f"(it comes from {option})",
        )
    return str(size_bytes)
