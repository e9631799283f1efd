"""All groups of one partition of `__consumer_offsets`, and what its records do to them.

`apply` is called with every record that was appended, and at start-up with those that are found. It never decides, and
it takes any order that compaction can leave: a tombstone without what it deletes, a member before its group.
"""

from __future__ import annotations

from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.consumer import ConsumerGroup, Resolved
from kafka_shim.group.consumer_member import LEAVE_EPOCH, ConsumerMember
from kafka_shim.group.offsets import Offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.group.records import Committed, Record

    Group = ClassicGroup | ConsumerGroup


class Groups:
    """Owned by the coordinator, one for each partition: a marker decides the offsets of its own partition alone."""

    __slots__ = ("by_id", "offsets")

    def __init__(self) -> None:
        self.by_id: dict[str, Group] = {}
        self.offsets = Offsets()

    # --- offsets

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed | None, producer_id: int) -> None:
        """An offset's record; None is its tombstone."""
        if committed is None:
            self.offsets.remove(group_id, topic, partition)
            return
        if group_id not in self.by_id:
            self.by_id[group_id] = ClassicGroup(group_id, committed.commit_ms)
        self.offsets.put(group_id, topic, partition, committed, producer_id)

    # --- groups

    def apply(self, record: Record) -> None:
        """One record of a group. Types that this version does not handle (share and streams groups) are left alone."""
        handler = _HANDLERS.get(record.key.API_KEY)
        if handler is not None:
            handler(self, record.key, record.value)

    def _consumer(self, group_id: str, create: bool) -> ConsumerGroup | None:
        group = self.by_id.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not create:
            return None
        new = self.by_id[group_id] = ConsumerGroup(group_id)
        return new

    def _group_metadata(self, key: Any, value: Any) -> None:
        if value is not None:
            self.by_id[key.group] = ClassicGroup.replay(key.group, value)
        elif isinstance(self.by_id.get(key.group), ClassicGroup):
            del self.by_id[key.group]

    def _metadata(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is None:
            return
        if value is None:
            del self.by_id[key.group_id]
        else:
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash

    def _partition_metadata(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is not None:
            group.has_partition_metadata_record = value is not None

    def _member_metadata(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is None:
            return
        if value is None:
            group.drop_member(key.member_id)
        else:
            member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.put_member(member.with_metadata(value))

    def _target_metadata(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is not None:
            group.assignment_epoch = -1 if value is None else value.assignment_epoch
            group.assignment_ms = 0 if value is None else value.assignment_timestamp

    def _target(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is None:
            return
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.put_target(key.member_id, value)

    def _current(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is None:
            return
        member = group.members.get(key.member_id)
        if value is not None:
            group.put_member((member or ConsumerMember(key.member_id)).with_assignment(value))
        elif member is not None:
            # The member itself goes with the tombstone of its metadata, which follows.
            group.put_member(
                member.copy(member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, pending_revocation={})
            )

    def _regex(self, key: Any, value: Any) -> None:
        group = self._consumer(key.group_id, value is not None)
        if group is None:
            return
        if value is None:
            group.resolved.pop(key.regular_expression, None)
        else:
            resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
            group.resolved[key.regular_expression] = resolved


_HANDLERS: dict[int, Callable[[Groups, Any, Any], None]] = {
    2: Groups._group_metadata,
    3: Groups._metadata,
    4: Groups._partition_metadata,
    5: Groups._member_metadata,
    6: Groups._target_metadata,
    7: Groups._target,
    8: Groups._current,
    16: Groups._regex,
}
