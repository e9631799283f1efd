"""The logs of this node's partitions and the directories they are in, as the metadata wants them (Kafka:
ReplicaManager.applyDelta, AssignmentsManager)."""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode

from kafka_shim.errors import KafkaError
from kafka_shim.metadata.assignments import UNASSIGNED
from kafka_shim.metadata.features import DIRECTORIES, METADATA_VERSION
from kafka_shim.plurals import counted
from kafka_shim.storage.results import StorageError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Sequence

    from kafka_shim.config import BrokerConfig, TopicConfig
    from kafka_shim.metadata.image import Image, Partition, Topic
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger(__name__)
# Partitions that an error names.
SHOWN = 3


class PartitionLogs:
    """Owned by the metadata store, whose image it reads."""

    def __init__(
        self, config: BrokerConfig, image: Image, logs: Logs, topic_config: Callable[[str], TopicConfig]
    ) -> None:
        self._config = config
        self._image = image
        self._logs = logs
        self._topic_config = topic_config
        self._node_id = config.node_id
        # Tasks that create directories in the background.
        self.finishing: set[Task[None]] = set()

    def create_missing(self) -> None:
        """Create the logs of partitions that have none, because a crash came between the commit and the creation of the
        directory. Raises StorageError if the logs may be in a data directory that is now missing, because their records
        would be lost. If a directory failed at this start, the logs may be in it, and the partitions are offline."""
        self._require_directories()
        for topic in self._image.topics.values():
            self.create(topic, topic.partitions)

    def _require_directories(self) -> None:
        lost = self._lost_directories()
        failed = self._logs.failed_dirs
        if not lost and not failed:
            return
        absent = [
            (topic.name, partition.partition)
            for topic in self._image.topics.values()
            for partition in topic.partitions
            if self._node_id in partition.replicas and not self._logs.has(topic.name, partition.partition)
        ]
        if absent and failed:
            text = "%d partitions are offline until" if len(absent) > 1 else "%d partition is offline until"
            logger.error(f"{text} %s can be used again", len(absent), ", ".join(failed))
            self._logs.mark_absent(absent)
            return
        if absent:
            ids = ", ".join(uuid_text(one) for one in sorted(lost))
            some = ", ".join(f"{name}-{partition}" for name, partition in absent[:SHOWN])
            more = " ..." if len(absent) > SHOWN else ""
            raise StorageError(
                f"a data directory of the last start is missing (directory.id {ids}), and with it "
                f"{counted(len(absent), 'partition')} ({some}{more}): bring it back, or give up their records by "
                "making an empty directory for each of them"
            )

    def create(self, topic: Topic, partitions: Sequence[Partition], *, later: bool = False) -> list[KafkaError]:
        """Create the missing logs of a topic. Returns the errors instead of raising them, because the topic exists even
        so; the next use or start tries again."""
        config = self._topic_config(topic.name)
        failures: list[KafkaError] = []
        missing = [
            partition
            for partition in partitions
            if self._node_id in partition.replicas and not self._logs.has(topic.name, partition.partition)
        ]
        if later:
            self._logs.create_later((topic.name, partition.partition) for partition in missing)
            return failures
        for partition in missing:
            try:
                self._logs.create(topic.name, topic.topic_id, partition.partition, config, partition.leader_epoch)
            except KafkaError as err:
                logger.warning("%s", err)
                failures.append(err)
        return failures

    def _directory_ids(self) -> list[bytes]:
        return [urlsafe_b64decode(directory.directory_id + "==") for directory in self._logs.dirs]

    def _lost_directories(self) -> set[bytes]:
        """Return the directory ids of the last registration that no usable directory has."""
        broker = self._image.brokers.get(self._node_id)
        return set(broker.log_dirs if broker is not None else ()).difference(self._directory_ids())

    def registered_ids(self) -> list[bytes]:
        """Return the directory ids to register. If a directory failed at this start, the ids that no usable directory
        has stay registered, so that `_require_directories` can detect a missing directory at the next start."""
        lost = self._lost_directories() if self._logs.failed_dirs else ()
        return [*self._directory_ids(), *sorted(lost)]

    def placement(self) -> bytes | None:
        """Return the directory id to record for a new partition. With several directories it is DirectoryId.UNASSIGNED,
        because the log is placed after the record is written. None if metadata.version has no directory ids."""
        if self._image.features[METADATA_VERSION] < DIRECTORIES:
            return None
        ids = self._directory_ids()
        return ids[0] if len(self._config.log_dirs) == 1 else UNASSIGNED

    def finish_soon(self) -> None:
        """Start a background task that creates the directories in slices, so that other requests are served
        meanwhile."""
        from asyncio import get_running_loop

        try:
            task = get_running_loop().create_task(self._logs.finish_changes())
        except RuntimeError:
            return  # no event loop, as in a tool: the first use creates them
        self.finishing.add(task)
        task.add_done_callback(self.finishing.discard)
