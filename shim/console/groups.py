"""`/api/groups`: groups of all kinds, a page of them with their lag; `/api/group`: one with members and offsets."""

from __future__ import annotations

from kafka_shim.client import groups as client_groups
from kafka_shim.client.cluster import GROUP, some_at_once
from kafka_shim.client.offsets import committed_offsets
from kafka_shim.client.reading import LATEST
from kafka_shim.client.requests import make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from kafka_shim.client.groups import Listed
    from kafka_shim.console.cluster import Cluster, TopicPartition
    from kafka_shim.console.parameters import Query

    Offsets = dict[TopicPartition, int]

ROWS, MOST_ROWS = 50, 200
MOST_OFFSETS, MOST_MEMBERS = 2000, 500
# Groups of one request: with six offsets each it takes a broker 0.1 ms.
ASKED_AT_ONCE = 5
TOPICS_AT_ONCE = 50
# The last version that names topics.
OFFSET_FETCH_VERSION = 9


def listed(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return a page of the groups whose names hold `filter`. Raises BadRequestError, RequestError, WireClientError."""
    wanted = query.text("filter", "").lower()
    kind = query.choice("kind", ("", *client_groups.GROUP_TYPES), "")
    start, most = query.number("start", 0, high=1 << 31), query.number("limit", ROWS, 1, MOST_ROWS)
    with cluster.client() as client:
        found = client_groups.list_groups(client, kinds=[kind] if kind else [])
    found = [one for one in found if wanted in one.group_id.lower()]
    part = found[start : start + most]
    lags = _lags(cluster, part)
    return {
        "total": len(found),
        "start": start,
        "groups": [
            {
                "name": one.group_id,
                "kind": one.kind,
                "state": one.state,
                "protocol": one.protocol,
                "lag": lags.get(one.group_id, (None, 0))[0],
                "partitions": lags.get(one.group_id, (None, 0))[1],
            }
            for one in part
        ],
    }


def described(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return one group. Raises BadRequestError, RequestError, WireClientError."""
    name = query.text("name")
    with cluster.client() as client:
        group = client_groups.describe_group(client, name)
        shares = client_groups.share_offsets(client, name) if group.kind == "share" else {}
        committed = {} if group.kind == "share" else committed_offsets(client, name)
    holders = {each: member.member_id for member in group.members for each in member.held}
    if group.kind == "share":
        holders = {}  # of a share group each member may have records of each partition
        known: dict[TopicPartition, tuple[int | None, int | None]] = {
            each: (offset if offset >= 0 else None, lag if lag >= 0 else None) for each, (offset, lag) in shares.items()
        }
        ends = {each: offset + lag for each, (offset, lag) in known.items() if offset is not None and lag is not None}
    else:
        ends = _end_offsets(cluster, committed.keys() | holders.keys())
        known = {
            each: (committed.get(each), _lag(ends.get(each), committed.get(each)))
            for each in committed.keys() | holders.keys()
        }
    chosen = sorted(known)
    return {
        "name": name,
        "kind": group.kind,
        "state": group.state,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "lag": sum(lag for _, lag in known.values() if lag is not None),
        "partitionCount": len(chosen),
        "memberCount": len(group.members),
        "offsets": [
            {
                "topic": topic,
                "partition": partition,
                "committed": known[topic, partition][0],
                "end": ends.get((topic, partition)),
                "lag": known[topic, partition][1],
                "member": holders.get((topic, partition), ""),
            }
            for topic, partition in chosen[:MOST_OFFSETS]
        ],
        "members": [
            {
                "id": one.member_id,
                "instance": one.instance_id,
                "client": one.client_id,
                "host": one.host,
                "epoch": one.epoch,
                "partitions": len(one.held),
            }
            for one in sorted(group.members, key=lambda one: (one.client_id, one.member_id))[:MOST_MEMBERS]
        ],
    }


def _lags(cluster: Cluster, groups: list[Listed]) -> dict[str, tuple[int, int]]:
    """Return (lag, partitions) of the groups that have offsets. Of one that the person may not describe nothing is
    said."""
    by_node: dict[int, list[str]] = {}
    shares: dict[int, list[str]] = {}
    nodes = cluster.coordinators(GROUP, [one.group_id for one in groups])
    for one in groups:
        if one.group_id in nodes:
            (shares if one.kind == "share" else by_node).setdefault(nodes[one.group_id], []).append(one.group_id)
    committed: dict[str, Offsets] = {}
    for node, names in _some_at_once(by_node):
        asked = [{"group_id": name, "topics": None} for name in names]
        answer = cluster.ask(make("OffsetFetch", groups=asked, require_stable=False), OFFSET_FETCH_VERSION, node)
        for group in answer.groups:
            if not group.error_code:
                committed[group.group_id] = {
                    (topic.name, each.partition_index): each.committed_offset
                    for topic in group.topics
                    for each in topic.partitions
                    if each.committed_offset >= 0
                }
    ends = _end_offsets(cluster, {each for offsets in committed.values() for each in offsets})
    found = {
        name: (sum(_lag(ends.get(each), offset) or 0 for each, offset in offsets.items()), len(offsets))
        for name, offsets in committed.items()
    }
    for node, names in _some_at_once(shares):
        asked = [{"group_id": name, "topics": None} for name in names]
        for group in cluster.ask(make("DescribeShareGroupOffsets", groups=asked), node=node).groups:
            if not group.error_code:
                lags = [each.lag for topic in group.topics for each in topic.partitions if each.lag >= 0]
                found[group.group_id] = sum(lags), len(lags)
    return found


def _lag(end: int | None, committed: int | None) -> int | None:
    """A group may have committed beyond the end, as of a topic that was made anew: it is not behind there, and no other
    partition is less so."""
    return None if end is None or committed is None else max(0, end - committed)


def _some_at_once(by_node: dict[int, list[str]]) -> Iterator[tuple[int, Sequence[str]]]:
    """A broker answers other clients between two requests."""
    for node, names in by_node.items():
        for some in some_at_once(names, ASKED_AT_ONCE):
            yield node, some


def _end_offsets(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Offsets:
    """Return the high watermarks of partitions that have a leader."""
    wanted = set(partitions)
    if not wanted:
        return {}
    kept = cluster.kept_topics()
    if kept is None:
        names = sorted({name for name, _ in wanted})
        topics = [topic for some in some_at_once(names, TOPICS_AT_ONCE) for topic in cluster.metadata(some).topics]
    else:
        topics = kept.topics
    leaders = {(topic.name, one.partition_index): one.leader_id for topic in topics for one in topic.partitions}
    known = {each: leader for each, leader in leaders.items() if each in wanted}
    return cluster.offsets(dict.fromkeys(known, LATEST), known)
