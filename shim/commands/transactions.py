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
    json_option,
    show_rows,
    warn_of_unknown,
)
from kafka_shim.commands.times import shown_time
from kafka_shim.own_tags import EXPLAIN_TAG
from kafka_shim.wire_client import RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.client.cluster import Cluster, TopicPartition


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
    from kafka_shim.client.transactions import list_transactions as ask
    from kafka_shim.txn.transaction import STATES_BY_NAME

    # Unlike those of groups, brokers take them in Kafka's case alone.
    names = {name.lower(): name for name in STATES_BY_NAME}
    with cluster_of(bootstrap_server) as cluster:
        found, unknown = ask(
            cluster,
            state_filters=[names.get(state.lower(), state) for state in states],
            duration_filter=duration_filter,
            transactional_id_pattern=transactional_id_pattern,
        )
        warn_of_unknown("state", unknown, STATES_BY_NAME)
        _print_table(
            ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
            [(txn.transactional_id, node_id, txn.producer_id, txn.transaction_state) for node_id, txn in found],
        )


@group.command(help="Print the state of transactional ids.")
@click.argument("transactional_ids", nargs=-1, required=True)
@bootstrap_option
@json_option
def describe(transactional_ids: tuple[str, ...], bootstrap_server: str) -> None:
    from kafka_shim.client.transactions import describe_transaction

    with cluster_of(bootstrap_server) as cluster:
        now_ms = time.time_ns() // 1_000_000
        rows = []
        for name in transactional_ids:
            node_id, txn = describe_transaction(cluster, name)
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
                    started if started >= 0 else None,
                    now_ms - started if started >= 0 else None,
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
    from kafka_shim.client.transactions import producers_of

    with cluster_of(bootstrap_server) as cluster:
        rows = [
            (
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.last_sequence,
                producer.last_timestamp,
                producer.current_txn_start_offset if producer.current_txn_start_offset >= 0 else None,
            )
            for _, _, producer in producers_of(cluster, [(topic, partition)])
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
    from kafka_shim.client.transactions import producers_of

    with cluster_of(bootstrap_server) as cluster:
        now_ms = time.time_ns() // 1_000_000
        wanted = _partitions(cluster, topic) if topic is None or partition is None else [(topic, partition)]
        old = [
            (name, index, producer)
            for name, index, producer in producers_of(cluster, wanted)
            if producer.current_txn_start_offset >= 0
            and producer.last_timestamp < now_ms - max_transaction_timeout * 60_000
        ]
        alive = _ongoing(cluster, {producer.producer_id for _, _, producer in old})
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
    from kafka_shim.client.transactions import abort as end
    from kafka_shim.client.transactions import producers_of

    with cluster_of(bootstrap_server) as cluster:
        for _, _, producer in producers_of(cluster, [(topic, partition)]):
            if producer.current_txn_start_offset == start_offset:
                break
        else:
            click.echo(f"error: no open transaction starts at {topic}-{partition}:{start_offset}", err=True)
            sys.exit(1)
        end(cluster, (topic, partition), producer)
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
    from kafka_shim.client.transactions import OPEN_STATES, describe_transaction

    with cluster_of(bootstrap_server) as cluster:
        _, txn = describe_transaction(cluster, transactional_id, {EXPLAIN_TAG: b""})
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
            [(when or None, event) for when, event in lines],
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


def _partitions(cluster: Cluster, topic: str | None) -> list[TopicPartition]:
    found = []
    for known in cluster.metadata(None if topic is None else [topic]).topics:
        check(known.error_code, subject=known.name)
        found += [(known.name, part.partition_index) for part in known.partitions]
    return found


def _ongoing(cluster: Cluster, producer_ids: set[int]) -> set[tuple[int, str, int]]:
    """Returns (producer id, topic, partition) of every partition in an open transaction that a coordinator knows."""
    from kafka_shim.client.transactions import describe_transaction, list_transactions

    if not producer_ids:
        return set()
    listed, _ = list_transactions(cluster, producer_id_filters=sorted(producer_ids))
    described = [describe_transaction(cluster, one.transactional_id)[1] for _, one in listed]
    return {
        (txn.producer_id, topic.topic, partition)
        for txn in described
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
