"""The assignor `simple` of share groups (KIP-932): several members may have the same partition.

Each partition gets as many members as are needed for all to have one, each member about the same number of partitions,
and a change moves few. The results equal those of Apache Kafka's classes for the same input, including the order in
which Java iterates over its maps. Source: `org.apache.kafka.coordinator.group.assignor.SimpleAssignor`.
"""

from __future__ import annotations

from math import ceil

from kafka_shim.java_order import (
    copied_table_size,
    order_ints,
    order_keys,
    order_uuids,
    presized_table_size,
    table_size,
    uuid_hash,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from kafka_shim.group.assignors import GroupSpec
    from kafka_shim.group.consumer_member import Partitions

    TopicPartition = tuple[bytes, int]
    _P = TypeVar("_P")


def assign_simple(spec: GroupSpec, initialized: Partitions) -> dict[str, Partitions]:
    """Assign the partitions whose share state is initialised."""
    if not spec.members:
        return {}
    members = list(spec.members.values())
    subscribed = members[0].topic_ids if spec.is_homogeneous else _all_topics(spec)
    if not subscribed:
        return {}
    assignment = _Assignment(spec)
    if spec.is_homogeneous:
        found = [(topic_id, number) for topic_id in subscribed for number in _assignable(spec, initialized, topic_id)]
        _Sharing(assignment, list(range(len(members))), found, subscribed.__contains__).assign()
    else:
        for topic_id in subscribed:
            indices = [number for number, member in enumerate(members) if topic_id in member.topic_ids]
            found = [(topic_id, number) for number in _assignable(spec, initialized, topic_id)]
            _TopicSharing(assignment, indices, found, topic_id.__eq__).assign()
    return dict(zip(spec.members, assignment.targets, strict=True))


def _all_topics(spec: GroupSpec) -> dict[bytes, None]:
    return dict.fromkeys(order_uuids(dict.fromkeys(name for one in spec.members.values() for name in one.topic_ids)))


def _assignable(spec: GroupSpec, initialized: Partitions, topic_id: bytes) -> list[int]:
    known = initialized.get(topic_id, ())
    return [number for number in range(spec.partition_counts[topic_id]) if number in known]


class _Assignment:
    """The members' targets by their index. A target is copied before its first change."""

    __slots__ = ("_old", "targets")

    def __init__(self, spec: GroupSpec) -> None:
        self._old = [member.assignment for member in spec.members.values()]
        self.targets = list(self._old)

    def change(self, member: int) -> Partitions:
        """Returns the target of a member, to be changed."""
        target = self.targets[member]
        if target is self._old[member]:
            target = self.targets[member] = {topic_id: set(found) for topic_id, found in target.items()}
        return target

    def old(self, member: int) -> Iterable[TopicPartition]:
        """Returns what the member had, in Java's order."""
        for topic_id in order_uuids(self._old[member]):
            partitions = self._old[member][topic_id]
            for partition in order_ints(partitions, copied_table_size(len(partitions))):
                yield topic_id, partition


class _Sharing:
    """Which of these members share which of these partitions, for all topics at once."""

    def __init__(
        self,
        assignment: _Assignment,
        members: list[int],
        partitions: list[TopicPartition],
        is_subscribed: Callable[[bytes], bool],
    ) -> None:
        self._assignment = assignment
        self._members = members
        self._partitions = partitions
        self._is_subscribed = is_subscribed
        count = len(partitions)
        # So many members share one partition, rounded upwards.
        self._sharing = (len(members) + count - 1) // count if count else 0
        each = self._sharing * count / len(members)
        self._wanted = {member: ceil(each * (place + 1)) - ceil(each * place) for place, member in enumerate(members)}
        self._members_of: dict[TopicPartition, set[int]] = {}
        # The partitions of each member, in order.
        self._partitions_of: dict[int, dict[TopicPartition, None]] = {}
        self._topic_hashes: dict[bytes, int] = {}

    def assign(self) -> None:
        """Change the targets."""
        self._take_old()
        self._revoke_overfilled()
        unfilled = self._revoke_overshared()
        for partition in self._partitions:
            self._members_of.setdefault(partition, set())
        self._assign_remaining(unfilled)

    def _take_old(self) -> None:
        for member in range(len(self._assignment.targets)):
            for topic_id in list(self._assignment.targets[member]):
                if self._drops(topic_id):
                    del self._assignment.change(member)[topic_id]
            for partition in self._assignment.old(member):
                if self._is_subscribed(partition[0]):
                    self._members_of.setdefault(partition, set()).add(member)
                    self._partitions_of.setdefault(member, {})[partition] = None

    def _drops(self, topic_id: bytes) -> bool:
        return not self._is_subscribed(topic_id)

    def _revoke(self, member: int, partition: TopicPartition) -> None:
        self._assignment.change(member)[partition[0]].discard(partition[1])
        del self._partitions_of[member][partition]
        self._members_of[partition].discard(member)

    def _revoke_overfilled(self) -> None:
        for member, held in self._partitions_of.items():
            excess = len(held) - self._wanted.get(member, 0)
            if excess > 0:
                for partition in self._in_order(held, table_size(len(held)))[:excess]:
                    self._revoke(member, partition)

    def _revoke_overshared(self) -> list[int]:
        """Returns the members that have too few partitions, in order."""
        for partition in self._in_order(self._members_of, presized_table_size(len(self._partitions))):
            members = self._members_of[partition]
            for member in order_ints(members)[: max(len(members) - self._sharing, 0)]:
                self._revoke(member, partition)
        return [member for member in self._members if len(self._partitions_of.get(member, ())) < self._wanted[member]]

    def _assign_remaining(self, unfilled: list[int]) -> None:
        turn, place, has_assigned = list(unfilled), 0, False
        for partition in self._in_order(self._members_of, presized_table_size(len(self._partitions))):
            members = self._members_of[partition]
            missing = self._sharing - len(members)
            while missing > 0:
                if place == len(turn):
                    if not has_assigned or not unfilled:
                        break
                    turn, place, has_assigned = list(unfilled), 0, False
                member = turn[place]
                place += 1
                if member in members:
                    continue
                self._assignment.change(member).setdefault(partition[0], set()).add(partition[1])
                held = self._partitions_of.setdefault(member, {})
                held[partition] = None
                missing -= 1
                has_assigned = True
                if len(held) >= self._wanted[member]:
                    unfilled.remove(member)
            if not unfilled:
                break

    def _in_order(self, partitions: Iterable[TopicPartition], size: int) -> list[TopicPartition]:
        """Returns partitions as a HashMap that began with `size` buckets iterates over them."""
        found = list(partitions)
        if partitions is self._members_of:
            # Kafka fills this map by computeIfAbsent, which puts a new key first into its bucket.
            found.reverse()
        return order_keys(found, self._hash, table_size(len(found), size))

    def _hash(self, key: TopicPartition) -> int:
        found = self._topic_hashes.get(key[0])
        if found is None:
            found = self._topic_hashes[key[0]] = 31 * uuid_hash(key[0])
        return found + key[1]


class _TopicSharing(_Sharing):
    """Which members share which partitions of one topic; other topics stay as they are."""

    def _drops(self, topic_id: bytes) -> bool:
        return False

    def _hash(self, key: TopicPartition) -> int:
        return key[1]
