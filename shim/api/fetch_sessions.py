"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, so that requests and responses carry only
changes.

A session is a dict of partitions in the order in which they are served. A partition that returned data moves to the
end, so that each gets its turn under `max_bytes`. Session ids are random. `max.incremental.fetch.session.cache.slots`
limits the number of sessions. At the limit, a new session replaces one that was not used for two minutes, or a smaller
one that is older than that; otherwise the client gets no session (Kafka's FetchSessionCacheShard). Sources:
FetchManager, FetchContext, FetchSession of Kafka 4.3.1.
"""

from __future__ import annotations

import logging

from kafka_shim.errors import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.api.fetch_reads import PartitionRead
    from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest
    from kafka_shim.protocol.messages.fetch_response import PartitionData
    from kafka_shim.randomness import Randomness

    # Topic name, or topic id from Fetch v13 on, and partition index.
    Key = tuple[str | bytes, int]

logger = logging.getLogger("kafka_shim.fetch")

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
NO_SESSION = 0
FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS = 7, 13
EVICTABLE_AFTER_MS = 120_000
MAX_SESSION_ID = 2**31 - 1


class CachedPartition:
    """One partition of a fetch: the reader's position and, in a session, what the last response said."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
    )

    def __init__(self, topic: str | bytes, asked: FetchPartition) -> None:
        self.topic = topic
        self.partition = asked.partition
        self.high_watermark = -1
        self.log_start_offset = -1
        self.update(asked)

    def update(self, asked: FetchPartition) -> None:
        """Take over the position of a newer request."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def tells(self, answer: PartitionData, size_bytes: int) -> bool:
        """Returns whether an incremental response must contain this partition."""
        return (
            size_bytes > 0
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
            or answer.error_code != ErrorCode.NONE
            or answer.diverging_epoch.epoch >= 0
        )

    def update_response(self, answer: PartitionData, size_bytes: int) -> bool:
        """Returns what `tells` does, and remembers what the response says (Kafka: maybeUpdateResponseData)."""
        tells = self.tells(answer, size_bytes)
        # After an error the next response without one must contain the partition too.
        self.high_watermark = -1 if answer.error_code != ErrorCode.NONE else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return tells


class FetchSession:
    """What one consumer fetches. `epoch` is the session epoch that its next request must have."""

    __slots__ = ("by_id", "created_ms", "epoch", "partitions", "session_id", "used_ms")

    def __init__(self, session_id: int, by_id: bool, partitions: dict[Key, CachedPartition], now_ms: int) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.partitions = partitions
        self.epoch = 1
        self.created_ms = now_ms
        self.used_ms = now_ms

    def rotate(self, served: Iterable[Key]) -> None:
        """Move partitions that returned data to the end of the order."""
        for key in served:
            cached = self.partitions.pop(key, None)
            if cached is not None:
                self.partitions[key] = cached


class FetchContext:
    """What one request reads, with its session resolved. It stands for Kafka's classes SessionlessFetchContext,
    FullFetchContext (`opens_session`), IncrementalFetchContext (`session`) and SessionErrorContext (`error`).

    `partitions` is everything to read, in order. For a session that is all of its partitions.
    """

    __slots__ = ("by_id", "epoch", "error", "opens_session", "partitions", "session", "session_id")

    def __init__(
        self,
        partitions: dict[Key, CachedPartition],
        by_id: bool,
        session: FetchSession | None = None,
        opens_session: bool = False,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partitions = partitions
        self.by_id = by_id
        self.session = session
        self.opens_session = opens_session
        self.error = error
        # The session that continues, and its epoch while this request is its newest.
        self.session_id, self.epoch = (NO_SESSION, -1) if session is None else (session.session_id, session.epoch)

    def told(self, reads: list[PartitionRead]) -> list[PartitionRead]:
        """Returns what `update` does, and remembers nothing."""
        if self.session is None:
            return reads
        return [read for read in reads if read.asked.tells(read.answer, read.size_bytes)]

    def update(self, reads: list[PartitionRead]) -> list[PartitionRead]:
        """Returns the partitions that the response contains. The session, or the one to be created, remembers them
        (Kafka: updateAndGenerateResponseData)."""
        named = [read for read in reads if read.asked.update_response(read.answer, read.size_bytes)]
        session = self.session
        if session is None:
            return reads
        if len(session.partitions) > 1:
            session.rotate(read.key for read in named if read.size_bytes)
        return named


class FetchSessionCache:
    """All fetch sessions of one broker, least recently used first."""

    __slots__ = ("_random", "_sessions", "slots")

    def __init__(self, slots: int, random: Randomness) -> None:
        self.slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._random = random

    def __len__(self) -> int:
        return len(self._sessions)

    def new_context(self, request: FetchRequest, version: int, now_ms: int) -> FetchContext:
        """Resolve the session of a request (Kafka: FetchManager.newContext)."""
        by_id = version >= FIRST_WITH_TOPIC_IDS
        epoch, session_id = request.session_epoch, request.session_id
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._sessions.pop(session_id, None)
            opens_session = epoch == INITIAL_EPOCH and version >= FIRST_WITH_SESSIONS
            return FetchContext(_asked(request, by_id), by_id, opens_session=opens_session)
        session = self._sessions.get(session_id)
        if session is None:
            return FetchContext({}, by_id, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext({}, by_id, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            return FetchContext({}, by_id, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        _update(session, request, by_id)
        del self._sessions[session_id]
        if not session.partitions:
            return FetchContext(_asked(request, by_id), by_id)
        self._sessions[session_id] = session
        session.used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < MAX_SESSION_ID else 1
        return FetchContext(session.partitions, by_id, session)

    def open(self, partitions: dict[Key, CachedPartition], by_id: bool, now_ms: int) -> int:
        """Create a session. Returns its id, or NO_SESSION if there is no room for a session of this size."""
        if len(self._sessions) >= self.slots and not self._evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.integer(1, MAX_SESSION_ID)
        self._sessions[session_id] = FetchSession(session_id, by_id, partitions, now_ms)
        return session_id

    def _evict(self, size: int, now_ms: int) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms <= EVICTABLE_AFTER_MS:
            evictable = [one for one in self._sessions.values() if now_ms - one.created_ms > EVICTABLE_AFTER_MS]
            if not evictable:
                return False
            oldest = min(evictable, key=lambda one: len(one.partitions))
            if size <= len(oldest.partitions):
                return False
        logger.debug("evicting fetch session %d", oldest.session_id)
        del self._sessions[oldest.session_id]
        return True


def _asked(request: FetchRequest, by_id: bool) -> dict[Key, CachedPartition]:
    found: dict[Key, CachedPartition] = {}
    for topic in request.topics:
        name: str | bytes = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            found[name, asked.partition] = CachedPartition(name, asked)
    return found


def _update(session: FetchSession, request: FetchRequest, by_id: bool) -> None:
    partitions = session.partitions
    for topic in request.topics:
        name: str | bytes = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            known = partitions.get((name, asked.partition))
            if known is None:
                partitions[name, asked.partition] = CachedPartition(name, asked)
            else:
                known.update(asked)
    for forgotten in request.forgotten_topics_data:
        name = forgotten.topic_id if by_id else forgotten.topic
        for partition in forgotten.partitions:
            partitions.pop((name, partition), None)
