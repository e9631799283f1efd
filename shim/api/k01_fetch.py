"""Fetch (key 1), versions 4-18.

Stored batches, untouched, for each partition asked, up to `max_bytes` in all and `partition_max_bytes` each; the first
batch comes whole whatever its size. With fewer than `min_bytes` to give and nothing wrong the request parks until an
append or its `max_wait_ms`. read_committed stops at the last stable offset and gets the aborted transactions (B14,
B15). v5 log start offset. v7 sessions (KIP-227). v9 leader epochs. v11 rack, preferred replica (none here). v12 is
flexible, last fetched epoch and diverging epochs (KIP-595). v13 topic ids in place of names. v15 replica state, v17
directory id, v18 high watermark of followers: nobody follows, they are ignored. v16 node endpoints (never sent here).
"""

from __future__ import annotations

from kafka_shim.api.fetch_sessions import NO_SESSION, rotate
from kafka_shim.api.partitions import check_leader_epoch
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.fetch_request import FetchRequest
from kafka_shim.protocol.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.api.fetch_sessions import Key, Plan, Wanted
    from kafka_shim.broker import Context
    from kafka_shim.storage.log import PartitionLog

KEY, MIN, MAX = 1, 4, 18
REQUEST, RESPONSE = FetchRequest, FetchResponse
# A parked fetch is of no use to a client that is gone.
ABANDONABLE = True

FIRST_WITH_SESSIONS = 7
FIRST_WITH_TOPIC_IDS = 13
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# So many stored bytes an answer holds at once; what it shows beyond them is read from the files as it is sent.
COPY_BYTES = 64 * 1024
# Found before a log is asked: these answers come last, and have an empty list of aborted transactions, others a null.
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class _Entry:
    """One partition of a fetch: what it gave when it was read, and where its log stood then."""

    __slots__ = ("answer", "end_offset", "key", "log", "log_bytes", "size_bytes", "start_offset", "wanted")

    def __init__(self, key: Key, wanted: Wanted) -> None:
        self.key = key
        self.wanted = wanted
        self.answer = PartitionData(partition_index=wanted.partition)
        self.size_bytes = 0
        self.log: PartitionLog | None = None
        self.end_offset = -1
        self.start_offset = -1
        # Only kept where `min_bytes` makes a reader wait for more.
        self.log_bytes = 0

    def has_changed(self) -> bool:
        """Whether reading it again could give something else. Markers take offsets, so they count as well."""
        log = self.log
        return log is not None and (
            log.log_end_offset != self.end_offset
            or log.log_start_offset != self.start_offset
            or log.is_closed
            or log.is_offline
        )


class _Reading:
    """One pass over the partitions of a fetch: the answers, and whether they may leave now."""

    __slots__ = ("entries", "has_news", "size_bytes")

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.size_bytes = 0
        # An error or a diverging epoch: nothing to wait for.
        self.has_news = False


def handle(context: Context, request: FetchRequest) -> FetchResponse | Coroutine[Any, Any, FetchResponse]:
    plan = context.broker.fetch_sessions.plan(request, context.api_version, context.broker.clock.monotonic_ms())
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error)
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED) and _reads_something(context, plan):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level}")
    reading = _read(context, request, plan)
    if (
        reading.size_bytes >= min(request.min_bytes, request.max_bytes)
        or reading.has_news
        or request.max_wait_ms <= 0
        or not reading.entries
        or context.broker.stopping
    ):
        return _answer(context, plan, reading)
    return _park(context, request, plan, reading)


def failed(request: FetchRequest, version: int, code: ErrorCode, message: str | None) -> FetchResponse:
    """The error at the top, and where clients may not look there, before v13, in every partition too."""
    response = FetchResponse(error_code=code, session_id=request.session_id)
    if version < FIRST_WITH_TOPIC_IDS:
        for topic in request.topics:
            answers = [
                PartitionData(partition_index=asked.partition, error_code=code, high_watermark=-1, records=b"")
                for asked in topic.partitions
            ]
            response.responses.append(FetchableTopicResponse(topic=topic.topic, partitions=answers))
    return response


