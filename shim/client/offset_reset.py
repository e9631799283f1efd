"""Moving the committed offsets of a group without members (Kafka: ConsumerGroupCommand, reset-offsets)."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_shim.client.groups import describe_group
from kafka_shim.client.offsets import committed_offsets
from kafka_shim.client.reading import EARLIEST, LATEST, list_offsets
from kafka_shim.errors import ErrorCode
from kafka_shim.wire_client import RequestError, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_shim.client.cluster import Cluster, TopicPartition

    Offsets = Mapping[TopicPartition, int]

PLACES = ("earliest", "latest", "current")


class ResetError(WireClientError):
    """The offsets cannot be reset as things are."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where offsets go: one of PLACES, an offset, so many records on, or the first record from a time on."""

    place: str | None = None
    offset: int | None = None
    shift_by: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's offset: `committed` is None if the group has none; `offset` is the nearest to `wanted` that the
    log has."""

    topic: str
    partition: int
    committed: int | None
    wanted: int
    offset: int


def plan_reset(
    cluster: Cluster,
    group: str,
    target: Target | Offsets,
    partitions: Iterable[TopicPartition] = (),
) -> list[Move]:
    """Return where the group's offsets would go: those of these partitions, or else of all that it has committed, or of
    those that `target` names with an offset each. Changes nothing. Raises ResetError, and RequestError for a
    partition that is not there."""
    check_inactive(cluster, group)
    committed = committed_offsets(cluster, group)
    chosen = sorted(target) if not isinstance(target, Target) else list(partitions) or sorted(committed)
    if not chosen:
        raise ResetError(f"group {group} has no offsets: name topics whose offsets it shall have")
    earliest = list_offsets(cluster, dict.fromkeys(chosen, EARLIEST))
    latest = list_offsets(cluster, dict.fromkeys(chosen, LATEST))
    wanted = _wanted(cluster, chosen, committed, earliest, latest, target) if isinstance(target, Target) else target
    return [
        Move(*each, committed.get(each), wanted[each], min(max(wanted[each], earliest[each]), latest[each]))
        for each in chosen
    ]


def check_inactive(cluster: Cluster, group: str) -> None:
    """Raises ResetError unless the group has no members, and offsets that OffsetCommit changes."""
    try:
        found = describe_group(cluster, group)
    except RequestError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # it is made by the commit
    if found.kind in ("share", "streams"):
        tool = {"share": "kafka-share-groups.sh", "streams": "kafka-streams-groups.sh"}[found.kind]
        raise ResetError(f"{group} is a {found.kind} group: its offsets are reset by Kafka's {tool}")
    if found.state != "Empty":
        raise ResetError(
            f"group {group} is {found.state}: its offsets can be reset only while it is inactive; stop its members "
            "first"
        )


def _wanted(
    cluster: Cluster,
    partitions: list[TopicPartition],
    committed: Offsets,
    earliest: Offsets,
    latest: Offsets,
    target: Target,
) -> Offsets:
    if target.place == "earliest":
        return earliest
    if target.place == "latest":
        return latest
    if target.offset is not None:
        return dict.fromkeys(partitions, target.offset)
    if target.timestamp_ms is not None:
        found = list_offsets(cluster, dict.fromkeys(partitions, target.timestamp_ms))
        return {each: found[each] if found[each] >= 0 else latest[each] for each in partitions}
    if target.shift_by is not None:
        missing = next((each for each in partitions if each not in committed), None)
        if missing is not None:
            topic, partition = missing
            raise ResetError(f"there is no offset of {topic}-{partition} that could be shifted")
        return {each: committed[each] + target.shift_by for each in partitions}
    return {each: committed.get(each, latest[each]) for each in partitions}
