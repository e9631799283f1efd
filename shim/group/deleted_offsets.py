"""The offsets of deleted topics, which are removed from all groups."""

from __future__ import annotations

from functools import partial

from kafka_shim.errors import KafkaError
from kafka_shim.group.runtime import GROUPS_PER_STEP
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from kafka_shim.group.groups import Groups
    from kafka_shim.group.records import Changes
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.metadata.image import Topic

# How often it is tried again to remove what could not be removed.
REMOVAL = "offsets of deleted topics"
REMOVAL_RETRY_MS = 60_000
# Offsets per step when those are removed: a few milliseconds.
OFFSETS_PER_STEP = 2000


class DeletedOffsets:
    """Owned by `OffsetRequests`. A new topic of the same name must not inherit them: while some are left, a question by
    name is one about the topic that has it now."""

    __slots__ = ("_runtime", "_topics")

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        # Deleted topics by id: the name, and the partitions that still have offsets of it.
        self._topics: dict[bytes, tuple[str, set[int]]] = {}
        runtime.loader.on_read.append(self.find_deleted)

    @property
    def are_left(self) -> bool:
        """Whether any could not be removed yet."""
        return bool(self._topics)

    def on_topic_deleted(self, topic: Topic) -> None:
        """Remove the topic's offsets, in steps if there are many groups. Partitions that are not loaded are handled
        after their load."""
        self._note(topic.topic_id, topic.name, range(self._runtime.partitions.count()))
        self._remove_in_slices(topic.topic_id, later=True)

    def find_deleted(self, partition: int, groups: Groups) -> Generator[None, None, None]:
        """Look for offsets of deleted topics in a partition that was read: the broker may have been killed before it
        removed them."""
        from kafka_shim.group import offset_rules

        known = self._runtime.metadata.image.topics_by_id
        for number, group_id in enumerate(list(groups.offsets.group_ids()), 1):
            for name, found in groups.offsets.of_group(group_id).items():
                for committed in found.values():
                    if offset_rules.is_of_unknown_topic(committed, known):
                        self._note(committed.topic_id, name, (partition,))
            if number % GROUPS_PER_STEP == 0:
                yield
        # Those of open transactions are committed later.
        for number, (_, name, _, committed) in enumerate(groups.offsets.pending_topics(), 1):
            if offset_rules.is_of_unknown_topic(committed, known):
                self._note(committed.topic_id, name, (partition,))
            if number % GROUPS_PER_STEP == 0:
                yield

    def _note(self, topic_id: bytes, name: str, partitions: Iterable[int]) -> None:
        """Have the offsets of a deleted topic removed, also if that fails now."""
        self._topics.setdefault(topic_id, (name, set()))[1].update(partitions)
        scheduler = self._runtime.scheduler
        if not scheduler.is_scheduled(REMOVAL):
            scheduler.every(REMOVAL, REMOVAL_RETRY_MS, self._remove_again)

    def forget(self) -> None:
        """Discard what is left to do: all offsets are gone."""
        self._runtime.scheduler.cancel(REMOVAL)
        self._topics.clear()

    def _remove_again(self) -> None:
        """Remove what a full disk, mostly, or the end of memory left of deleted topics, where it is loaded."""
        for topic_id in list(self._topics):
            if not self._runtime.scheduler.is_scheduled(_removal(topic_id)):
                self._remove_in_slices(topic_id, later=False)
        if not self._topics:
            self._runtime.scheduler.cancel(REMOVAL)

    def _remove_in_slices(self, topic_id: bytes, *, later: bool) -> None:
        self._runtime.scheduler.in_slices(_removal(topic_id), self._remove_topic(topic_id, later))

    def _remove_topic(self, topic_id: bytes, later: bool) -> Generator[None, None, None]:
        """`later`: of partitions that are not loaded too, once they are."""
        loader = self._runtime.loader
        for partition in sorted(self._topics[topic_id][1]):
            groups = loader.current(partition)
            if groups is not None:
                yield from self._remove_from(groups, partition, topic_id)
            elif later:
                loader.when_read(partition, partial(self._remove_at_once, partition=partition, topic_id=topic_id))

    def _remove_at_once(self, groups: Groups, partition: int, topic_id: bytes) -> None:
        at_once(self._remove_from(groups, partition, topic_id))

    def _remove_from(self, groups: Groups, partition: int, topic_id: bytes) -> Generator[None, None, None]:
        """Remove the topic's offsets from one partition."""
        topic, left = self._topics.get(topic_id, ("", set()))
        if partition not in left:
            return  # all offsets are gone
        try:
            must_stay = yield from self._remove(groups, partition, topic, topic_id)
        except KafkaError as error:
            refusals = self._runtime.logs.services.refusals
            refusals.write("the offsets of deleted topic %s are removed later: %s", topic, error)
            return
        if not must_stay:
            left.discard(partition)
        if not left:
            self._topics.pop(topic_id, None)

    def _remove(self, groups: Groups, partition: int, topic: str, topic_id: bytes) -> Generator[None, None, bool]:
        """Returns whether others have to stay for now."""
        from kafka_shim.group import offset_rules

        runtime = self._runtime
        # Without an id an offset may be one of a newer topic of the name.
        may_lack_id = topic not in runtime.metadata.image.topics
        must_stay = False
        since_stop = 0
        gone: dict[str, Changes] = {}
        for group_id in groups.offsets.all_group_ids():
            found, stays = offset_rules.of_deleted_topic(groups, group_id, topic, topic_id, may_lack_id=may_lack_id)
            must_stay = must_stay or stays
            if found:
                gone[group_id] = found
            since_stop += 1 + len(found)
            if since_stop >= OFFSETS_PER_STEP:
                runtime.remove_offsets(groups, gone, runtime.clock.now_ms())
                gone = {}
                since_stop = 0
                yield
                if runtime.loader.current(partition) is not groups:
                    return True  # the partition is to be read again, or all offsets are gone
        runtime.remove_offsets(groups, gone, runtime.clock.now_ms())
        if since_stop >= GROUPS_PER_STEP:
            yield
        return must_stay


def _removal(topic_id: bytes) -> str:
    return f"deleted {topic_id.hex()}"