def _reads_something(context: Context, plan: Plan) -> bool:
    """Whether any partition of the plan exists: only then Kafka looks at the isolation level."""
    image = context.broker.metadata.image
    for topic_name, number in plan.partitions:
        topic = image.topics_by_id.get(topic_name) if isinstance(topic_name, bytes) else image.topics.get(topic_name)
        if topic is not None and 0 <= number < len(topic.partitions):
            return True
    return False


async def _park(context: Context, request: FetchRequest, plan: Plan, reading: _Reading) -> FetchResponse:
    from kafka_shim.waiters import Waiter

    broker = context.broker
    waiter = Waiter(broker.clock)
    deadline_ms = broker.clock.monotonic_ms() + request.max_wait_ms
    min_bytes = min(request.min_bytes, request.max_bytes, broker.config.fetch_max_bytes)
    watched = [entry.log for entry in reading.entries if entry.log is not None]
    for log in watched:
        log.subscribe(waiter.wake)
    broker.parked.add(waiter)
    try:
        # First a look at what came since the reading: this coroutine starts a turn of the loop later.
        while True:
            changed = [entry for entry in reading.entries if entry.has_changed()]
            left_ms = deadline_ms - broker.clock.monotonic_ms()
            is_over = left_ms <= 0 or broker.stopping
            if changed and (is_over or _can_fill(request, reading, changed, min_bytes)):
                reading = _read_again(context, request, plan, reading, changed)
            if is_over or reading.size_bytes >= min_bytes or reading.has_news:
                return _answer(context, plan, reading)
            await waiter.wait(left_ms)
    finally:
        broker.parked.discard(waiter)
        for log in watched:
            log.unsubscribe(waiter.wake)


def _can_fill(request: FetchRequest, reading: _Reading, changed: list[_Entry], min_bytes: int) -> bool:
    """Whether what was appended since the reading may be enough: saves reading the same bytes at each append."""
    if min_bytes <= 1 or request.isolation_level != READ_UNCOMMITTED:
        return True
    grown_bytes = reading.size_bytes
    for entry in changed:
        log = entry.log
        if log is None or log.is_closed or log.is_offline or log.log_start_offset != entry.start_offset:
            return True
        grown_bytes += log.size_bytes - entry.log_bytes
    return grown_bytes >= min_bytes


def _read_again(
    context: Context, request: FetchRequest, plan: Plan, reading: _Reading, changed: list[_Entry]
) -> _Reading:
    """What the fetch would give now. Only what changed is read, unless something gave data before: then the limits may
    fall elsewhere."""
    if reading.size_bytes:
        return _read(context, request, plan)
    left_bytes = _limit_bytes(context, request)
    for entry in changed:
        entry.answer = PartitionData(partition_index=entry.wanted.partition)
        _read_entry(context, request, entry, reading, left_bytes)
    return reading


def _read(context: Context, request: FetchRequest, plan: Plan) -> _Reading:
    reading = _Reading()
    left_bytes = _limit_bytes(context, request)
    for key, wanted in plan.partitions.items():
        entry = _Entry(key, wanted)
        reading.entries.append(entry)
        _read_entry(context, request, entry, reading, left_bytes)
    return reading


def _limit_bytes(context: Context, request: FetchRequest) -> int:
    return max(0, min(request.max_bytes, context.broker.config.fetch_max_bytes))


def _read_entry(context: Context, request: FetchRequest, entry: _Entry, reading: _Reading, limit_bytes: int) -> None:
    try:
        entry.size_bytes = _read_one(context, request, entry, reading, limit_bytes - reading.size_bytes)
        reading.size_bytes += entry.size_bytes
    except KafkaError as error:
        _fail(entry.answer, error.code, context.api_version)
        reading.has_news = True


