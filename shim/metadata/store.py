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
from collections import deque
from pathlib import Path

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata import bootstrap
from kafka_shim.metadata.announcements import announce, announcements
from kafka_shim.metadata.assignments import Assignments
from kafka_shim.metadata.configuration_control import ConfigurationControl
from kafka_shim.metadata.dynamic_config import DynamicConfig
from kafka_shim.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    record_version,
    supported_levels,
    unsupported_level,
)
from kafka_shim.metadata.image import Image, Position, Topic
from kafka_shim.metadata.log import MetadataLog, MetadataLogError
from kafka_shim.metadata.partition_logs import PartitionLogs
from kafka_shim.metadata.prepared_changes import PreparedChange, state_made
from kafka_shim.metadata.producer_id_blocks import MOST_LOST_IDS, PRODUCER_ID_BLOCK, next_block, reserved
from kafka_shim.metadata.registration import departure_records, election_records, registration_records
from kafka_shim.metadata.replay import Replayer
from kafka_shim.metadata.replication_control import ReplicationControl
from kafka_shim.metadata.snapshots import SnapshotGenerator
from kafka_shim.outcome import wait_for_one
from kafka_shim.protocol.record_frames import encode_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig, TopicConfig
    from kafka_shim.faults import Faults
    from kafka_shim.metadata.after_commit import Rest
    from kafka_shim.metadata.authors import Author
    from kafka_shim.metadata.policies import Policies
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.records.voters_record import Voter
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.logs import Logs
    from kafka_shim.turns import Steps

logger = logging.getLogger(__name__)


