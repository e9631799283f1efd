"""The share partitions and share sessions of a broker (Kafka: SharePartitionManager)."""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.large_changes import let_go
from kafka_shim.scheduler import Scheduler
from kafka_shim.share.client_errors import RETRIABLE
from kafka_shim.share.share_partition import PartitionState, SharePartition
from kafka_shim.share.share_partition_acknowledge import acknowledge, release_expired, release_member
from kafka_shim.share.share_sessions import ShareSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kafka_shim.clock import Clock
    from kafka_shim.metadata.image import Topic
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flushes
    from kafka_shim.share.persister import ShareStatePersister
    from kafka_shim.share.share_partition import SharePartitionKey
    from kafka_shim.share.share_partition_acknowledge import AcknowledgementBatch
    from kafka_shim.share.share_sessions import ShareSession
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.share")

# Share partitions that are freed in one turn of the loop.
MOST_FREED_AT_ONCE = 256

# After these the state in memory does not count any more; the next fetch reads it anew.
_FENCING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class SharePartitions:
    """Owned by the broker. Event-loop thread only. A share partition is made by the first fetch of its group, and
    forgotten when no connection of the group has a session, when its topic is deleted or its log goes offline, and when
    the share coordinator fences it."""

    def __init__(
        self, *, clock: Clock, most_sessions: int, logs: Logs, metadata: MetadataStore, persister: ShareStatePersister
    ) -> None:
        self._clock = clock
        self._logs = logs
        self._metadata = metadata
        self.persister = persister
        self._scheduler = Scheduler(clock)
        self._by_group: dict[str, dict[SharePartitionKey, SharePartition]] = {}
        self.sessions = ShareSessions(most_sessions, self._session_ended, self._group_emptied)

    def start(self) -> None:
        """Subscribe to deletions of topics."""
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)

    def stop(self) -> None:
        """Stop the timers of acquisition locks."""
        self._scheduler.stop()

    def clear(self) -> None:
        """Share groups were disabled (`share.version` 0)."""
        self.sessions.clear()
        for group_id in list(self._by_group):
            self._group_emptied(group_id)

    # --- share partitions

    def loaded(self) -> Iterator[SharePartition]:
        """Yields the share partitions that were used since the start."""
        for partitions in self._by_group.values():
            yield from partitions.values()

    def find(self, key: SharePartitionKey) -> SharePartition | None:
        """Returns the share partition if it is in memory and counts."""
        share = self._by_group.get(key[0], {}).get(key)
        if share is not None and (share.log.is_closed or share.log.is_offline or share.state is PartitionState.FENCED):
            self.forget(key)
            return None
        return share

    def get(self, key: SharePartitionKey, topic: str) -> SharePartition:
        """Returns the share partition, with its stored state if that can be read now; else its state is EMPTY. Raises
        KafkaError with the code for the client."""
        share = self.find(key)
        if share is None:
            log = self._logs.get(topic, key[2])
            if log.topic_id != key[1]:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{log.name} was deleted and created again")
            share = SharePartition(key, log, self.persister, self._clock, self._scheduler, release_expired)
            self._by_group.setdefault(key[0], {})[key] = share
        if share.state is PartitionState.EMPTY:
            try:
                share.load()
            except MemoryError:
                share.state = PartitionState.FENCED
                raise
            except KafkaError as error:
                if error.code not in RETRIABLE:
                    logger.warning("share partition %s of group %s cannot be loaded: %s", share.log.name, key[0], error)
                    self.forget(key)
                    raise
                logger.info("share partition %s of group %s waits: %s", share.log.name, key[0], error)
        return share

    def forget(self, key: SharePartitionKey) -> None:
        """The state in memory does not count any more."""
        shares = self._by_group.get(key[0], {})
        share = shares.pop(key, None)
        if not shares:
            self._by_group.pop(key[0], None)
        if share is not None:
            share.fence()

    def check(self, key: SharePartitionKey, error: KafkaError) -> None:
        """A request failed on this share partition: forget it if it is fenced."""
        if error.code in _FENCING:
            self.forget(key)

    # --- what members do

    def acknowledge(self, key: SharePartitionKey, member_id: str, batches: Sequence[AcknowledgementBatch]) -> Flushes:
        """Acknowledge records. Returns the fsyncs that must finish before the response. Raises KafkaError with the code
        for the client."""
        return self._change(key, lambda share: acknowledge(share, member_id, batches))

    def end_session(self, group_id: str, member_id: str) -> Flushes:
        """The member closes its session: release what it has acquired. Returns the fsyncs that must finish before the
        response."""
        session = self.sessions.remove((group_id, member_id))
        return () if session is None else self._session_ended(session)

    def _session_ended(self, session: ShareSession) -> Flushes:
        group_id, member_id = session.key
        flushes: list[object] = []
        shares = self._by_group.get(group_id, {})
        for topic_id, partition in session.partitions:
            share = shares.get((group_id, topic_id, partition))
            if share is None or not share.batches:
                continue  # most of them: nothing is acquired
            try:
                flushes += self._change((group_id, topic_id, partition), lambda share: release_member(share, member_id))
            except KafkaError as error:
                logger.info("records of member %s of group %s stay locked: %s", member_id, group_id, error)
        return flushes  # type: ignore[return-value]

    def _change(self, key: SharePartitionKey, change: Callable[[SharePartition], Flushes]) -> Flushes:
        share = self.find(key)
        if share is None or share.state is not PartitionState.ACTIVE:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        try:
            return change(share)
        except KafkaError as error:
            self.check(key, error)
            raise
        except MemoryError:
            share.state = PartitionState.FENCED  # what is stored counts; `find` does the rest
            raise

    def _group_emptied(self, group_id: str) -> None:
        fenced = list(self._by_group.pop(group_id, {}).values())
        for share in fenced:
            share.fence()
        if len(fenced) > MOST_FREED_AT_ONCE:  # to free thousands of them takes its time, too
            del share
            self._scheduler.in_slices("let go", let_go(fenced))

    def _on_topic_deleted(self, topic: Topic) -> None:
        for shares in list(self._by_group.values()):
            for key in list(shares):
                if key[1] == topic.topic_id:
                    self.forget(key)
