"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, so that requests and responses carry only
changes.

A session knows which of its partitions may have news: those whose log changed, whose position the client moved, or
which the last response did not exhaust. A fetch reads only these, so it costs what changed and not what the consumer
has. Each has its turn: a partition that returned data gets the last one, so that all are served under `max_bytes`.
Session ids are random. `max.incremental.fetch.session.cache.slots`
limits the number of sessions, in whole eighths of it: Kafka has eight caches, each with its part of the slots, and this
is one with those of all eight. At the limit, a new session replaces one that was not used for two minutes, or a smaller
one that is older than that; otherwise the client gets no session (`fetch_evictions`). Sources:
FetchManager, FetchContext, FetchSession of Kafka 4.3.1.
"""

from __future__ import annotations

import logging

from kafka_shim.api.fetch_evictions import Evictions
from kafka_shim.cext.session_base import CachedBase, SessionBase
from kafka_shim.errors import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.fetch_reads import PartitionRead
    from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest
    from kafka_shim.protocol.messages.fetch_response import PartitionData
    from kafka_shim.randomness import Randomness
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.waiters import Waiter

    # Topic name, or topic id from Fetch v13 on, and partition index.
    Key = tuple[str | bytes, int]

logger = logging.getLogger("kafka_shim.fetch")

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
NO_SESSION = 0
FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS = 7, 13
MAX_SESSION_ID = 2**31 - 1
# Kafka's caches beside each other (KafkaBroker.NumFetchSessionCacheShards).
SHARDS = 8
# The number of partitions that one fetch may take out of `changed` without a new dictionary.
FEW = 64


class CachedPartition(CachedBase):
    """One partition of a fetch: the reader's position and, in a session, what the last response said, and the log that
    tells the session of its changes."""

    __slots__ = ()

    if TYPE_CHECKING:
        log: PartitionLog | None
        session: FetchSession | None

    def __init__(self, topic: str | bytes, asked: FetchPartition) -> None:
        self.topic = topic
        # The topic's name, once it was found by its id.
        self.name: str | None = None
        self.partition = asked.partition
        self.high_watermark = -1
        self.log_start_offset = -1
        # Its place in the order of the session.
        self.turn = 0
        self.session = None
        # As `PartitionRead.segment_base` of the read that found nothing.
        self.segment_base = -1
        # Of which the session hears; None before its first read.
        self.log = None
        self.update(asked)

    def join(self, session: FetchSession, turn: int) -> None:
        """Become a partition of the session, which has to read it."""
        self.session, self.turn = session, turn
        session.changed[self] = None

    def follow(self, log: PartitionLog) -> None:
        """Tell the session from now on when the log changes. A partition that is no longer of the session follows
        nothing."""
        if log is not self.log and self.session is not None:
            if self.log is not None:
                self.log.unsubscribe(self.mark_changed)
                self.log = None
            log.subscribe(self.mark_changed)
            self.log = log  # last: memory may end before, and a log that tells of nothing would not be asked again

    def leave(self) -> None:
        """Be no longer a partition of the session."""
        if self.log is not None:
            self.log.unsubscribe(self.mark_changed)
            self.log = None
        if self.session is not None:
            self.session.changed.pop(self, None)
            self.session = None

    def update(self, asked: FetchPartition) -> None:
        """Take over the position of a newer request."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def must_respond(self, answer: PartitionData, size_bytes: int) -> bool:
        """Returns whether an incremental response must contain this partition."""
        return (
            size_bytes > 0
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
            or answer.error_code != ErrorCode.NONE
            or answer.diverging_epoch.epoch >= 0
        )

    def update_response(self, answer: PartitionData, size_bytes: int) -> bool:
        """Returns what `must_respond` does, and remembers what the response says (Kafka: maybeUpdateResponseData)."""
        must_respond = self.must_respond(answer, size_bytes)
        # After an error the next response without one must contain the partition too.
        self.high_watermark = -1 if answer.error_code != ErrorCode.NONE else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return must_respond


