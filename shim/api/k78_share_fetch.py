"""ShareFetch (key 78), versions 1-2.

A member of a share group (KIP-932) acquires records: each belongs to it until it acknowledges the record or the lock
ends. The response says which offsets it got, how often each was delivered, and how long the locks last. Records are
whole stored batches, so some are not the member's. The request carries acknowledgements of earlier records; they are
carried out first, and their outcome is in the same response. It waits like a Fetch for `min_bytes`, until
`max_wait_ms`. Sessions are those of `share_sessions`. v2 acquire modes (KIP-1206) and renewed locks (KIP-1222): a
request that renews fetches nothing.
"""

from __future__ import annotations

from struct import Struct

from kafka_shim.api.share_acknowledgements import (
    FIRST_WITH_RENEWAL,
    Acknowledged,
    acknowledge,
    check_member,
    end_session,
    readable_topics,
    shares_of,
    tell_leader,
    watch_connection,
)
from kafka_shim.api.share_fetch_reads import MANY, PARTITIONS_PER_STEP, ShareFetchReads
from kafka_shim.cext.messages import encode_response_frame
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.share_fetch_request import ShareFetchRequest
from kafka_shim.protocol.messages.share_fetch_response import (
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kafka_shim.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, CachedSharePartition, next_epoch
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Sequence
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.share.share_sessions import ShareSession, TopicIdPartition
    from kafka_shim.turns import Steps

    Answers = dict[TopicIdPartition, PartitionData]
    Begun = Outcome[ShareFetchResponse] | Coroutine[Any, Any, Outcome[ShareFetchResponse] | ShareFetchResponse]

KEY, MIN, MAX = 78, 1, 2
REQUEST, RESPONSE = ShareFetchRequest, ShareFetchResponse
_read_length = Struct(">i").unpack_from


class _Fetch:
    """What one request asks for, with its session resolved."""

    __slots__ = ("acknowledged", "epoch", "errors", "group_id", "member_id", "reads", "session")

    def __init__(self, group_id: str, member_id: str, epoch: int) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = epoch
        # The session that continues; None if it is new or ends.
        self.session: ShareSession | None = None
        self.acknowledged = Acknowledged()
        self.reads: ShareFetchReads
        # Partitions that the client may not read or that do not exist.
        self.errors: Answers = {}


def handle(context: Context, request: ShareFetchRequest) -> Begun | Steps[Begun]:
    count = 0
    has_acknowledgements = False
    for topic in request.topics:
        count += len(topic.partitions)
        has_acknowledgements = has_acknowledgements or any(asked.acknowledgement_batches for asked in topic.partitions)
    steps = _begin(context, request, has_acknowledgements)
    # What is acknowledged takes an append a partition, and time for every record whose batch was split.
    return steps if has_acknowledgements or count > MANY else at_once(steps)


def _begin(context: Context, request: ShareFetchRequest, has_acknowledgements: bool) -> Steps[Begun]:
    group_id, member_id = check_member(context, request)
    fetch = _Fetch(group_id, member_id, request.share_session_epoch)
    is_renewal = request.is_renew_ack and context.api_version >= FIRST_WITH_RENEWAL
    if is_renewal:
        _check_renewal(request)
    asked = yield from _asked(context, request)
    try:
        partitions = _resolve_session(context, request, fetch, asked, has_acknowledgements)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _refuse_later(context, request, error)
        raise
    names = {one.topic for one in partitions if one.topic is not None}
    for topic in request.topics:
        known = context.broker.metadata.image.topics_by_id.get(topic.topic_id)
        if known is not None:
            names.add(known.name)
    readable = readable_topics(context, names)
    if has_acknowledgements:
        fetch.acknowledged = yield from acknowledge(context, request, group_id, member_id, readable)
    fetch.reads = reads = ShareFetchReads(context, request, shares_of(context.broker), group_id, member_id)
    if is_renewal:
        return _last_outcome(context, fetch)
    finding = _find(context, request, fetch, partitions, readable)
    if len(partitions) > MANY:
        return _answer_many(context, request, fetch, finding)
    if not at_once(finding):
        return _last_outcome(context, fetch)
    answers = at_once(reads.try_answer(is_last=request.max_wait_ms <= 0 or context.broker.stopping))
    if answers is not None:
        return _outcome(context, fetch, answers)
    return _answer_later(context, request, fetch)


def _find(
    context: Context,
    request: ShareFetchRequest,
    fetch: _Fetch,
    partitions: Sequence[CachedSharePartition],
    readable: Collection[str],
) -> Steps[bool]:
    """Find the share partitions. Returns whether there is anything to fetch."""
    wanted = []
    for number, one in enumerate(partitions, 1):
        if _is_readable(context, fetch, one, readable):
            wanted.append(one)
        if number % PARTITIONS_PER_STEP == 0:
            yield
    if context.throttle is not None:
        most_bytes = context.throttle.most_fetched_bytes()
        if most_bytes is not None and most_bytes < request.max_bytes:
            request.max_bytes = int(most_bytes)
    if not wanted or request.max_records == 0 or request.max_bytes == 0:
        return False
    yield from fetch.reads.find_all(_rotated(wanted, request.share_session_epoch))
    return True


async def _answer_many(
    context: Context, request: ShareFetchRequest, fetch: _Fetch, finding: Steps[bool]
) -> Outcome[ShareFetchResponse]:
    """As a fetch of few partitions, in steps."""
    turns, reads = context.broker.turns, fetch.reads
    reads.is_large = True
    if not await turns.run(finding, context.throttle):
        return _outcome(context, fetch, {})
    is_last = request.max_wait_ms <= 0 or context.broker.stopping
    answers = await turns.run(reads.try_answer(is_last=is_last), context.throttle)
    if answers is not None:
        return _outcome(context, fetch, answers)
    return await _answer_later(context, request, fetch)


async def _answer_later(context: Context, request: ShareFetchRequest, fetch: _Fetch) -> Outcome[ShareFetchResponse]:
    from kafka_shim.api.delayed_share_fetch import wait_for_records

    return _outcome(context, fetch, await wait_for_records(context, fetch.reads, request.max_wait_ms))


async def _refuse_later(context: Context, request: ShareFetchRequest, error: KafkaError) -> ShareFetchResponse:
    from kafka_shim.api.delayed_share_fetch import wait_out

    await wait_out(context, request.max_wait_ms)
    raise error


def failed(request: ShareFetchRequest, version: int, code: ErrorCode, message: str | None) -> ShareFetchResponse:
    """Returns the error alone: Kafka gives no text."""
    return ShareFetchResponse(error_code=code)


# --- the session


def _check_renewal(request: ShareFetchRequest) -> None:
    """Raises INVALID_REQUEST if a request that renews locks wants to fetch too (KIP-1222)."""
    limits = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    wrong = "".join(f"{name} must be set to 0, " for name, value in limits.items() if value)
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{wrong}if isRenewAck is true.")


def _asked(context: Context, request: ShareFetchRequest) -> Steps[list[CachedSharePartition]]:
    """Returns the partitions that the request names."""
    topics = context.broker.metadata.image.topics_by_id
    asked: list[CachedSharePartition] = []
    if request.share_session_epoch == FINAL_EPOCH:
        return asked
    for topic in request.topics:
        known = topics.get(topic.topic_id)
        name = None if known is None else known.name
        for one in topic.partitions:
            asked.append(CachedSharePartition(topic.topic_id, one.partition_index, name))
            if len(asked) % PARTITIONS_PER_STEP == 0:
                yield
    return asked


def _resolve_session(
    context: Context,
    request: ShareFetchRequest,
    fetch: _Fetch,
    asked: list[CachedSharePartition],
    has_acknowledgements: bool,
) -> Sequence[CachedSharePartition]:
    """Open, continue or end the session. Returns the partitions to fetch (SharePartitionManager.newContext)."""
    sessions = shares_of(context.broker).sessions
    key = fetch.group_id, fetch.member_id
    if fetch.epoch == FINAL_EPOCH:
        sessions.get(key)
        return ()
    if fetch.epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        session = sessions.open(key, {one.key: one for one in asked}, context.session)
        watch_connection(context)
        return list(session.partitions.values())
    fetch.session = session = sessions.advance(key, fetch.epoch)
    forgotten = [(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions]
    session.update(asked, forgotten)
    return list(session.partitions.values())


def _rotated(partitions: list[CachedSharePartition], epoch: int) -> list[CachedSharePartition]:
    """Returns the partitions in the order in which this request serves them: each begins in its turn."""
    at = epoch % len(partitions) if epoch >= 1 else 0
    return partitions[at:] + partitions[:at]


def _is_readable(context: Context, fetch: _Fetch, one: CachedSharePartition, readable: Collection[str]) -> bool:
    if one.topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    elif one.topic not in readable:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif context.broker.metadata.image.partition(one.topic, one.partition) is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        return True
    fetch.errors[one.key] = PartitionData(partition_index=one.partition, error_code=code, records=b"")
    return False


# --- the response


def _outcome(context: Context, fetch: _Fetch, answers: Answers) -> Outcome[ShareFetchResponse]:
    answers |= fetch.errors
    response = _answer(context, fetch, answers)
    _add_acknowledged(response, fetch.acknowledged)
    return Outcome(response, fetch.acknowledged.flushes)


def _last_outcome(
    context: Context, fetch: _Fetch
) -> Outcome[ShareFetchResponse] | Coroutine[Any, Any, Outcome[ShareFetchResponse]]:
    """That of a request that fetches nothing: it may end the session."""
    outcome = _outcome(context, fetch, {})
    return end_session(context, fetch.group_id, fetch.member_id, outcome) if fetch.epoch == FINAL_EPOCH else outcome


def _answer(context: Context, fetch: _Fetch, answers: Answers) -> ShareFetchResponse:
    broker = context.broker
    response = ShareFetchResponse()
    response.acquisition_lock_timeout_ms = broker.share_state.record_lock_duration_ms(fetch.group_id)
    session = fetch.session
    if session is not None and session.epoch != next_epoch(fetch.epoch):
        # Another request of this session came in between: this one is a duplicate whose response nobody reads.
        response.error_code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return response
    sizes = fetch.reads.sizes
    if context.throttle is not None:
        _put(context, response, answers)
        parts = encode_response_frame(context.correlation_id, response, context.api_version)
        response.responses.clear()
        frame_bytes: int = _read_length(parts[0])[0]
        if context.throttle.charge_fetch(frame_bytes) > 0:
            # As from Kafka: what was acquired for this response is released when its locks end.
            return response
    if session is not None:
        answers = {
            key: answer
            for key, answer in answers.items()
            if session.must_respond(key, sizes.get(key, 0), answer.error_code)
        }
    for key, size_bytes in sizes.items():
        broker.metrics.fetched_bytes += size_bytes
        fetch.reads.shares[key].log.fetched_bytes += size_bytes
    _put(context, response, answers)
    return response


def _put(context: Context, response: ShareFetchResponse, answers: Answers) -> None:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), answer in answers.items():
        tell_leader(context, response, topic_id, answer, NodeEndpoint)
        _topic_of(response, topics, topic_id).partitions.append(answer)


def _topic_of(
    response: ShareFetchResponse, topics: dict[bytes, ShareFetchableTopicResponse], topic_id: bytes
) -> ShareFetchableTopicResponse:
    topic = topics.get(topic_id)
    if topic is None:
        topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id)
        response.responses.append(topic)
    return topic


def _add_acknowledged(response: ShareFetchResponse, acknowledged: Acknowledged) -> None:
    """Say what became of the acknowledgements; partitions that are not in the response yet are added for it."""
    if not acknowledged.errors:
        return
    topics = {topic.topic_id: topic for topic in response.responses}
    answers = {(topic.topic_id, one.partition_index): one for topic in response.responses for one in topic.partitions}
    for (topic_id, partition), error in acknowledged.errors.items():
        answer = answers.get((topic_id, partition))
        if answer is None:
            answer = PartitionData(partition_index=partition, records=b"")
            _topic_of(response, topics, topic_id).partitions.append(answer)
        if error is not None:
            answer.acknowledge_error_code = error.code
            answer.acknowledge_error_message = error.message
