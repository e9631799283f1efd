"""The groups of one partition of `__consumer_offsets`, and how records change them (Kafka's coordinator shard).

`apply` is called with every appended record, and at start-up with every record in the log. It never decides, and
accepts any order that compaction can leave: a tombstone without the record that it deletes, a member before its group.
"""

from __future__ import annotations

from kafka_shim.cext.classic_requests import GroupsBase
from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.kinds import KINDS
from kafka_shim.group.offsets import Offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.cext.offset_records import Committed
    from kafka_shim.group.kind import Group
    from kafka_shim.group.large_offsets import PreparedCommit
    from kafka_shim.group.records import Changes, Record

_HANDLERS = {number: handler for kind in KINDS.values() for number, handler in kind.records.items()}


class NotAppliedError(KafkaError):
    """The records of a request may be in the log, and are not, or in part, in memory."""


# After these memory may hold less than the log, or more.
UNAPPLIED = (MemoryError, NotAppliedError, OSError, DisconnectError)


class Groups(GroupsBase):
    """Owned by the coordinator. There is one per partition, because a marker affects only the offsets of its own
    partition."""

    __slots__ = ("offsets",)

    def __init__(self) -> None:
        self.by_id: dict[str, Group] = {}
        self.offsets = Offsets()
        # False: records are in the log that were not applied, or in part. The loader reads the partition again.
        self.is_current = True

    def _failed(self, kind: type[BaseException], error: BaseException | None) -> None:
        """Raises NOT_COORDINATOR instead of MemoryError: the client asks again, and the partition is read again. So it
        is after an error that only a fault point raises here: what the rule changed already has no record."""
        self.is_current = not issubclass(kind, UNAPPLIED)
        if kind is MemoryError:
            raise NotAppliedError(ErrorCode.NOT_COORDINATOR, "no memory was left to apply the records") from error

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed | None, producer_id: int) -> None:
        """Apply the record of an offset. None is its tombstone."""
        if committed is None:
            self.offsets.remove(group_id, topic, partition)
            return
        if group_id not in self.by_id:
            self.by_id[group_id] = ClassicGroup(group_id, committed.commit_ms)
        self.offsets.put(group_id, topic, partition, committed, producer_id)

    def commit_all(self, group_id: str, changes: Changes, now_ms: int, base_offset: int) -> None:
        """Apply the records of a plain commit, as `commit` does each."""
        if group_id not in self.by_id:
            self.by_id[group_id] = ClassicGroup(group_id, now_ms)
        self.offsets.put_all(group_id, changes, base_offset)

    def commit_pending(self, group_id: str, changes: Changes, producer_id: int, base_offset: int) -> None:
        """Apply the records of a commit in a transaction, as `commit` does each."""
        for record_offset, (topic, partition, committed) in enumerate(changes, base_offset):
            assert committed is not None
            committed.record_offset = record_offset
            self.commit(group_id, topic, partition, committed, producer_id)

    def commit_prepared(self, commit: PreparedCommit) -> None:
        """Apply the records of thousands of offsets of one group."""
        if commit.group_id not in self.by_id:
            self.by_id[commit.group_id] = ClassicGroup(commit.group_id, commit.now_ms)
        self.offsets.put_prepared(commit)

    def has_member(self, group_id: str, member_id: str) -> bool:
        """Returns whether the group exists and has the member."""
        return member_id in getattr(self.by_id.get(group_id), "members", ())

    def apply(self, record: Record) -> None:
        """Apply one record of a group, or the tombstone of one of its offsets."""
        handler = _HANDLERS.get(record.key.API_KEY)
        if handler is not None:
            handler(self.by_id, record.key, record.value)
        else:
            key: Any = record.key
            self.offsets.remove(key.group, key.topic, key.partition)