class FetchSession(SessionBase):
    """What one consumer fetches. `epoch` is the session epoch that its next request must have. `changed` holds the
    partitions that a fetch has to read; of all others it is known that they have nothing to tell. `waiters` are those
    of requests that wait in purgatory; `is_closed` says that the session has ended."""

    __slots__ = ()

    if TYPE_CHECKING:
        partitions: dict[Key, CachedPartition]
        changed: dict[CachedPartition, None]
        waiters: set[Waiter]

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.partitions = {}
        self.epoch = 1
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.changed = {}
        self.waiters = set()
        self.reader = None
        self.is_closed = False
        self.next_turn = 0

    def join(self, partitions: dict[Key, CachedPartition]) -> None:
        """Take over the partitions of the fetch that opens the session."""
        if self.is_closed:
            return
        self.partitions |= partitions
        for cached in partitions.values():
            cached.join(self, self.take_turn())

    def in_order(self) -> list[CachedPartition]:
        """Returns the partitions to read, in the order of their turns."""
        if len(self.changed) < 2:
            return list(self.changed)
        return sorted(self.changed, key=_turn_of)

    def read_by(self, reader: tuple[object, ...]) -> None:
        """Note who reads: everything besides the logs and positions on which a response depends. If it is another one
        than before, all partitions have to be read."""
        if reader != self.reader:
            self.reader = reader
            self.changed.update(dict.fromkeys(self.partitions.values()))

    def mark_read(self, reads: list[PartitionRead], isolation_level: int) -> None:
        """Note that the response contains these reads. A partition at its end is not read again until it changes."""
        for read in reads:
            if not read.size_bytes and read.log is not None and read.is_at_end(isolation_level):
                read.asked.follow(read.log)
                read.asked.segment_base = read.segment_base
                self.changed.pop(read.asked, None)
        if len(reads) > FEW:
            self.compact()

    def compact(self) -> None:
        """A dictionary keeps the places of what it lost, and a walk through it passes all of them: make a new one."""
        self.changed = dict(self.changed)

    def rotate(self, reads: list[PartitionRead]) -> None:
        """Give the last turns to the partitions that returned data."""
        for read in reads:
            if read.size_bytes:
                read.asked.turn = self.take_turn()

    def update(self, request: FetchRequest) -> None:
        """Take over the partitions that a request adds, moves and forgets."""
        partitions = self.partitions
        for topic in request.topics:
            name: str | bytes = topic.topic_id if self.by_id else topic.topic
            for asked in topic.partitions:
                known = partitions.get((name, asked.partition))
                if known is None:
                    known = partitions[name, asked.partition] = CachedPartition(name, asked)
                    known.join(self, self.take_turn())
                else:
                    known.update(asked)
                    self.changed[known] = None
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.by_id else forgotten.topic
            for partition in forgotten.partitions:
                dropped = partitions.pop((name, partition), None)
                if dropped is not None:
                    dropped.leave()

    def close(self) -> None:
        """End the session. A request of it that waits still hears of changes until `leave`."""
        self.is_closed = True
        if not self.waiters:
            for cached in self.partitions.values():
                cached.leave()

    def leave(self, waiter: Waiter) -> None:
        """A request waits no longer."""
        self.waiters.discard(waiter)
        if self.is_closed:
            self.close()


class FetchContext:
    """What one request reads, with its session resolved. It stands for Kafka's classes SessionlessFetchContext,
    FullFetchContext (`opens_session`), IncrementalFetchContext (`session`) and SessionErrorContext (`error`).

    `partitions` is everything that is fetched. For a session that is all of its partitions, of which
    `FetchSession.in_order` returns those that may have news.
    """

    __slots__ = ("by_id", "epoch", "error", "opens_session", "partitions", "reader", "session", "session_id")

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
        # Of a fetch with a session, before anything is read: what `FetchSession.read_by` needs.
        self.reader: tuple[object, ...] = ()
        # The session that continues, and its epoch while this request is its newest.
        self.session_id, self.epoch = (NO_SESSION, -1) if session is None else (session.session_id, session.epoch)

    def is_duplicate(self) -> bool:
        """Returns whether another request of the session came after this one."""
        return self.session is not None and self.session.epoch != self.epoch

    def must_respond(self, read: PartitionRead) -> bool:
        """Returns whether `update` returns this partition, and remembers nothing."""
        return self.session is None or read.asked.must_respond(read.answer, read.size_bytes)

    def update(self, reads: list[PartitionRead], isolation_level: int) -> list[PartitionRead]:
        """Returns the partitions that the response contains. The session, or the one to be created, remembers them
        (Kafka: updateAndGenerateResponseData)."""
        named = [read for read in reads if read.asked.update_response(read.answer, read.size_bytes)]
        if self.session is None:
            return reads
        self.session.mark_read(reads, isolation_level)
        self.session.rotate(reads)
        return named


