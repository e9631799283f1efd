"""The transaction state machine: all rules about one transactional id.

A `Transaction` is a value. A rule takes the value, the request and the time. It returns the new value, which the
coordinator writes to `__transaction_state` and then keeps. It returns the same object if there is nothing to write. It
raises KafkaError with the code for the client and the reason for `explain`. No rule reads a clock, a log or a socket.

States and the effect of each request (rows B2-B13, B20, B23 of docs/SEMANTICS.md; TV2 is transaction.version=2):

| State | InitProducerId | AddPartitions | EndTxn, its epoch |
| --- | --- | --- | --- |
| EMPTY | Empty, epoch + 1 | Ongoing | TV2 abort: bumps; else INVALID_TXN_STATE |
| ONGOING | fenced abort, CONCURRENT_TRANSACTIONS | Ongoing | PrepareCommit or PrepareAbort |
| PREPARE_* | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS | CONCURRENT_TRANSACTIONS |
| COMPLETE_* | Empty, epoch + 1 | Ongoing | TV1: same direction OK; TV2: `end` |
| PREPARE_EPOCH_FENCE, DEAD | never persisted: passed through within one decision | | |
"""

from __future__ import annotations

from functools import lru_cache

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.txn.transaction import (
    ALLOWED_FROM,
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    EXHAUSTED_PRODUCER_EPOCH,
    MAX_PRODUCER_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    STATE_NAMES,
    TV0,
    TV2,
    State,
    Transaction,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from kafka_shim.txn.transaction import TopicPartition


# The partitions of a transaction up to which a set of them is kept for the next one.
MOST_KEPT = 64


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no epoch is left for another transaction of this producer id."""
    return producer_epoch >= EXHAUSTED_PRODUCER_EPOCH


def _check_move(source: State, target: State, transactional_id: str) -> None:
    if source not in ALLOWED_FROM[target]:
        raise AssertionError(f"{transactional_id}: {source.name} -> {target.name} is no transition")


def _refuse(code: ErrorCode, reason: str) -> NoReturn:
    raise KafkaError(code, reason)


def _refuse_concurrent(txn: Transaction, pending: bool) -> NoReturn:
    writes = ", its markers are being written" if pending else ""
    _refuse(ErrorCode.CONCURRENT_TRANSACTIONS, f"state {STATE_NAMES[txn.state]}{writes}")


# --- InitProducerId


def initialise(
    txn: Transaction | None,
    transactional_id: str,
    timeout_ms: int,
    expected: tuple[int, int] | None,
    now_ms: int,
    server_version: int,
    new_producer_id: Callable[[], int],
    pending: bool = False,
) -> Transaction:
    """InitProducerId with a transactional id (B2-B4). `expected` is the (producer id, epoch) that the client holds.

    A returned value in PREPARE_ABORT means: an open transaction was fenced and must be completed first; the client gets
    CONCURRENT_TRANSACTIONS and retries. `pending` says that markers are being written. Raises CONCURRENT_TRANSACTIONS,
    PRODUCER_FENCED, or what `new_producer_id` raises.
    """
    if txn is None:
        txn = Transaction(
            transactional_id=transactional_id,
            producer_id=new_producer_id(),
            previous_producer_id=NO_PRODUCER_ID,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            last_producer_epoch=NO_PRODUCER_EPOCH,
            timeout_ms=timeout_ms,
            state=EMPTY,
            partitions=NO_PARTITIONS,
            start_ms=-1,
            last_update_ms=now_ms,
            client_version=TV0,
        )
    if pending:
        _refuse_concurrent(txn, pending)
    if expected is not None and not _holds_producer_id(txn, expected):
        _refuse(
            ErrorCode.PRODUCER_FENCED,
            f"holds producer id {expected[0]} epoch {expected[1]}, "
            f"current is {txn.producer_id} epoch {txn.producer_epoch}",
        )
    if txn.is_prepared:
        _refuse_concurrent(txn, pending)
    if txn.state is ONGOING:
        return fence(txn, server_version, now_ms, new_producer_id)
    _check_move(txn.state, EMPTY, transactional_id)
    producer_id, producer_epoch, last_epoch = _next_identity(txn, expected, new_producer_id)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        previous_producer_id=txn.producer_id,
        next_producer_id=txn.next_producer_id,
        producer_epoch=producer_epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=EMPTY,
        partitions=NO_PARTITIONS,
        start_ms=-1,
        last_update_ms=now_ms,
        client_version=txn.client_version,
    )


def _holds_producer_id(txn: Transaction, expected: tuple[int, int]) -> bool:
    return (
        txn.producer_epoch == NO_PRODUCER_EPOCH
        or expected[0] == txn.producer_id
        or (expected[0] == txn.previous_producer_id and is_epoch_exhausted(expected[1]))
    )


def _next_identity(
    txn: Transaction, expected: tuple[int, int] | None, new_producer_id: Callable[[], int]
) -> tuple[int, int, int]:
    """Returns the (producer id, epoch, epoch before) that InitProducerId gives a producer at rest. Raises
    PRODUCER_FENCED."""
    epoch = txn.producer_epoch
    expected_epoch = NO_PRODUCER_EPOCH if expected is None else expected[1]
    if is_epoch_exhausted(epoch):
        if expected is None or expected_epoch == epoch:
            return new_producer_id(), 0, NO_PRODUCER_EPOCH if expected is None else epoch
        # Kafka throws here (prepareIncrementProducerEpoch on an exhausted epoch), and the client gets this code.
        _refuse(ErrorCode.UNKNOWN_SERVER_ERROR, f"holds epoch {expected_epoch}, current is {epoch}, the last one")
    if expected is None:
        return txn.producer_id, epoch + 1, NO_PRODUCER_EPOCH
    if epoch in (NO_PRODUCER_EPOCH, expected_epoch):
        return txn.producer_id, epoch + 1, epoch
    if expected_epoch == txn.last_producer_epoch:
        return txn.producer_id, epoch, expected_epoch  # a retry gets the same result
    _refuse(
        ErrorCode.PRODUCER_FENCED,
        f"holds epoch {expected_epoch}, current is {epoch}, the one before {txn.last_producer_epoch}",
    )


# --- AddPartitionsToTxn, AddOffsetsToTxn, Produce v12+, TxnOffsetCommit v5+


@lru_cache(maxsize=256)
def _union_of_few(some: frozenset[TopicPartition], others: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
    return some | others


def union(some: frozenset[TopicPartition], others: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
    """Returns the partitions of both. A steady producer adds the same ones in each transaction: the same object has its
    hash, and what is made of it is found by that."""
    return _union_of_few(some, others) if len(some) + len(others) <= MOST_KEPT else some | others


def _check_producer(txn: Transaction, producer_id: int, producer_epoch: int) -> None:
    if txn.producer_id != producer_id:
        _refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer id {producer_id}, current is {txn.producer_id}")
    if txn.producer_epoch != producer_epoch:
        _refuse(ErrorCode.PRODUCER_FENCED, f"epoch {producer_epoch}, current is {txn.producer_epoch}")


def add_partitions(
    txn: Transaction,
    producer_id: int,
    producer_epoch: int,
    partitions: frozenset[TopicPartition],
    client_version: int,
    now_ms: int,
    pending: bool = False,
) -> Transaction:
    """Begin or extend the transaction (B8). Returns `txn` itself if all of `partitions` are in it already."""
    if pending:
        _refuse_concurrent(txn, pending)
    _check_producer(txn, producer_id, producer_epoch)
    state = txn.state
    if state is ONGOING:
        if partitions <= txn.partitions:
            return txn
        start_ms = txn.start_ms
        partitions = union(txn.partitions, partitions)
    elif txn.is_prepared:
        _refuse_concurrent(txn, pending)
    else:
        _check_move(state, ONGOING, txn.transactional_id)
        start_ms = now_ms
    begun = txn.moved(ONGOING, partitions, now_ms, client_version)
    begun.start_ms = start_ms
    return begun


def missing_partitions(
    txn: Transaction, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition]
) -> frozenset[TopicPartition]:
    """Verification (`verifyOnly`, Produce v3-11): returns those of `partitions` that are not in the transaction. Each
    of them gets TRANSACTION_ABORTABLE. Raises CONCURRENT_TRANSACTIONS if the transaction is prepared."""
    _check_producer(txn, producer_id, producer_epoch)
    if txn.is_prepared:
        _refuse_concurrent(txn, False)
    return partitions - txn.partitions


# --- EndTxn


def end(
    txn: Transaction,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    client_version: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
    pending: bool = False,
) -> Transaction:
    """EndTxn of a client (B10, B20, B23). Returns the prepared value, or `txn` itself for a retry that succeeds."""
    if client_version < TV2:
        return _end_classic(txn, producer_id, producer_epoch, commit, now_ms, pending)
    state = txn.state
    is_retry = txn.producer_epoch == producer_epoch + 1
    is_rotated_retry = (
        txn.previous_producer_id == producer_id
        and producer_epoch == EXHAUSTED_PRODUCER_EPOCH
        and txn.producer_epoch == 0
    )
    if pending:
        _refuse_concurrent(txn, pending)
    if txn.producer_id != producer_id and not is_rotated_retry:
        _refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer id {producer_id}, current is {txn.producer_id}")
    is_current = txn.producer_epoch == producer_epoch
    if txn.is_prepared:
        is_valid_epoch = is_retry
    elif state is ONGOING or state is EMPTY:
        is_valid_epoch = is_current
    else:
        is_valid_epoch = is_retry or is_rotated_retry or is_current
    if not is_valid_epoch:
        _refuse(ErrorCode.PRODUCER_FENCED, f"epoch {producer_epoch}, current is {txn.producer_epoch}")
    if state is ONGOING:
        return _prepare(txn, PREPARE_COMMIT if commit else PREPARE_ABORT, TV2, now_ms, new_producer_id)
    if is_retry or is_rotated_retry:
        if state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
            return txn
        if state is (PREPARE_COMMIT if commit else PREPARE_ABORT):
            _refuse_concurrent(txn, pending)
    elif not commit:
        # There is no transaction to end, but an abort fences requests of this transaction that are still in flight
        # (KIP-890).
        return _prepare(txn, PREPARE_ABORT, TV2, now_ms, new_producer_id)
    _refuse_direction(txn, commit)


def _end_classic(
    txn: Transaction, producer_id: int, producer_epoch: int, commit: bool, now_ms: int, pending: bool
) -> Transaction:
    """EndTxn v0-4: the epoch stays the same, and a retry is recognised only by the state."""
    _check_producer(txn, producer_id, producer_epoch)
    if pending:
        _refuse_concurrent(txn, pending)
    if txn.state is ONGOING:
        return _prepare(txn, PREPARE_COMMIT if commit else PREPARE_ABORT, TV0, now_ms, None)
    if txn.state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
        return txn
    if txn.state is (PREPARE_COMMIT if commit else PREPARE_ABORT):
        _refuse_concurrent(txn, pending)
    _refuse_direction(txn, commit)


def _refuse_direction(txn: Transaction, commit: bool) -> NoReturn:
    asked = "commit" if commit else "abort"
    _refuse(ErrorCode.INVALID_TXN_STATE, f"{asked} in state {STATE_NAMES[txn.state]}")


def fence(txn: Transaction, server_version: int, now_ms: int, new_producer_id: Callable[[], int]) -> Transaction:
    """Abort an open transaction at the next epoch on the broker's initiative: another producer instance started (B3),
    or the transaction timed out (B13). Passes through PREPARE_EPOCH_FENCE and returns the PREPARE_ABORT value."""
    _check_move(txn.state, PREPARE_EPOCH_FENCE, txn.transactional_id)
    if server_version >= TV2:
        return _prepare(txn, PREPARE_ABORT, TV2, now_ms, new_producer_id, PREPARE_EPOCH_FENCE)
    bumped_epoch = min(txn.producer_epoch + 1, MAX_PRODUCER_EPOCH)
    return Transaction(
        transactional_id=txn.transactional_id,
        producer_id=txn.producer_id,
        previous_producer_id=txn.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=bumped_epoch,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=txn.timeout_ms,
        state=PREPARE_ABORT,
        partitions=txn.partitions,
        start_ms=txn.start_ms,
        last_update_ms=now_ms,
        client_version=TV0,
    )


def _prepare(
    txn: Transaction,
    target: State,
    client_version: int,
    now_ms: int,
    new_producer_id: Callable[[], int] | None,
    source: State | None = None,
) -> Transaction:
    source = txn.state if source is None else source
    _check_move(source, target, txn.transactional_id)
    prepared = txn.moved(target, txn.partitions, now_ms, client_version)
    prepared.next_producer_id = NO_PRODUCER_ID
    if source in AT_REST:
        prepared.start_ms = now_ms
    if new_producer_id is not None:  # TV2: the bump fences all older requests
        epoch = txn.producer_epoch
        if epoch == MAX_PRODUCER_EPOCH and target is PREPARE_COMMIT:
            # No producer holds this epoch; only markers use it. Kafka overflows here and throws.
            _refuse(ErrorCode.UNKNOWN_SERVER_ERROR, f"epoch {epoch} is reserved for markers, no producer has it")
        if is_epoch_exhausted(epoch):
            prepared.next_producer_id = new_producer_id()
        prepared.last_producer_epoch = epoch
        if epoch < MAX_PRODUCER_EPOCH:
            prepared.producer_epoch = epoch + 1
    return prepared


def identity_after(txn: Transaction) -> tuple[int, int]:
    """Returns the (producer id, epoch) of a prepared transaction's producer after completion (B4)."""
    if txn.client_version >= TV2 and txn.next_producer_id != NO_PRODUCER_ID:
        return txn.next_producer_id, 0
    return txn.producer_id, txn.producer_epoch


def complete(txn: Transaction, now_ms: int) -> Transaction:
    """Returns the completed value: all markers of a prepared transaction are written."""
    target = COMPLETE_COMMIT if txn.state is PREPARE_COMMIT else COMPLETE_ABORT
    _check_move(txn.state, target, txn.transactional_id)
    completed = txn.moved(target, NO_PARTITIONS, now_ms, txn.client_version)
    if txn.next_producer_id != NO_PRODUCER_ID:
        completed.producer_id, completed.producer_epoch = identity_after(txn)
        completed.next_producer_id = NO_PRODUCER_ID
    return completed


# --- time


def is_timed_out(txn: Transaction, now_ms: int) -> bool:
    """Returns whether an open transaction is older than its timeout (B13)."""
    return txn.state is ONGOING and txn.timeout_ms != NO_TIMEOUT_MS and txn.start_ms + txn.timeout_ms < now_ms


def is_expired(txn: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Returns whether a transactional id was not used for `transactional.id.expiration.ms` (B7). It ends through
    DEAD."""
    return txn.state in ALLOWED_FROM[DEAD] and txn.last_update_ms <= now_ms - expiration_ms
