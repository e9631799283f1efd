"""Requests about share groups: heartbeats, and the start offsets that administrators see and change (KIP-932).

The states of share partitions belong to the share coordinator, which is asked through `Persister`; `server` sets it.
"""

from __future__ import annotations

import logging
from functools import partial
from weakref import WeakValueDictionary

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.decision import Decision
from kafka_shim.group.runtime import GROUPS_PER_STEP
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from typing import Protocol

    from kafka_shim.group.client import Client
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.records import Record
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.group.share import Altered, ShareGroup, States
    from kafka_shim.metadata.image import Topic
    from kafka_shim.outcome import Flush, Flushes, Outcome
    from kafka_shim.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
    from kafka_shim.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse

    class Persister(Protocol):
        """What this package needs of the share coordinator (`share.persister.ShareStatePersister`)."""

        def initialize_state(
            self, group_id: str, topic_id: bytes, partition: int, state_epoch: int, start_offset: int
        ) -> Flushes: ...
        def delete_state(self, group_id: str, topic_id: bytes, partition: int) -> Flushes: ...
        def once_loaded(
            self, key: tuple[str, bytes, int], call: Callable[[], Flushes]
        ) -> Generator[None, None, Flushes]: ...


logger = logging.getLogger("kafka_shim.group")

BAD_PARTITION = "Initialize share group parameters has invalid partitionId -"
# The reader of a share partition decides its start offset.
UNINITIALIZED_START_OFFSET = -1
# How many share partitions get or lose their state in one turn of the loop: a few milliseconds, also when each of them
# makes a log of `__share_group_state`.
PARTITIONS_PER_SLICE = 4
# How often it is tried again to forget deleted topics that could not be forgotten.
FORGET = "deleted topics of share groups"
FORGET_RETRY_MS = 60_000
NOT_HOSTED = "This server does not host this topic-partition."


