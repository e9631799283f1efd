"""Which directory of `log.dirs` holds which partition, as the metadata records it (KIP-858; Kafka: AssignmentsManager,
BrokerLifecycleManager, AssignReplicasToDirs), and which directories are cordoned (KIP-1066)."""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode

from kafka_shim.errors import KafkaError
from kafka_shim.metadata.features import CORDONED_DIRECTORIES, DIRECTORIES, METADATA_VERSION
from kafka_shim.plurals import counted
from kafka_shim.protocol.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_shim.protocol.records.partition_change_record import PartitionChangeRecord
from kafka_shim.scheduler import Scheduler
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.metadata.image import Image
    from kafka_shim.storage.checkpoint import Partition
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger(__name__)

# DirectoryId of Kafka: a directory that nobody recorded yet, none chosen yet, and one that is offline.
MIGRATING, UNASSIGNED, LOST = bytes(16), bytes(15) + b"\x01", bytes(15) + b"\x02"

# For how long new partitions are collected, so that a topic of many partitions needs one batch of records.
COLLECT_MS = 50
RETRY_MS = 5000
BATCH = 2000


class Assignments:
    """Records directories of partitions. Owned by the metadata store. Event-loop thread only."""

    def __init__(
        self,
        image: Image,
        logs: Logs,
        clock: Clock,
        node_id: int,
        commit: Callable[[Sequence[Any]], Any],
        resume: Callable[[], None],
    ) -> None:
        self._image = image
        self._logs = logs
        self._node_id = node_id
        self._commit = commit
        self._resume = resume
        self._scheduler = Scheduler(clock)
        # Partitions whose directory may not be recorded yet. Ordered.
        self._unrecorded: dict[Partition, None] = {}
        logs.know_assignments(self.assigned, self.assign, self.placed)

    def assigned(self, key: Partition) -> str:
        """Return the id of the directory that the metadata records for this node's replica of a partition, or an empty
        string."""
        partition = self._image.partition(*key)
        if partition is None or self._node_id not in partition.replicas or not partition.directories:
            return ""
        directory_id = partition.directories[partition.replicas.index(self._node_id)]
        return "" if directory_id in (MIGRATING, UNASSIGNED, LOST) else uuid_text(directory_id)

    def assign(self, key: Partition, directory_id: str) -> None:
        """Record the directory of one partition. Raises KafkaError."""
        self._resume()  # an earlier record may be in the log alone, and name another one
        records = self._records([(key, directory_id)])
        if records:
            self._commit(records)()
        self._unrecorded.pop(key, None)

    def placed(self, key: Partition) -> None:
        """Record soon in which directory a new partition is. With one directory it was recorded with the topic."""
        if len(self._logs.log_dirs.live) > 1:
            self._unrecorded[key] = None
            if not self._scheduler.is_scheduled("assign"):
                self._scheduler.every("assign", RETRY_MS, self.assign_all, first_ms=COLLECT_MS)

    def find_unrecorded(self) -> None:
        """Look for partitions whose directory is not recorded, at a start: another broker had no directory ids, or a
        crash came before the record."""
        for topic in self._image.topics.values():
            for partition in topic.partitions:
                key = (topic.name, partition.partition)
                if self._node_id in partition.replicas and self._logs.directory_id(*key) not in (
                    "",
                    self.assigned(key),
                ):
                    self._unrecorded[key] = None
        if self._unrecorded:
            self.assign_all()

    def assign_all(self) -> None:
        """Record the directories of all partitions that `placed` and `find_unrecorded` collected."""
        while self._unrecorded:
            keys = list(self._unrecorded)[:BATCH]
            try:
                records = self._records([(key, self._logs.directory_id(*key)) for key in keys])
                if records:
                    self._commit(records)
            except (KafkaError, OSError, MemoryError) as err:
                reason = str(err) or "there is no memory"
                count = counted(len(self._unrecorded), "partition")
                logger.warning("the directories of %s are recorded later: %s", count, reason)
                if not self._scheduler.is_scheduled("assign"):
                    self._scheduler.every("assign", RETRY_MS, self.assign_all)
                return
            for key in keys:
                self._unrecorded.pop(key, None)
        self._scheduler.cancel("assign")

    def _records(self, places: list[tuple[Partition, str]]) -> list[PartitionChangeRecord]:
        """Return the records that name these directories; none for a partition that is gone or has it recorded, or if
        metadata.version has no directory ids."""
        records: list[PartitionChangeRecord] = []
        if self._image.features.get(METADATA_VERSION, 0) < DIRECTORIES:
            return records
        for key, directory_id in places:
            partition = self._image.partition(*key)
            if partition is None or not directory_id or self.assigned(key) == directory_id:
                continue
            ids = list(partition.directories) or [MIGRATING] * len(partition.replicas)
            ids[partition.replicas.index(self._node_id)] = _raw(directory_id)
            topic_id = self._image.topics[key[0]].topic_id
            records.append(PartitionChangeRecord(partition_id=key[1], topic_id=topic_id, directories=ids))
        return records

    # --- cordoned directories

    def record_cordoned(self) -> None:
        """Record which directories are cordoned, if that changed and metadata.version knows of it."""
        broker = self._image.brokers.get(self._node_id)
        if broker is None or self._image.features.get(METADATA_VERSION, 0) < CORDONED_DIRECTORIES:
            return
        dirs = self._logs.log_dirs
        cordoned = [_raw(one.directory_id) for one in dirs.live if dirs.is_cordoned(one)]
        known = broker.cordoned_log_dirs
        if known is None or set(known) != set(cordoned):
            record = BrokerRegistrationChangeRecord(
                broker_id=self._node_id, broker_epoch=broker.broker_epoch, cordoned_log_dirs=cordoned
            )
            self._commit([record])

    def stop(self) -> None:
        """Cancel the timer. The next start finds what is not recorded."""
        self._scheduler.stop()


def all_cordoned(image: Image, node_id: int) -> bool:
    """Whether no directory of a node takes new partitions, as the metadata has it (BrokerRegistration:
    hasUncordonedDirs)."""
    broker = image.brokers.get(node_id)
    if broker is None or not broker.log_dirs or broker.cordoned_log_dirs is None:
        return False
    return not set(broker.log_dirs) - set(broker.cordoned_log_dirs)


def _raw(directory_id: str) -> bytes:
    return urlsafe_b64decode(directory_id + "==")
