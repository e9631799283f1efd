"""What stands between a transactional batch and its log: the partition must be in the transaction (KIP-890; B9).

Produce and TxnOffsetCommit come here before they append. By the request's version a partition that is missing is
refused in one of two ways, or added.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.txn.state import TV2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.outcome import Flushes
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.storage.verification import Verification
    from kafka_shim.txn.coordinator import TransactionCoordinator

    # One batch's outcome: the guard to append with, None where none is needed, or the error to answer.
    Admission = Verification | None | KafkaError

# What happens to a partition that is not in the transaction (AddPartitionsToTxnManager.TransactionSupportedOperation).
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
    """By the version of a Produce request."""
    return ADDED if version > 11 else REFUSED_AS_ABORTABLE if version > 10 else REFUSED_AS_INVALID_STATE


def operation_of_txn_offset_commit(version: int) -> int:
    """By the version of a TxnOffsetCommit request."""
    return ADDED if version > 4 else REFUSED_AS_ABORTABLE if version > 3 else REFUSED_AS_INVALID_STATE


def admit(
    coordinator: TransactionCoordinator,
    verification_enabled: bool,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    batches: Sequence[tuple[PartitionLog, int]],
    operation: int,
    api: str = "Produce",
) -> tuple[list[Admission], Flushes]:
    """Check or add the partitions of `batches`, (log, base sequence) each, of one producer. Returns one admission per
    batch, in order, and what must be flushed before any of them is appended. `verification_enabled` is
    `transaction.partition.verification.enable`, which spares the check, never the add.

    Errors are the coordinator's, as brokers tell them to each other: PRODUCER_FENCED has become INVALID_PRODUCER_EPOCH.
    `as_produce_error` makes of them what Produce answers.
    """
    adds = operation == ADDED
    if not adds and not verification_enabled:
        return [None] * len(batches), ()
    outcomes: list[Admission] = []
    unknown: list[int] = []
    for at, (log, base_sequence) in enumerate(batches):
        try:
            guard = log.start_verification(producer_id, base_sequence, producer_epoch, adds)
        except KafkaError as error:
            outcomes.append(error)
            coordinator.note_refusal(api, transactional_id, error, (producer_id, producer_epoch))
            continue
        outcomes.append(guard)
        if guard is not None:
            unknown.append(at)
    if not unknown:
        return outcomes, ()
    partitions = frozenset((batches[at][0].topic, batches[at][0].partition) for at in unknown)
    try:
        if adds:
            return outcomes, coordinator.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, TV2, api
            )
        missing = coordinator.missing_partitions(transactional_id, producer_id, producer_epoch, partitions, api)
    except KafkaError as error:
        refusal = error
        if error.code is ErrorCode.PRODUCER_FENCED:
            refusal = KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
        for at in unknown:
            outcomes[at] = refusal
        return outcomes, ()
    if missing:
        code = ErrorCode.TRANSACTION_ABORTABLE if operation == REFUSED_AS_ABORTABLE else ErrorCode.INVALID_TXN_STATE
        for at in unknown:
            if (batches[at][0].topic, batches[at][0].partition) in missing:
                outcomes[at] = KafkaError(code, "the partition is not in the transaction")
    return outcomes, ()


def is_concurrent(outcomes: Sequence[Admission]) -> bool:
    """The transaction before is still being ended: worth trying again soon, if the request adds partitions."""
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
    batches: Sequence[tuple[PartitionLog, int]],
    api: str = "Produce",
) -> tuple[list[Admission], Flushes]:
    """`admit` to add partitions, again every `add.partitions.to.txn.retry.backoff.ms` for as long as
    `add.partitions.to.txn.retry.backoff.max.ms` while the transaction before is being ended. The caller keeps the bytes
    of its batches meanwhile."""
    deadline_ms = clock.monotonic_ms() + config.add_partitions_to_txn_retry_backoff_max_ms
    while True:
        outcomes, flushes = admit(coordinator, True, transactional_id, producer_id, producer_epoch, batches, ADDED, api)
        if not is_concurrent(outcomes) or clock.monotonic_ms() >= deadline_ms:
            return outcomes, flushes
        await clock.sleep_ms(config.add_partitions_to_txn_retry_backoff_ms)


def as_produce_error(error: KafkaError, operation: int) -> KafkaError:
    """What Produce answers: trouble with the coordinator is NOT_ENOUGH_REPLICAS, which every client simply retries."""
    code = error.code
    if code in _COORDINATOR_TROUBLE or (code is ErrorCode.CONCURRENT_TRANSACTIONS and operation != ADDED):
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"cannot verify the transaction: {code.name}: {error.message}")
    return error
