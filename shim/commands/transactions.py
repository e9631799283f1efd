"""`kafka-shim transactions`: list, describe, find hanging, abort, force-terminate, explain. The tables are those of
Kafka's tool. All commands but `explain` work on any broker.
"""

from __future__ import annotations

import sys
import time

import click

from kafka_shim.commands.options import (
    bootstrap_option,
    cluster_of,
    connected,
    json_option,
    look_up_coordinators,
    show_rows,
    warn_of_unknown,
)
from kafka_shim.commands.times import shown_time
from kafka_shim.errors import ErrorCode
from kafka_shim.own_tags import EXPLAIN_TAG
from kafka_shim.wire_client import Connection, RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition

TRANSACTION = 1
# States in which partitions wait for the markers of a transaction.
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


@click.group(name="transactions", help="List, describe, find hanging, abort, force-terminate, explain transactions.")
def group() -> None:
    pass


@group.command(name="list", help="Print all transactional ids.")
@bootstrap_option
@click.option("--duration-filter", type=int, default=-1, metavar="MS", help="only those that started longer ago")
@click.option("--transactional-id-pattern", default=None, metavar="RE2", help="only ids that match as a whole")
@click.option("--state", "states", multiple=True, help="only in this state, as Ongoing or CompleteCommit; repeatable")
@json_option
def list_transactions(
    bootstrap_server: str, duration_filter: int, transactional_id_pattern: str | None, states: tuple[str, ...]
) -> None:
    from kafka_shim.protocol.messages.list_transactions_request import ListTransactionsRequest
    from kafka_shim.txn.transaction import STATES_BY_NAME

    # Unlike those of groups, brokers take them in Kafka's case alone.
    names = {name.lower(): name for name in STATES_BY_NAME}
    with connected(bootstrap_server) as connection:
        node_id = _node_id(connection)
        answer = connection.request(
            ListTransactionsRequest(
                state_filters=[names.get(state.lower(), state) for state in states],
                duration_filter=duration_filter,
                transactional_id_pattern=transactional_id_pattern,
            )
        )
        is_of_pattern = answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        check(answer.error_code, subject=str(transactional_id_pattern) if is_of_pattern else "")
        warn_of_unknown("state", answer.unknown_state_filters, STATES_BY_NAME)
        _print_table(
            ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
            [
                (txn.transactional_id, node_id, txn.producer_id, txn.transaction_state)
                for txn in answer.transaction_states
            ],
        )


@group.command(help="Print the state of transactional ids.")
@click.argument("transactional_ids", nargs=-1, required=True)
@bootstrap_option
@json_option
def describe(transactional_ids: tuple[str, ...], bootstrap_server: str) -> None:
    with connected(bootstrap_server) as connection:
        node_id = _node_id(connection)
        now_ms = time.time_ns() // 1_000_000
        rows = []
        for txn in _describe(connection, transactional_ids):
            check(txn.error_code, subject=txn.transactional_id)
            started = txn.transaction_start_time_ms
            rows.append(
                (
                    node_id,
                    txn.transactional_id,
                    txn.producer_id,
                    txn.producer_epoch,
                    txn.transaction_state,
                    txn.transaction_timeout_ms,
                    started if started >= 0 else "None",
                    now_ms - started if started >= 0 else "None",
                    ",".join(f"{topic.topic}-{partition}" for topic in txn.topics for partition in topic.partitions),
                )
            )
        _print_table(
            (
                "CoordinatorId",
                "TransactionalId",
                "ProducerId",
                "ProducerEpoch",
                "TransactionState",
                "TransactionTimeoutMs",
                "CurrentTransactionStartTimeMs",
                "TransactionDurationMs",
                "TopicPartitions",
            ),
            rows,
        )


@group.command(name="describe-producers", help="Print the producers that a partition remembers.")
@bootstrap_option
@click.option("--topic", required=True)
@click.option("--partition", type=int, required=True)
@json_option
def describe_producers(bootstrap_server: str, topic: str, partition: int) -> None:
    with connected(bootstrap_server) as connection:
        rows = [
            (
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.last_sequence,
                producer.last_timestamp,
                producer.current_txn_start_offset if producer.current_txn_start_offset >= 0 else "None",
            )
            for _, _, producer in _producers(connection, {topic: [partition]})
        ]
        _print_table(
            (
                "ProducerId",
                "ProducerEpoch",
                "LatestCoordinatorEpoch",
                "LastSequence",
                "LastTimestamp",
                "CurrentTransactionStartOffset",
            ),
            rows,
        )


