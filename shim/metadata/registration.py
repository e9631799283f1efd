"""The records that register this node at a start, elect it as partition leader, and unregister it at a stop.

Source: ControllerRegistrationManager, ClusterControlManager and ReplicationControlManager of Kafka 4.3.1.
"""

from __future__ import annotations

from kafka_shim.metadata.features import CONTROLLER_REGISTRATION, DIRECTORIES, ELR_RECORDS, METADATA_VERSION
from kafka_shim.protocol.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.protocol.records.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kafka_shim.protocol.records.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from kafka_shim.metadata.image import Image
    from kafka_shim.randomness import Randomness

    T = TypeVar("T")

# Security protocols on the wire (org.apache.kafka.common.security.auth.SecurityProtocol).
SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

FENCE, UNFENCE = 1, -1


def registration_records(
    image: Image,
    node_id: int,
    endpoints: Sequence[tuple[str, str, int, int]],
    controller_endpoints: Sequence[tuple[str, str, int, int]],
    directory_ids: Sequence[bytes],
    rack: str | None,
    next_offset: int,
    random: Randomness,
    supported: Mapping[str, tuple[int, int]],
) -> tuple[list[Any], int]:
    """Return (records, broker epoch) that register this node as controller and broker and unfence it.

    The broker epoch is the offset of the RegisterBrokerRecord, so `next_offset` must be the offset at which the records
    will be appended.
    """
    level = image.features.get(METADATA_VERSION, 0)
    records: list[Any] = []
    if level >= CONTROLLER_REGISTRATION:
        records.append(
            RegisterControllerRecord(
                controller_id=node_id,
                incarnation_id=random.bytes_of(16),
                end_points=_endpoints(ControllerEndpoint, controller_endpoints),
                features=_features(ControllerFeature, supported),
            )
        )
    epoch = next_offset + len(records)
    records.append(
        RegisterBrokerRecord(
            broker_id=node_id,
            incarnation_id=random.bytes_of(16),
            broker_epoch=epoch,
            end_points=_endpoints(BrokerEndpoint, endpoints),
            features=_features(BrokerFeature, supported),
            rack=rack,
            fenced=True,
            log_dirs=list(directory_ids) if level >= DIRECTORIES else [],
        )
    )
    records.append(BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=UNFENCE))
    return records, epoch


def _endpoints(kind: Callable[..., T], endpoints: Sequence[tuple[str, str, int, int]]) -> list[T]:
    return [
        kind(name=name, host=host, port=port, security_protocol=protocol) for name, host, port, protocol in endpoints
    ]


def _features(kind: Callable[..., T], supported: Mapping[str, tuple[int, int]]) -> list[T]:
    return [
        kind(name=name, min_supported_version=lowest, max_supported_version=highest)
        for name, (lowest, highest) in supported.items()
    ]


def election_records(image: Image, node_id: int) -> list[PartitionChangeRecord]:
    """Return the records that make this node the leader of its partitions: those that it does not lead yet, and all of
    them after an unclean stop.

    After an unclean stop each partition gets a new leader epoch, so that a client can detect that records which it had
    read were lost in a power failure (KIP-320)."""
    previous = image.brokers.get(node_id)
    unclean = previous is not None and not previous.fenced
    with_elr = image.features.get(METADATA_VERSION, 0) >= ELR_RECORDS
    records = []
    for topic in image.topics.values():
        for partition in topic.partitions:
            if node_id in partition.replicas and (unclean or partition.leader != node_id):
                change = PartitionChangeRecord(partition_id=partition.partition, topic_id=topic.topic_id)
                change.leader = node_id
                if partition.isr != (node_id,):
                    change.isr = [node_id]
                if with_elr and (partition.elr or partition.last_known_elr):
                    change.eligible_leader_replicas = []
                    change.last_known_elr = []
                records.append(change)
    return records


def departure_records(node_id: int, broker_epoch: int) -> list[BrokerRegistrationChangeRecord]:
    """Return the records of a clean stop: controlled shutdown, then fenced. Partitions keep their leader because there
    is no other broker."""
    return [
        BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=broker_epoch, in_controlled_shutdown=1),
        BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=broker_epoch, fenced=FENCE),
    ]
