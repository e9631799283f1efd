"""The metadata store: the one place where topics, configurations, features and producer-id blocks are decided and kept.

`commit(records)` appends to `__cluster_metadata-0`, then applies to the `Image`; start-up replays the same records through
the same `apply`. There is no other store. Nothing is awaited between a decision and its apply, so a method that is a
plain `def` is atomic on the event loop; when it returns, its records are with the operating system (they survive
SIGKILL). `await store.flushed()` returns when all that was committed before the call is fsynced, as KRaft does before
it answers; the admin handlers await it.
"""

from __future__ import annotations

from shim.metadata.image import Image, Topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from shim.config import TopicConfig

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


class MetadataStore:
    """Owned by the broker; event-loop thread only. `start()` replays, `stop()` fsyncs and closes."""

    image: Image
    # Called after the commit that made or removed them: on_topic_created(topic), on_partitions_added(topic, first_new),
    # on_topic_deleted(topic), on_topic_config_changed(name, config). The logs exist (or are gone) when they are called.
    on_topic_created: list[Callable[[Topic], None]]
    on_partitions_added: list[Callable[[Topic, int], None]]
    on_topic_deleted: list[Callable[[Topic], None]]
    on_topic_config_changed: list[Callable[[str, TopicConfig], None]]
    # Called with (resource type, resource name) after each committed change of any configuration.
    on_config_changed: list[Callable[[int, str], None]]

    def commit(self, records: Sequence[Any]) -> int:
        """Append the record messages (of `shim.protocol.records`) as one batch, apply them; returns the last offset."""
        raise NotImplementedError

    async def flushed(self) -> None:
        """Returns when everything committed before this call is fsynced. KafkaError KAFKA_STORAGE_ERROR if it cannot be."""
        raise NotImplementedError

    def topic(self, name: str) -> Topic:
        """The topic of that name. KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
        raise NotImplementedError

    def topic_by_id(self, topic_id: bytes) -> Topic:
        """The topic of that id of 16 bytes. KafkaError UNKNOWN_TOPIC_ID."""
        raise NotImplementedError

    def topic_config(self, name: str) -> TopicConfig:
        """The topic's effective options: its overrides over dynamic broker options over the static ones. Cached."""
        raise NotImplementedError

    def feature(self, name: str) -> int:
        """The finalised level of a feature, 0 when it is not finalised (`group.version`, `transaction.version`, ...)."""
        raise NotImplementedError

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create one topic and its logs. KafkaError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
        INVALID_REPLICATION_FACTOR, INVALID_CONFIG. -1 takes the broker's default."""
        raise NotImplementedError

    def auto_create_topic(self, name: str) -> Topic:
        """What Metadata does for an unknown topic when `auto.create.topics.enable`; internal names get their own options."""
        raise NotImplementedError

    def ensure_internal_topic(self, name: str) -> Topic:
        """`__consumer_offsets` or `__transaction_state`, made with Kafka's options on first use (50 partitions, compact)."""
        raise NotImplementedError

    def create_partitions(self, name: str, total: int) -> Topic:
        """Grow a topic to `total` partitions. KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS."""
        raise NotImplementedError

    def delete_topic(self, name: str) -> None:
        """Remove the topic, its options and its logs; the name is free when this returns."""
        raise NotImplementedError

    def next_producer_id_block(self) -> tuple[int, int]:
        """Reserve the next block of producer ids: (first id, count of 1000). Recorded before it returns.

        KafkaError COORDINATOR_LOAD_IN_PROGRESS when no whole block is left below 2**63.
        """
        raise NotImplementedError
