"""InitProducerId (key 22), versions 0-5, and 6 with `unstable.api.versions.enable`.

Without a transactional id: returns a new producer id at epoch 0, whatever else the request contains. With one: returns
the same producer id at the next epoch, which fences the previous producer. If that producer has an open transaction, it
is aborted first and the client gets CONCURRENT_TRANSACTIONS and retries (A1, B2-B5). v2 is flexible. v3 adds the
producer id and epoch that the client holds (KIP-360). v4 returns PRODUCER_FENCED where older versions return
INVALID_PRODUCER_EPOCH. v5 is for clients that know TRANSACTION_ABORTABLE. v6 (KIP-939) asks
for a two-phase commit, which no broker is configured for here (TRANSACTIONAL_ID_AUTHORIZATION_FAILED), or to keep a
prepared transaction, which Kafka 4.3.1 does not do either (UNSUPPORTED_VERSION).

A request with the tagged field `RESOLVE_TAG` first ends a transaction that is stuck because another coordinator's
marker came first (D18; ADR 0012).
"""

from __future__ import annotations

from kafka_shim.authorization import may_on_any, may_on_cluster, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.own_tags import RESOLVE_TAG
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.outcome import Flushes

KEY, MIN, MAX = 22, 0, 5
REQUEST, RESPONSE = InitProducerIdRequest, InitProducerIdResponse


def handle(
    context: Context, request: InitProducerIdRequest
) -> InitProducerIdResponse | Outcome[InitProducerIdResponse]:
    _authorize(context, request)
    transactions = context.broker.transactions
    resolved: Flushes = ()
    try:
        held = _held(context, request)
        if request.unknown_tags and RESOLVE_TAG in request.unknown_tags and request.transactional_id:
            resolved = transactions.resolve(request.transactional_id).flushes
        _refuse_two_phases(request)
        outcome = transactions.init_producer_id(request.transactional_id, request.transaction_timeout_ms, held)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.api_version < 4:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    producer_id, producer_epoch = outcome.response
    response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)
    return Outcome(response, [*resolved, *outcome.flushes])


def failed(
    request: InitProducerIdRequest, version: int, code: ErrorCode, message: str | None
) -> InitProducerIdResponse:
    """Returns no producer id and no epoch."""
    if request.transactional_id is None and code is ErrorCode.NOT_COORDINATOR:
        # The block of the id may not be on the disk. A producer without a transactional id has no coordinator to look
        # up: Java's would send a FindCoordinator without a key, which it cannot write.
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def _authorize(context: Context, request: InitProducerIdRequest) -> None:
    transactional_id = request.transactional_id
    if transactional_id is not None:
        require(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if request.enable2_pc:
            require(context, AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, transactional_id)
    elif not may_on_cluster(context, AclOperation.IDEMPOTENT_WRITE, logs_denied=False) and not may_on_any(
        context, AclOperation.WRITE, ResourceType.TOPIC
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _refuse_two_phases(request: InitProducerIdRequest) -> None:
    if not request.transactional_id:
        return
    if request.enable2_pc:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "two-phase commit is not supported: leave transaction.two.phase.commit.enable out",
        )
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "a prepared transaction cannot be kept")


def _held(context: Context, request: InitProducerIdRequest) -> tuple[int, int] | None:
    """Returns the producer id and epoch that the client holds. Either both are set or neither."""
    held = request.producer_id, request.producer_epoch
    if (held[0] == -1) != (held[1] == -1):
        refusal = KafkaError(ErrorCode.INVALID_REQUEST, "only one of producer id and epoch is set")
        context.broker.transactions.note_refusal("InitProducerId", request.transactional_id, refusal, held)
        raise refusal
    return None if held[0] == -1 else held
