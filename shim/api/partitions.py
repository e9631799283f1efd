"""Functions that handlers share: from a name or an id in a request to the partition's log, and checks of who may alter
options.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_operations, may_on_cluster, require, require_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.image import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.security.acl import CLUSTER_NAME, AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Partition, Topic
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps

# The answers to a client that takes another broker for the leader, or the leader for one of another epoch.
OTHER_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
RESOURCE_KINDS = frozenset(
    {RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP}
)


def topic_name(broker: Broker, topic_id: bytes) -> str | None:
    """Returns the name of the topic with this id, or None."""
    topic = broker.metadata.image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def topic_id(broker: Broker, name: str) -> bytes:
    """Returns the id of the topic with this name, or the zero id."""
    topic = broker.metadata.image.topics.get(name)
    return ZERO_UUID if topic is None else topic.topic_id


def named_partitions(topics: Iterable[tuple[str, Sequence[int]]]) -> Steps[set[tuple[str, int]]]:
    """Returns the partitions that a request names, topic by topic, a partition a step."""
    named = set()
    for topic, partitions in topics:
        for partition in partitions:
            named.add((topic, partition))
            yield
        yield
    return named


def check_leader_epoch(log: PartitionLog, current_leader_epoch: int) -> None:
    """Compare the client's current leader epoch with the partition's; -1 skips the check (KIP-320). Fetch, and only
    Fetch, skips it for the other negative values too. Raises FENCED_LEADER_EPOCH for an older epoch,
    UNKNOWN_LEADER_EPOCH for a newer one."""
    if current_leader_epoch not in (-1, log.leader_epoch):
        code = (
            ErrorCode.FENCED_LEADER_EPOCH if current_leader_epoch < log.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(code, f"leader epoch {current_leader_epoch}, this partition is at {log.leader_epoch}")


def led_by(broker: Broker, topic: Topic, partition: Partition) -> int:
    """Returns the leader's node id: -1 for an offline partition, which has no leader in Kafka either."""
    return -1 if broker.logs.is_offline(topic.name, partition.partition) else partition.leader


def name_leader(broker: Broker, topic_id: bytes, answer: Any) -> int:
    """Name the leader in the answer of a partition whose client was refused for the leader that it knows (KIP-951).
    Returns its node id, or -1 if there is none."""
    topic = broker.metadata.image.topics_by_id.get(topic_id)
    if topic is None or not 0 <= answer.partition_index < len(topic.partitions):
        return -1
    partition = topic.partitions[answer.partition_index]
    leader_id = led_by(broker, topic, partition)
    answer.current_leader.leader_id = leader_id
    answer.current_leader.leader_epoch = partition.leader_epoch
    return leader_id


def leader_endpoint(context: Context, leader_id: int, endpoint: type[Any]) -> Any:
    """Returns where this client finds the leader."""
    host, port = context.session.advertised()
    return endpoint(node_id=leader_id, host=host, port=port, rack=context.broker.config.broker_rack)


def cluster_operations(context: Context) -> int:
    """Returns the operations that the client is allowed on the cluster, as a bit field. A client that may not describe
    the cluster gets none."""
    if not may_on_cluster(context, AclOperation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def require_alter_configs(context: Context, kind: int, name: str) -> None:
    """Raises ..._AUTHORIZATION_FAILED if the client may not alter the options of this resource. On the controller's
    listener an unknown kind of resource is UNSUPPORTED_VERSION, and levels of loggers need CLUSTER_ACTION."""
    if context.listener.is_controller:
        if kind not in RESOURCE_KINDS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")
        if kind == RESOURCE_BROKER_LOGGER:
            require_on_cluster(context, AclOperation.CLUSTER_ACTION)
            return
    if kind == RESOURCE_TOPIC:
        require(context, AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, name)
    elif kind == RESOURCE_GROUP:
        require(context, AclOperation.ALTER_CONFIGS, ResourceType.GROUP, name)
    else:
        require_on_cluster(context, AclOperation.ALTER_CONFIGS)