def _read_one(context: Context, request: FetchRequest, entry: _Entry, reading: _Reading, left_bytes: int) -> int:
    """Fill one partition's answer; the bytes of its records. Raises KafkaError."""
    broker, wanted, answer = context.broker, entry.wanted, entry.answer
    topic = wanted.topic
    if topic.__class__ is bytes:
        topic = broker.metadata.topic_by_id(topic).name
    entry.log = log = broker.logs.get(topic, wanted.partition)  # type: ignore[arg-type]
    entry.end_offset = log.log_end_offset
    entry.start_offset = log.log_start_offset
    if request.min_bytes > 1:
        entry.log_bytes = log.size_bytes
    if wanted.current_leader_epoch >= 0:
        check_leader_epoch(log, wanted.current_leader_epoch)
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "nobody else holds a replica")
    if wanted.last_fetched_epoch >= 0 and _diverges(log, wanted, answer):
        reading.has_news = True
        return 0
    fetched = log.read(
        wanted.fetch_offset,
        max(0, min(wanted.max_bytes, left_bytes)),
        isolation_level=request.isolation_level,
        at_least_one=not reading.size_bytes,
        copy_bytes=COPY_BYTES - reading.size_bytes,
    )
    answer.high_watermark = fetched.high_watermark
    answer.last_stable_offset = fetched.last_stable_offset
    answer.log_start_offset = fetched.log_start_offset
    answer.records = fetched.records
    if fetched.aborted is None:
        answer.aborted_transactions = None
    elif fetched.aborted:
        answer.aborted_transactions = [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in fetched.aborted
        ]
    return fetched.size_bytes


def _fail(answer: PartitionData, code: ErrorCode, version: int) -> None:
    if code is ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # clients of that age know no storage errors, and retry this one
    answer.error_code = code
    answer.high_watermark = -1
    answer.records = b""
    if code not in _UNKNOWN:
        answer.aborted_transactions = None


def _diverges(log: PartitionLog, wanted: Wanted, answer: PartitionData) -> bool:
    """Whether the reader's last epoch ended before its offset: then it gets the end, to truncate or reset (KIP-595)."""
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
        return False
    answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    answer.high_watermark = log.high_watermark
    answer.last_stable_offset = log.last_stable_offset
    answer.log_start_offset = log.log_start_offset
    answer.aborted_transactions = None
    answer.records = b""
    return True


def _answer(context: Context, plan: Plan, reading: _Reading) -> FetchResponse:
    broker = context.broker
    broker.metrics.fetched_bytes += reading.size_bytes
    response = FetchResponse()
    entries = reading.entries
    session = plan.session
    if session is not None:
        response.session_id = session.session_id
        if session.epoch != plan.epoch:
            # Another request of this session came in between: this one is a duplicate that nobody waits for.
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        entries = [entry for entry in entries if entry.wanted.must_tell(entry.answer, entry.size_bytes)]
        if len(session.partitions) > 1:
            rotate(session, [entry.key for entry in entries if entry.size_bytes])
    elif plan.opens and context.api_version >= FIRST_WITH_SESSIONS:
        for entry in entries:
            entry.wanted.must_tell(entry.answer, entry.size_bytes)
        by_id = context.api_version >= FIRST_WITH_TOPIC_IDS
        response.session_id = broker.fetch_sessions.open(plan.partitions, by_id, broker.clock.monotonic_ms())
    else:
        response.session_id = NO_SESSION
    if reading.has_news:
        entries = sorted(entries, key=_is_unknown)  # Kafka answers what it does not know last
    topic: str | bytes | None = None
    partitions: list[PartitionData] = []
    for entry in entries:
        if entry.wanted.topic != topic:
            topic = entry.wanted.topic
            told = FetchableTopicResponse()
            if isinstance(topic, bytes):
                told.topic_id = topic
            else:
                told.topic = topic
            partitions = told.partitions
            response.responses.append(told)
        partitions.append(entry.answer)
    return response


def _is_unknown(entry: _Entry) -> bool:
    return entry.answer.error_code in _UNKNOWN
