"""Transactions as administrators see and end them. Each question goes to the broker that can answer it: to all of them,
to the coordinator of a transactional id, or to the leader of a partition (Kafka: Admin's AllBrokersStrategy,
CoordinatorStrategy, PartitionLeaderStrategy)."""

from __future__ import annotations

from functools import partial

from kafka_shim.client.cluster import PASSING, TRANSACTION
from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.own_tags import RESOLVE_TAG
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

# States in which partitions wait for the markers of a transaction.
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


def list_transactions(cluster: Cluster, **filters: Any) -> tuple[list[tuple[int, Any]], list[str]]:
    """Returns the transactional ids of all coordinators, each with its coordinator's node id, and the state filters
    that a broker does not know. `filters` are fields of ListTransactions. Raises RequestError, of a pattern that is
    none with it as the subject."""
    found: list[tuple[int, Any]] = []
    unknown: list[str] = []
    for broker in sorted(cluster.metadata(()).brokers, key=lambda one: int(one.node_id)):
        answer = cluster.patiently(partial(_listed, cluster, broker.node_id, filters))
        found += [(broker.node_id, one) for one in answer.transaction_states]
        unknown += [each for each in answer.unknown_state_filters if each not in unknown]
    return found, unknown


def _listed(cluster: Cluster, node_id: int, filters: Mapping[str, Any]) -> Any:
    answer = cluster.to(node_id).request(make("ListTransactions", **filters))
    is_of_pattern = answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    check(answer.error_code, subject=str(filters.get("transactional_id_pattern")) if is_of_pattern else "")
    return answer


def describe_transaction(
    cluster: Cluster, transactional_id: str, tags: Mapping[int, bytes] | None = None
) -> tuple[int, Any]:
    """Returns (its coordinator's node id, what DescribeTransactions says of it, with the error code). `tags`: own
    questions, as tagged fields of the request."""
    request = make("DescribeTransactions", transactional_ids=[transactional_id])
    request.unknown_tags = dict(tags) if tags else None

    def ask() -> tuple[int, Any]:
        node_id = cluster.coordinator_id(transactional_id, TRANSACTION)
        (found,) = cluster.to(node_id).request(request).transaction_states
        if found.error_code in PASSING:
            check(found.error_code, subject=transactional_id)
        return node_id, found

    return cluster.patiently(ask)


def producers_of(cluster: Cluster, partitions: Iterable[TopicPartition]) -> list[tuple[str, int, Any]]:
    """Returns (topic, partition, producer) of every producer that the leaders of these partitions remember. Raises
    RequestError for the first partition that is answered with an error."""
    wanted = list(partitions)

    def ask() -> list[tuple[str, int, Any]]:
        found = []
        for node_id, topics in cluster.by_leader(wanted).items():
            asked = [{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()]
            for topic in cluster.to(node_id).request(make("DescribeProducers", topics=asked)).topics:
                for part in topic.partitions:
                    check(part.error_code, part.error_message, f"{topic.name}-{part.partition_index}")
                    found += [(topic.name, part.partition_index, producer) for producer in part.active_producers]
        return sorted(found, key=lambda each: each[:2])

    return cluster.patiently(ask)


def abort(cluster: Cluster, partition: TopicPartition, producer: Any) -> None:
    """Write an abort marker for what a producer, one of `producers_of`, has open in the partition (Kafka:
    Admin.abortTransaction)."""
    topic, index = partition
    marker = {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "transaction_result": False,
        "coordinator_epoch": max(producer.coordinator_epoch, 0),
        "topics": [{"name": topic, "partition_indexes": [index]}],
    }

    def ask() -> None:
        answer = cluster.to(cluster.leader(partition)).request(make("WriteTxnMarkers", markers=[marker]))
        for result in answer.markers:
            for named in result.topics:
                for part in named.partitions:
                    check(part.error_code, subject=f"{topic}-{index}")

    cluster.patiently(ask)


def force_terminate(cluster: Cluster, transactional_id: str) -> None:
    """Abort whatever a transactional id has open, and fence its producer (Kafka: Admin.forceTerminateTransaction).
    Returns once it is ended. Raises RequestError TRANSACTIONAL_ID_NOT_FOUND; CONCURRENT_TRANSACTIONS if it is still
    being ended after the cluster's timeout."""

    def exists() -> None:
        request = make("DescribeTransactions", transactional_ids=[transactional_id])
        (found,) = cluster.coordinator(transactional_id, TRANSACTION).request(request).transaction_states
        check(found.error_code, subject=transactional_id)

    def end() -> None:
        request = make("InitProducerId", transactional_id=transactional_id, transaction_timeout_ms=1)
        request.unknown_tags = {RESOLVE_TAG: b"\1"}
        check(cluster.coordinator(transactional_id, TRANSACTION).request(request).error_code, subject=transactional_id)

    # InitProducerId makes an id that is not there.
    cluster.patiently(exists)
    cluster.patiently(end)