@group.command(name="find-hanging", help="Print open transactions that no coordinator will ever end.")
@bootstrap_option
@click.option("--topic", default=None, help="only there; default: all topics")
@click.option("--partition", type=int, default=None, help="only this one of --topic")
@click.option("--max-transaction-timeout", type=int, default=15, show_default=True, metavar="MINUTES")
@json_option
def find_hanging(bootstrap_server: str, topic: str | None, partition: int | None, max_transaction_timeout: int) -> None:
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    with connected(bootstrap_server) as connection:
        now_ms = time.time_ns() // 1_000_000
        partitions = {topic: [partition]} if topic is not None and partition is not None else None
        old = [
            (name, index, producer)
            for name, index, producer in _producers(connection, partitions or _partitions(connection, topic))
            if producer.current_txn_start_offset >= 0
            and producer.last_timestamp < now_ms - max_transaction_timeout * 60_000
        ]
        alive = _ongoing(connection, {producer.producer_id for _, _, producer in old})
        _print_table(
            (
                "Topic",
                "Partition",
                "ProducerId",
                "ProducerEpoch",
                "CoordinatorEpoch",
                "StartOffset",
                "LastTimestamp",
                "Duration(min)",
            ),
            [
                (
                    name,
                    index,
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.coordinator_epoch,
                    producer.current_txn_start_offset,
                    producer.last_timestamp,
                    (now_ms - producer.last_timestamp) // 60_000,
                )
                for name, index, producer in old
                if (producer.producer_id, name, index) not in alive
            ],
        )


@group.command(help="Write an abort marker for a hanging transaction.")
@bootstrap_option
@click.option("--topic", required=True)
@click.option("--partition", type=int, required=True)
@click.option("--start-offset", type=int, required=True, help="where the transaction starts in the partition")
def abort(bootstrap_server: str, topic: str, partition: int, start_offset: int) -> None:
    from kafka_shim.protocol.messages.write_txn_markers_request import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
    )

    with connected(bootstrap_server) as connection:
        for _, _, producer in _producers(connection, {topic: [partition]}):
            if producer.current_txn_start_offset == start_offset:
                break
        else:
            click.echo(f"error: no open transaction starts at {topic}-{partition}:{start_offset}", err=True)
            sys.exit(1)
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            coordinator_epoch=max(producer.coordinator_epoch, 0),
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        answer = connection.request(WriteTxnMarkersRequest(markers=[marker]))
        for result in answer.markers:
            for named in result.topics:
                for part in named.partitions:
                    check(part.error_code, subject=f"{topic}-{partition}")
        click.echo(f"Aborted what producer id {producer.producer_id} had open in {topic}-{partition}.")


@group.command(
    name="force-terminate",
    help="End whatever the transactional id has open, and fence its producer. Also lets go of a transaction that "
    "another program's marker has overtaken.",
)
@click.argument("transactional_id")
@bootstrap_option
def force_terminate(transactional_id: str, bootstrap_server: str) -> None:
    from kafka_shim.client.transactions import force_terminate as end

    with cluster_of(bootstrap_server) as cluster:
        end(cluster, transactional_id)
    click.echo(f"Ended what {transactional_id} had open, and fenced its producer.")


@group.command(
    help="Print what a transactional id went through, why its requests were refused, and what its open transaction "
    "holds back."
)
@click.argument("transactional_id")
@bootstrap_option
@json_option
def explain(transactional_id: str, bootstrap_server: str) -> None:
    with cluster_of(bootstrap_server) as cluster:
        (txn,) = _describe(cluster.any(), [transactional_id], explain=True)
        text = (txn.unknown_tags or {}).get(EXPLAIN_TAG)
        if text is None:
            raise WireClientError("this broker keeps no history: transactions describe works on any")
        if not text:
            state = "no coordinator knows it (transactions list shows those that are known)"
            if not txn.error_code:
                state = f"it is {txn.transaction_state}"
            click.echo(f"nothing has happened to {transactional_id} since the broker's start; {state}", err=True)
        held = {(topic.topic, partition) for topic in txn.topics for partition in topic.partitions}
        lines = [_with_time(line) for line in text.decode().splitlines()]
        if held and txn.transaction_state in OPEN_STATES:
            lines += [("", line) for line in held_back(cluster, held)]
        show_rows(
            ("Time", "Event"),
            [(when or "-", event) for when, event in lines],
            lambda: click.echo("".join(f"{when} {event}".lstrip() + "\n" for when, event in lines), nl=False),
        )


