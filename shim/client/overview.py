"""What a cluster's Admin APIs tell of it now: nodes, features, topics with offsets, groups with lag, transactions.
Works with any Kafka cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from kafka_shim.client.cluster import PASSING, some_at_once
from kafka_shim.client.groups import list_groups, share_offsets
from kafka_shim.client.offsets import committed_offsets_of
from kafka_shim.client.reading import EARLIEST, LATEST, list_offsets
from kafka_shim.client.requests import NAMES, make
from kafka_shim.client.transactions import OPEN_STATES, describe_transaction, list_transactions
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.client.groups import Listed

# Partitions in one ListOffsets: a broker serves others between two requests, and one takes it 0.1 ms.
BATCH = 20
# Groups whose offsets one look asks for.
MOST_GROUPS = 200
# How long the starts of partitions are kept from one look to the next: they move when old records are removed.
STARTS_KEPT_S = 15.0
TRANSACTIONS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Node:
    """A broker. `is_controller` is what DescribeCluster names as such."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class Health:
    """Partitions that are not as they should be."""

    topics: int
    partitions: int
    leaderless: list[TopicPartition]
    under_replicated: list[TopicPartition]

    @property
    def is_healthy(self) -> bool:
        return not self.leaderless and not self.under_replicated


def nodes(cluster: Cluster) -> tuple[str, list[Node]]:
    """Returns (cluster id, its brokers, fenced ones too where the cluster tells)."""
    connection = cluster.any()
    version = connection.version_of(NAMES["DescribeCluster"])
    answer = connection.request(make("DescribeCluster", include_fenced_brokers=True), version)
    check(answer.error_code, answer.error_message)
    return answer.cluster_id, [
        Node(one.broker_id, one.host, one.port, one.rack, one.broker_id == answer.controller_id, one.is_fenced)
        for one in sorted(answer.brokers, key=lambda one: one.broker_id)
    ]


def features(cluster: Cluster) -> list[tuple[str, int, int, int]]:
    """Returns (name, finalized level, lowest and highest supported level) of each feature; level 0: not enabled."""
    connection = cluster.any()
    # Version 4 tells of features that may be at level 0 too.
    version = min(4, connection.ranges()[NAMES["ApiVersions"]][1])
    request = make("ApiVersions", client_software_name="kafka-shim", client_software_version="0")
    answer = connection.request(request, version)
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    return sorted(
        (one.name, finalized.get(one.name, 0), one.min_version, one.max_version) for one in answer.supported_features
    )


def health(cluster: Cluster) -> Health:
    """Returns what Metadata tells of all partitions."""
    topics = cluster.metadata().topics
    parts = [((topic.name, one.partition_index), one) for topic in topics for one in topic.partitions]
    return Health(
        topics=len(topics),
        partitions=len(parts),
        leaderless=[name for name, one in parts if one.leader_id < 0],
        under_replicated=[name for name, one in parts if len(one.isr_nodes) < len(one.replica_nodes)],
    )


