"""TxnOffsetCommit (key 28), versions 0-5.

Commits a group's offsets as part of a transaction. They are pending until the transaction's marker, and removed if it
aborts. The partition of `__consumer_offsets` must be in the transaction; this is checked before the group (B8). v2 adds
the leader epoch; older clients get COORDINATOR_NOT_AVAILABLE in place of COORDINATOR_LOAD_IN_PROGRESS. v3 is flexible
and carries the member (KIP-447). Before v3, and with generation -1, no member is fenced. v4 returns
TRANSACTION_ABORTABLE where older versions return INVALID_TXN_STATE. v5 adds the partition to the transaction itself
(KIP-890).
"""

from __future__ import annotations

from kafka_shim.authorization import authorized, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.outcome import Outcome, wait_for
from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from kafka_shim.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.txn import admission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.outcome import Flushes
    from kafka_shim.storage.verification import Verification
    from kafka_shim.txn.admission import Admission

    Answer = TxnOffsetCommitResponse | Outcome[TxnOffsetCommitResponse]

KEY, MIN, MAX = 28, 0, 5
REQUEST, RESPONSE = TxnOffsetCommitRequest, TxnOffsetCommitResponse

NO_SEQUENCE = -1

# The error codes of this API for errors of the `__consumer_offsets` partition or of the transaction coordinator.
_AS_COORDINATOR_ERROR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


def handle(context: Context, request: TxnOffsetCommitRequest) -> Answer | Coroutine[Any, Any, Answer]:
    require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    unknown, request.topics = _split(context, request.topics)
    if unknown:
        _explain(context, request, unknown)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=unknown)
    if not request.group_id:
        refused = _failed(request.topics, ErrorCode.INVALID_GROUP_ID)
        _explain(context, request, refused)
        return _answer(context, unknown, refused)
    admitted, flushes = _admit(context, request)
    if flushes:
        return _commit_later(context, request, unknown, flushes)
    return _commit(context, request, unknown, admitted)


async def _commit_later(
    context: Context,
    request: TxnOffsetCommitRequest,
    unknown: list[TxnOffsetCommitResponseTopic],
    flushes: Flushes,
) -> Answer:
    """Commit once the disk has the coordinator's record, as `flush.messages` requires. Otherwise offsets without that
    record would stay pending for ever after a power cut. The transaction may have ended meanwhile."""
    while flushes:
        await wait_for(flushes)
        admitted, flushes = _admit(context, request)
    return _commit(context, request, unknown, admitted)


def _commit(
    context: Context,
    request: TxnOffsetCommitRequest,
    unknown: list[TxnOffsetCommitResponseTopic],
    admitted: Verification | KafkaError | None,
) -> Answer:
    if isinstance(admitted, KafkaError):
        code = _AS_COORDINATOR_ERROR.get(admitted.code, admitted.code)
        return _answer(context, unknown, _failed(request.topics, code))
    outcome = context.broker.groups.offsets.commit_transactional(request, admitted)
    topics = outcome.response.topics
    _explain(context, request, topics)
    return Outcome(_answer(context, unknown, topics), outcome.flushes)


def _explain(
    context: Context, request: TxnOffsetCommitRequest, answered: Iterable[TxnOffsetCommitResponseTopic]
) -> None:
    """Record each different error code of the group or its log once in the history of the transactional id."""
    found: dict[int, str] = {}
    for topic in answered:
        for part in topic.partitions:
            if part.error_code:
                found.setdefault(part.error_code, f"{topic.name}-{part.partition_index}")
    for code, first in found.items():
        reason = (
            f"group {request.group_id!r}, member {request.member_id!r}, generation {request.generation_id}; "
            f"the first refused is {first}"
        )
        producer = request.producer_id, request.producer_epoch
        refusal = KafkaError(ErrorCode(code), reason)
        context.broker.transactions.note_refusal("TxnOffsetCommit", request.transactional_id, refusal, producer)


def _admit(context: Context, request: TxnOffsetCommitRequest) -> tuple[Admission, Flushes]:
    """Check that the offsets partition is in the transaction, or add it (v5). Returns the error response, if there is
    one, and the fsyncs that must finish before the offsets are written."""
    broker = context.broker
    try:
        log = broker.logs.get(GROUP_METADATA_TOPIC, broker.groups.partition_for(request.group_id))
    except KafkaError as error:
        producer = request.producer_id, request.producer_epoch
        broker.transactions.note_refusal("TxnOffsetCommit", request.transactional_id, error, producer)
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


def _split(
    context: Context, topics: list[TxnOffsetCommitRequestTopic]
) -> tuple[list[TxnOffsetCommitResponseTopic], list[TxnOffsetCommitRequestTopic]]:
    """Returns the entries for topics that are not authorised or do not exist, and the remaining topics."""
    image = context.broker.metadata.image
    names = dict.fromkeys(topic.name for topic in topics)
    allowed = authorized(context, AclOperation.READ, ResourceType.TOPIC, names)
    unknown, known = [], []
    for topic in topics:
        if topic.name not in allowed:
            unknown += _failed([topic], ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        if not topic.partitions:
            # Nothing is requested for this topic, and it must not add the group to the transaction.
            if topic.name not in image.topics:
                unknown.append(TxnOffsetCommitResponseTopic(name=topic.name))
            continue
        exist = [part for part in topic.partitions if image.partition(topic.name, part.partition_index) is not None]
        if len(exist) == len(topic.partitions):
            known.append(topic)
            continue
        missing = [part for part in topic.partitions if image.partition(topic.name, part.partition_index) is None]
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        unknown += _failed([TxnOffsetCommitRequestTopic(name=topic.name, partitions=missing)], code)
        if exist:
            known.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=exist))
    return unknown, known


def _failed(topics: Iterable[TxnOffsetCommitRequestTopic], code: ErrorCode) -> list[TxnOffsetCommitResponseTopic]:
    return [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                for part in topic.partitions
            ],
        )
        for topic in topics
    ]


def _answer(
    context: Context, unknown: list[TxnOffsetCommitResponseTopic], topics: list[TxnOffsetCommitResponseTopic]
) -> TxnOffsetCommitResponse:
    """Merge both lists, with each topic named once. Codes are those that this version knows."""
    by_name = {topic.name: topic for topic in unknown}
    for topic in topics:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            by_name[topic.name] = topic
    if context.api_version < 2:
        for topic in by_name.values():
            for part in topic.partitions:
                if part.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    part.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return TxnOffsetCommitResponse(topics=list(by_name.values()))
