"""The group coordinator: one for all kinds of groups.

How a request is carried out is in `runtime`; the rules are in the other modules of this package. The groups of a
partition are loaded from its log on the first request for one of them, or soon after start-up, so that start-up does
not pay for it.
"""

from __future__ import annotations

import logging
from functools import cached_property

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.decision import REBALANCE, REGEX, SESSION
from kafka_shim.group.offset_requests import OffsetRequests
from kafka_shim.group.runtime import RETRY_MS, CoordinatorRuntime
from kafka_shim.group.share_requests import ShareRequests
from kafka_shim.group.streams.requests import StreamsRequests
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.java_order import order_partitions, order_timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.group.classic_requests import ClassicRequests
    from kafka_shim.group.consumer_requests import ConsumerRequests
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.timers import Key
    from kafka_shim.metadata.image import Topic
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush, Flushes
    from kafka_shim.storage.logs import Logs
    from kafka_shim.turns import Steps

logger = logging.getLogger("kafka_shim.group")

# Matching expressions costs more than other timers do. If their records could not be written, they are retried only at
# the interval at which expressions are resolved.
REGEX_RETRY_MS = 10_000
# Sorting a partition with more groups than these would hold the loop; they are listed in the order of their creation.
MOST_IN_ORDER = 100


class GroupCoordinator:
    """Owned by the broker. Event-loop thread only. `start()` runs before the transaction coordinator resumes prepared
    transactions, because their markers commit or abort offsets. `stop()` ends timers and completes delayed requests.

    Requests of members are in `classic`, `consumer`, `share` and `streams`, those about offsets in `offsets`;
    administration is here. An error of one group as a whole is raised as KafkaError, which the handler turns into the
    response.
    """

    def __init__(
        self, *, clock: Clock, config: BrokerConfig, logs: Logs, metadata: MetadataStore, faults: Faults
    ) -> None:
        self._runtime = CoordinatorRuntime(clock, config, logs, metadata, faults, self._on_timer)
        self.streams = StreamsRequests(self._runtime)
        self.offsets = OffsetRequests(self._runtime)
        self.share = ShareRequests(self._runtime)
        self._runtime.timers.on_error = self._retry_timer
        # What the fast path of commits asks (`api.plain_commits`): which partition holds a group, and the groups of
        # each that was read, which may no longer be current.
        self.partitions = self._runtime.partitions
        self.by_partition = self._runtime.loader.by_partition
        self.move_timers = self._runtime.move_timers
        self.refusal_of = self._runtime.refusal_of

    # The first request of a protocol imports its rules, so that start-up does not pay for them.

    @cached_property
    def classic(self) -> ClassicRequests:
        """Requests of the classic protocol."""
        from kafka_shim.group.classic_requests import ClassicRequests

        return ClassicRequests(self._runtime)

    @cached_property
    def consumer(self) -> ConsumerRequests:
        """Requests of the consumer protocol."""
        from kafka_shim.group.consumer_requests import ConsumerRequests

        return ConsumerRequests(self._runtime)

    # --- life

    def start(self) -> None:
        """Subscribe to markers and topic changes, and start the timers. Groups are loaded when they are needed."""
        metadata = self._runtime.metadata
        self._runtime.logs.on_marker.append((GROUP_METADATA_TOPIC, self.offsets.on_marker))
        metadata.on_topic_created.append(self._on_topic_created)
        metadata.on_partitions_added.append(self._on_partitions_added)
        metadata.on_topic_deleted.append(self._on_topic_deleted)
        if GROUP_METADATA_TOPIC in metadata.image.topics:
            self._runtime.loader.start(self._runtime.partitions.count())
        self._runtime.start()
        interval_ms = self._runtime.config.offsets_retention_check_interval_ms
        self._runtime.scheduler.every("expiry", interval_ms, self._expire)

    def stop(self) -> None:
        """Stop the timers and complete delayed joins and syncs with NOT_COORDINATOR, so that their clients look up the
        coordinator again."""
        self._runtime.stop()

    def know_connected(self, has_member: Callable[[str, str], bool]) -> None:
        """`has_member(group_id, member_id)` returns whether a member's client is connected. It is called only under a
        virtual clock, when a member has sent nothing for its session or rebalance timeout."""

        def is_alive(key: Key) -> bool:
            return key[1] in (SESSION, REBALANCE) and has_member(key[0], key[2])

        self._runtime.timers.is_alive = is_alive

    def count_errors(self, count: Callable[[], None]) -> None:
        """Call `count()` after each unexpected error of a timer. Such a timer is tried again."""

        def on_error(key: Key) -> None:
            count()
            self._retry_timer(key)

        self._runtime.timers.on_error = on_error

    def _retry_timer(self, key: Key) -> None:
        self._runtime.timers.schedule(key, REGEX_RETRY_MS if key[1] == REGEX else RETRY_MS)

    def call_after_steps(self, function: Callable[[], object]) -> None:
        """Call `function` whenever a part of the log was loaded in the background."""
        self._runtime.loader.after_step = function

    @property
    def image(self) -> CoordinatorMetadataImage:
        """Options and topics, for the rules."""
        return self._runtime.image

    def partition_for(self, group_id: str) -> int:
        """Returns the partition of `__consumer_offsets` that holds this group."""
        return self._runtime.partition_for(group_id)

    # --- administration

    def all_groups(self) -> Steps[list[Group]]:
        """Returns all groups, in Kafka's order: partitions as in a Java map, and the groups of each as in Kafka's own.
        Those of a partition are of one moment. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        if GROUP_METADATA_TOPIC not in self._runtime.metadata.image.topics:
            return []
        partitions = order_partitions(GROUP_METADATA_TOPIC, range(self._runtime.partitions.count()))
        found = self._runtime.loader.all_groups(partitions)
        in_order: list[Group] = []
        for groups in found:
            in_order += [groups.by_id[group_id] for group_id in _in_order(groups.by_id)]
            yield
        return in_order

    def loaded(self) -> list[Groups]:
        """Returns the groups of each partition that was read, for metrics: unlike `all_groups` it reads nothing."""
        return list(self._runtime.loader.by_partition.values())

    def find(self, group_id: str) -> Group | None:
        """Returns one group. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        return self._runtime.groups_of(group_id).by_id.get(group_id)

    async def delete_group(self, group_id: str) -> list[Flush]:
        """DeleteGroups of one group. Returns the fsyncs that must finish before the response. Raises
        GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, COORDINATOR_LOAD_IN_PROGRESS."""
        from kafka_shim.group.kinds import KINDS
        from kafka_shim.group.share import ShareGroup

        groups, group = self._deletable(group_id)
        flushes: list[Flush] = []
        if isinstance(group, ShareGroup):
            flushes += await self.share.before_delete(group)
            groups, group = self._deletable(group_id)  # a member may have come, or another deletion
        now_ms = self._runtime.clock.now_ms()
        deletion = KINDS[group.TYPE].delete(group)
        flushes += self.offsets.delete_all(groups, group_id, deletion, now_ms)
        flushes += self._runtime.decide(group_id, deletion, now_ms).flushes
        self.share.removed(group_id)
        return flushes

    def _deletable(self, group_id: str) -> tuple[Groups, Group]:
        groups = self._runtime.groups_of(group_id)
        group = groups.by_id.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_delete()
        return groups, group

    def _remove(self, groups: Groups, group: Group, now_ms: int) -> Flushes:
        from kafka_shim.group.kinds import KINDS

        return self._runtime.decide(group.group_id, KINDS[group.TYPE].delete(group), now_ms).flushes

    # --- time

    def _on_timer(self, key: Key) -> None:
        try:
            self._on_time(key)
        except KafkaError as error:
            # Of all members each second, while a disk is full.
            refusals = self._runtime.logs.services.refusals
            refusals.write("timer %s of group %s: %s; it is tried again", key[1], key[0], error)
            self._retry_timer(key)

    def _on_time(self, key: Key) -> None:
        from kafka_shim.group.kinds import KINDS

        group_id, timer, member_id = key
        runtime = self._runtime
        now_ms = runtime.clock.now_ms()
        partition = runtime.partition_for(group_id)
        groups = runtime.loader.groups(partition)
        group = groups.by_id.get(group_id)
        if group is None:
            return
        with groups:  # rules change at once what no record holds
            decision = KINDS[group.TYPE].on_timer(group, timer, member_id, runtime.image, now_ms)
            runtime.carry_out_within(partition, groups, decision, now_ms)
        if timer != REGEX:
            _say_over(group, timer, member_id)

    def _expire(self) -> None:
        self._runtime.scheduler.in_slices("slices of expiry", self.offsets.expire(self._remove))

    # --- topics

    def _on_topic_created(self, topic: Topic) -> None:
        self.image.newest_topics_version = self._runtime.metadata.image.last_offset
        self._on_topic_changed(topic)

    def _on_partitions_added(self, topic: Topic, first_new: int) -> None:
        self._on_topic_changed(topic)

    def _on_topic_changed(self, topic: Topic) -> None:
        self.image.forget_topic_hash(topic.name)
        read = self._runtime.loader.by_partition
        if not read:
            return
        from kafka_shim.group.kinds import KINDS

        for groups in read.values():
            for group in groups.by_id.values():
                KINDS[group.TYPE].on_topic_changed(group, topic.name)

    def _on_topic_deleted(self, topic: Topic) -> None:
        if topic.name == GROUP_METADATA_TOPIC:
            self._runtime.partitions.forget()
            self._runtime.loader.forget()
            self.offsets.deleted.forget()
            self._runtime.dismiss()
            return
        self._on_topic_changed(topic)
        if GROUP_METADATA_TOPIC in self._runtime.metadata.image.topics:
            self.offsets.deleted.on_topic_deleted(topic)
            self.share.on_topic_deleted(topic)


def _in_order(by_id: dict[str, Group]) -> Iterable[str]:
    return order_timeline(by_id) if len(by_id) <= MOST_IN_ORDER else by_id


def _say_over(group: Group, timer: str, member_id: str) -> None:
    whose = f"the {timer} time of {member_id}" if member_id else f"its {timer} time"
    logger.info("group %s, now %s: %s is over", group.group_id, group.state_name, whose)