@dataclass(slots=True)
class GroupLag:
    """A group and how many records it is behind, in all its partitions. None: it has no offsets, or nobody may know."""

    group_id: str
    kind: str
    state: str
    lag: int | None


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that is not ended."""

    transactional_id: str
    producer_id: int
    state: str
    started_ms: int
    timeout_ms: int
    partitions: list[TopicPartition]


@dataclass(slots=True)
class Overview:
    """One look at a cluster."""

    taken_s: float
    brokers: int
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    starts_taken_s: float = 0.0
    groups: list[GroupLag] = field(default_factory=list)
    groups_left_out: int = 0
    transactions: list[OpenTransaction] = field(default_factory=list)
    # What could not be asked, and why.
    refused: list[str] = field(default_factory=list)

    def records(self) -> dict[str, int]:
        """Returns how many offsets each topic has written, by the ends of its partitions."""
        found: dict[str, int] = {}
        for (topic, _), end in self.ends.items():
            found[topic] = found.get(topic, 0) + end
        return found


def look(cluster: Cluster, before: Overview | None = None) -> Overview:
    """Ask for everything once. What the user may not see is left out and named in `refused`. `before`: the last look,
    whose starts of partitions may still do."""
    metadata = cluster.metadata()
    found = Overview(time.monotonic(), len(metadata.brokers))
    parts = [
        (topic.name, one.partition_index)
        for topic in metadata.topics
        if not topic.error_code
        for one in topic.partitions
        if one.leader_id >= 0
    ]
    found.ends = _offsets(cluster, parts, LATEST)
    _look_at_starts(cluster, found, parts, before)
    _look_at_groups(cluster, found)
    try:
        found.transactions = open_transactions(cluster)
    except RequestError as error:
        found.refused.append(f"transactions: {error}")
    return found


def _look_at_starts(cluster: Cluster, found: Overview, parts: list[TopicPartition], before: Overview | None) -> None:
    kept: dict[TopicPartition, int] = {}
    found.starts_taken_s = found.taken_s
    if before is not None and found.taken_s - before.starts_taken_s < STARTS_KEPT_S:
        # A topic that was made again begins at 0.
        kept = {each: start for each, start in before.starts.items() if start <= found.ends.get(each, -1)}
        found.starts_taken_s = before.starts_taken_s
    found.starts = kept | _offsets(cluster, [each for each in parts if each not in kept], EARLIEST)


def _offsets(cluster: Cluster, parts: list[TopicPartition], when: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for some in some_at_once(parts, BATCH):
        try:
            found |= list_offsets(cluster, dict.fromkeys(some, when))
        except RequestError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            # One was deleted since the topics were asked for: the others are asked for by themselves.
            if len(some) > 1:
                for each in some:
                    found |= _offsets(cluster, [each], when)
    return found


def _look_at_groups(cluster: Cluster, found: Overview) -> None:
    try:
        listed = list_groups(cluster)
    except RequestError as error:
        found.refused.append(f"groups: {error}")
        return
    shown = listed[:MOST_GROUPS]
    committed = committed_offsets_of(cluster, [each.group_id for each in shown if each.kind != "share"])
    for each in shown:
        lag = None
        try:
            lag = _lag(cluster, each, committed.get(each.group_id), found.ends)
        except RequestError as error:
            found.refused.append(f"group {each.group_id}: {error}")
        found.groups.append(GroupLag(each.group_id, each.kind, each.state, lag))
    found.groups_left_out = max(0, len(listed) - MOST_GROUPS)


def _lag(
    cluster: Cluster,
    group: Listed,
    offsets: dict[TopicPartition, int] | RequestError | None,
    ends: dict[TopicPartition, int],
) -> int | None:
    if group.kind == "share":
        lags = [lag for _, lag in share_offsets(cluster, group.group_id).values() if lag >= 0]
        return sum(lags) if lags else None
    if isinstance(offsets, RequestError):
        raise offsets
    if offsets is None:
        return None
    lags = [max(0, ends[each] - at) for each, at in offsets.items() if each in ends]
    return sum(lags) if lags else None


def open_transactions(cluster: Cluster) -> list[OpenTransaction]:
    """Returns the transactions that are not ended, the oldest first."""
    found: list[OpenTransaction | None] = []
    names: dict[int, list[str]] = {}
    for node_id, listed in list_transactions(cluster, state_filters=OPEN_STATES)[0]:
        names.setdefault(node_id, []).append(listed.transactional_id)
    for node_id, of_node in names.items():
        for start in range(0, len(of_node), TRANSACTIONS_AT_ONCE):
            some = of_node[start : start + TRANSACTIONS_AT_ONCE]
            described = cluster.to(node_id).request(make("DescribeTransactions", transactional_ids=some))
            for one in described.transaction_states:
                # Of one whose coordinator is being moved the next one is asked.
                has_moved = one.error_code in PASSING
                found.append(_opened(describe_transaction(cluster, one.transactional_id)[1] if has_moved else one))
    return sorted((one for one in found if one is not None), key=lambda one: one.started_ms)


def _opened(one: Any) -> OpenTransaction | None:
    if one.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        check(one.error_code, subject=one.transactional_id)
    if one.error_code or one.transaction_start_time_ms < 0:
        return None  # it has ended meanwhile
    return OpenTransaction(
        one.transactional_id,
        one.producer_id,
        one.transaction_state,
        one.transaction_start_time_ms,
        one.transaction_timeout_ms,
        [(topic.topic, partition) for topic in one.topics for partition in topic.partitions],
    )