def slots_of(option: int) -> int:
    """Returns how many sessions `max.incremental.fetch.session.cache.slots` allows: none, if it is below 8."""
    return option // SHARDS * SHARDS


class FetchSessionCache:
    """All fetch sessions of one broker, in the order in which they began."""

    __slots__ = ("_evictions", "_random", "sessions", "slots")

    def __init__(self, slots: int, random: Randomness) -> None:
        self.slots = slots
        self.sessions: dict[int, FetchSession] = {}
        self._random = random
        # None until the cache is full for the first time.
        self._evictions: Evictions | None = None

    def __len__(self) -> int:
        return len(self.sessions)

    def find(self, request: FetchRequest) -> FetchSession | None:
        """Returns the session that the request continues, if it is its turn."""
        session = self.sessions.get(request.session_id)
        return session if session is not None and session.epoch == request.session_epoch else None

    def new_context(
        self,
        request: FetchRequest,
        version: int,
        now_ms: int,
        asked: dict[Key, CachedPartition] | None = None,
        updated: FetchSession | None = None,
    ) -> FetchContext:
        """Resolve the session of a request (Kafka: FetchManager.newContext). What takes long may be done already:
        `asked` are the partitions of a full fetch, `updated` is the session that has taken over the request."""
        by_id = version >= FIRST_WITH_TOPIC_IDS
        epoch, session_id = request.session_epoch, request.session_id
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            closed = self.sessions.pop(session_id, None)
            if closed is not None:
                closed.close()
            opens_session = epoch == INITIAL_EPOCH and version >= FIRST_WITH_SESSIONS
            if asked is None:
                asked = asked_of(request, by_id)
            return FetchContext(asked, by_id, opens_session=opens_session)
        session = self.sessions.get(session_id)
        if session is None:
            return FetchContext({}, by_id, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext({}, by_id, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            return FetchContext({}, by_id, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session is not updated:
            session.update(request)
        if request.forgotten_topics_data:
            self._tell(session, is_new=False)
        if not session.partitions:
            del self.sessions[session_id]
            return FetchContext(asked_of(request, by_id), by_id)
        session.used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < MAX_SESSION_ID else 1
        return FetchContext(session.partitions, by_id, session)

    def open(self, partitions: dict[Key, CachedPartition], by_id: bool, now_ms: int) -> FetchSession | None:
        """Create a session. Returns None if there is no room for a session of this size."""
        session = self.open_empty(len(partitions), by_id, now_ms)
        if session is not None:
            session.join(partitions)
        return session

    def open_empty(self, size: int, by_id: bool, now_ms: int) -> FetchSession | None:
        """As `open`, of a session that so many partitions are going to join."""
        if len(self.sessions) >= self.slots and not self._evict(size, now_ms):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self.sessions:
            session_id = self._random.integer(1, MAX_SESSION_ID)
        session = self.sessions[session_id] = FetchSession(session_id, by_id, now_ms)
        self._tell(session, is_new=True)
        return session

    def _evict(self, size: int, now_ms: int) -> bool:
        if self._evictions is None or self._evictions.is_full:
            self._evictions = None
            self._evictions = Evictions(self.sessions)
        chosen = self._evictions.choose(size, now_ms)
        if chosen is None:
            return False
        logger.debug("evicting fetch session %d", chosen)
        self.sessions.pop(chosen).close()
        return True

    def _tell(self, session: FetchSession, is_new: bool) -> None:
        evictions = self._evictions
        if evictions is not None:
            try:
                evictions.add(session) if is_new else evictions.shrunk(session)
            except MemoryError:
                self._evictions = None


def asked_of(request: FetchRequest, by_id: bool) -> dict[Key, CachedPartition]:
    """Returns the partitions that the request names."""
    found: dict[Key, CachedPartition] = {}
    for topic in request.topics:
        name: str | bytes = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            found[name, asked.partition] = CachedPartition(name, asked)
    return found


def _turn_of(cached: CachedPartition) -> int:
    return cached.turn
