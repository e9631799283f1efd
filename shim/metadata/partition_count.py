"""Among how many partitions of an internal topic its coordinator divides what it keeps."""

from __future__ import annotations

from kafka_shim.cext.classic_requests import PartitionCountBase
from kafka_shim.java_hash import internal_partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.metadata.store import MetadataStore


class PartitionCount(PartitionCountBase):
    """The count is the topic's when it was first asked for. Partitions that are added hold nothing before the next
    start, as in Kafka, whose coordinators take the count once: all keys would be elsewhere at once, without what was
    stored of them. `default` is for a topic that does not exist yet."""

    __slots__ = ("_default", "_metadata", "_topic")

    def __init__(self, metadata: MetadataStore, topic: str, default: int) -> None:
        self._metadata = metadata
        self._topic = topic
        self._default = default
        # 0: nobody asked while the topic existed.
        self.known = 0

    def count(self) -> int:
        """Returns how many they are, also if the topic does not exist yet."""
        if not self.known:
            topic = self._metadata.image.topics.get(self._topic)
            if topic is None:
                return self._default
            self.known = len(topic.partitions)
        return self.known

    def of(self, key: str) -> int:
        """Returns the partition of a key, such as a group's id."""
        return internal_partition(key, self.count())

    def forget(self) -> None:
        """The topic was deleted."""
        self.known = 0
