"""Fetch (key 1), versions 4-18.

Returns stored batches, unchanged, for each requested partition: up to `max_bytes` in all and `partition_max_bytes`
each; the last batch of a partition may be cut there. The first batch of all is returned whole whatever its size. If
less than `min_bytes` is available and there is no error, the request waits in purgatory for an append or until
`max_wait_ms`; partitions that do not exist or that the client may not read end no wait for others, and nobody waits in
a segment that is not the last. read_committed stops at the last stable offset and returns the aborted transactions
(B14, B15). v5 log start offset. v7 sessions (KIP-227). v9 leader epochs. v11 rack, preferred replica (none here). v12
is flexible, last fetched epoch and diverging epochs (KIP-595). v13 topic ids in place of names. v15 replica state, v17
directory id, v18 high watermark of followers: ignored, because there are no followers. v16 names the leader, and
where it is, to a client that was refused for the leader that it knows (KIP-951).
"""

from __future__ import annotations

from types import GeneratorType

from kafka_shim.api.fetch_reads import (
    COPY_BYTES,
    MANY,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    read_in_steps,
    read_partitions,
)
from kafka_shim.api.fetch_sessions import FINAL_EPOCH, FIRST_WITH_TOPIC_IDS, INITIAL_EPOCH, asked_of
from kafka_shim.api.fetch_size import FetchSize
from kafka_shim.api.partitions import leader_endpoint
from kafka_shim.cext.plain_fetch import PlainFetch
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.fetch_request import FetchRequest, FetchTopic, ForgottenTopic
from kafka_shim.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    from kafka_shim.api.fetch_reads import FetchReads, PartitionRead
    from kafka_shim.api.fetch_sessions import CachedPartition, FetchContext, FetchSession, Key
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

    Answer = FetchResponse | Coroutine[Any, Any, FetchResponse]

KEY, MIN, MAX = 1, 4, 18
REQUEST, RESPONSE = FetchRequest, FetchResponse
NONE = ErrorCode.NONE
# A waiting fetch is cancelled when its client disconnects.
ABANDONABLE = True
PLAIN = PlainFetch(COPY_BYTES)

PARTITIONS_PER_STEP = 16
# Where a partition stands in an answer (`_place`).
IN_PLACE, BY_ID, BY_NAME = 0, 1, 2


def handle(
    context: Context, request: FetchRequest, fetch: FetchContext | None = None, reads: FetchReads | None = None
) -> Answer | Steps[Answer]:
    """Returns the response, a coroutine that waits for records, or the steps of a fetch of thousands of partitions.
    Those steps call it again, with the session that they have resolved (`fetch`) and the partitions that they have read
    (`reads`). Raises UNKNOWN_SERVER_ERROR for an unknown isolation level."""
    broker = context.broker
    if fetch is None:
        if context.is_large:
            return _in_steps(context, request)
        fetch = broker.fetch_sessions.new_context(request, context.api_version, broker.clock.monotonic_ms())
    if fetch.error is not NONE:
        return FetchResponse(error_code=fetch.error)
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED) and _reads_something(context, fetch):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown isolation level {request.isolation_level}, it is 0 or 1"
        )
    if context.throttle is not None:
        # More would never be sent (ClientQuotaManager.maxValueInQuotaWindow).
        most_bytes = context.throttle.most_fetched_bytes()
        if most_bytes is not None and most_bytes < request.max_bytes:
            request.max_bytes = int(most_bytes)
    if reads is None and (fetch.session is not None or fetch.opens_session):
        # ACLs that change from here on are news to the next fetch of the session.
        fetch.reader = _reader(context, request)
        if fetch.session is not None:
            fetch.session.read_by(fetch.reader)
    answer: Callable[..., FetchResponse | Steps[FetchResponse]] = _answer_in_steps
    if reads is None:
        if len(fetch.partitions) > MANY and (fetch.session is None or len(fetch.session.changed) > MANY):
            return _read_in_steps(context, request, fetch)
        reads, answer = read_partitions(context, request, fetch), _answer
    if (
        reads.has_news
        or reads.size_bytes + reads.withheld_bytes >= request.min_bytes
        or reads.size_bytes >= request.max_bytes
        or request.max_wait_ms <= 0
        or len(reads.erroneous) >= len(fetch.partitions)
        or broker.stopping
    ):
        return answer(context, request, fetch, reads)
    return _answer_later(context, request, fetch, reads)


async def _answer_later(
    context: Context, request: FetchRequest, fetch: FetchContext, reads: FetchReads
) -> FetchResponse:
    from kafka_shim.api.delayed_fetch import wait_for_reads

    reads = await wait_for_reads(context, request, fetch, reads)
    quotas = context.broker.quotas
    if context.throttle is None and quotas is not None and quotas.is_enabled:
        # The first quota was set meanwhile. Kafka looks for one when it answers.
        context.throttle = quotas.throttle(context.session.principal, context.client_id, 0)
    if len(reads.entries) <= MANY:
        return _answer(context, request, fetch, reads)
    answer = context.broker.turns.finish(_answer_in_steps(context, request, fetch, reads), context.throttle)
    return answer if isinstance(answer, FetchResponse) else await answer


