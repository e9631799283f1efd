"""The metadata store: decides and stores topics, options, features and producer id blocks.

`commit(records)` appends the records to `__cluster_metadata-0` and applies them to the `Image`. A start replays the
same records through the same `apply`. There is no other store. Nothing is awaited between a decision and its apply, so
a plain `def` method is atomic on the event loop. When it returns, its records are written to the operating system and
survive SIGKILL. `await store.flushed()` returns when everything committed before the call is fsynced. The admin
handlers await it before they respond, as KRaft does.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode
from pathlib import Path

from kafka_shim.config import ConfigError, TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC
from kafka_shim.metadata import bootstrap, topics
from kafka_shim.metadata.features import (
    DIRECTORIES,
    METADATA_VERSION,
    SUPPORTED,
    record_version,
)
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_TOPIC, Image, Partition, Topic
from kafka_shim.metadata.log import MetadataLog, MetadataLogError
from kafka_shim.metadata.registration import departure_records, election_records, registration_records
from kafka_shim.metadata.replay import Replayer
from kafka_shim.metadata.snapshots import SnapshotGenerator
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.producer_ids_record import ProducerIdsRecord
from kafka_shim.protocol.records.remove_topic_record import RemoveTopicRecord
from kafka_shim.storage.results import StorageError
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.outcome import Flush
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger(__name__)

MIN_ISR = "min.insync.replicas"
PRODUCER_ID_BLOCK = 1000
MAX_PRODUCER_ID = 2**63 - 1


class MetadataStore:
    """The metadata of the cluster. Owned by the broker. Event-loop thread only.

    A start calls, in this order: `Logs.open_dirs`; `start()`, which replays the log; `Logs.start(store.lookup)`;
    `create_missing_logs()`; after the listeners are bound, `register(...)`. Then requests are served. `stop()` is
    called before `Logs.stop`.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, logs: Logs, faults: Faults) -> None:
        # --- fixed
        self.config = config
        self._clock = clock
        self._logs = logs
        self._faults = faults
        self.node_id = config.node_id
        # --- from start() to stop()
        self.image = Image()
        self._replayer = Replayer(self.image)
        self._log: MetadataLog
        self._snapshots: SnapshotGenerator
        # The broker epoch: the offset of this node's RegisterBrokerRecord.
        self.broker_epoch = -1
        # The dynamic options in force, stored for all brokers and for this broker.
        self.cluster_options: dict[str, str] = {}
        self.broker_options: dict[str, str] = {}
        # Topics without overrides share one TopicConfig.
        self._default_config = TopicConfig(config)
        self._topic_configs: dict[str, TopicConfig] = {}
        self._settling: set[Task[None]] = set()
        # --- hooks Called after the commit: on_topic_created(topic), on_partitions_added(topic, first new partition),
        # on_topic_deleted(topic), on_topic_config_changed(name, config). The logs are already created or deleted then.
        self.on_topic_created: list[Callable[[Topic], None]] = []
        self.on_partitions_added: list[Callable[[Topic, int], None]] = []
        self.on_topic_deleted: list[Callable[[Topic], None]] = []
        self.on_topic_config_changed: list[Callable[[str, TopicConfig], None]] = []
        # Called with (resource type, resource name) after each committed change of any configuration.
        self.on_config_changed: list[Callable[[int, str], None]] = []

    # --- start and stop

    def start(self) -> None:
        """Open and replay the metadata log, and become its leader in a new epoch. Raises MetadataLogError if this
        version cannot load it."""
        now_ms = self._clock.now_ms()
        directory = Path(self._logs.metadata_dir.path)
        self._log = MetadataLog(self._logs.open_metadata_log(), self.node_id)
        self._log.replay(self._replayer)
        self._check_features()
        records: list[Any] = []
        if self._replayer.in_transaction:
            from kafka_shim.protocol.records.abort_transaction_record import AbortTransactionRecord

            records.append(AbortTransactionRecord(reason="Controller failover"))
        if METADATA_VERSION not in self.image.features:
            bootstrap.write_checkpoint(directory, now_ms)
            first = bootstrap.read_checkpoint(directory)
            records += bootstrap.activation_records(first, self.config.min_insync_replicas)
        records += election_records(self.image, self.node_id)
        self._log.begin_epoch(now_ms)
        self._snapshots = SnapshotGenerator(self._log, self.config, self._clock)
        if records:
            self.commit(records)
        self._check_features()
        self._broker_options_changed()

    def _check_features(self) -> None:
        for name, level in self.image.features.items():
            lowest, highest = SUPPORTED.get(name, (0, 0))
            if not lowest <= level <= highest:
                raise MetadataLogError(
                    f"{self._log.directory}: {name} {level} is finalised here, this version of kafka-shim supports "
                    f"{lowest} to {highest}"
                )

    def lookup(self, topic: str, partition: int) -> tuple[bytes, TopicConfig, int] | None:
        """Return (topic id, options, leader epoch) of a partition, or None if it does not exist. Passed to
        `Logs.start`."""
        found = self.image.topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return None
        return found.topic_id, self.topic_config(topic), found.partitions[partition].leader_epoch

    def create_missing_logs(self) -> None:
        """Create the logs of partitions that have none, because a crash came between the commit and the creation of the
        directory. Raises StorageError if the logs may be in a data directory that is now missing, because their records
        would be lost. If a directory failed at this start, the logs may be in it, and the partitions are offline."""
        self._require_directories()
        for topic in self.image.topics.values():
            self._create_logs(topic, topic.partitions)

    def _require_directories(self) -> None:
        lost = self._lost_directories()
        failed = self._logs.failed_dirs
        if not lost and not failed:
            return
        homeless = [
            (topic.name, partition.partition)
            for topic in self.image.topics.values()
            for partition in topic.partitions
            if self.node_id in partition.replicas and not self._logs.has(topic.name, partition.partition)
        ]
        if homeless and failed:
            logger.error("%d partitions are offline until %s can be used again", len(homeless), ", ".join(failed))
            self._logs.mark_absent(homeless)
            return
        if homeless:
            ids = ", ".join(uuid_text(one) for one in sorted(lost))
            some = ", ".join(f"{name}-{partition}" for name, partition in homeless[:3])
            raise StorageError(
                f"a data directory of the last start is missing (directory.id {ids}), and with it {len(homeless)} "
                f"partitions ({some} ...): bring it back, or give up their records by making an "
                f"empty directory for each of them"
            )

    def register(self, endpoints: Sequence[tuple[str, str, int, int]]) -> None:
        """Register this node with its endpoints (listener, host, port, security protocol). Call it after they are
        bound."""
        records, self.broker_epoch = registration_records(
            self.image,
            self.node_id,
            endpoints,
            self._registered_ids(),
            self.config.broker_rack,
            self._log.next_offset,
            self._clock.random,
        )
        self._logs.broker_epoch = self.broker_epoch
        self.commit(records)

    def stop(self) -> None:
        """Commit the records of a clean stop and fsync. Apache Kafka can then start on this directory without a
        delay."""
        try:
            if self.broker_epoch >= 0:
                self.commit(departure_records(self.node_id, self.broker_epoch))
            self._log.flush()
            self.await_snapshot()
        except (KafkaError, OSError) as err:
            logger.warning("the end of this life cannot be recorded: %s", err)

    # --- commit

    def commit(self, records: Sequence[Any]) -> Callable[[], Flush | None]:
        """Append the record messages as one batch and apply them. Returns a function that starts the fsync and returns
        its future, or None if everything is already on the disk. A response may have to wait for it."""
        level = self.image.features.get(METADATA_VERSION) or SUPPORTED[METADATA_VERSION][1]
        now_ms = self._clock.now_ms()
        faults = self._faults
        if faults.armed:
            faults.reach("metadata.before_commit")
        self._replayer.check(records)
        first = self._log.append([(record, record_version(record, level)) for record in records], now_ms)
        if faults.armed:
            faults.reach("metadata.after_append")
        for record in records:
            self._replayer.apply(record)
        self.image.last_offset = first + len(records) - 1
        self.image.last_epoch = self._log.epoch
        self.image.last_timestamp_ms = now_ms
        if not self._replayer.in_transaction:
            try:
                self._snapshots.committed(self.image, now_ms)
            except Exception:
                # The records are written and applied: what follows from them must be done.
                logger.exception("no metadata snapshot at offset %d, the next one will do", self.image.last_offset + 1)
        return self._log.flushing

    def await_snapshot(self) -> None:
        """Block until no snapshot is being written."""
        self._snapshots.stop(self._clock.now_ms())

    async def flushed(self) -> None:
        """Wait until everything committed before this call is fsynced. Raises KafkaError KAFKA_STORAGE_ERROR if the
        fsync fails."""
        flushing = self._log.flushing()
        if flushing is None:
            return
        from asyncio import wrap_future

        try:
            await wrap_future(flushing)
        except OSError as err:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(err)) from err

    # --- look up

    @property
    def epoch(self) -> int:
        """The leader epoch of the metadata quorum, in which this node leads since `start`."""
        return self._log.epoch

    @property
    def kraft_version(self) -> int:
        """The kraft.version. 0: a static quorum (`controller.quorum.voters`); 1: a dynamic quorum, stored in the log
        (KIP-853)."""
        return self._log.kraft_version

    @property
    def voter_directory_id(self) -> bytes:
        """The directory id of this voter, or the zero uuid in a static quorum."""
        return dict(self._log.voters).get(self.node_id, bytes(16))

    @property
    def next_offset(self) -> int:
        """The offset after the last record of the metadata log."""
        return self._log.next_offset

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

    def topic_config(self, name: str) -> TopicConfig:
        """Return the topic's effective options: its own, else the dynamic broker options, else the static ones.
        Cached."""
        overrides = self.image.configs.get((RESOURCE_TOPIC, name))
        if not overrides:
            return self._default_config
        config = self._topic_configs.get(name)
        if config is None:
            try:
                config = TopicConfig(self.config, overrides)
            except ConfigError:
                config = TopicConfig(self.config, self._readable(name, overrides))
            self._topic_configs[name] = config
        return config

    def feature(self, name: str) -> int:
        """Return the finalised level of a feature (`group.version`, ...), or 0 if it is not finalised."""
        return self.image.features.get(name, 0)

    # --- topics

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
        self, new: Sequence[tuple[str, list[list[int]], Mapping[str, str]]], *, later: bool = False
    ) -> list[Topic]:
        """Create topics and their logs; the records are committed in one batch. `new` are (name, replicas of each
        partition, options), already checked. With `later` the logs are created later, and the caller awaits
        `logs_settled`."""
        records: list[Any] = []
        directory_id = self._placement()
        for name, replicas, configs in new:
            topic_id = self._clock.random.uuid()
            options = [
                ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name=name, name=option, value=value)
                for option, value in configs.items()
            ]
            partitions = topics.partition_records(topic_id, 0, replicas, self.node_id, directory_id)
            records += topics.topic_records(name, topic_id, options, partitions)
        self.commit(records)
        made = [self.image.topics[name] for name, _, _ in new]
        failures = []
        for topic in made:
            failures += self._create_logs(topic, topic.partitions, later=later)
            for hook in self.on_topic_created:
                hook(topic)
        if failures:
            raise failures[0]
        return made

    def auto_create_topic(self, name: str) -> Topic:
        """Create an unknown topic for a Metadata request if auto-creation is enabled. Internal topics get their own
        options. The directories are created after this method returns, or at the first use of a partition."""
        topics.check_new_name(self.image, name)
        partitions, configs = self._internal_options(name) if name in INTERNAL_TOPICS else (-1, {})
        replicas = self.decide_replicas(partitions, 1 if configs else -1, ())
        (topic,) = self.create_topics([(name, replicas, configs)], later=True)
        self._settle_soon()
        return topic

    def _settle_soon(self) -> None:
        """Start a background task that creates the directories in slices, so that other requests are served
        meanwhile."""
        from asyncio import get_running_loop

        async def settle() -> None:
            try:
                await self.logs_settled()
            except KafkaError as err:
                logger.warning("%s", err)  # the first use of the partition tries again

        try:
            task = get_running_loop().create_task(settle())
        except RuntimeError:
            return  # no event loop, as in a tool: the first use creates them
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    def ensure_internal_topic(self, name: str) -> Topic:
        """Return `__consumer_offsets` or `__transaction_state`. Its first use creates it with Kafka's options (50
        partitions by default, compacted)."""
        found = self.image.topics.get(name)
        if found is not None:
            return found
        partitions, configs = self._internal_options(name)
        return self.create_topic(name, partitions, 1, configs)

    def _internal_options(self, name: str) -> tuple[int, dict[str, str]]:
        # GroupCoordinatorService.groupMetadataTopicConfigs, TransactionCoordinator.transactionStateTopicConfigs.
        config = self.config
        if name == GROUP_METADATA_TOPIC:
            return config.offsets_topic_num_partitions, {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
        if name == TRANSACTION_STATE_TOPIC:
            return config.transaction_state_log_num_partitions, {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": "1",
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            }
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is not an internal topic of this broker")

    def create_partitions(
        self,
        name: str,
        total: int,
        *,
        assignments: Sequence[list[int]] | None = None,
        validate_only: bool = False,
        later: bool = False,
    ) -> Topic:
        """Increase the partitions of a topic to `total`. With `later` the logs are created later, and the caller awaits
        `logs_settled`. Raises the errors of `topics.decide_growth`."""
        replicas = topics.decide_growth(self.image, name, total, assignments, self.node_id)
        topic = self.image.topics[name]
        if validate_only:
            return topic
        first = len(topic.partitions)
        self.commit(topics.partition_records(topic.topic_id, first, replicas, self.node_id, self._placement()))
        failures = self._create_logs(topic, topic.partitions[first:], later=later)
        for hook in self.on_partitions_added:
            hook(topic, first)
        if failures:
            raise failures[0]
        return topic

    def delete_topic(self, name: str, *, later: bool = False) -> None:
        """Delete a topic, its options and its logs. The name can be reused when this returns. With `later` the
        directories are renamed later, and the caller awaits `logs_settled`."""
        topic = self.topic(name)
        self.commit([RemoveTopicRecord(topic_id=topic.topic_id)])
        self._topic_configs.pop(name, None)
        for partition in topic.partitions:
            if self.node_id in partition.replicas:
                self._logs.delete(name, partition.partition, later=later)
        for hook in self.on_topic_deleted:
            hook(topic)

    async def logs_settled(self) -> None:
        """Create and rename the directories of logs that were created or deleted with `later`. Yields to the event loop
        between slices. Raises KafkaError KAFKA_STORAGE_ERROR if a directory could not be created."""
        await self._logs.finish_changes()

    def _create_logs(self, topic: Topic, partitions: Sequence[Partition], *, later: bool = False) -> list[KafkaError]:
        """Create the missing logs of a topic. Returns the errors instead of raising them, because the topic exists even
        so; the next use or start tries again."""
        config = self.topic_config(topic.name)
        failures: list[KafkaError] = []
        missing = [
            partition
            for partition in partitions
            if self.node_id in partition.replicas and not self._logs.has(topic.name, partition.partition)
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
        broker = self.image.brokers.get(self.node_id)
        return set(broker.log_dirs if broker is not None else ()).difference(self._directory_ids())

    def _registered_ids(self) -> list[bytes]:
        """Return the directory ids to register. If a directory failed at this start, the ids that no usable directory
        has stay registered, so that `_require_directories` can detect a missing directory at the next start."""
        lost = self._lost_directories() if self._logs.failed_dirs else ()
        return [*self._directory_ids(), *sorted(lost)]

    def _placement(self) -> bytes | None:
        """Return the directory id to record for a new partition. With several directories it is DirectoryId.UNASSIGNED,
        because the log is placed after the record is written. None if metadata.version has no directory ids."""
        if self.image.features[METADATA_VERSION] < DIRECTORIES:
            return None
        ids = self._directory_ids()
        return ids[0] if len(self.config.log_dirs) == 1 else bytes(16)

    # --- configurations

    def alter_configs(self, records: Sequence[Any]) -> None:
        """Commit checked ConfigRecords and accompanying records, and apply the options at once."""
        if not records:
            return
        self.commit(records)
        options = [record for record in records if isinstance(record, ConfigRecord)]
        changed = {(record.resource_type, record.resource_name) for record in options}
        if any(kind == RESOURCE_BROKER for kind, _ in changed):
            self._broker_options_changed()
        for kind, name in changed:
            if kind == RESOURCE_TOPIC:
                self._topic_configs.pop(name, None)
                self._topic_options_changed(name)
            for hook in self.on_config_changed:
                hook(kind, name)

    def _broker_options_changed(self) -> None:
        """Apply the stored options of the cluster and then of this broker over the static ones, and update the
        topics."""
        cluster = self.image.config_of(RESOURCE_BROKER, "")
        own = self.image.config_of(RESOURCE_BROKER, str(self.node_id))
        if not own and not self.config.dynamic and cluster == {MIN_ISR: str(self.config.min_insync_replicas)}:
            # The state of every new directory. Return early so that a start does not load the option parser.
            self.config.dynamic = self.cluster_options = cluster
            return
        self.cluster_options = self._usable(cluster, "all brokers", is_default=True)
        self.broker_options = self._usable(own, "this broker", is_default=False)
        dynamic = {**self.cluster_options, **self.broker_options}
        if dynamic == self.config.dynamic:
            return
        self.config.apply_dynamic(dynamic)
        self._default_config = TopicConfig(self.config)
        self._topic_configs.clear()
        self._logs.configure_all(self.topic_config)
        for hook in self.on_topic_config_changed:
            for name in self.image.topics:
                hook(name, self.topic_config(name))

    def _usable(self, stored: dict[str, str], whose: str, *, is_default: bool) -> dict[str, str]:
        if not stored:
            return stored
        from kafka_shim.config import usable

        taken, ignored = usable(stored, is_default=is_default)
        for name, reason in ignored.items():
            logger.warning("%s, stored for %s, is ignored: %s", name, whose, reason)
        return taken

    def _readable(self, topic: str, overrides: Mapping[str, str]) -> dict[str, str]:
        """Return the overrides that this version can parse. Another version may have stored others, which are logged
        and ignored."""
        readable = {}
        for name, text in overrides.items():
            try:
                TopicConfig(self.config, {name: text})
            except ConfigError as err:
                logger.warning("%s, stored for topic %s, is ignored: %s", name, topic, err)
            else:
                readable[name] = text
        return readable

    def _topic_options_changed(self, name: str) -> None:
        config = self.topic_config(name)
        self._logs.configure(name, config)
        for hook in self.on_topic_config_changed:
            hook(name, config)

    # --- producer ids

    def next_producer_id_block(self) -> tuple[int, int, Flush | None]:
        """Reserve the next block of producer ids. Returns (first id, count of 1000, fsync that must complete before an
        id is sent to a client). The record is appended before this returns. The fsync is needed because after a power
        failure two producers could get the same id, and batches of one would be taken for duplicates of the other.

        Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS if no whole block is left below 2**63 (A1)."""
        first = self.image.next_producer_id
        if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK:
            reason = f"no block of {PRODUCER_ID_BLOCK} producer ids is left after {first}"
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason)
        start_flush = self.commit(
            [
                ProducerIdsRecord(
                    broker_id=self.node_id, broker_epoch=self.broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK
                )
            ]
        )
        return first, PRODUCER_ID_BLOCK, start_flush()
