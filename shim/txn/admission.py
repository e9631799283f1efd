"""The check before a transactional batch is appended: the partition must be in the transaction (KIP-890; B9).

Produce and TxnOffsetCommit call it before they append. Depending on the request's version, a missing partition is
refused with one of two errors, or added.
"""

from __future__ import annotations

from kafka_shim.cext.log_base import Verification
from kafka_shim.cext.many_logs import verify_each
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.txn.transaction import TV2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.outcome import Flushes
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.txn.coordinator import TransactionCoordinator
    from kafka_shim.txn.transaction import TopicPartition

    # One batch's result: the verification guard to append with, None if none is needed, or the error to return.
    Admission = Verification | None | KafkaError

UNVERIFIED = "Unable to verify the partition has been added to the transaction."
# The handling of a partition that is not in the transaction (AddPartitionsToTxnManager.TransactionSupportedOperation).
REFUSED_AS_INVALID_STATE = 0
REFUSED_AS_ABORTABLE = 1
ADDED = 2

_COORDINATOR_TROUBLE = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def operation_of_produce(version: int) -> int:
    """Returns the handling for a version of Produce."""
    return ADDED if version > 11 else REFUSED_AS_ABORTABLE if version > 10 else REFUSED_AS_INVALID_STATE


def operation_of_txn_offset_commit(version: int) -> int:
    """Returns the handling for a version of TxnOffsetCommit."""
    return ADDED if version > 4 else REFUSED_AS_ABORTABLE if version > 3 else REFUSED_AS_INVALID_STATE


def admit(
    coordinator: TransactionCoordinator,
    verification_enabled: bool,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    batches: list[tuple[PartitionLog, int]],
    operation: int,
    api: str = "Produce",
) -> tuple[list[Admission], Flushes]:
    """Check or add the partitions of `batches`, (log, base sequence) each, of one producer. Returns one admission per
    batch, in order, and the fsyncs that must finish before any of them is appended. `verification_enabled` is
    `transaction.partition.verification.enable`; if it is false, partitions are not checked, but still added.

    Errors are the coordinator's, in the form that brokers exchange: PRODUCER_FENCED has become INVALID_PRODUCER_EPOCH.
    `as_produce_error` converts them to the errors of Produce.
    """
    adds = operation == ADDED
    if not adds and not verification_enabled:
        return [None] * len(batches), ()
    outcomes: list[Admission]
    outcomes, added, refusals = verify_each(batches, producer_id, producer_epoch, adds, coordinator.clock.now_ms())
    for error in refusals:
        coordinator.note_refusal(api, transactional_id, error, (producer_id, producer_epoch))
    if not added:
        return outcomes, ()
    refusal, missing, flushes = _ask(coordinator, transactional_id, (producer_id, producer_epoch), added, adds, api)
    if refusal is not None:
        return [refusal if isinstance(outcome, Verification) else outcome for outcome in outcomes], ()
    if missing:
        code = ErrorCode.TRANSACTION_ABORTABLE if operation == REFUSED_AS_ABORTABLE else ErrorCode.INVALID_TXN_STATE
        for at, (log, _) in enumerate(batches):
            if isinstance(outcomes[at], Verification) and log.key in missing:
                outcomes[at] = KafkaError(code, "Partition was not added to the transaction")
    return outcomes, flushes


def _ask(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: tuple[int, int],
    added: list[TopicPartition],
    adds: bool,
    api: str,
) -> tuple[KafkaError | None, frozenset[TopicPartition], Flushes]:
    """Returns the coordinator's refusal of all, or the partitions that are missing and what is to be awaited."""
    partitions = coordinator.set_of(transactional_id, added)
    try:
        if adds:
            return None, frozenset(), coordinator.add_partitions(transactional_id, *producer, partitions, TV2, api)
        return None, coordinator.missing_partitions(transactional_id, *producer, partitions, api), ()
    except KafkaError as error:
        if error.code is ErrorCode.PRODUCER_FENCED:
            return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message), frozenset(), ()
        return error, frozenset(), ()


def is_concurrent(outcomes: Iterable[Admission]) -> bool:
    """Returns whether the previous transaction is still being completed. A request that adds partitions then retries
    soon."""
    return any(
        isinstance(outcome, KafkaError) and outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS for outcome in outcomes
    )


async def admit_patiently(
    coordinator: TransactionCoordinator,
    clock: Clock,
    config: BrokerConfig,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    batches: list[tuple[PartitionLog, int]],
) -> tuple[list[Admission], Flushes]:
    """Add partitions with `admit`. While the previous transaction is being completed, retry every
    `add.partitions.to.txn.retry.backoff.ms` for at most `add.partitions.to.txn.retry.backoff.max.ms`. The caller keeps
    the bytes of its batches meanwhile."""
    deadline_ms = clock.monotonic_ms() + config.add_partitions_to_txn_retry_backoff_max_ms
    while True:
        outcomes, flushes = admit(coordinator, True, transactional_id, producer_id, producer_epoch, batches, ADDED)
        if not is_concurrent(outcomes) or clock.monotonic_ms() >= deadline_ms:
            return outcomes, flushes
        await clock.sleep_ms(config.add_partitions_to_txn_retry_backoff_ms)


def as_produce_error(error: KafkaError, operation: int) -> KafkaError:
    """Returns the error for Produce. Coordinator errors become NOT_ENOUGH_REPLICAS, which every client retries."""
    code = error.code
    if code in _COORDINATOR_TROUBLE or (code is ErrorCode.CONCURRENT_TRANSACTIONS and operation != ADDED):
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{UNVERIFIED} Underlying error: {code.name}")
    return error