# --- a fetch of thousands of partitions


def _in_steps(context: Context, request: FetchRequest) -> Steps[Answer]:
    broker = context.broker
    sessions = broker.fetch_sessions
    by_id = context.api_version >= FIRST_WITH_TOPIC_IDS
    asked: dict[Key, CachedPartition] = {}
    session = sessions.find(request) if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH) else None
    if session is None or session.by_id is by_id:
        for part in _parts(request):
            if session is None:
                asked |= asked_of(part, by_id)
            else:
                session.update(part)
            yield
    now_ms = broker.clock.monotonic_ms()
    answer = handle(context, request, sessions.new_context(request, context.api_version, now_ms, asked, session))
    if isinstance(answer, GeneratorType):
        answer = yield from answer
    return answer  # type: ignore[return-value]


def _parts(request: FetchRequest) -> Iterator[FetchRequest]:
    """The partitions of a request as smaller ones: what it adds and moves, then what it forgets."""
    for topic in request.topics:
        for start in range(0, len(topic.partitions), PARTITIONS_PER_STEP):
            some = topic.partitions[start : start + PARTITIONS_PER_STEP]
            yield FetchRequest(topics=[FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=some)])
    for gone in request.forgotten_topics_data:
        for start in range(0, len(gone.partitions), PARTITIONS_PER_STEP):
            numbers = gone.partitions[start : start + PARTITIONS_PER_STEP]
            forgotten = ForgottenTopic(topic=gone.topic, topic_id=gone.topic_id, partitions=numbers)
            yield FetchRequest(forgotten_topics_data=[forgotten])


def _read_in_steps(context: Context, request: FetchRequest, fetch: FetchContext) -> Steps[Answer]:
    reads = yield from read_in_steps(context, request, fetch)
    answer = handle(context, request, fetch, reads)
    if isinstance(answer, GeneratorType):
        answer = yield from answer
    return answer  # type: ignore[return-value]


def _answer_in_steps(
    context: Context, request: FetchRequest, fetch: FetchContext, reads: FetchReads
) -> Steps[FetchResponse]:
    """As `_answer`. A partition that changes before its turn is read again by the next request."""
    refused = yield from _refusal(context, fetch, reads)
    if refused is not None:
        return refused
    broker = context.broker
    session = fetch.session
    broker.metrics.fetched_bytes += reads.size_bytes
    response = FetchResponse(session_id=fetch.session_id)
    if reads.leader_id >= 0:
        _add_endpoint(context, response, reads)
    opened: FetchSession | None = None
    if session is None and fetch.opens_session:
        opened = broker.fetch_sessions.open_empty(len(fetch.partitions), fetch.by_id, broker.clock.monotonic_ms())
        if opened is not None:
            response.session_id = opened.session_id
            opened.read_by(fetch.reader)
    by_id: list[PartitionRead] = []
    by_name: list[PartitionRead] = []
    for start in range(0, len(reads.entries), PARTITIONS_PER_STEP):
        if fetch.is_duplicate():  # the session has read its partitions by what the other request may
            return _duplicate(fetch)
        some = reads.entries[start : start + PARTITIONS_PER_STEP]
        for entry in some:
            if entry.size_bytes and entry.log is not None:
                entry.log.fetched_bytes += entry.size_bytes
        shown = fetch.update(some, request.isolation_level) if session is not None or fetch.opens_session else some
        if opened is not None:
            opened.join({(entry.asked.topic, entry.asked.partition): entry.asked for entry in some})
            opened.mark_read(some, request.isolation_level)
        if reads.erroneous:
            placed: tuple[list[PartitionRead], ...] = [], by_id, by_name
            for entry in shown:
                placed[_place(entry, reads)].append(entry)
            shown = placed[IN_PLACE]
        _add(response, shown)
        yield
    last = by_id + by_name
    for start in range(0, len(last), PARTITIONS_PER_STEP):
        _add(response, last[start : start + PARTITIONS_PER_STEP])
        yield
    kept = session or opened
    if kept is not None:
        kept.compact()
    return _duplicate(fetch) if fetch.is_duplicate() else response


def _add(response: FetchResponse, entries: list[PartitionRead]) -> None:
    """Add the partitions to the response, which may end with some of the same topic."""
    more = _response(response.session_id, entries).responses
    if more and response.responses:
        before, first = response.responses[-1], more[0]
        if (before.topic, before.topic_id) == (first.topic, first.topic_id):
            before.partitions += first.partitions
            del more[0]
    response.responses += more


# --- any fetch


