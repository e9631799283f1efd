"""TxnOffsetCommit (key 28), versions 0-5.

Commits a group's offsets as part of a transaction. They are pending until the transaction's marker, and removed if it
aborts. The partition of `__consumer_offsets` must be in the transaction; this is checked before the group (B8). v2 adds
the leader epoch; older clients get COORDINATOR_NOT_AVAILABLE in place of COORDINATOR_LOAD_IN_PROGRESS. v3 is flexible
and carries the member (KIP-447). Before v3, and with generation -1, no member is fenced. v4 returns
TRANSACTION_ABORTABLE where older versions return INVALID_TXN_STATE. v5 adds the partition to the transaction itself
(KIP-890).
"""

from __future__ import annotations

from kafka_shim.api.plain_commits import not_committed, prepare_transactional
from kafka_shim.authorization import authorized_in_steps, require
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.plain_txn_commits import PlainTxnCommit
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.large_offsets import PARTITIONS_PER_STEP, merge, parts
from kafka_shim.group.requests import txn_commit_failure
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.outcome import Outcome, wait_for
from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from kafka_shim.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_shim.security.acl import GROUP, READ, TOPIC, TRANSACTIONAL_ID, WRITE
from kafka_shim.storage.producers import CACHED_BATCHES
from kafka_shim.turns import at_once
from kafka_shim.txn import admission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import Any

    from kafka_shim.cext.log_base import Verification
    from kafka_shim.context import Context
    from kafka_shim.group.large_offsets import PreparedTxnCommit
    from kafka_shim.outcome import Flushes
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequestPartition
    from kafka_shim.turns import Steps
    from kafka_shim.txn.admission import Admission

    Response = TxnOffsetCommitResponse | Outcome[TxnOffsetCommitResponse]
    Answer = Response | Coroutine[Any, Any, Response]
    # By the names of the topics.
    TopicIds = dict[str, bytes]
    Refused = dict[str, TxnOffsetCommitResponseTopic]

KEY, MIN, MAX = 28, 0, 5
REQUEST, RESPONSE = TxnOffsetCommitRequest, TxnOffsetCommitResponse
PLAIN = PlainTxnCommit(cext_segment, CACHED_BATCHES, prepare_transactional, not_committed)

NO_SEQUENCE = -1
FIRST_WITH_LOAD_IN_PROGRESS = 2

# The error codes of this API for errors of the `__consumer_offsets` partition or of the transaction coordinator.
_AS_COORDINATOR_ERROR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


def handle(context: Context, request: TxnOffsetCommitRequest) -> Answer | Steps[Answer]:
    if context.done is not None:
        return _refuse_rest(context, request)
    require(context, WRITE, TRANSACTIONAL_ID, request.transactional_id)
    require(context, READ, GROUP, request.group_id)
    if context.is_large:
        return _in_steps(context, request)
    if context.broker.authorizer is None and _is_ordinary(context, request):
        return _commit_ordinary(context, request)
    return at_once(_in_steps(context, request))


def _refuse_rest(context: Context, request: TxnOffsetCommitRequest) -> Answer:
    """Answer with the error that the fast path met. Raises one that is a bug."""
    error, is_admitted = context.done
    if not isinstance(error, KafkaError):
        raise error
    if not is_admitted:
        return at_once(_commit(context, request, {}, error, None))
    response = txn_commit_failure(request, error.code)
    at_once(_explain(context, request, response.topics))
    return response


def _is_ordinary(context: Context, request: TxnOffsetCommitRequest) -> bool:
    """Returns whether all partitions exist, and the codes of this version are those of the newest."""
    if not request.topics or not request.group_id or context.api_version < FIRST_WITH_LOAD_IN_PROGRESS:
        return False
    topics = context.broker.metadata.image.topics
    for topic in request.topics:
        known = topics.get(topic.name)
        if known is None or not topic.partitions:
            return False
        count = len(known.partitions)
        for part in topic.partitions:
            if not 0 <= part.partition_index < count:
                return False
    return True


def _commit_ordinary(context: Context, request: TxnOffsetCommitRequest) -> Answer:
    """As `_in_steps`, without a step where nothing is refused."""
    admitted, flushes = _admit(context, request)
    if flushes:
        topics = context.broker.metadata.image.topics
        topic_ids = {topic.name: topics[topic.name].topic_id for topic in request.topics}
        return _commit_later(context, request, {}, topic_ids, flushes, None)
    if isinstance(admitted, KafkaError):
        return at_once(_commit(context, request, {}, admitted, None))
    outcome = context.broker.groups.offsets.commit_transactional(request, admitted)
    for topic in outcome.response.topics:
        for part in topic.partitions:
            if part.error_code:
                at_once(_explain(context, request, outcome.response.topics))
                return outcome
    return outcome