def _with_time(line: str) -> tuple[str, str]:
    """The time of a line of the history, and the rest of it."""
    number, _, event = line.partition(" ")
    return (shown_time(int(number)), event) if number.isdecimal() else ("", line)


def held_back(cluster: Cluster, partitions: set[TopicPartition]) -> list[str]:
    """What readers with read_committed do not get of these partitions, in words: a line for each of them. A broker does
    not know which groups read so: those that stand where such a reader must stop are named."""
    from kafka_shim.client.groups import list_groups
    from kafka_shim.client.offsets import committed_offsets_of
    from kafka_shim.client.reading import LATEST, list_offsets

    wanted = dict.fromkeys(sorted(partitions), LATEST)
    stable = list_offsets(cluster, wanted, read_committed=True)
    ends = list_offsets(cluster, wanted)
    # A group whose offset is not known stands nowhere.
    of_groups = committed_offsets_of(cluster, [one.group_id for one in list_groups(cluster)])
    groups = {name: found for name, found in of_groups.items() if not isinstance(found, RequestError)}
    lines = []
    for partition in wanted:
        offset, count = stable[partition], ends[partition] - stable[partition]
        if not count:
            continue
        waiting = [name for name, committed in sorted(groups.items()) if committed.get(partition) == offset]
        who = f"; waiting there, if they read so: {', '.join(waiting)}" if waiting else ""
        name = f"{partition[0]}-{partition[1]}"
        follow = f"{count} offset{'s follow' if count > 1 else ' follows'} (records and markers)"
        lines.append(f"holds back {name}: read_committed ends at offset {offset}, {follow}{who}")
    return lines


def _describe(connection: Connection, transactional_ids: Iterable[str], explain: bool = False) -> list[Any]:
    from kafka_shim.protocol.messages.describe_transactions_request import DescribeTransactionsRequest

    names = list(transactional_ids)
    look_up_coordinators(connection, TRANSACTION, names)
    request = DescribeTransactionsRequest(transactional_ids=names)
    if explain:
        request.unknown_tags = {EXPLAIN_TAG: b""}
    return list(connection.request(request).transaction_states)


def _metadata(connection: Connection, topic: str | None) -> Any:
    from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

    topics = None if topic is None else [MetadataRequestTopic(name=topic)]
    return connection.request(MetadataRequest(topics=topics, allow_auto_topic_creation=False))


def _node_id(connection: Connection) -> int:
    return int(_metadata(connection, None).controller_id)


def _partitions(connection: Connection, topic: str | None) -> dict[str, list[int]]:
    found = {}
    for known in _metadata(connection, topic).topics:
        check(known.error_code, subject=known.name)
        found[known.name] = sorted(part.partition_index for part in known.partitions)
    return found


def _producers(connection: Connection, partitions: dict[str, list[int]]) -> list[tuple[str, int, Any]]:
    """Returns (topic, partition, producer) of every producer with state in these partitions."""
    from kafka_shim.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest

    topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in partitions.items()]
    found = []
    for topic in connection.request(DescribeProducersRequest(topics=topics)).topics:
        for part in topic.partitions:
            check(part.error_code, part.error_message, f"{topic.name}-{part.partition_index}")
            found += [(topic.name, part.partition_index, producer) for producer in part.active_producers]
    return found


def _ongoing(connection: Connection, producer_ids: set[int]) -> set[tuple[int, str, int]]:
    """Returns (producer id, topic, partition) of every partition in an open transaction that a coordinator knows."""
    if not producer_ids:
        return set()
    from kafka_shim.protocol.messages.list_transactions_request import ListTransactionsRequest

    listed = connection.request(ListTransactionsRequest(producer_id_filters=sorted(producer_ids)))
    check(listed.error_code)
    names = [txn.transactional_id for txn in listed.transaction_states]
    return {
        (txn.producer_id, topic.topic, partition)
        for txn in (_describe(connection, names) if names else ())
        for topic in txn.topics
        for partition in topic.partitions
    }


def _print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    show_rows(headers, rows, lambda: _print_texts(headers, rows))


def _print_texts(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    table = [headers, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(headers))]
    for row in table:
        click.echo("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))
