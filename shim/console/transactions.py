"""`/api/transactions`: transactional ids; `/api/transaction`: one, with what it holds back and what it went through;
`/api/held`: partitions whose committed readers wait, and for whom; `/api/producers`: those that a topic remembers."""

from __future__ import annotations

from kafka_shim.client.cluster import TRANSACTION
from kafka_shim.client.reading import LATEST
from kafka_shim.client.requests import make
from kafka_shim.console.cluster import COMMITTED, name_of
from kafka_shim.own_tags import EXPLAIN_TAG
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.console.cluster import Cluster, TopicPartition
    from kafka_shim.console.parameters import Query

ROWS, MOST_ROWS = 50, 200
MOST_PARTITIONS, MOST_PRODUCERS = 500, 1000
# The partitions that `held` asks for at most, and those whose producers it asks for.
MOST_ASKED, MOST_HELD = 20_000, 100


def listed(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return a page of transactional ids whose names hold `filter`. Raises BadRequestError, RequestError,
    WireClientError."""
    wanted = query.text("filter", "").lower()
    state = query.text("state", "")
    start, most = query.number("start", 0, high=1 << 31), query.number("limit", ROWS, 1, MOST_ROWS)
    found = []
    for node in cluster.nodes():
        answer = cluster.ask(make("ListTransactions", state_filters=[state] if state else []), node=node)
        check(answer.error_code)
        found += [(one.transactional_id, node) for one in answer.transaction_states]
    found = sorted(one for one in found if wanted in one[0].lower())
    part = found[start : start + most]
    by_node: dict[int, list[str]] = {}
    for name, node in part:
        by_node.setdefault(node, []).append(name)
    rows = []
    for node, names in by_node.items():
        answer = cluster.ask(make("DescribeTransactions", transactional_ids=names), node=node)
        rows += [_row(one, node) for one in answer.transaction_states]
    return {"total": len(found), "start": start, "transactions": sorted(rows, key=lambda row: str(row["name"]))}


def described(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return one transactional id. Raises BadRequestError, RequestError, WireClientError."""
    name = query.text("name")
    node = cluster.coordinator(TRANSACTION, name)
    request = make("DescribeTransactions", transactional_ids=[name])
    request.unknown_tags = {EXPLAIN_TAG: b""}
    (found,) = cluster.ask(request, node=node).transaction_states
    check(found.error_code, subject=name)
    partitions = [(topic.topic, number) for topic in found.topics for number in topic.partitions][:MOST_PARTITIONS]
    history = (found.unknown_tags or {}).get(EXPLAIN_TAG)
    return {
        **_row(found, node),
        "held": _held(cluster, partitions, found.producer_id),
        # None: the broker keeps none.
        "explain": None if history is None else bytes(history).decode(errors="replace"),
    }


def held(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return partitions whose last stable offset is below the high watermark, and the transactions that are open there,
    with their transactional ids where a coordinator knows them: of others nobody will write a marker. Raises like
    `described`."""
    topics = cluster.metadata(None).topics
    leaders = {(topic.name, one.partition_index): one.leader_id for topic in topics for one in topic.partitions}
    asked = dict(list(leaders.items())[:MOST_ASKED])
    high = cluster.offsets(dict.fromkeys(asked, LATEST), asked)
    written = [each for each, offset in high.items() if offset > 0]
    stable = cluster.offsets(dict.fromkeys(written, LATEST), asked, COMMITTED)
    behind = sorted(
        (each for each, offset in high.items() if stable.get(each, offset) < offset),
        key=lambda each: (stable[each] - high[each], each),
    )
    rows = []
    names = _names_of_open(cluster)
    producers = _producers(cluster, behind[:MOST_HELD], leaders)
    for topic, partition in behind[:MOST_HELD]:
        rows.append(
            {
                "topic": topic,
                "partition": partition,
                "lastStable": stable[topic, partition],
                "latest": high[topic, partition],
                "open": [
                    {
                        "producer": one.producer_id,
                        "epoch": one.producer_epoch,
                        "start": one.current_txn_start_offset,
                        "since": one.last_timestamp,
                        "name": names.get(one.producer_id, ""),
                    }
                    for one in sorted(
                        producers.get((topic, partition), ()), key=lambda one: int(one.current_txn_start_offset)
                    )
                    if one.current_txn_start_offset >= 0
                ],
            }
        )
    return {"partitions": rows, "count": len(behind), "asked": len(asked), "known": len(leaders)}


def producers(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the producers that a topic's partitions remember. Raises like `described`."""
    topic = query.text("topic")
    leaders = {(topic, number): leader for number, leader in cluster.leaders(topic).items()}
    chosen = list(leaders)[:MOST_PARTITIONS]
    rows = [
        {
            "partition": partition,
            "producer": one.producer_id,
            "epoch": one.producer_epoch,
            "sequence": one.last_sequence,
            "last": one.last_timestamp,
            "coordinatorEpoch": one.coordinator_epoch,
            "start": one.current_txn_start_offset,
        }
        for (_, partition), found in _producers(cluster, chosen, leaders).items()
        for one in found
    ]
    return {"producers": rows[:MOST_PRODUCERS], "count": len(rows)}


def _row(found: Any, node: int) -> dict[str, Any]:
    partitions = [f"{topic.topic}-{number}" for topic in found.topics for number in topic.partitions]
    return {
        "name": found.transactional_id,
        "coordinator": node,
        "producer": found.producer_id,
        "epoch": found.producer_epoch,
        "state": found.transaction_state,
        "timeout": found.transaction_timeout_ms,
        "start": found.transaction_start_time_ms,
        "partitions": partitions[:MOST_PARTITIONS],
        "error": name_of(found.error_code),
    }


def _held(cluster: Cluster, partitions: list[TopicPartition], producer_id: int) -> list[dict[str, Any]]:
    """Return what a transaction holds back in each of its partitions."""
    if not partitions:
        return []
    leaders = {
        (topic.name, one.partition_index): one.leader_id
        for topic in cluster.metadata({name for name, _ in partitions}).topics
        for one in topic.partitions
    }
    asked = {each: leaders.get(each, -1) for each in partitions}
    high = cluster.offsets(dict.fromkeys(asked, LATEST), asked)
    written = [each for each, offset in high.items() if offset > 0]
    stable = cluster.offsets(dict.fromkeys(written, LATEST), asked, COMMITTED)
    remembered = _producers(cluster, partitions, asked)
    rows = []
    for each in partitions:
        starts = [one.current_txn_start_offset for one in remembered.get(each, ()) if one.producer_id == producer_id]
        start = starts[0] if starts else -1
        rows.append(
            {
                "topic": each[0],
                "partition": each[1],
                "start": start if start >= 0 else None,
                "lastStable": stable.get(each),
                "latest": high.get(each),
                # The oldest open transaction of a partition is the one that the others wait for.
                "isFirst": start >= 0 and stable.get(each) == start,
            }
        )
    return rows


def _producers(
    cluster: Cluster, partitions: list[TopicPartition], leaders: dict[TopicPartition, int]
) -> dict[TopicPartition, list[Any]]:
    """Return the producers that partitions remember; those that the person may not describe are left out."""
    found: dict[TopicPartition, list[Any]] = {}
    for node in sorted({leaders.get(each, -1) for each in partitions} - {-1}):
        topics: dict[str, list[int]] = {}
        for topic, partition in partitions:
            if leaders.get((topic, partition)) == node:
                topics.setdefault(topic, []).append(partition)
        asked = [{"name": name, "partition_indexes": numbers} for name, numbers in topics.items()]
        for topic_found in cluster.ask(make("DescribeProducers", topics=asked), node=node).topics:
            for one in topic_found.partitions:
                if not one.error_code:
                    found[topic_found.name, one.partition_index] = list(one.active_producers)
    return found


def _names_of_open(cluster: Cluster) -> dict[int, str]:
    """Return producer id -> transactional id of the transactions that coordinators know."""
    found = {}
    for node in cluster.nodes():
        answer = cluster.ask(make("ListTransactions"), node=node)
        check(answer.error_code)
        found.update({one.producer_id: one.transactional_id for one in answer.transaction_states})
    return found