def _in_steps(context: Context, request: TxnOffsetCommitRequest) -> Steps[Answer]:
    """What exists of the request is one commit, whole or not at all. A large one is prepared before the transaction is
    looked at."""
    topic_ids: TopicIds = {}
    unknown = yield from _split(context, request, topic_ids)
    if unknown:
        yield from _explain(context, request, unknown.values())
    if not request.topics:
        return TxnOffsetCommitResponse(topics=list(unknown.values()))
    if not request.group_id:
        refused = yield from _failed(request, ErrorCode.INVALID_GROUP_ID)
        yield from _explain(context, request, refused)
        return (yield from _answer(context, unknown, refused))
    return (yield from _admit_and_commit(context, request, unknown, topic_ids))


def _admit_and_commit(
    context: Context, request: TxnOffsetCommitRequest, unknown: Refused, topic_ids: TopicIds
) -> Steps[Answer]:
    prepared = None
    if context.is_large:
        prepared = yield from context.broker.groups.offsets.prepare_transactional(request, topic_ids)
    admitted, flushes = _admit(context, request)
    if flushes:
        return _commit_later(context, request, unknown, topic_ids, flushes, prepared)
    return (yield from _commit(context, request, unknown, admitted, prepared))


async def _commit_later(
    context: Context,
    request: TxnOffsetCommitRequest,
    unknown: Refused,
    topic_ids: TopicIds,
    flushes: Flushes,
    prepared: PreparedTxnCommit | None,
) -> Response:
    """Commit once the disk has the coordinator's record, as `flush.messages` requires. Otherwise offsets without that
    record would stay pending for ever after a power cut. The transaction may have ended meanwhile, and topics may have
    been deleted."""
    while flushes:
        await wait_for(flushes)
        admitted, flushes = _admit(context, request)
    if prepared is None:
        _take_deleted(context, request, topic_ids, unknown)
    return await context.broker.turns.run(_commit(context, request, unknown, admitted, prepared), context.throttle)


def _commit(
    context: Context,
    request: TxnOffsetCommitRequest,
    unknown: Refused,
    admitted: Admission,
    prepared: PreparedTxnCommit | None,
) -> Steps[Response]:
    """Write the offsets at once, then make the response in steps."""
    if isinstance(admitted, KafkaError):
        code = _AS_COORDINATOR_ERROR.get(admitted.code, admitted.code)
        return (yield from _answer(context, unknown, (yield from _failed(request, code))))
    written = yield from _write(context, request, admitted, prepared)
    topics = written.response.topics
    yield from _explain(context, request, topics)
    return Outcome((yield from _answer(context, unknown, topics)), written.flushes)


def _write(
    context: Context, request: TxnOffsetCommitRequest, admitted: Verification | None, prepared: PreparedTxnCommit | None
) -> Steps[Outcome[TxnOffsetCommitResponse]]:
    """Write the offsets in the first step. An error of the group or of the log refuses all of them."""
    offsets = context.broker.groups.offsets
    if prepared is None:
        return offsets.commit_transactional(request, admitted)
    try:
        return offsets.write_transactional(request, prepared, admitted)
    except KafkaError as error:
        topics = yield from _failed(request, error.code)
        return Outcome(TxnOffsetCommitResponse(topics=topics))


