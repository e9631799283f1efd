"""`kafka-transactions.sh`: transactions and the producers of partitions (Kafka: TransactionsCommand)."""

from __future__ import annotations

import time
from contextlib import contextmanager

from kafka_shim.client.cluster import TRANSACTION
from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.options import VERSION, connect_to
from kafka_shim.tools.running import leave
from kafka_shim.tools.subcommands import Parser, ToolError, print_table, run_command
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

# How many partitions one request asks for.
BATCH = 500
MINUTE_MS = 60_000


def parser() -> argparse.ArgumentParser:
    found = Parser(
        prog="kafka-transactions.sh",
        description="This tool is used to analyze the transactional state of producers in the cluster. It can be used "
        "to detect and recover from hanging transactions.",
    )
    found.add_argument("-v", "--version", action="version", version=VERSION)
    found.add_argument("--command-config", metavar="FILE", help="properties of the admin client")
    found.add_argument("--bootstrap-server", metavar="host:port", required=True, help="the brokers to connect to")
    commands = found.add_subparsers(dest="command", required=True, title="commands", metavar="COMMAND")
    listing = commands.add_parser("list", help="list transactions")
    listing.add_argument("--duration-filter", type=int, help="only those that have run longer, in ms")
    listing.add_argument("--transactional-id-pattern", help="only ids that this expression matches")
    describing = commands.add_parser("describe", help="describe the state of an active transactional-id")
    describing.add_argument("--transactional-id", required=True, help="transactional id")
    producers = commands.add_parser(
        "describe-producers", help="describe the states of active producers for a topic partition"
    )
    producers.add_argument("--broker-id", type=int, help="the replica to ask")
    aborting = commands.add_parser("abort", help="abort a hanging transaction (requires administrative privileges)")
    for one in (producers, aborting):
        one.add_argument("--topic", required=True, help="topic name")
        one.add_argument("--partition", type=int, required=True, help="partition number")
    aborting.add_argument("--start-offset", type=int, help="start offset of the transaction to abort")
    for name in ("producer-id", "producer-epoch", "coordinator-epoch"):
        aborting.add_argument(f"--{name}", type=int, help="for brokers before 3.0")
    hanging = commands.add_parser("find-hanging", help="find hanging transactions")
    hanging.add_argument("--broker-id", type=int, help="broker id to search for hanging transactions")
    hanging.add_argument("--max-transaction-timeout", type=int, default=15, help="in minutes; default: 15")
    hanging.add_argument("--topic", help="topic name to limit search to")
    hanging.add_argument("--partition", type=int, help="partition number")
    ending = commands.add_parser(
        "forceTerminateTransaction", help="Force abort an ongoing transaction on transactionalId"
    )
    ending.add_argument("--transactionalId", dest="transactional_id", required=True, help="transactional id")
    return found


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Turns the broker's errors into the tool's."""
    try:
        yield
    except WireClientError as err:
        raise ToolError(f"{what}: {message_of(err)}. Enable debug logging for additional detail.") from None


def _connect(given: argparse.Namespace) -> Cluster:
    return connect_to(given.bootstrap_server, given.command_config, "kafka-transactions")


def list_transactions(given: argparse.Namespace) -> None:
    with _connect(given) as cluster, _failing("Failed to list transactions"):
        rows = [
            (one.transactional_id, node_id, one.producer_id, one.transaction_state)
            for node_id, one in _listed(
                cluster,
                duration_filter=-1 if given.duration_filter is None else given.duration_filter,
                transactional_id_pattern=given.transactional_id_pattern,
            )
        ]
    print_table(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def _listed(cluster: Cluster, **filters: Any) -> list[tuple[int, Any]]:
    """(broker, transaction) of each that the brokers coordinate."""
    found = []
    for broker in cluster.metadata(()).brokers:
        answer = cluster.to(broker.node_id).request(make("ListTransactions", **filters))
        check(answer.error_code)
        found += [(broker.node_id, one) for one in answer.transaction_states]
    return found


def describe(given: argparse.Namespace) -> None:
    name = given.transactional_id
    with (
        _connect(given) as cluster,
        _failing(f"Failed to describe transaction state of transactional-id `{name}`"),
    ):
        node_id, found = _described(cluster, name)
        check(found.error_code)
    started = found.transaction_start_time_ms
    print_table(
        (
            *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"),
            *("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"),
        ),
        [
            (
                *(node_id, name, found.producer_id, found.producer_epoch, found.transaction_state),
                *(found.transaction_timeout_ms, started if started >= 0 else "None"),
                _now_ms() - started if started >= 0 else "None",
                ",".join(f"{topic}-{partition}" for topic, partition in _partitions_of(found)),
            )
        ],
    )


def _described(cluster: Cluster, name: str) -> tuple[int, Any]:
    """(coordinator, transaction) of a transactional id; the transaction may carry an error."""

    def ask() -> tuple[int, Any]:
        found = cluster.any().request(make("FindCoordinator", key_type=TRANSACTION, coordinator_keys=[name]))
        (coordinator,) = found.coordinators
        check(coordinator.error_code, coordinator.error_message)
        answer = cluster.to(coordinator.node_id).request(make("DescribeTransactions", transactional_ids=[name]))
        return coordinator.node_id, answer.transaction_states[0]

    return cluster.patiently(ask)


def _partitions_of(transaction: Any) -> list[TopicPartition]:
    return [(topic.topic, partition) for topic in transaction.topics for partition in topic.partitions]


def describe_producers(given: argparse.Namespace) -> None:
    asked = given.topic, given.partition
    where = "leader" if given.broker_id is None else f"broker {given.broker_id}"
    with _connect(given) as cluster, _failing(f"Failed to describe producers for partition {_text(asked)} on {where}"):
        found = [producer for _, producer in _producers(cluster, [asked], given.broker_id)]
    print_table(
        (
            *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
            "CurrentTransactionStartOffset",
        ),
        [
            (
                *(one.producer_id, one.producer_epoch, one.coordinator_epoch, one.last_sequence, one.last_timestamp),
                one.current_txn_start_offset if one.current_txn_start_offset >= 0 else "None",
            )
            for one in found
        ],
    )


def _text(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _producers(
    cluster: Cluster, partitions: Sequence[TopicPartition], broker_id: int | None
) -> list[tuple[TopicPartition, Any]]:
    """(partition, producer) of every producer with state in the partitions, at their leaders or at one broker."""
    found = []
    for at in range(0, len(partitions), BATCH):
        batch = partitions[at : at + BATCH]
        for node_id, topics in _asked(cluster, batch, broker_id).items():
            request = make(
                "DescribeProducers",
                topics=[{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()],
            )
            for topic in cluster.to(node_id).request(request).topics:
                for part in topic.partitions:
                    check(part.error_code, part.error_message)
                    found += [((topic.name, part.partition_index), one) for one in part.active_producers]
    return found


def _asked(
    cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None
) -> dict[int, dict[str, list[int]]]:
    if broker_id is None:
        return cluster.by_leader(partitions)
    topics: dict[str, list[int]] = {}
    for name, partition in partitions:
        topics.setdefault(name, []).append(partition)
    return {broker_id: topics}


def abort(given: argparse.Namespace) -> None:
    where = given.topic, given.partition
    if given.start_offset is None and given.producer_id is None:
        raise ToolError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    with _connect(given) as cluster:
        if given.start_offset is None:
            for name in ("producer_epoch", "coordinator_epoch"):
                if getattr(given, name) is None:
                    raise ToolError(f"Missing required argument --{name.replace('_', '-')}")
            producer = given.producer_id, given.producer_epoch, max(given.coordinator_epoch, 0)
        else:
            producer = _open_at(cluster, where, given.start_offset)
        producer_id, epoch, coordinator_epoch = producer
        spec = (
            f"AbortTransactionSpec(topicPartition={_text(where)}, producerId={producer_id}, producerEpoch={epoch}, "
            f"coordinatorEpoch={coordinator_epoch})"
        )
        marker = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "transaction_result": False,
            "coordinator_epoch": coordinator_epoch,
            "topics": [{"name": where[0], "partition_indexes": [where[1]]}],
        }
        with _failing(f"Failed to abort transaction {spec}"):
            answer = cluster.to(cluster.leader(where)).request(make("WriteTxnMarkers", markers=[marker]))
            for one in answer.markers:
                for topic in one.topics:
                    for part in topic.partitions:
                        check(part.error_code)


def _open_at(cluster: Cluster, where: TopicPartition, start_offset: int) -> tuple[int, int, int]:
    """(producer id, epoch, coordinator epoch) of the transaction that starts there. Raises ToolError."""
    with _failing(f"Failed to validate producer state for partition {_text(where)}"):
        found = _producers(cluster, [where], None)
    for _, one in found:
        if one.current_txn_start_offset == start_offset >= 0:
            return one.producer_id, one.producer_epoch, max(one.coordinator_epoch, 0)
    raise ToolError(
        f"Could not find any open transactions starting at offset {start_offset} on partition {_text(where)}"
    )


def find_hanging(given: argparse.Namespace) -> None:
    if given.topic is None and given.broker_id is None:
        raise ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if given.partition is not None and given.topic is None:
        raise ToolError("The --partition argument requires --topic to be provided")
    now_ms = _now_ms()
    with _connect(given) as cluster:
        partitions = _searched(cluster, given.topic, given.partition, given.broker_id)
        with _failing(f"Failed to describe producers for {len(partitions)} partitions on broker {given.broker_id}"):
            old = [
                (partition, one)
                for partition, one in _producers(cluster, partitions, given.broker_id)
                if one.current_txn_start_offset >= 0
                and now_ms - one.last_timestamp > given.max_transaction_timeout * MINUTE_MS
            ]
        alive = _alive(cluster, {one.producer_id for _, one in old})
    print_table(
        (
            *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp"),
            "Duration(min)",
        ),
        [
            (
                *(*partition, one.producer_id, one.producer_epoch, one.coordinator_epoch),
                *(one.current_txn_start_offset, one.last_timestamp, (now_ms - one.last_timestamp) // MINUTE_MS),
            )
            for partition, one in old
            if (one.producer_id, partition) not in alive
        ],
    )


def _searched(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [(topic, partition)]
    with _failing("Failed to list topics" if topic is None else "Failed to describe 1 topics"):
        found = []
        for one in cluster.metadata(None if topic is None else [topic]).topics:
            check(one.error_code)
            found += [
                (one.name, part.partition_index)
                for part in one.partitions
                if broker_id is None or broker_id in part.replica_nodes
            ]
        return found


def _alive(cluster: Cluster, producer_ids: set[int]) -> set[tuple[int, TopicPartition]]:
    """(producer id, partition) of what a coordinator is going to end."""
    if not producer_ids:
        return set()
    with _failing(f"Failed to list transactions for {len(producer_ids)} producers"):
        listed = _listed(cluster, producer_id_filters=sorted(producer_ids))
    found = set()
    with _failing(f"Failed to describe {len(listed)} transactions"):
        for _, one in listed:
            _, transaction = _described(cluster, one.transactional_id)
            if transaction.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                check(transaction.error_code)
                found |= {(one.producer_id, partition) for partition in _partitions_of(transaction)}
    return found


def force_terminate(given: argparse.Namespace) -> None:
    name = given.transactional_id
    request = make("InitProducerId", transactional_id=name, transaction_timeout_ms=1)
    with _connect(given) as cluster, _failing(f"Failed to force terminate transactionalId `{name}`"):

        def ask() -> None:
            check(cluster.coordinator(name, TRANSACTION).request(request).error_code)

        cluster.patiently(ask)


COMMANDS = {
    "list": list_transactions,
    "describe": describe,
    "describe-producers": describe_producers,
    "abort": abort,
    "find-hanging": find_hanging,
    "forceTerminateTransaction": force_terminate,
}


def main(words: Sequence[str]) -> int:
    """Run the tool. Returns the exit status; wrong words raise SystemExit."""
    return run_command(parser(), COMMANDS, words)


if __name__ == "__main__":
    leave(main)
