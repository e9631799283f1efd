"""Fetch (key 1), versions 4-18.

Stored batches, untouched, for each partition asked, up to `max_bytes` in all and `partition_max_bytes` each; the first
batch comes whole whatever its size. With fewer than `min_bytes` to give and nothing wrong the request parks until an
append or its `max_wait_ms`. read_committed stops at the last stable offset and gets the aborted transactions (B14,
B15). v5 log start offset. v7 sessions (KIP-227). v9 leader epochs. v11 rack, preferred replica (none here). v12 is
flexible, last fetched epoch and diverging epochs (KIP-595). v13 topic ids in place of names. v15 replica state, v17
directory id, v18 high watermark of followers: nobody follows, they are ignored. v16 node endpoints (never sent here).
"""

from __future__ import annotations

from shim.api.fetch_sessions import NO_SESSION, rotate
from shim.api.partitions import check_leader_epoch
from shim.errors import ErrorCode, KafkaError
from shim.protocol.messages.fetch_request import FetchRequest
from shim.protocol.messages.fetch_response import (
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

    from shim.api.fetch_sessions import Key, Plan, Wanted
    from shim.broker import Context
    from shim.storage.log import PartitionLog

KEY, MIN, MAX = 1, 4, 18
REQUEST, RESPONSE = FetchRequest, FetchResponse
# A parked fetch is of no use to a client that is gone.
ABANDONABLE = True

FIRST_WITH_TOPIC_IDS = 13
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
# Found before a log is asked: these answers come last, and have an empty list of aborted transactions, others a null.
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class _Reading:
    """One pass over the partitions of a fetch: the answers, and whether they may leave now."""

    __slots__ = ("answers", "has_news", "logs", "size_bytes")

    def __init__(self) -> None:
        self.answers: list[tuple[Key, Wanted, PartitionData, int]] = []
        self.size_bytes = 0
        # An error or a diverging epoch: nothing to wait for.
        self.has_news = False
        # What there is to wait for, and how big each was.
        self.logs: list[tuple[PartitionLog, int]] = []


def handle(context: Context, request: FetchRequest) -> FetchResponse | Coroutine[Any, Any, FetchResponse]:
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level}")
    plan = context.broker.fetch_sessions.plan(request, context.api_version, context.broker.clock.monotonic_ms())
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error)
    reading = _read(context, request, plan)
    if (
        reading.size_bytes >= min(request.min_bytes, request.max_bytes)
        or reading.has_news
        or request.max_wait_ms <= 0
        or not reading.logs
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


async def _park(context: Context, request: FetchRequest, plan: Plan, reading: _Reading) -> FetchResponse:
    from shim.waiters import Waiter

    broker = context.broker
    waiter = Waiter(broker.clock)
    deadline_ms = broker.clock.monotonic_ms() + request.max_wait_ms
    min_bytes = min(request.min_bytes, request.max_bytes, broker.config.fetch_max_bytes)
    watched = [log for log, _ in reading.logs]
    for log in watched:
        log.subscribe(waiter.wake)
    broker.parked.add(waiter)
    try:
        while True:
            left_ms = deadline_ms - broker.clock.monotonic_ms()
            woken = left_ms > 0 and await waiter.wait(left_ms)
            if woken and not broker.stopping and _is_too_little(context, request, reading, min_bytes):
                continue
            reading = _read(context, request, plan)
            if not woken or reading.size_bytes >= min_bytes or reading.has_news or broker.stopping:
                return _answer(context, plan, reading)
    finally:
        broker.parked.discard(waiter)
        for log in watched:
            log.unsubscribe(waiter.wake)


def _is_too_little(context: Context, request: FetchRequest, reading: _Reading, min_bytes: int) -> bool:
    """Whether what was appended since `reading` cannot fill `min_bytes`: saves reading the same bytes at each
    append."""
    if request.isolation_level != READ_UNCOMMITTED:
        return False
    find = context.broker.logs.find
    grown_bytes = reading.size_bytes
    for log, size_bytes in reading.logs:
        if log.size_bytes < size_bytes or find(log.topic, log.partition) is not log:
            return False
        grown_bytes += log.size_bytes - size_bytes
    return grown_bytes < min_bytes


def _read(context: Context, request: FetchRequest, plan: Plan) -> _Reading:
    reading = _Reading()
    unknown: list[tuple[Key, Wanted, PartitionData, int]] = []
    left_bytes = max(0, min(request.max_bytes, context.broker.config.fetch_max_bytes))
    for key, wanted in plan.partitions.items():
        answer = PartitionData(partition_index=wanted.partition)
        try:
            size_bytes = _read_one(context, request, wanted, answer, reading, left_bytes - reading.size_bytes)
        except KafkaError as error:
            _fail(answer, error.code, context.api_version)
            reading.has_news = True
            (unknown if error.code in _UNKNOWN else reading.answers).append((key, wanted, answer, 0))
        else:
            reading.size_bytes += size_bytes
            reading.answers.append((key, wanted, answer, size_bytes))
    reading.answers += unknown
    return reading


def _read_one(
    context: Context, request: FetchRequest, wanted: Wanted, answer: PartitionData, reading: _Reading, left_bytes: int
) -> int:
    """Fill one partition's answer; the bytes of its records. Raises KafkaError."""
    broker = context.broker
    topic = wanted.topic
    if topic.__class__ is bytes:
        topic = broker.metadata.topic_by_id(topic).name
    log = broker.logs.get(topic, wanted.partition)  # type: ignore[arg-type]
    reading.logs.append((log, log.size_bytes))
    check_leader_epoch(log, wanted.current_leader_epoch)
    if wanted.last_fetched_epoch >= 0 and _diverges(log, wanted, answer):
        reading.has_news = True
        return 0
    fetched = log.read(
        wanted.fetch_offset,
        max(0, min(wanted.max_bytes, left_bytes)),
        isolation_level=request.isolation_level,
        at_least_one=not reading.size_bytes,
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
    answers: list[tuple[Key, Wanted, PartitionData, int]] = reading.answers
    session = plan.session
    if session is not None:
        response.session_id = session.session_id
        if session.epoch != plan.epoch:
            # Another request of this session came in between: this one is a duplicate that nobody waits for.
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
        answers = [entry for entry in answers if entry[1].must_tell(entry[2], entry[3])]
        if len(session.partitions) > 1:
            rotate(session, [key for key, _, _, size_bytes in answers if size_bytes])
    elif plan.opens and context.api_version >= 7:
        for _, wanted, answer, size_bytes in answers:
            wanted.must_tell(answer, size_bytes)
        by_id = context.api_version >= FIRST_WITH_TOPIC_IDS
        response.session_id = broker.fetch_sessions.open(plan.partitions, by_id, broker.clock.monotonic_ms())
    else:
        response.session_id = NO_SESSION
    topic: str | bytes | None = None
    partitions: list[PartitionData] = []
    for _, wanted, answer, _ in answers:
        if wanted.topic != topic:
            topic = wanted.topic
            entry = FetchableTopicResponse()
            if isinstance(topic, bytes):
                entry.topic_id = topic
            else:
                entry.topic = topic
            partitions = entry.partitions
            response.responses.append(entry)
        partitions.append(answer)
    return response
