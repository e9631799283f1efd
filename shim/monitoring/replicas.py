"""Whether partitions have the replicas that they should have (Kafka: Partition, ReplicaManager)."""

from __future__ import annotations

from kafka_shim.metadata.dynamic_config import MIN_ISR
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC
from kafka_shim.monitoring.families import OF_PARTITION, Family, gauge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.broker import Broker
    from kafka_shim.metadata.image import Partition
    from kafka_shim.storage.log import PartitionLog

# Partitions that are looked at in one turn of the event loop.
SLICE = 500
PARTITION, MANAGER = "kafka_cluster_partition", "kafka_server_replicamanager"


class Counts:
    """The partitions of one state of the metadata, named by the offset of its last record."""

    __slots__ = ("at_min_isr", "offset", "reassigning", "under_min_isr", "under_replicated")

    def __init__(self, offset: int = -2) -> None:
        self.offset = offset
        self.under_replicated = self.under_min_isr = self.at_min_isr = self.reassigning = 0


class Replicas:
    """Counts all partitions, and has series of those that are shown."""

    def __init__(self, broker: Broker, counts: Counts) -> None:
        self._counts = counts
        self._image = broker.metadata.image
        of_all = self._image.configs.get((RESOURCE_BROKER, ""), {}).get(MIN_ISR)
        self._min_isr = int(of_all or broker.config.min_insync_replicas)
        self._families = (
            Family("gauge", f"{PARTITION}_replicascount", "Replicas of a partition.", OF_PARTITION),
            Family("gauge", f"{PARTITION}_insyncreplicascount", "Its replicas in sync.", OF_PARTITION),
            Family("gauge", f"{PARTITION}_underreplicated", "1: one is not in sync.", OF_PARTITION),
            Family("gauge", f"{PARTITION}_underminisr", "1: fewer than it needs.", OF_PARTITION),
            Family("gauge", f"{PARTITION}_atminisr", "1: just as many as it needs.", OF_PARTITION),
            Family("gauge", f"{PARTITION}_laststableoffsetlag", "Offsets that readers wait for.", OF_PARTITION),
        )

    def slices(self) -> Iterator[None]:
        """Looks at all partitions, unless the counts are those of these metadata. Yields now and then."""
        if self._counts.offset == self._image.last_offset:
            return
        counts = Counts(self._image.last_offset)
        number = 0
        for topic in list(self._image.topics.values()):
            least = self._least(topic.name)
            for partition in topic.partitions:
                in_sync, wanted = len(partition.isr), min(least, len(partition.replicas))
                counts.under_replicated += in_sync < len(partition.replicas)
                counts.under_min_isr += in_sync < wanted
                counts.at_min_isr += in_sync == wanted
                counts.reassigning += bool(partition.adding_replicas or partition.removing_replicas)
                number += 1
                if number % SLICE == 0:
                    yield
        for name in Counts.__slots__:
            setattr(self._counts, name, getattr(counts, name))

    def add(self, log: PartitionLog, where: str) -> None:
        """One of the partitions that are shown. `where` are its labels."""
        found = self._image.topics.get(log.topic)
        if found is None or log.partition >= len(found.partitions):
            return
        partition: Partition = found.partitions[log.partition]
        replicas, in_sync = len(partition.replicas), len(partition.isr)
        wanted = min(self._least(log.topic), replicas)
        lag = log.high_watermark - log.last_stable_offset
        values = (replicas, in_sync, int(in_sync < replicas), int(in_sync < wanted), int(in_sync == wanted), lag)
        for family, value in zip(self._families, values, strict=True):
            family.put(where, value)

    def _least(self, topic: str) -> int:
        """min.insync.replicas of a topic."""
        return int(self._image.configs.get((RESOURCE_TOPIC, topic), {}).get(MIN_ISR) or self._min_isr)

    def families(self) -> list[Family]:
        counts = self._counts
        return [
            gauge(f"{MANAGER}_underreplicatedpartitions", "Partitions with too few in sync.", counts.under_replicated),
            gauge(f"{MANAGER}_underminisrpartitioncount", "Partitions with fewer than needed.", counts.under_min_isr),
            gauge(f"{MANAGER}_atminisrpartitioncount", "Partitions with just as many as needed.", counts.at_min_isr),
            gauge(f"{MANAGER}_reassigningpartitions", "Partitions that move.", counts.reassigning),
            *self._families,
        ]
