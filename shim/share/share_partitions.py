"""The share partitions and share sessions of a broker (Kafka: SharePartitionManager)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.large_changes import let_go
from kafka_shim.plurals import counted
from kafka_shim.scheduler import Scheduler, Slice, take_one
from kafka_shim.share.client_errors import RETRIABLE
from kafka_shim.share.ended_locks import EndedLocks
from kafka_shim.share.share_partition import PartitionState, SharePartition
from kafka_shim.share.share_partition_acknowledge import acknowledge, release_members
from kafka_shim.share.share_sessions import ShareSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.metadata.image import Topic
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush, Flushes
    from kafka_shim.share.persister import ShareStatePersister
    from kafka_shim.share.share_partition import SharePartitionKey
    from kafka_shim.share.share_partition_acknowledge import AcknowledgementBatch
    from kafka_shim.share.share_sessions import ShareSession
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.share")

# Share partitions that are freed in one turn of the loop.
MOST_FREED_AT_ONCE = 256
# Share partitions whose records are released in one slice, also with a virtual clock. Each takes an append, and time
# for every offset of a batch that was split: 0.1 ms or less, or milliseconds for thousands of offsets.
MOST_RELEASED_AT_ONCE = 64

# After these the state in memory does not count any more; the next fetch reads it again.
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
        self._ended_locks = EndedLocks(clock, self._scheduler)
        self._by_group: dict[str, dict[SharePartitionKey, SharePartition]] = {}
        self.sessions = ShareSessions(most_sessions, self._session_ended, self._group_emptied)
        # Share partitions with records of sessions that have ended, which are released in slices, or earlier by whoever
        # uses the share partition: by member, with where the fsyncs go that a response waits for.
        self._ending: dict[SharePartitionKey, dict[str, list[Flush]]] = {}
        # Of connections with several sessions those after the first, whose share partitions are looked at later.
        self._others: deque[tuple[str, list[SharePartitionKey]]] = deque()
        self._ended = 0

    def start(self) -> None:
        """Subscribe to deletions of topics."""
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)

    async def release_ended(self) -> None:
        """Release what is left of sessions that have ended, in slices: before `stop`, which does it in one turn."""
        if self._ending:
            await self._scheduler.finish("release", self._slices_of_ended())

    def _slices_of_ended(self) -> Generator[None, None, None]:
        part = Slice(self._clock, MOST_RELEASED_AT_ONCE)
        for key in list(self._ending):
            if part.is_over():
                yield
                part.begin()
            self._release(key)

    def stop(self) -> None:
        """Stop the timers of acquisition locks, and release what is left of sessions that have ended."""
        for key in list(self._ending):
            with suppress(MemoryError):  # of the others the deliveries are stored all the same
                self._release(key)
        self._scheduler.stop()

    def clear(self) -> None:
        """Share groups were disabled (`share.version` 0)."""
        self.sessions.clear()
        self._ending.clear()
        self._others.clear()
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
        if self._ending and key in self._ending:
            self._release(key)
            return self.find(key)
        return share

    def get(self, key: SharePartitionKey, topic: str) -> SharePartition:
        """Returns the share partition, with its stored state if that can be read now; else its state is EMPTY. Raises
        KafkaError with the code for the client."""
        share = self.find(key)
        if share is None:
            log = self._logs.get(topic, key[2])
            if log.topic_id != key[1]:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{log.name} was deleted and created again")
            share = SharePartition(key, log, self.persister, self._clock, self._scheduler, self._ended_locks.release)
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
        self._ending.pop(key, None)
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

    def end_session(self, group_id: str, member_id: str) -> Flushes | Coroutine[Any, Any, Flushes]:
        """The member closes its session: release what it has acquired. Returns the fsyncs that must finish before the
        response, or a coroutine that returns them once all is released, if that is much."""
        session = self.sessions.remove((group_id, member_id))
        if session is None:
            return ()
        flushes: list[Flush] = []
        released = self._release_all(session, flushes)
        return flushes if released is None else _when_done(released, flushes)

    def _session_ended(self, session: ShareSession, is_first: bool) -> None:
        if is_first:
            self._release_all(session, [])
        elif keys := self._begin_end(session, []):
            self._others.append((session.key[0], keys))
            if not self._scheduler.is_scheduled("end others"):
                self._scheduler.after("end others", 0, self._scheduler.in_slices, "end others", self._release_others())

    def _release_others(self) -> Generator[None, None, None]:
        part = Slice(self._clock, MOST_RELEASED_AT_ONCE)
        while self._others:
            yield from self._release_each(*self._others.popleft(), [])
            if part.is_over():
                yield
                part.begin()

    def _release_all(self, session: ShareSession, flushes: list[Flush]) -> asyncio.Future[None] | None:
        """Release what the member of a session has acquired, now, or in slices if that is much. Returns what is then
        done at their end."""
        ended: list[asyncio.Future[None]] = []
        slices = self._release_each(session.key[0], self._begin_end(session, flushes), ended)
        if not take_one(slices):
            return None
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ended.append(done)
        self._ended += 1
        name = f"end {self._ended}"
        self._scheduler.after(name, 0, self._scheduler.in_slices, name, slices)
        return done

    def _begin_end(self, session: ShareSession, flushes: list[Flush]) -> list[SharePartitionKey]:
        """Note whose records are to be released. From now on whoever uses one of the share partitions finds them
        released: a member that comes back is not given what it is about to lose."""
        group_id, member_id = session.key
        shares = self._by_group.get(group_id, {})
        keys = [
            key
            for topic_id, partition in session.partitions
            if (share := shares.get(key := (group_id, topic_id, partition))) is not None and share.batches
        ]  # few, mostly: of the others nothing is acquired
        for key in keys:
            self._ending.setdefault(key, {})[member_id] = flushes
        return keys

    def _release_each(
        self, group_id: str, keys: list[SharePartitionKey], ended: list[asyncio.Future[None]]
    ) -> Generator[None, None, None]:
        part = Slice(self._clock, MOST_RELEASED_AT_ONCE)
        try:
            for left in range(len(keys) - 1, -1, -1):
                self._release(keys[-1 - left])
                if left and part.is_over():
                    yield
                    part.begin()
            if not self.sessions.has_members(group_id):
                self._group_emptied(group_id)
        finally:  # also at a stop, and if memory ends: what is left is released by who uses it
            for done in ended:
                if not done.done():
                    done.set_result(None)

    def _release(self, key: SharePartitionKey) -> None:
        ending = self._ending.pop(key, None)
        if not ending:
            return
        # All at once: a client that spoke for thousands of members may have left, and each looks at all of the window.
        try:
            released = self._change(key, partial(release_members, member_ids=ending.keys()))
        except KafkaError as error:
            members = counted(len(ending), "member")
            logger.info("records of %s of group %s stay locked: %s", members, key[0], error)
            return
        for flushes in ending.values():
            flushes.extend(released)

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
        if not self._ending.keys().isdisjoint(self._by_group.get(group_id, {}).keys()):
            return  # `_release_each` is not through
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


async def _when_done(released: asyncio.Future[None], flushes: Flushes) -> Flushes:
    await released
    return flushes