def _take_deleted(context: Context, request: TxnOffsetCommitRequest, topic_ids: TopicIds, unknown: Refused) -> None:
    """Move the topics to the refused ones that were deleted since the request came: their offsets were removed before,
    and these would be those of a later topic of the name."""
    topics = context.broker.metadata.image.topics
    there: list[TxnOffsetCommitRequestTopic] = []
    for topic in request.topics:
        now = topics.get(topic.name)
        if now is not None and now.topic_id == topic_ids.get(topic.name):
            there.append(topic)
            continue
        _entry(unknown, topic.name).partitions += [
            _refusal(part, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for part in topic.partitions
        ]
    request.topics = there


def _explain(
    context: Context, request: TxnOffsetCommitRequest, answered: Iterable[TxnOffsetCommitResponseTopic]
) -> Steps[None]:
    """Record each different error code of the group or its log once in the history of the transactional id."""
    found: dict[int, str] = {}
    for topic in answered:
        for start in range(0, len(topic.partitions), PARTITIONS_PER_STEP):
            for part in topic.partitions[start : start + PARTITIONS_PER_STEP]:
                if part.error_code:
                    found.setdefault(part.error_code, f"{topic.name}-{part.partition_index}")
            yield
    for code, first in found.items():
        _note(context, request, KafkaError(ErrorCode(code), _reason(request, first)))


def _reason(request: TxnOffsetCommitRequest, first: str) -> str:
    return (
        f"group {request.group_id!r}, member {request.member_id!r}, generation {request.generation_id}; "
        f"the first refused is {first}"
    )


def _note(context: Context, request: TxnOffsetCommitRequest, error: KafkaError) -> None:
    producer = request.producer_id, request.producer_epoch
    context.broker.transactions.note_refusal("TxnOffsetCommit", request.transactional_id, error, producer)


def _admit(context: Context, request: TxnOffsetCommitRequest) -> tuple[Admission, Flushes]:
    """Check that the offsets partition is in the transaction, or add it (v5). Returns the error response, if there is
    one, and the fsyncs that must finish before the offsets are written."""
    broker = context.broker
    try:
        log = broker.logs.get(GROUP_METADATA_TOPIC, broker.groups.partition_for(request.group_id))
    except KafkaError as error:
        _note(context, request, error)
        return error, ()
    (admitted,), flushes = admission.admit(
        broker.transactions,
        broker.config.transaction_partition_verification_enable,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(log, NO_SEQUENCE)],
        admission.operation_of_txn_offset_commit(context.api_version),
        "TxnOffsetCommit",
    )
    return admitted, flushes


def _split(context: Context, request: TxnOffsetCommitRequest, topic_ids: TopicIds) -> Steps[Refused]:
    """Leave in the request the topics that exist, and their ids in `topic_ids`. Returns the entries for those that are
    not authorised or do not, each topic once."""
    image = context.broker.metadata.image
    names = (topic.name for topic in request.topics)
    allowed = yield from authorized_in_steps(context, READ, TOPIC, names)
    unknown: Refused = {}
    known: list[TxnOffsetCommitRequestTopic] = []
    for topic in request.topics:
        is_allowed = topic.name in allowed
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        exist: list[TxnOffsetCommitRequestPartition] = []
        if is_allowed and topic.name in image.topics:
            topic_ids.setdefault(topic.name, image.topics[topic.name].topic_id)
        else:
            _entry(unknown, topic.name)  # also of no partitions
        for start in range(0, len(topic.partitions), PARTITIONS_PER_STEP):
            for part in topic.partitions[start : start + PARTITIONS_PER_STEP]:
                if is_allowed and image.partition(topic.name, part.partition_index) is not None:
                    exist.append(part)
                else:
                    _entry(unknown, topic.name).partitions.append(_refusal(part, code))
            yield
        if exist:  # a topic of no partitions must not add the group to the transaction
            known.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=exist))
        else:
            yield
    request.topics = known
    return unknown


def _entry(answered: Refused, name: str) -> TxnOffsetCommitResponseTopic:
    found = answered.get(name)
    if found is None:
        found = answered[name] = TxnOffsetCommitResponseTopic(name=name)
    return found


def _failed(request: TxnOffsetCommitRequest, code: ErrorCode) -> Steps[list[TxnOffsetCommitResponseTopic]]:
    response = TxnOffsetCommitResponse()
    for _, topic, start in parts(request):
        refused = [_refusal(part, code) for part in topic.partitions]
        some = TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name=topic.name, partitions=refused)])
        merge(response, some, start)
        yield
    return response.topics


def _refusal(part: TxnOffsetCommitRequestPartition, code: ErrorCode) -> TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)


def _answer(
    context: Context, unknown: Refused, topics: list[TxnOffsetCommitResponseTopic]
) -> Steps[TxnOffsetCommitResponse]:
    """Merge both lists, with each topic named once if something was refused. Otherwise the topics are listed as often
    as the request named them (TxnOffsetCommitResponse.Builder.merge). Codes are those that this version knows."""
    if unknown:
        topics = yield from _merged(unknown, topics)
    if context.api_version < FIRST_WITH_LOAD_IN_PROGRESS:
        for topic in topics:
            for number, part in enumerate(topic.partitions):
                if part.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    part.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                if number % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
                    yield
    return TxnOffsetCommitResponse(topics=topics)


def _merged(unknown: Refused, topics: list[TxnOffsetCommitResponseTopic]) -> Steps[list[TxnOffsetCommitResponseTopic]]:
    for topic in topics:
        if topic.name in unknown:
            unknown[topic.name].partitions += topic.partitions
        else:
            unknown[topic.name] = topic
        yield
    return list(unknown.values())
