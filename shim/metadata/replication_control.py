"""Creates, grows and deletes topics (Kafka: ReplicationControlManager).

The records of a change are committed before its logs are created or renamed, and nothing is awaited in between.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.metadata import topics
from kafka_shim.metadata.announcements import warn_of_idle
from kafka_shim.metadata.image import RESOURCE_TOPIC, Image, Topic
from kafka_shim.metadata.prepared_changes import commit_in_steps
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.remove_topic_record import RemoveTopicRecord
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.after_commit import AfterCommit
    from kafka_shim.metadata.authors import Author
    from kafka_shim.metadata.dynamic_config import DynamicConfig
    from kafka_shim.metadata.partition_logs import PartitionLogs
    from kafka_shim.metadata.policies import Policies
    from kafka_shim.metadata.prepared_changes import PreparedChange
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.logs import Logs
    from kafka_shim.turns import Steps

# Partitions of one new topic that are made in a step: half a millisecond.
PARTITIONS_PER_STEP = 256


class ReplicationControl:
    """The base of `MetadataStore`, which sets what is declared here. Event-loop thread only."""

    config: BrokerConfig
    node_id: int
    image: Image
    policies: Policies | None
    on_topic_created: list[Callable[[Topic], None]]
    on_partitions_added: list[Callable[[Topic, int], None]]
    on_topic_deleted: list[Callable[[Topic], None]]
    _after: AfterCommit
    _clock: Clock
    _logs: Logs
    _options: DynamicConfig
    _partition_logs: PartitionLogs

    def commit(
        self,
        records: Sequence[Any],
        prepared: PreparedChange | None = None,
        then: Sequence[Callable[[], object]] = (),
        by: Author | None = None,
    ) -> Callable[[], Flush | None]:
        """See `MetadataStore.commit`."""
        raise NotImplementedError

    async def flushed(self) -> None:
        """See `MetadataStore.flushed`."""
        raise NotImplementedError

    def begin_flush(self) -> None:
        """See `MetadataStore.begin_flush`."""
        raise NotImplementedError

    def topic(self, name: str) -> Topic:
        """Return the topic of this name. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
        found = self.image.topics.get(name)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topics.UNKNOWN_TOPIC_MESSAGE)
        return found

    def topic_by_id(self, topic_id: bytes) -> Topic:
        """Return the topic of this 16-byte id. Raises KafkaError UNKNOWN_TOPIC_ID."""
        found = self.image.topics_by_id.get(topic_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, topics.UNKNOWN_TOPIC_ID_MESSAGE)
        return found

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        assignments: Sequence[tuple[int, list[int]]] = (),
    ) -> Topic:
        """Create one topic and its logs. -1 means the broker's default. The caller has checked `configs`. Raises
        KafkaError TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, and the errors of `topics.decide_replicas`."""
        topics.check_new_name(self.image, name)
        replicas = self.decide_replicas(partitions, replication_factor, assignments)
        return self.create_topics([(name, replicas, configs or {})])[0]

    def decide_replicas(
        self, partitions: int, replication_factor: int, assignments: Sequence[tuple[int, list[int]]]
    ) -> list[list[int]]:
        """Return the replicas of a new topic, with this broker's defaults (see `topics.decide_replicas`). Changes
        nothing."""
        defaults = (self.config.num_partitions, self.config.default_replication_factor)
        return topics.decide_replicas(self.image, partitions, replication_factor, assignments, self.node_id, defaults)

    def create_topics(
        self,
        new: Sequence[tuple[str, list[list[int]], Mapping[str, str]]],
        *,
        later: bool = False,
        by: Author | None = None,
    ) -> list[Topic]:
        """Create topics and their logs; the records are committed in one batch. `new` are (name, replicas of each
        partition, options), already checked. With `later` the logs are created later, and the caller awaits
        `await_log_changes`."""
        records: list[Any] = []
        for name, replicas, configs in new:
            records += at_once(self.creation_records(name, replicas, configs))
        return self.commit_topics([name for name, _, _ in new], records, later=later, by=by)

    def creation_records(self, name: str, replicas: list[list[int]], configs: Mapping[str, str]) -> Steps[list[Any]]:
        """Return the records that create a topic, the TopicRecord first. What they say was checked."""
        topic_id = self._clock.random.uuid()
        options = [
            ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=name, name=option, value=value)
            for option, value in configs.items()
        ]
        records = topics.topic_records(name, topic_id, options)
        return records + (yield from self._partition_records(topic_id, 0, replicas))

    def _partition_records(self, topic_id: bytes, first: int, replicas: list[list[int]]) -> Steps[list[Any]]:
        """Return the records of new partitions, numbered from `first`."""
        directory_id = self._partition_logs.placement()
        records: list[Any] = []
        for start in range(0, len(replicas), PARTITIONS_PER_STEP):
            if start:
                yield
            some = replicas[start : start + PARTITIONS_PER_STEP]
            records += topics.partition_records(topic_id, first + start, some, self.node_id, directory_id)
        return records

    def commit_topics(
        self, names: Sequence[str], records: Sequence[Any], *, later: bool = False, by: Author | None = None
    ) -> list[Topic]:
        """Commit the `creation_records` of these topics in one batch, and create their logs."""
        failures: list[KafkaError] = []
        self._commit_and_follow(records, [partial(self._topic_created, name, later, failures) for name in names], by)
        if failures:
            raise failures[0]
        return [self.image.topics[name] for name in names]

    def _commit_and_follow(
        self, records: Sequence[Any], then: Sequence[Callable[[], object]], by: Author | None = None
    ) -> None:
        """As `commit_and_follow`, of records that may be options without effect."""
        self.commit_and_follow(records, [partial(warn_of_idle, records), *then], by=by)

    def commit_and_follow(
        self,
        records: Sequence[Any],
        then: Sequence[Callable[[], object]],
        prepared: PreparedChange | None = None,
        by: Author | None = None,
    ) -> None:
        """Commit these records, and do what comes then: later where memory ends on the way. A step may be called again
        after it failed half-way. `prepared` and `by` as for `commit`."""
        try:
            self.commit(records, prepared, then, by)
            self._after.run()
        except MemoryError:
            self._after.try_later()
            raise

    def _topic_created(self, name: str, later: bool, failures: list[KafkaError]) -> None:
        topic = self.image.topics.get(name)
        if topic is not None:  # else it was deleted before there was memory for this
            failures += self._partition_logs.create(topic, topic.partitions, later=later)
            for hook in self.on_topic_created:
                hook(topic)

    def commit_topics_in_steps(
        self, names: Sequence[str], records: Sequence[Any], prepared: PreparedChange, by: Author | None = None
    ) -> Steps[None]:
        """Commit the `creation_records` of these topics in one batch in the first step, then have their logs created
        later: the caller awaits `await_log_changes`. As in Kafka the topics are known before their logs are."""
        commit, follow = partial(self.commit, records, prepared), partial(self._topics_created, deque(names))
        return commit_in_steps(commit, self._after, prepared, follow, records, by)

    def _topics_created(self, names: deque[str]) -> Steps[None]:
        """As `_topic_created` with `later` of each, which is taken from `names`. After a MemoryError, again."""
        while names:
            topic = self.image.topics.get(names[0])
            if topic is not None:  # else it was deleted meanwhile
                yield from self._large_topic_created(topic)
            del names[0]
            yield

    def _large_topic_created(self, topic: Topic) -> Steps[None]:
        if (yield from self._logs_created(topic, 0)):
            for hook in self.on_topic_created:
                hook(topic)

    def _logs_created(self, topic: Topic, first: int) -> Steps[bool]:
        """Have the logs of a topic created later, from partition `first` on. Returns False if it was deleted."""
        for number in range(first, len(topic.partitions), PARTITIONS_PER_STEP):
            if number > first:
                yield
            if self.image.topics_by_id.get(topic.topic_id) is not topic:
                return False
            some = topic.partitions[number : number + PARTITIONS_PER_STEP]
            self._partition_logs.create(topic, some, later=True)
        return True

    def auto_create_topic(
        self, name: str, *, quota: Callable[[int], None] | None = None, by: Author | None = None
    ) -> Topic:
        """Create an unknown topic for a Metadata request if auto-creation is enabled. Internal topics get their own
        options. The directories are created after this method returns, or at the first use of a partition. `quota` is
        told the number of partitions before. Nobody waits for the fsync, but that of a record which `flush.messages`
        demands comes after it: what is acknowledged then has its topic on the disk too. Raises KafkaError."""
        topics.check_new_name(self.image, name)
        partitions, configs = topics.internal_options(self.config, name) if name in INTERNAL_TOPICS else (-1, {})
        replicas = self.decide_replicas(partitions, 1 if configs else -1, ())
        if self.policies is not None:
            self.policies.check_options_of_new_topic(name, configs)
            self.policies.check_new_topic(name, replicas, configs)
        if quota is not None:
            quota(len(replicas))
        (topic,) = self.create_topics([(name, replicas, configs)], later=True, by=by)
        self.begin_flush()
        self._partition_logs.finish_soon()
        return topic

    def ensure_internal_topic(self, name: str) -> Topic:
        """Return `__consumer_offsets`, `__transaction_state` or `__share_group_state`. Its first use creates it with
        Kafka's options (50 partitions by default). The directories are created as those of `auto_create_topic`."""
        return self.image.topics.get(name) or self.auto_create_topic(name)

    def create_partitions(self, name: str, total: int, *, later: bool = False) -> None:
        """Increase the partitions of a topic to `total`. With `later` the logs are created later, and the caller awaits
        `await_log_changes`. Raises the errors of `topics.decide_growth`."""
        replicas = self.decide_growth(name, total, None)
        topic = self.image.topics[name]
        first = len(topic.partitions)
        failures: list[KafkaError] = []
        records = at_once(self.growth_records(topic, replicas))
        self._commit_and_follow(records, [partial(self._partitions_added, topic, first, later, failures)])
        if failures:
            raise failures[0]

    def decide_growth(
        self,
        name: str,
        total: int,
        assignments: Sequence[list[int]] | None,
        most: int = topics.MAX_PARTITIONS_PER_REQUEST,
    ) -> list[list[int]]:
        """Return the replicas of each new partition (see `topics.decide_growth`). Changes nothing."""
        return topics.decide_growth(self.image, name, total, assignments, self.node_id, most)

    def growth_records(self, topic: Topic, replicas: list[list[int]]) -> Steps[list[Any]]:
        """Return the records that add partitions to a topic. What they say was checked."""
        return self._partition_records(topic.topic_id, len(topic.partitions), replicas)

    def _partitions_added(self, topic: Topic, first: int, later: bool, failures: list[KafkaError]) -> None:
        if self.image.topics_by_id.get(topic.topic_id) is topic:
            failures += self._partition_logs.create(topic, topic.partitions[first:], later=later)
            for hook in self.on_partitions_added:
                hook(topic, first)

    def commit_partitions_in_steps(
        self,
        grown: Sequence[tuple[Topic, int]],
        records: Sequence[Any],
        prepared: PreparedChange,
        by: Author | None = None,
    ) -> Steps[None]:
        """Commit the `growth_records` of these topics, with the first new partition of each, as
        `commit_topics_in_steps` does."""
        commit, follow = partial(self.commit, records, prepared), partial(self._topics_grown, deque(grown))
        return commit_in_steps(commit, self._after, prepared, follow, by=by)

    def _topics_grown(self, grown: deque[tuple[Topic, int]]) -> Steps[None]:
        """Have the logs of new partitions created later, and take their topics from `grown`. After a MemoryError,
        again."""
        while grown:
            topic, first = grown[0]
            if (yield from self._logs_created(topic, first)):
                for hook in self.on_partitions_added:
                    hook(topic, first)
            del grown[0]
            yield

    def delete_topic(self, name: str, *, later: bool = False, by: Author | None = None) -> None:
        """Delete a topic, its options and its logs. The name can be reused when this returns. With `later` the
        directories are renamed later, and the caller awaits `await_log_changes`."""
        topic = self.topic(name)
        hooks = [partial(hook, topic) for hook in self.on_topic_deleted]
        then = [partial(self._topic_deleted, topic, later), *hooks]
        # Kafka reads the whole log at its first start on a directory. Of a topic that was created in the same log its
        # broker forgets no option with RemoveTopicRecord: the next topic of that name would have those of this one.
        options = [
            ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=name, name=option, value=None)
            for option in self.image.config_of(RESOURCE_TOPIC, name)
        ]
        self._commit_and_follow([*options, RemoveTopicRecord(topic_id=topic.topic_id)], then, by)

    def _topic_deleted(self, topic: Topic, later: bool) -> None:
        self._options.forget(topic.name)
        for partition in topic.partitions:
            if self.node_id in partition.replicas:
                self._logs.delete(topic.name, partition.partition, later=later)

    async def await_log_changes(self) -> None:
        """Create and rename the directories of logs that were created or deleted with `later`. Yields to the event loop
        between slices. As in Kafka a directory is given up only once the record of the deletion is on the disk, and a
        topic exists even if no directory could be made: its next use tries again. Raises KafkaError KAFKA_STORAGE_ERROR
        if the fsync fails."""
        await self._logs.finish_changes(self.flushed)
