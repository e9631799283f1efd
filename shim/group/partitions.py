"""Which partition of `__consumer_offsets` holds a group."""

from __future__ import annotations

import logging

from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.java_hash import internal_partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from kafka_shim.config import BrokerConfig
    from kafka_shim.group.groups import Groups
    from kafka_shim.metadata.store import MetadataStore

logger = logging.getLogger("kafka_shim.group")

# Groups per step.
LOOKS_PER_STEP = 2000


class GroupPartitions:
    """Owned by the runtime. Partitions that are added to the topic hold no group before the next start, as in Kafka:
    all groups would be elsewhere at once, without their offsets and those who wait in them."""

    __slots__ = ("_config", "_metadata", "known")

    def __init__(self, config: BrokerConfig, metadata: MetadataStore) -> None:
        self._config = config
        self._metadata = metadata
        # The topic's partition count when it was first asked for; 0: nobody asked while the topic existed.
        self.known = 0

    def count(self) -> int:
        """Returns among how many partitions the groups are divided, also if the topic does not exist yet."""
        if not self.known:
            topic = self._metadata.image.topics.get(GROUP_METADATA_TOPIC)
            if topic is None:
                return self._config.offsets_topic_num_partitions
            self.known = len(topic.partitions)
        return self.known

    def of(self, group_id: str) -> int:
        """Returns the partition of this group."""
        return internal_partition(group_id, self.count())

    def forget(self) -> None:
        """The topic was deleted."""
        self.known = 0

    def leave_out_others(self, partition: int, groups: Groups) -> Generator[None, None, None]:
        """Leave out, in steps, what was read of groups that are in another partition since the topic has more: nobody
        finds them here, and what their timers and their expiry write would be of the groups of their ids there."""
        others: set[str] = set()
        for number, group_id in enumerate(_ids(groups), 1):
            if self.of(group_id) != partition:
                others.add(group_id)
                groups.by_id.pop(group_id, None)
                groups.offsets.leave_out(group_id)
            if number % LOOKS_PER_STEP == 0:
                yield
        if not others:
            return
        yield from groups.offsets.leave_out_pending(others)
        text = "%s-%d: left out the groups that are elsewhere since the topic has %d partitions: %d, such as %s"
        logger.warning(text, GROUP_METADATA_TOPIC, partition, self.count(), len(others), next(iter(others)))


def _ids(groups: Groups) -> Iterator[str]:
    """Yields the ids of groups, and then those of which there are offsets: some come twice."""
    yield from list(groups.by_id)
    yield from groups.offsets.all_group_ids()
