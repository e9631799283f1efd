"""The server-side assignors `uniform` and `range` (KIP-848), which decide which member gets which partition.

They are pure and deterministic. The results equal those of Apache Kafka's classes for the same input, including the
order in which Java iterates over its maps. `uniform` spreads partitions evenly and moves as few as possible. `range`
gives each member a contiguous range of each topic's partitions, the same for topics with the same partition count, so
that they can be joined. Source: `org.apache.kafka.coordinator.group.assignor`.
"""

from __future__ import annotations

from collections import Counter

from kafka_shim.java_order import copied_table_size, order_ints, order_uuids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.group.consumer_member import Partitions

    Assignor = Callable[["GroupSpec"], dict[str, Partitions]]


class MemberSpec:
    """An assignor's view of a member. `topic_ids`: existing subscribed topics only, as keys of a dict for their order;
    `assignment`: the member's current target."""

    __slots__ = ("assignment", "instance_id", "topic_ids")

    def __init__(self, topic_ids: dict[bytes, None], instance_id: str | None, assignment: Partitions) -> None:
        self.topic_ids = topic_ids
        self.instance_id = instance_id
        self.assignment = assignment


class GroupSpec:
    """An assignor's view of a group: members by id in Java's order, whether all subscribe to the same topics, which
    partitions are in some member's current target, and the partition count of each topic."""

    __slots__ = ("assigned", "is_homogeneous", "members", "partition_counts")

    def __init__(
        self,
        members: dict[str, MemberSpec],
        is_homogeneous: bool,
        assigned: Partitions,
        partition_counts: dict[bytes, int],
    ) -> None:
        self.members = members
        self.is_homogeneous = is_homogeneous
        self.assigned = assigned
        self.partition_counts = partition_counts


# --- range


class _Range:
    """Topics with the same partition count and subscribers, while their partitions are assigned in ranges."""

    __slots__ = ("count", "extra", "members", "next")

    def __init__(self, count: int, members: int) -> None:
        self.count = count
        self.members = members
        self.next = 0
        self.extra = count % members

    def take(self) -> range:
        size = self.count // self.members
        if self.extra > 0:
            self.extra -= 1
            size += 1
        start = self.next
        self.next = min(start + size, self.count)
        return range(start, self.next)


def assign_range(spec: GroupSpec) -> dict[str, Partitions]:
    """The assignor `range`: static members first, by instance id, then the others by member id."""

    def place(member_id: str) -> tuple[bool, bytes]:
        instance_id = spec.members[member_id].instance_id
        # Java compares strings by UTF-16 code unit.
        return instance_id is None, (member_id if instance_id is None else instance_id).encode("utf-16-be")

    runs = _runs(spec)
    result: dict[str, Partitions] = {}
    for member_id in sorted(spec.members, key=place):
        wanted = spec.members[member_id].topic_ids
        mine: Partitions = {}
        for run, topic_ids in runs[id(wanted)]:
            taken = run.take()
            if taken:
                mine.update((topic_id, set(taken)) for topic_id in topic_ids)
        if len(mine) > 1:
            mine = {topic_id: mine[topic_id] for topic_id in wanted if topic_id in mine}
        result[member_id] = mine
    return result


def _runs(spec: GroupSpec) -> dict[int, list[tuple[_Range, list[bytes]]]]:
    """Group topics by subscription (members mostly share one), partition count and subscribers, so that each subscriber
    gets the same range of all topics of a group."""
    wanted = {id(member.topic_ids): member.topic_ids for member in spec.members.values()}
    subscribers = Counter(id(member.topic_ids) for member in spec.members.values())
    wanted_by: dict[bytes, list[int]] = {}
    for key, topic_ids in wanted.items():
        for topic_id in topic_ids:
            wanted_by.setdefault(topic_id, []).append(key)
    alike: dict[tuple[int, ...], list[bytes]] = {}
    for topic_id, keys in wanted_by.items():
        alike.setdefault((spec.partition_counts[topic_id], *keys), []).append(topic_id)
    found: dict[int, list[tuple[_Range, list[bytes]]]] = {key: [] for key in wanted}
    for (count, *keys), topics in alike.items():
        run = _Range(count, sum(subscribers[key] for key in keys))
        for key in keys:
            found[key].append((run, topics))
    return found


# --- uniform


def assign_uniform(spec: GroupSpec) -> dict[str, Partitions]:
    """The assignor `uniform`."""
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        return _assign_same(spec)
    from kafka_shim.group.assignor_mixed import assign_mixed

    return assign_mixed(spec)


def _assign_same(spec: GroupSpec) -> dict[str, Partitions]:
    """For members with the same subscription: revoke what is above a member's quota, then fill up the members in
    order."""
    wanted = next(iter(spec.members.values())).topic_ids
    if not wanted:
        return {}
    unassigned: list[tuple[bytes, int]] = []
    total = 0
    for topic_id in order_uuids(wanted, copied_table_size(len(wanted))):
        count = spec.partition_counts[topic_id]
        taken = spec.assigned.get(topic_id, set())
        unassigned.extend((topic_id, each) for each in range(count) if each not in taken)
        total += count
    result, unfilled = _keep_up_to_quota(spec, wanted, total, unassigned)
    at = 0
    for member_id, room in unfilled:
        mine = result[member_id]
        for topic_id, partition in unassigned[at : at + room]:
            mine.setdefault(topic_id, set()).add(partition)
        at = min(at + room, len(unassigned))
    return result


def _keep_up_to_quota(
    spec: GroupSpec, wanted: dict[bytes, None], total: int, unassigned: list[tuple[bytes, int]]
) -> tuple[dict[str, Partitions], list[tuple[str, int]]]:
    """Returns (what each member keeps, the members with room and how much). Revoked partitions are added to
    `unassigned`."""
    members = len(spec.members)
    quota_each, extras = divmod(total, members)
    result: dict[str, Partitions] = {}
    unfilled: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(spec.members.items()):
        has_extra = extras > 0
        room = quota_each + has_extra
        kept: Partitions = {}
        for topic_id in order_uuids(member.assignment):
            if topic_id not in wanted:
                continue
            partitions = member.assignment[topic_id]
            if len(partitions) <= room:
                kept[topic_id] = set(partitions)
                room -= len(partitions)
                continue
            ordered = order_ints(partitions, copied_table_size(len(partitions)))
            if room:
                kept[topic_id] = set(ordered[:room])
            unassigned.extend((topic_id, each) for each in ordered[room:])
            room = 0
        if room > 0 and has_extra and members - index > extras:
            # Enough members follow to take the extra partitions, so this one is not moved.
            room -= 1
            has_extra = False
        if room > 0:
            unfilled.append((member_id, room))
        extras -= has_extra
        result[member_id] = kept
    return result, unfilled


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
