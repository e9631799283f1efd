"""The committed offsets of all groups, and the pending offsets of open transactions, which are invisible until their
marker.

`put`, `remove` and `complete` apply records, on the live path and at start-up. When a transaction commits, the offset
with the higher record offset wins, so that a plain commit made meanwhile is not undone (B16).
"""

from __future__ import annotations

from kafka_shim.cext.offset_records import put_offsets
from kafka_shim.group.records import NO_PRODUCER_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from kafka_shim.cext.offset_records import Committed
    from kafka_shim.group.large_offsets import PreparedCommit
    from kafka_shim.group.records import Changes

    # topic -> partition -> offset
    ByTopic = dict[str, dict[int, Committed]]


class Offsets:
    """Owned by `Groups`."""

    __slots__ = ("_by_group", "_open", "_pending")

    def __init__(self) -> None:
        self._by_group: dict[str, ByTopic] = {}
        # (producer id) -> (group, topic, partition) -> offset
        self._pending: dict[int, dict[tuple[str, str, int], Committed]] = {}
        # group -> (topic, partition) -> producer ids with a pending commit there
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    # --- questions

    def of_group(self, group_id: str) -> ByTopic:
        """Returns the offsets of a group, or an empty mapping. Callers must not change it."""
        return self._by_group.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> Committed | None:
        """Returns the committed offset of one partition."""
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def group_ids(self) -> Iterator[str]:
        """Returns the groups with committed offsets."""
        return iter(self._by_group)

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Returns whether an open transaction has a pending offset for this partition."""
        return (topic, partition) in self._open.get(group_id, ())

    def has_any_pending(self, group_id: str) -> bool:
        """Returns whether an open transaction has a pending offset for the group."""
        return group_id in self._open

    def are_there(self, group_id: str) -> bool:
        """Returns whether the group has committed offsets, or an open transaction has pending ones for it."""
        return group_id in self._by_group or group_id in self._open

    def pending_partitions(self, group_id: str) -> list[tuple[str, int]]:
        """Returns the (topic, partition) with pending offsets of open transactions."""
        return list(self._open.get(group_id, ()))

    def pending_by_topic(self, group_id: str) -> dict[str, set[int]]:
        """Returns the partitions with pending offsets of open transactions, by topic."""
        found: dict[str, set[int]] = {}
        for topic, partition in self._open.get(group_id, ()):
            found.setdefault(topic, set()).add(partition)
        return found

    def all_group_ids(self) -> list[str]:
        """Returns the groups with committed offsets or pending ones of open transactions."""
        return list(dict.fromkeys([*self._by_group, *self._open]))

    def pending_of(self, group_id: str, topic: str) -> Iterator[tuple[int, Committed]]:
        """Returns the (partition, offset) of open transactions for this topic."""
        for (name, partition), producers in self._open.get(group_id, {}).items():
            if name == topic:
                for producer_id in producers:
                    yield partition, self._pending[producer_id][group_id, topic, partition]

    def pending_topics(self) -> Iterator[tuple[str, str, int, Committed]]:
        """Returns the (group, topic, partition, offset) of all open transactions."""
        for pending in self._pending.values():
            for (group_id, topic, partition), committed in pending.items():
                yield group_id, topic, partition, committed

    # --- changes

    def put(self, group_id: str, topic: str, partition: int, committed: Committed, producer_id: int) -> None:
        """Store an offset. With a producer id it is pending."""
        if producer_id == NO_PRODUCER_ID:
            self._by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed
            return
        self._pending.setdefault(producer_id, {})[group_id, topic, partition] = committed
        self._open.setdefault(group_id, {}).setdefault((topic, partition), set()).add(producer_id)

    def put_all(self, group_id: str, changes: Changes, base_offset: int) -> None:
        """Store the offsets of a plain commit, whose records follow each other in the log."""
        stored = self._by_group.get(group_id)
        if stored is None:
            stored = self._by_group[group_id] = {}
        put_offsets(stored, changes, base_offset)

    def put_prepared(self, commit: PreparedCommit) -> None:
        """Store thousands of offsets, as `put` does each."""
        if commit.producer_id == NO_PRODUCER_ID:
            stored = self._by_group.setdefault(commit.group_id, {})
            for topic, found in commit.stored.items():
                if topic in stored:
                    stored[topic].update(found)
                else:
                    stored[topic] = found
            return
        self._pending.setdefault(commit.producer_id, {}).update(commit.pending)
        opened = self._open.setdefault(commit.group_id, {})
        for known in opened.keys() & commit.opened.keys():
            commit.opened[known] |= opened[known]
        opened.update(commit.opened)

    def remove_many(self, group_id: str, partitions: list[tuple[str, int]]) -> None:
        """Apply thousands of tombstones, as `remove` does each."""
        if group_id in self._open:
            for topic, partition in partitions:
                self.remove(group_id, topic, partition)
            return
        by_topic = self._by_group.get(group_id, {})
        for topic, partition in partitions:
            found = by_topic.get(topic)
            if found is not None:
                found.pop(partition, None)
                if not found:
                    del by_topic[topic]
        if not by_topic:
            self._by_group.pop(group_id, None)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Apply a tombstone: remove the committed and the pending offsets of the partition."""
        by_topic = self._by_group.get(group_id)
        if by_topic is not None and topic in by_topic:
            by_topic[topic].pop(partition, None)
            if not by_topic[topic]:
                del by_topic[topic]
            if not by_topic:
                del self._by_group[group_id]
        for producer_id in self._open.get(group_id, {}).get((topic, partition), ()):
            self._pending[producer_id].pop((group_id, topic, partition), None)
        self._close(group_id, topic, partition)

    def leave_out(self, group_id: str) -> None:
        """Forget all offsets of the group, without tombstones; `leave_out_pending` has to follow."""
        self._by_group.pop(group_id, None)
        self._open.pop(group_id, None)

    def leave_out_pending(self, group_ids: Container[str]) -> Iterator[None]:
        """Forget the pending offsets of these groups, a producer in a step."""
        for producer_id, pending in list(self._pending.items()):
            left = {key: kept for key, kept in pending.items() if key[0] not in group_ids}
            if len(left) < len(pending):
                self._pending[producer_id] = left
            yield

    def _close(self, group_id: str, topic: str, partition: int) -> None:
        by_partition = self._open.get(group_id)
        if by_partition is not None:
            by_partition.pop((topic, partition), None)
            if not by_partition:
                del self._open[group_id]

    def complete(self, producer_id: int, commit: bool) -> list[str]:
        """Complete the producer's transaction on the partition that holds these groups. Returns the groups whose
        offsets changed."""
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return []
        # One transaction may hold tens of thousands of offsets, nearly always of one group.
        by_group: dict[str, list[tuple[str, int, Committed]]] = {}
        for (group_id, topic, partition), committed in pending.items():
            if group_id not in by_group:
                by_group[group_id] = []
            by_group[group_id].append((topic, partition, committed))
        return [
            group_id for group_id, found in by_group.items() if self._complete(group_id, found, producer_id, commit)
        ]

    def _complete(
        self, group_id: str, pending: list[tuple[str, int, Committed]], producer_id: int, commit: bool
    ) -> bool:
        """Complete the offsets of one group. Returns whether any changed."""
        opened = self._open.get(group_id, {})
        for topic, partition, _ in pending:
            producers = opened.get((topic, partition))
            if producers is not None:
                producers.discard(producer_id)
                if not producers:
                    del opened[topic, partition]
        if not opened:
            self._open.pop(group_id, None)
        if not commit:
            return False
        stored = self._by_group.get(group_id, {})
        is_changed = False
        for topic, partition, committed in pending:
            found = stored.get(topic)
            if found is None:
                found = stored[topic] = {}
            current = found.get(partition)
            if current is None or committed.record_offset > current.record_offset:
                found[partition] = committed
                is_changed = True
        if is_changed:
            self._by_group[group_id] = stored
        return is_changed
