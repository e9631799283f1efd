"""What group rules see besides the group: options, topics, new ids (Kafka's CoordinatorMetadataImage).

No clock is kept here: each rule gets the time as an argument.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.java_order import copied_table_size, order_strings
from kafka_shim.metadata.image import RESOURCE_GROUP, RESOURCE_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.image import Image


# How long a new classic group without an initial delay waits for members that have their ids and have not joined with
# them yet. Those that come a little later would wait for the next heartbeat of those that were in time.
GATHERING_MS = 5


class CoordinatorMetadataImage:
    """Created by the coordinator."""

    def __init__(self, config: BrokerConfig, metadata: Image, clock: Clock) -> None:
        self.config = config
        self.metadata = metadata
        self.random = clock.random
        # 0 under a virtual clock, which perhaps nobody advances meanwhile.
        self.gathering_ms = 0 if clock.is_virtual else GATHERING_MS
        # The offset of the metadata log when a topic was last created. Expressions that were resolved before it are
        # stale.
        self.newest_topics_version = metadata.last_offset
        self._topic_hashes: dict[str, int] = {}

    # --- topics

    def topic_ids(self, names: Iterable[str]) -> set[bytes]:
        """Returns the ids of the topics that exist."""
        topics = self.metadata.topics
        return {topics[name].topic_id for name in names if name in topics}

    def ordered_topic_ids(self, names: frozenset[str]) -> dict[bytes, None]:
        """Returns the same ids in the order in which Kafka iterates over a set of the names."""
        topics = self.metadata.topics
        ordered = order_strings(sorted(names), copied_table_size(len(names)))
        return {topics[name].topic_id: None for name in ordered if name in topics}

    def partition_count(self, topic_id: bytes) -> int:
        """Returns the partition count, or -1 for a topic that does not exist."""
        topic = self.metadata.topics_by_id.get(topic_id)
        return -1 if topic is None else len(topic.partitions)

    def forget_topic_hash(self, name: str) -> None:
        """Drop the cached hash of a topic that changed."""
        self._topic_hashes.pop(name, None)

    def metadata_hash(self, names: Iterable[str]) -> int:
        """Returns one hash that changes when one of these topics is created, deleted, or gets partitions (KIP-1101)."""
        found = sorted(name for name in names if name in self.metadata.topics)
        if not found:
            return 0
        from kafka_shim.group.topic_hash import combine, hash_topic

        hashes = []
        for name in found:
            value = self._topic_hashes.get(name)
            if value is None:
                value = self._topic_hashes[name] = hash_topic(self.metadata.topics[name], self.config.broker_rack)
            hashes.append(value)
        return combine(hashes)

    # --- options of one group

    def may_hold(self, size_bytes: int) -> bool:
        """Whether a batch of `__consumer_offsets` may hold records of at least so many bytes. Who has more is refused
        before memory and time are spent on them, with Kafka's answer when the append fails: UNKNOWN_SERVER_ERROR."""
        if self.config.offsets_topic_compression_codec:
            return True
        text = self.metadata.config_of(RESOURCE_TOPIC, GROUP_METADATA_TOPIC).get("max.message.bytes")
        return size_bytes <= (self.config.message_max_bytes if text is None else int(text))

    def check_names(self, names: Collection[str]) -> None:
        """Raises UNKNOWN_SERVER_ERROR for more topics than the record of a member may name (`may_hold`)."""
        if not self.may_hold(sum(map(len, names)) + len(names)):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _group_option(self, group_id: str, name: str, default: int) -> int:
        options = self.metadata.configs.get((RESOURCE_GROUP, group_id))
        return default if options is None or name not in options else int(options[name])

    def _bounded_option(self, group_id: str, name: str, default: int, least: int, most: int) -> int:
        """A group's option within the broker's bounds, which may have changed since the option was stored."""
        text = self.metadata.config_of(RESOURCE_GROUP, group_id).get(name)
        return default if text is None else min(max(int(text), least), most)

    def session_timeout_ms(self, group_id: str) -> int:
        """The session timeout of the consumer protocol."""
        config = self.config
        return self._bounded_option(
            group_id,
            "consumer.session.timeout.ms",
            config.group_consumer_session_timeout_ms,
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The heartbeat interval of the consumer protocol."""
        config = self.config
        return self._bounded_option(
            group_id,
            "consumer.heartbeat.interval.ms",
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        )

    def consumer_times_ms(self, group_id: str) -> tuple[int, int]:
        """Returns `session_timeout_ms` and `heartbeat_interval_ms`, which every heartbeat needs."""
        if (RESOURCE_GROUP, group_id) in self.metadata.configs:
            return self.session_timeout_ms(group_id), self.heartbeat_interval_ms(group_id)
        config = self.config
        return config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        """The minimum time between two target assignments of a group (KIP-1263)."""
        config = self.config
        return self._bounded_option(
            group_id,
            "consumer.assignment.interval.ms",
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        )

    def share_session_timeout_ms(self, group_id: str) -> int:
        """The session timeout of share groups."""
        config = self.config
        return self._bounded_option(
            group_id,
            "share.session.timeout.ms",
            config.group_share_session_timeout_ms,
            config.group_share_min_session_timeout_ms,
            config.group_share_max_session_timeout_ms,
        )

    def share_heartbeat_interval_ms(self, group_id: str) -> int:
        """The heartbeat interval of share groups."""
        config = self.config
        return self._bounded_option(
            group_id,
            "share.heartbeat.interval.ms",
            config.group_share_heartbeat_interval_ms,
            config.group_share_min_heartbeat_interval_ms,
            config.group_share_max_heartbeat_interval_ms,
        )

    def share_assignment_interval_ms(self, group_id: str) -> int:
        """The minimum time between two target assignments of a share group (KIP-1263)."""
        config = self.config
        return self._bounded_option(
            group_id,
            "share.assignment.interval.ms",
            config.group_share_assignment_interval_ms,
            config.group_share_min_assignment_interval_ms,
            config.group_share_max_assignment_interval_ms,
        )

    def streams_session_timeout_ms(self, group_id: str) -> int:
        """The session timeout of the streams protocol."""
        config = self.config
        return self._bounded_option(
            group_id,
            "streams.session.timeout.ms",
            config.group_streams_session_timeout_ms,
            config.group_streams_min_session_timeout_ms,
            config.group_streams_max_session_timeout_ms,
        )

    def streams_heartbeat_interval_ms(self, group_id: str) -> int:
        """The heartbeat interval of the streams protocol."""
        config = self.config
        return self._bounded_option(
            group_id,
            "streams.heartbeat.interval.ms",
            config.group_streams_heartbeat_interval_ms,
            config.group_streams_min_heartbeat_interval_ms,
            config.group_streams_max_heartbeat_interval_ms,
        )

    def streams_assignment_interval_ms(self, group_id: str) -> int:
        """The minimum time between two target assignments of a streams group."""
        config = self.config
        return self._bounded_option(
            group_id,
            "streams.assignment.interval.ms",
            config.group_streams_assignment_interval_ms,
            config.group_streams_min_assignment_interval_ms,
            config.group_streams_max_assignment_interval_ms,
        )

    def streams_standby_replicas(self, group_id: str) -> int:
        """The number of standby tasks for each task with state."""
        config = self.config
        return self._bounded_option(
            group_id,
            "streams.num.standby.replicas",
            config.group_streams_num_standby_replicas,
            0,
            config.group_streams_max_standby_replicas,
        )

    def streams_initial_rebalance_delay_ms(self, group_id: str) -> int:
        """How long the first members of a streams group wait for others."""
        default = self.config.group_streams_initial_rebalance_delay_ms
        return self._group_option(group_id, "streams.initial.rebalance.delay.ms", default)