class MetadataStore(ReplicationControl, ConfigurationControl):
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
        # Feature -> (lowest, highest) level that this broker may finalise.
        self.supported = supported_levels(config.unstable_feature_versions_enable)
        # --- from start() to stop()
        self.image = Image()
        self._replayer = Replayer(self.image, clock)
        self._after = self._replayer.after
        self._log: MetadataLog
        self._snapshots: SnapshotGenerator
        # This node's (listener, host, port, security protocol), as registered.
        self._endpoints: Sequence[tuple[str, str, int, int]] = ()
        # The broker epoch: the offset of this node's RegisterBrokerRecord.
        self.broker_epoch = -1
        self._options = DynamicConfig(config, self.image, config.node_id)
        self._partition_logs = PartitionLogs(config, self.image, logs, self._options.topic_config)
        self.assignments = Assignments(self.image, logs, clock, config.node_id, self.commit, self.resume)
        # --- hooks
        # Called after the commit: on_topic_created(topic), on_partitions_added(topic, first new partition),
        # on_topic_deleted(topic), on_topic_config_changed(name, config). The logs are already created or deleted then.
        self.on_topic_created: list[Callable[[Topic], None]] = []
        self.on_partitions_added: list[Callable[[Topic, int], None]] = []
        self.on_topic_deleted: list[Callable[[Topic], None]] = []
        self.on_topic_config_changed: list[Callable[[str, TopicConfig], None]] = []
        # Called with (resource type, resource name) after each committed change of any configuration.
        self.on_config_changed: list[Callable[[int, str], None]] = []
        # Called with the options that would be stored for this broker and the cluster, before they are. Raises
        # ConfigError.
        self.check_broker_options: list[Callable[[Mapping[str, str]], None]] = []
        # What `create.topic.policy.class.name` and `alter.config.policy.class.name` name, if anything.
        self.policies: Policies | None = None

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
        if fault := unsupported_level(self.image.features, self.supported):
            raise MetadataLogError(f"{self._log.directory}: {fault}")

    def lookup(self, topic: str, partition: int) -> tuple[bytes, TopicConfig, int] | None:
        """Return (topic id, options, leader epoch) of a partition, or None if it does not exist. Passed to
        `Logs.start`."""
        found = self.image.topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return None
        return found.topic_id, self.topic_config(topic), found.partitions[partition].leader_epoch

    def create_missing_logs(self) -> None:
        """Create the logs of partitions that have none (see `PartitionLogs.create_missing`). Raises StorageError."""
        self._partition_logs.create_missing()

    def register(
        self,
        endpoints: Sequence[tuple[str, str, int, int]],
        controller_endpoints: Sequence[tuple[str, str, int, int]] = (),
    ) -> None:
        """Register this node with its endpoints as broker and as controller (listener, host, port, security protocol).
        Call it after they are bound. Without a listener of the controller, its endpoints are the broker's."""
        self._endpoints = controller_endpoints or endpoints
        records, self.broker_epoch = registration_records(
            self.image,
            self.node_id,
            endpoints,
            self._endpoints,
            self._partition_logs.registered_ids(),
            self.config.broker_rack,
            self._log.next_offset,
            self._clock.random,
            self.supported,
        )
        self._logs.broker_epoch = self.broker_epoch
        self.commit(records)
        # A broker's listener is no address of a voter for Kafka.
        if controller_endpoints and self.kraft_version:
            self._log.update_voter(self._own_voter(), self._clock.now_ms())
        self.assignments.record_cordoned()
        self.assignments.find_unrecorded()

    def stop(self) -> None:
        """Commit the records of a clean stop and fsync. Apache Kafka can then start on this directory without a
        delay. Each step is done even if one before it fails: a full disk that refuses the records must not leave
        earlier ones without their fsync."""
        self._snapshots.cancel()
        self._replayer.stop()
        self.assignments.stop()
        for step in (self._depart, self._log.flush, self.await_snapshot):
            try:
                step()
            except Exception as err:
                reason = str(err) or type(err).__name__
                logger.warning("the clean stop cannot be recorded in the metadata log: %s", reason)

    def _depart(self) -> None:
        if self.broker_epoch >= 0:
            self.commit(departure_records(self.node_id, self.broker_epoch))

    # --- the log, for observers of the quorum

    @property
    def partition_log(self) -> PartitionLog:
        """The log of `__cluster_metadata-0`. Only to be read."""
        return self._log.partition_log

    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return (end offset, epoch) of the newest snapshot, or None."""
        return self._log.newest_snapshot()

    def snapshot_path(self, end_offset: int, epoch: int) -> Path:
        """Return where the file of this snapshot is, if there is one."""
        return self._log.snapshot_path(end_offset, epoch)

    # --- commit

    @property
    def _level(self) -> int:
        """The metadata.version in which records are written."""
        return self.image.features.get(METADATA_VERSION) or self.supported[METADATA_VERSION][1]

    def prepare(self, records: Sequence[Any]) -> Steps[PreparedChange]:
        """Make what `commit` needs of thousands of records. It holds while nobody else commits. Raises ReplayError."""
        now_ms, level = self._clock.now_ms(), self._level
        yield from self._replayer.check_in_steps(records)
        rows: list[tuple[None, bytes, int, tuple[()]]] = []
        for record in records:
            rows.append((None, encode_metadata(record, record_version(record, level)), now_ms, ()))
            yield
        made = None if self._replayer.in_transaction else (yield from state_made(records, self.image))
        lines = announcements(records, self.image)
        yield
        batch = self._log.batch_of(rows) if rows else bytearray()
        yield
        return PreparedChange(now_ms, batch, lines, made)

    def commit(
        self,
        records: Sequence[Any],
        prepared: PreparedChange | None = None,
        then: Sequence[Callable[[], object]] = (),
        by: Author | None = None,
    ) -> Callable[[], Flush | None]:
        """Append the record messages as one batch and apply them. Returns a function that starts the fsync and returns
        its future, or None if everything is already on the disk. A response may have to wait for it. Who commits
        thousands at once has them `prepared`, and announces them. What comes `then` the caller has `_after` do. `by` is
        who made the change, for the log."""
        now_ms = self._clock.now_ms() if prepared is None else prepared.now_ms
        faults = self._faults
        if faults.armed:
            faults.reach("metadata.before_commit")
        replayer = self._replayer
        replayer.begin()
        lines: list[str] = []
        made = None if prepared is None else prepared.made
        steps, rest = deque([*replayer.after.steps, *then]), deque(records if made is None else (made,))
        rest.append(Position(self._log.next_offset + len(records) - 1, self._log.epoch, now_ms))
        if prepared is None:
            replayer.check(records)
            level = self._level
            values = [encode_metadata(record, record_version(record, level)) for record in records]
            lines = announcements(records, self.image)
            self._log.append(values, now_ms)
        else:
            self._log.append_batch(prepared.batch, now_ms)
        replayer.rest, replayer.after.steps = rest, steps  # without a call, which may find no memory: the log has it
        if faults.armed:
            faults.reach("metadata.after_append")
        try:
            replayer.apply_rest()
            announce(lines, by)
        except MemoryError:
            replayer.try_later()
            raise
        if replayer.is_whole:
            self._snapshots.committed(self.image, now_ms)
        return self._log.flushing

    def resume(self) -> None:
        """Do what an earlier change found no memory for, before a decision by what that makes. Raises MemoryError."""
        self._replayer.resume()

    def leave(self, rest: Rest) -> None:
        """Have the rest of a change done later, for which its request found no memory."""
        self._after.leave(rest)

    def upgrade_kraft_version(self, by: Author | None = None) -> None:
        """Make the static quorum of this node a dynamic one with this node as its voter: kraft.version 1 (KIP-853). As
        in Kafka a NoOpRecord follows, so that the metadata's last offset includes the upgrade. `by` as for `commit`."""
        from kafka_shim.protocol.records.no_op_record import NoOpRecord

        lines = [f"levels of features change: {KRAFT_VERSION}=1"]
        self._log.upgrade_kraft_version(self._own_voter(), self._clock.now_ms())
        self.commit([NoOpRecord()])
        announce(lines, by)

    def _own_voter(self) -> Voter:
        from kafka_shim.protocol.records.voters_record import Endpoint, KRaftVersionFeature, Voter

        lowest, highest = self.supported[KRAFT_VERSION]
        return Voter(
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            endpoints=[Endpoint(name=name, host=host, port=port) for name, host, port, _ in self._endpoints],
            kraft_version_feature=KRaftVersionFeature(min_supported_version=lowest, max_supported_version=highest),
        )

    def run_periodically(self) -> None:
        """Start the timers of snapshots, and of what memory did not suffice for. With the real clock it needs a running
        event loop."""
        self._replayer.run_periodically()
        self._snapshots.run_periodically(self.image, lambda: self._replayer.is_whole)

    def await_snapshot(self) -> None:
        """Block until no snapshot is being written."""
        self._snapshots.stop(self._clock.now_ms())

    def begin_flush(self) -> None:
        """Request an fsync of everything committed before this call, which comes before those that are requested
        later."""
        self._log.flushing()

    async def flushed(self) -> None:
        """Wait until everything committed before this call is fsynced. Raises KafkaError KAFKA_STORAGE_ERROR if the
        fsync fails."""
        flushing = self._log.flushing()
        if flushing is None:
            return
        try:
            await wait_for_one(flushing)
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
    def directory_id(self) -> bytes:
        """The id of the directory with the metadata log."""
        return urlsafe_b64decode(self._logs.metadata_dir.directory_id + "==")

    def has_endpoints(self, listeners: Sequence[Any]) -> bool:
        """Return whether these are the registered endpoints of this controller."""
        own = {(name, host, port) for name, host, port, _ in self._endpoints}
        return own == {(one.name.upper(), one.host, one.port) for one in listeners}

    @property
    def voter_directory_id(self) -> bytes:
        """The directory id of this voter, or the zero uuid in a static quorum."""
        return dict(self._log.voters).get(self.node_id, bytes(16))

    @property
    def next_offset(self) -> int:
        """The offset after the last record of the metadata log."""
        return self._log.next_offset

    def topic_config(self, name: str) -> TopicConfig:
        """Return the topic's effective options: its own, else the dynamic broker options, else the static ones.
        Cached."""
        return self._options.topic_config(name)

    @property
    def cluster_options(self) -> dict[str, str]:
        """The dynamic options in force that are stored for all brokers."""
        return self._options.cluster_options

    @property
    def broker_options(self) -> dict[str, str]:
        """The dynamic options in force that are stored for this broker."""
        return self._options.broker_options

    def feature(self, name: str) -> int:
        """Return the finalised level of a feature (`group.version`, ...), or 0 if it is not finalised."""
        return self.image.features.get(name, 0)

    # --- producer ids

    def next_producer_id_block(self) -> tuple[int, int, Flush | None]:
        """Reserve the next block of producer ids. Returns (first id, count of 1000, fsync that must complete before an
        id is sent to a client). The record is appended before this returns. The fsync is needed because after a power
        failure two producers could get the same id, and batches of one would be taken for duplicates of the other.

        Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS if no whole block is left below 2**63 (A1)."""
        first, record = next_block(self.image.next_producer_id, self.node_id, self.broker_epoch)
        return first, PRODUCER_ID_BLOCK, self.commit([record])()

    def reserve_producer_ids(self, known: Iterable[int], *, has_others: bool) -> Flush | None:
        """Reserve these ids, which a start found in other logs: a power cut may have lost the records of their blocks.
        `has_others`: some may be in what could not be read, so as many are reserved as a power cut can concern. Returns
        the fsync after which none of them is assigned again whatever happens, or None if it is done."""
        next_id = self.image.next_producer_id
        beyond = next_id + MOST_LOST_IDS
        end = beyond if has_others else max((one + 1 for one in known if next_id <= one < beyond), default=next_id)
        return self._log.flushing() if end == next_id else self.commit([reserved(end)])()
