"""The offsets of deleted topics, which are removed from all groups."""

from __future__ import annotations

from functools import partial

from kafka_shim.errors import KafkaError
from kafka_shim.group.runtime import GROUPS_PER_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from kafka_shim.group.groups import Groups
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.metadata.image import Topic

# How often it is tried again to remove what could not be removed.
REMOVAL = "offsets of deleted topics"
REMOVAL_RETRY_MS = 60_000


class DeletedOffsets:
    """Owned by `OffsetRequests`. A new topic of the same name must not inherit them: while some are left, a question by
    name is one about the topic that has it now."""

    __slots__ = ("_runtime", "_topics")

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        # Deleted topics by id: the name, and the partitions that still have offsets of it.
        self._topics: dict[bytes, tuple[str, set[int]]] = {}
        runtime.loader.on_read = self.find_deleted

    @property
    def are_left(self) -> bool:
        """Whether any could not be removed yet."""
        return bool(self._topics)

    def on_topic_deleted(self, topic: Topic) -> None:
        """Remove the topic's offsets, in steps if there are many groups. Partitions that are not loaded are handled
        after their load."""
        self._note(topic.topic_id, topic.name, range(self._runtime.partition_count()))
        self._remove_in_slices(topic.topic_id, self._runtime.loader.when_read)

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

        def change(partition: int, remove: Callable[[Groups], object]) -> None:
            groups = self._runtime.loader.current(partition)
            if groups is not None:
                remove(groups)

        for topic_id in list(self._topics):
            if not self._runtime.scheduler.is_scheduled(_removal(topic_id)):
                self._remove_in_slices(topic_id, change)
        if not self._topics:
            self._runtime.scheduler.cancel(REMOVAL)

    def _remove_in_slices(self, topic_id: bytes, change: Callable[[int, Callable[[Groups], object]], object]) -> None:
        self._runtime.scheduler.in_slices(_removal(topic_id), self._remove_topic(topic_id, change))

    def _remove_topic(
        self, topic_id: bytes, change: Callable[[int, Callable[[Groups], object]], object]
    ) -> Generator[None, None, None]:
        """`change` calls what removes the offsets of one partition, now or later."""
        topic, left = self._topics[topic_id]

        def remove(groups: Groups, partition: int) -> None:
            from kafka_shim.group import offset_rules

            try:
                # Without an id an offset may be one of a newer topic of the name.
                is_named_again = topic in self._runtime.metadata.image.topics
                found, must_stay = offset_rules.of_deleted_topic(
                    groups, topic, topic_id, may_lack_id=not is_named_again
                )
                self._runtime.remove_offsets(groups, found, self._runtime.clock.now_ms())
            except KafkaError as error:
                refusals = self._runtime.logs.services.refusals
                refusals.write("the offsets of deleted topic %s are removed later: %s", topic, error)
            else:
                if not must_stay:
                    left.discard(partition)
                if not left:
                    self._topics.pop(topic_id, None)

        loader = self._runtime.loader
        since_stop = 0
        for partition in sorted(left):
            change(partition, partial(remove, partition=partition))
            since_stop += len(loader.by_partition[partition].by_id) if partition in loader.by_partition else 0
            if since_stop >= GROUPS_PER_STEP:
                since_stop = 0
                yield


def _removal(topic_id: bytes) -> str:
    return f"deleted {topic_id.hex()}"