def failed(request: FetchRequest, version: int, code: ErrorCode, message: str | None) -> Steps[FetchResponse]:
    """Returns the error at the top level, and before v13, where clients may not read that, in every partition too."""
    response = FetchResponse(error_code=code, session_id=request.session_id)
    if version < FIRST_WITH_TOPIC_IDS:
        for topic in request.topics:
            answer = FetchableTopicResponse(topic=topic.topic)
            response.responses.append(answer)
            for asked in topic.partitions:
                number = asked.partition
                answer.partitions.append(
                    PartitionData(partition_index=number, error_code=code, high_watermark=-1, records=b"")
                )
                yield
    return response


def _reads_something(context: Context, fetch: FetchContext) -> bool:
    """Returns whether any partition of the fetch exists. Kafka checks the isolation level only then."""
    image = context.broker.metadata.image
    for topic_name, number in fetch.partitions:
        topic = image.topics_by_id.get(topic_name) if isinstance(topic_name, bytes) else image.topics.get(topic_name)
        if topic is not None and 0 <= number < len(topic.partitions):
            return True
    return False


def _reader(context: Context, request: FetchRequest) -> tuple[object, ...]:
    """Returns what a response depends on besides the logs and the reader's positions. An authorizer that does not count
    its changes may decide otherwise at each request."""
    authorizer = context.broker.authorizer
    who: object = None
    if authorizer is not None:
        who = (context.session.principal, context.session.peer_host, getattr(authorizer, "changes", None) or object())
    return (context.api_version, request.isolation_level, request.replica_id, request.replica_state.replica_id, who)


def _answer(context: Context, request: FetchRequest, fetch: FetchContext, reads: FetchReads) -> FetchResponse:
    broker = context.broker
    session = fetch.session
    if context.throttle is not None or (session is not None and session.epoch != fetch.epoch):
        refused = at_once(_refusal(context, fetch, reads))
        if refused is not None:
            return refused
    broker.metrics.fetched_bytes += reads.size_bytes
    session_id = fetch.session_id
    entries = reads.entries
    if reads.size_bytes:
        for entry in entries:
            if entry.size_bytes and entry.log is not None:
                entry.log.fetched_bytes += entry.size_bytes
    if session is not None:
        entries = fetch.update(entries, request.isolation_level)
    elif fetch.opens_session:
        fetch.update(entries, request.isolation_level)
        session = broker.fetch_sessions.open(fetch.partitions, fetch.by_id, broker.clock.monotonic_ms())
        if session is not None:
            session_id = session.session_id
            session.read_by(fetch.reader)
            session.mark_read(entries, request.isolation_level)
    if reads.erroneous:
        entries = sorted(entries, key=lambda entry: _place(entry, reads))
    response = _response(session_id, entries)
    if reads.leader_id >= 0:
        _add_endpoint(context, response, reads)
    return response


def _place(entry: PartitionRead, reads: FetchReads) -> int:
    """Kafka answers what it has not read last: unknown topic ids, then all that it does not find by the name or that
    the client may not read (KafkaApis.handleFetchRequest)."""
    if entry.asked not in reads.erroneous:
        return IN_PLACE
    return BY_ID if entry.answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID else BY_NAME


def _add_endpoint(context: Context, response: FetchResponse, reads: FetchReads) -> None:
    """Say where the leader is that a partition names."""
    response.node_endpoints = [leader_endpoint(context, reads.leader_id, NodeEndpoint)]


def _refusal(context: Context, fetch: FetchContext, reads: FetchReads) -> Steps[FetchResponse | None]:
    """Returns the response of a request that gets nothing of what was read, or None. The response is counted against
    the client's quotas. Over quota the client gets an empty one, and reads the same records later
    (ClientQuotaManager.unrecordQuotaSensor)."""
    if fetch.is_duplicate():
        return _duplicate(fetch)
    if context.throttle is None:
        return None
    size = FetchSize(context.api_version)
    by_id: list[PartitionRead] = []
    by_name: list[PartitionRead] = []
    for number, entry in enumerate(reads.entries):
        if fetch.must_respond(entry):
            place = _place(entry, reads)
            if place == IN_PLACE:
                size.add(entry)
            else:
                (by_id if place == BY_ID else by_name).append(entry)
        if number % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
    for number, entry in enumerate(by_id + by_name):
        size.add(entry)
        if number % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
    if not context.throttle.charge_fetch(size.frame_bytes()):
        return None
    response = FetchResponse(session_id=fetch.session_id)
    if reads.leader_id >= 0:
        _add_endpoint(context, response, reads)
    return response


def _duplicate(fetch: FetchContext) -> FetchResponse:
    """Another request of this session came in between: nobody reads the response of this one."""
    return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=fetch.session_id)


def _response(session_id: int, entries: list[PartitionRead]) -> FetchResponse:
    response = FetchResponse()
    response.session_id = session_id
    topic: str | bytes | None = None
    partitions: list[PartitionData] = []
    for entry in entries:
        if entry.asked.topic != topic:
            topic = entry.asked.topic
            answer = FetchableTopicResponse()
            if isinstance(topic, bytes):
                answer.topic_id = topic
            else:
                answer.topic = topic
            partitions = answer.partitions
            response.responses.append(answer)
        partitions.append(entry.answer)
    return response