class ShareRequests:
    """Owned by the coordinator. Methods raise the error of the response, or of the group's part of it."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        self.persister: Persister
        runtime.loader.on_read.append(self.find_deleted)
        self._works = 0  # counts, to give the slices of each a name of their own
        # The groups of alterations under way, until they are removed.
        self._altering: WeakValueDictionary[str, Altered] = WeakValueDictionary()

    # --- members

    def heartbeat(self, request: ShareGroupHeartbeatRequest, client: Client) -> Outcome[ShareGroupHeartbeatResponse]:
        """ShareGroupHeartbeat. After the response, new share partitions get their state."""
        from kafka_shim.group import share_heartbeat
        from kafka_shim.group.request_context import RequestContext
        from kafka_shim.group.share import ShareGroup

        share_heartbeat.check_request(request)
        runtime = self._runtime
        group_id = request.group_id
        groups = runtime.groups_of(group_id)
        now_ms = runtime.clock.now_ms()
        if request.member_epoch < 0:
            group = self._known_group(groups, group_id)
            return runtime.decide(group_id, share_heartbeat.leave(group, request, runtime.image), now_ms)
        known = groups.by_id.get(group_id)
        group = (
            ShareGroup(group_id) if known is None and request.member_epoch == 0 else self._share_group(groups, group_id)
        )
        context = RequestContext(client, runtime.image, now_ms)
        epoch, states = share_heartbeat.heartbeat(group, request, context)
        outcome = runtime.decide(group_id, context.decision, now_ms)
        if states:
            self._note_initializing(groups, group_id, states, now_ms)
            outcome.follow_up = lambda: self._initialize(group_id, epoch, states)
        return outcome

    def _known_group(self, groups: Groups, group_id: str) -> ShareGroup:
        """As `_share_group`, with the words that Kafka has where it creates no group."""
        if group_id not in groups.by_id:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self._share_group(groups, group_id)

    @staticmethod
    def _share_group(groups: Groups, group_id: str) -> ShareGroup:
        """Returns the group. Raises GROUP_ID_NOT_FOUND."""
        from kafka_shim.group.share import ShareGroup

        group = groups.by_id.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    def _note_initializing(self, groups: Groups, group_id: str, states: States, now_ms: int) -> None:
        self._share_group(groups, group_id).initializing_ms.update(dict.fromkeys(states, now_ms))

    def _initialize(self, group_id: str, epoch: int, states: States) -> None:
        """Initialise share partitions, a slice of them in each turn of the loop. If that fails, a later heartbeat tries
        again."""
        try:
            group = self._share_group(self._runtime.groups_of(group_id), group_id)
        except KafkaError:
            return  # removed meanwhile
        self._runtime.scheduler.in_slices(self._name(), self._slices_of_initialization(group, epoch, states))

    def _name(self) -> str:
        self._works += 1
        return f"share partitions {self._works}"

    def _slices_of_initialization(self, group: ShareGroup, epoch: int, states: States) -> Iterator[None]:
        from kafka_shim.group import share_offsets
        from kafka_shim.group.share import TopicStates

        group_id = group.group_id
        number = 0
        try:
            for topic_id, found in states.items():
                for partition in sorted(found.partitions):
                    initialize = partial(self._initialize_one, group, topic_id, partition, epoch)
                    yield from self.persister.once_loaded((group_id, topic_id, partition), initialize)
                    number += 1
                    if number % PARTITIONS_PER_SLICE == 0:
                        yield
        except KafkaError as error:
            refusals = self._runtime.logs.services.refusals
            refusals.write("cannot initialize the state of share group %s: %s", group_id, error)
            change = share_offsets.give_up_initializing
        else:
            change = share_offsets.end_initializing
        left = {
            topic_id: TopicStates(found.name, found.partitions & self._initializing(group, topic_id))
            for topic_id, found in states.items()
        }
        left = {topic_id: found for topic_id, found in left.items() if found.partitions}
        if not left:
            return
        try:
            self._write(group_id, change(group, left, self._runtime.image))
        except KafkaError as error:
            logger.warning("cannot record the initialized partitions of share group %s: %s", group_id, error)

    def _initialize_one(self, group: ShareGroup, topic_id: bytes, partition: int, epoch: int) -> Flushes:
        if partition not in self._initializing(group, topic_id):
            return ()  # between two slices the group or the topic was removed, or the offset altered
        start_offset = UNINITIALIZED_START_OFFSET
        return self.persister.initialize_state(group.group_id, topic_id, partition, epoch, start_offset)

    def _initializing(self, group: ShareGroup, topic_id: bytes) -> frozenset[int]:
        """Returns the partitions whose state the group waits for; none if the group was removed."""
        try:
            is_known = self._runtime.groups_of(group.group_id).by_id.get(group.group_id) is group
        except KafkaError:
            is_known = False
        found = group.initializing.get(topic_id)
        return found.partitions if is_known and found is not None else frozenset()

    def _write(self, group_id: str, *records: Record | None) -> Flushes:
        decision = Decision()
        decision.records = [record for record in records if record is not None]
        return self._runtime.decide(group_id, decision, self._runtime.clock.now_ms()).flushes

    # --- start offsets

    def initialized_partitions(self, group_id: str) -> dict[bytes, list[int]]:
        """Returns the initialised partitions of a share group by topic id, empty for any other group. Raises
        COORDINATOR_LOAD_IN_PROGRESS."""
        from kafka_shim.group.share import ShareGroup
        from kafka_shim.java_order import order_uuids

        group = self._runtime.groups_of(group_id).by_id.get(group_id)
        if not isinstance(group, ShareGroup):
            return {}
        return {topic_id: sorted(group.initialized[topic_id].partitions) for topic_id in order_uuids(group.initialized)}

    async def alter_offsets(
        self, group_id: str, offsets: Mapping[bytes, Mapping[int, int]]
    ) -> tuple[dict[tuple[bytes, int], KafkaError], Flushes]:
        """AlterShareGroupOffsets: each partition starts over at its offset. Returns errors by (topic id, partition).
        Creates the group, also for a topic without partitions. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND (a group of
        another kind), UNKNOWN_SERVER_ERROR (a partition below 0).

        As in Kafka the states are set one by one between two records of the group. A crash between them leaves the
        topics initialising, and a later heartbeat starts them again."""
        from kafka_shim.group import share_offsets
        from kafka_shim.group.share import Altered, ShareGroup, TopicStates

        runtime = self._runtime
        groups = runtime.groups_of(group_id)
        is_new = group_id not in groups.by_id
        group = ShareGroup(group_id) if is_new else self._share_group(groups, group_id)
        group.check_delete()
        if not offsets:
            return {}, ()
        topics = runtime.metadata.image.topics_by_id
        states = {topic_id: TopicStates(topics[topic_id].name, found) for topic_id, found in offsets.items() if found}
        for topic_id, found in offsets.items():
            if (first := min(found, default=0)) < 0:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"{BAD_PARTITION} {group_id} {uuid_text(topic_id)} {first}"
                )
        flushes = list(self._write(group_id, share_offsets.begin_initializing(group, states, runtime.image)))
        self._note_initializing(groups, group_id, states, runtime.clock.now_ms())
        errors: dict[tuple[bytes, int], KafkaError] = {}

        own = self._altering.setdefault(group_id, Altered())

        def alter(topic_id: bytes, partition: int) -> Flushes:
            group = self._known_group(runtime.groups_of(group_id), group_id)
            if self._altering.get(group_id) is not own:  # another group has the id by now
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
            if topic_id in group.deleting:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
            offset = offsets[topic_id][partition]
            return self.persister.initialize_state(group_id, topic_id, partition, group.group_epoch, offset)

        def slices() -> Generator[None, None, None]:
            yield from self._slices(group_id, offsets, alter, flushes, errors)
            # A topic that was deleted between two slices is forgotten, and holds up none of the others.
            topics = runtime.metadata.image.topics_by_id
            left = {topic_id: found for topic_id, found in states.items() if topic_id in topics}
            group = self._still_there(group_id)
            if group is not None and left and left.keys().isdisjoint(topic_id for topic_id, _ in errors):
                flushes.extend(self._write(group_id, share_offsets.end_initializing(group, left, runtime.image)))

        await runtime.scheduler.finish(self._name(), slices())
        return errors, flushes

    async def delete_offsets(
        self, group_id: str, topics: list[str]
    ) -> tuple[list[tuple[str, KafkaError]], list[tuple[bytes, str, KafkaError | None]], Flushes]:
        """DeleteShareGroupOffsets: delete the states of these topics. Returns (name, error) of those without one, and
        (topic id, name, error) of the others. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND. After a crash in the middle
        the topics are deleting, and the same request goes on."""
        from kafka_shim.group import share_offsets

        runtime = self._runtime
        share = self._known_group(runtime.groups_of(group_id), group_id)
        share.check_delete()
        refused: list[tuple[str, KafkaError]] = []
        partitions: dict[bytes, list[int]] = {}
        if not share.has_states_record:
            return refused, [], ()
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
        stateless = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")
        for name in topics:
            topic = runtime.metadata.image.topics.get(name)
            if topic is None:
                refused.append((name, unknown))
            elif topic.topic_id in share.initialized:
                partitions[topic.topic_id] = sorted(share.initialized[topic.topic_id].partitions)
            elif topic.topic_id in share.deleting:
                partitions[topic.topic_id] = list(range(len(topic.partitions)))
            else:
                refused.append((name, stateless))
        flushes = list(self._write(group_id, share_offsets.begin_deleting(share, partitions, runtime.image)))
        names = share_offsets.names_of(partitions, runtime.image)
        errors: dict[tuple[bytes, int], KafkaError] = {}

        def slices() -> Generator[None, None, None]:
            yield from self._slices(group_id, partitions, self._deletion(group_id), flushes, errors)
            failed = {topic_id for topic_id, _ in errors}
            group = self._still_there(group_id)
            if group is None:
                return
            deleted = [topic_id for topic_id in partitions if topic_id not in failed and topic_id in group.deleting]
            if deleted:
                flushes.extend(self._write(group_id, share_offsets.end_deleting(group, deleted, runtime.image)))

        await runtime.scheduler.finish(self._name(), slices())
        failures = {topic_id: error for (topic_id, _), error in errors.items()}
        return refused, [(topic_id, names[topic_id], failures.get(topic_id)) for topic_id in partitions], flushes

    # --- removal

    def removed(self, group_id: str) -> None:
        """A share group was removed."""
        self._altering.pop(group_id, None)

    async def before_delete(self, group: ShareGroup) -> Flushes:
        """Delete the states of a share group that is about to be removed. Raises the first error of a state that cannot
        be deleted; the group then stays, its topics deleting."""
        from kafka_shim.group import share_offsets

        group_id = group.group_id
        states, record = share_offsets.delete_all(group, self._runtime.image)
        flushes = list(self._write(group_id, record))
        errors: dict[tuple[bytes, int], KafkaError] = {}
        partitions = {topic_id: sorted(found.partitions) for topic_id, found in states.items()}
        slices = self._slices(group_id, partitions, self._deletion(group_id), flushes, errors)
        await self._runtime.scheduler.finish(self._name(), slices)
        if errors:
            first = next(iter(errors.values()))
            raise KafkaError(first.code, f"{group_id}: {first.message}") from first
        return flushes

    def _deletion(self, group_id: str) -> Callable[[bytes, int], Flushes]:
        def delete(topic_id: bytes, partition: int) -> Flushes:
            group = self._known_group(self._runtime.groups_of(group_id), group_id)
            if topic_id not in group.deleting:
                return ()  # a member that came between two slices had all its partitions start over
            return self.persister.delete_state(group_id, topic_id, partition)

        return delete

    def _still_there(self, group_id: str) -> ShareGroup | None:
        """Returns the group as it is behind the last slice, or None if it was removed. It is another object than before
        if its partition was read again between two slices."""
        try:
            return self._known_group(self._runtime.groups_of(group_id), group_id)
        except KafkaError:
            return None

    def _slices(
        self,
        group_id: str,
        partitions: Mapping[bytes, Iterable[int]],
        change: Callable[[bytes, int], Flushes],
        flushes: list[Flush],
        errors: dict[tuple[bytes, int], KafkaError],
    ) -> Generator[None, None, None]:
        """Change each state, a few in each turn of the loop."""
        number = 0
        for topic_id, found in partitions.items():
            for partition in found:
                if number and number % PARTITIONS_PER_SLICE == 0:
                    yield
                number += 1
                try:
                    once = partial(change, topic_id, partition)
                    flushes += yield from self.persister.once_loaded((group_id, topic_id, partition), once)
                except KafkaError as error:
                    errors[topic_id, partition] = error.without_frames()

    # --- deleted topics

    def on_topic_deleted(self, topic: Topic) -> None:
        """Forget the topic in all share groups. The share coordinator deletes its states. Partitions that are not
        loaded are handled after their load."""
        for partition in range(self._runtime.partitions.count()):
            self._runtime.loader.when_read(partition, self._forget_deleted)

    def find_deleted(self, partition: int, groups: Groups) -> Generator[None, None, None]:
        """Look for deleted topics in the share groups of a partition that was read: the broker may have been killed
        before it forgot them."""
        from kafka_shim.group import share_offsets
        from kafka_shim.group.share import ShareGroup

        for number, group in enumerate(list(groups.by_id.values()), 1):
            if isinstance(group, ShareGroup) and share_offsets.deleted_topics(group, self._runtime.image):
                self._runtime.loader.when_read(partition, self._forget_deleted)
                return
            if number % GROUPS_PER_STEP == 0:
                yield

    def _forget_deleted(self, groups: Groups) -> None:
        """Forget the topics that do not exist any more, now or later: a group that waits for one makes a new assignment
        at each heartbeat, and cannot be removed."""
        from kafka_shim.group import share_offsets
        from kafka_shim.group.share import ShareGroup

        runtime = self._runtime
        for group in [found for found in groups.by_id.values() if isinstance(found, ShareGroup)]:
            deleted = share_offsets.deleted_topics(group, runtime.image)
            if not deleted:
                continue
            try:
                self._write(group.group_id, share_offsets.forget_topics(group, deleted, runtime.image))
            except KafkaError as error:
                text = "share group %s forgets deleted topics later: %s"
                runtime.logs.services.refusals.write(text, group.group_id, error)
                if not runtime.scheduler.is_scheduled(FORGET):
                    runtime.scheduler.after(FORGET, FORGET_RETRY_MS, self._forget_again)

    def _forget_again(self) -> None:
        loader = self._runtime.loader
        for partition in list(loader.by_partition):
            groups = loader.current(partition)
            if groups is not None:  # else they are found when it is read again
                self._forget_deleted(groups)
