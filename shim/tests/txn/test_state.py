"""Every rule of the transaction state machine, as a table: (state, request) -> (value or code)."""

from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.txn import state
from kafka_shim.txn.transaction import (
    ALLOWED_FROM,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
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

NOW = 1_700_000_000_000
PID, OTHER_PID, NEW_PID = 7, 8, 4000
P0, P1 = ("orders", 0), ("orders", 1)


def txn(
    current: State = EMPTY,
    *,
    epoch: int = 5,
    last_epoch: int = -1,
    producer_id: int = PID,
    previous: int = PID,
    partitions: frozenset[tuple[str, int]] | None = None,
    client_version: int = TV2,
    next_producer_id: int = -1,
    start_ms: int = NOW - 1000,
    timeout_ms: int = 60_000,
) -> Transaction:
    holds = current in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)
    return Transaction(
        "app",
        producer_id,
        previous,
        next_producer_id,
        epoch,
        last_epoch,
        timeout_ms,
        current,
        (frozenset({P0}) if holds else frozenset()) if partitions is None else partitions,
        start_ms,
        NOW - 1000,
        client_version,
    )


def test_no_producer_commits_at_the_epoch_of_markers() -> None:
    """Kafka's epoch overflows there, and it throws; an abort lets the producer out."""
    with pytest.raises(KafkaError) as caught:
        state.end(txn(ONGOING, epoch=32767), PID, 32767, True, TV2, NOW, new_producer_id)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    aborting = state.end(txn(ONGOING, epoch=32767), PID, 32767, False, TV2, NOW, new_producer_id)
    assert (aborting.state, aborting.producer_epoch, aborting.next_producer_id) == (PREPARE_ABORT, 32767, NEW_PID)


def new_producer_id() -> int:
    return NEW_PID


def no_producer_id() -> int:
    raise AssertionError("no producer id is needed here")


def initialise(
    current: Transaction | None,
    expected: tuple[int, int] | None = None,
    *,
    server_version: int = TV2,
    pending: bool = False,
    ids=new_producer_id,
) -> Transaction:
    return state.initialise(current, "app", 30_000, expected, NOW, server_version, ids, pending)


def end(current: Transaction, epoch: int, commit: bool, version: int, **options) -> Transaction:
    producer_id = options.pop("producer_id", PID)
    return state.end(current, producer_id, epoch, commit, version, NOW, new_producer_id, **options)


def code_of(call, *args, **options) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*args, **options)
    assert caught.value.message, "a refusal carries its reason"
    return caught.value.code


# --- B6: the table


def test_legal_sources_are_exactly_those_of_kafka() -> None:
    at_rest = {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}
    assert {
        EMPTY: at_rest,
        ONGOING: at_rest | {ONGOING},
        PREPARE_COMMIT: {ONGOING},
        PREPARE_ABORT: at_rest | {ONGOING, PREPARE_EPOCH_FENCE},
        COMPLETE_COMMIT: {PREPARE_COMMIT},
        COMPLETE_ABORT: {PREPARE_ABORT},
        DEAD: at_rest,
        PREPARE_EPOCH_FENCE: {ONGOING},
    } == ALLOWED_FROM


def test_ids_are_those_on_disk() -> None:
    assert [member.value for member in State] == list(range(8))
    assert [STATE_NAMES[member] for member in State] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


@pytest.mark.parametrize("current", [EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_completing_what_is_not_prepared_is_a_bug_not_an_answer(current: State) -> None:
    with pytest.raises(AssertionError):
        state.complete(txn(current), NOW)


# --- B2, B3, B4: InitProducerId


def test_first_initialise_takes_a_new_id_at_epoch_zero() -> None:
    made = initialise(None)
    assert (made.producer_id, made.producer_epoch, made.state) == (NEW_PID, 0, EMPTY)
    assert made.previous_producer_id == NEW_PID
    assert (made.start_ms, made.last_update_ms, made.timeout_ms, made.client_version) == (-1, NOW, 30_000, TV0)


@pytest.mark.parametrize("current", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_initialise_keeps_the_id_and_bumps_the_epoch(current: State) -> None:
    made = initialise(txn(current, epoch=5), ids=no_producer_id)
    assert (made.producer_id, made.producer_epoch, made.last_producer_epoch) == (PID, 6, -1)
    assert made.state is EMPTY
    assert made.partitions == frozenset()


def test_initialise_during_an_open_transaction_fences_it_at_the_next_epoch() -> None:
    made = initialise(txn(ONGOING, epoch=5))
    assert (made.state, made.producer_epoch, made.partitions) == (PREPARE_ABORT, 6, {P0})
    assert made.client_version == TV2
    done = state.complete(made, NOW)
    assert (initialise(done).producer_epoch, done.state) == (7, COMPLETE_ABORT)


def test_a_server_at_tv1_fences_without_a_second_bump() -> None:
    made = initialise(txn(ONGOING, epoch=5), server_version=1)
    assert (made.state, made.producer_epoch, made.last_producer_epoch) == (PREPARE_ABORT, 6, -1)
    assert made.client_version == TV0
    assert state.complete(made, NOW).producer_epoch == 6


@pytest.mark.parametrize("current", [PREPARE_COMMIT, PREPARE_ABORT])
def test_initialise_while_prepared_is_concurrent(current: State) -> None:
    assert code_of(initialise, txn(current)) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_initialise_while_markers_are_written_is_concurrent_before_anything_else() -> None:
    code = code_of(initialise, txn(PREPARE_COMMIT), (OTHER_PID, 1), pending=True)
    assert code is ErrorCode.CONCURRENT_TRANSACTIONS


def test_expected_current_epoch_bumps_and_its_retry_gets_the_same_answer() -> None:
    first = initialise(txn(EMPTY, epoch=5), (PID, 5))
    again = initialise(first, (PID, 5))
    assert first.producer_epoch == again.producer_epoch == 6
    assert first.last_producer_epoch == again.last_producer_epoch == 5


def test_expected_previous_epoch_is_fenced_after_a_restart_forgot_it() -> None:
    assert code_of(initialise, txn(EMPTY, epoch=6, last_epoch=-1), (PID, 5)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("expected", [(OTHER_PID, 5), (PID, 4), (PID, 7)])
def test_a_wrong_expected_producer_is_fenced(expected: tuple[int, int]) -> None:
    assert code_of(initialise, txn(EMPTY, epoch=5), expected) is ErrorCode.PRODUCER_FENCED


def test_expected_of_an_unknown_transactional_id_is_accepted() -> None:
    assert initialise(None, (OTHER_PID, 3)).producer_epoch == 0


@pytest.mark.parametrize("expected", [None, (PID, 32766)])
def test_initialise_at_the_last_epoch_rotates_the_producer_id(expected: tuple[int, int] | None) -> None:
    made = initialise(txn(EMPTY, epoch=32766), expected)
    assert (made.producer_id, made.producer_epoch, made.previous_producer_id) == (NEW_PID, 0, PID)
    assert made.last_producer_epoch == (-1 if expected is None else 32766)


def test_a_retry_across_the_rotation_gets_the_same_answer() -> None:
    rotated = initialise(txn(EMPTY, epoch=32766), (PID, 32766))
    again = initialise(rotated, (PID, 32766), ids=no_producer_id)
    assert (again.producer_id, again.producer_epoch) == (NEW_PID, 0)


def test_a_stale_epoch_at_the_last_epoch_is_an_unknown_error_as_in_kafka() -> None:
    assert code_of(initialise, txn(EMPTY, epoch=32766), (PID, 3)) is ErrorCode.UNKNOWN_SERVER_ERROR


# --- B8: AddPartitionsToTxn


def add(current: Transaction, partitions=frozenset({P1}), *, producer_id=PID, epoch=5, pending=False) -> Transaction:
    return state.add_partitions(current, producer_id, epoch, partitions, TV2, NOW, pending)


@pytest.mark.parametrize("current", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_the_first_partition_begins_the_transaction(current: State) -> None:
    made = add(txn(current, client_version=TV0))
    assert (made.state, made.partitions, made.start_ms, made.last_update_ms) == (ONGOING, {P1}, NOW, NOW)
    assert made.client_version == TV2


def test_a_further_partition_keeps_the_start_of_the_transaction() -> None:
    made = add(txn(ONGOING, start_ms=NOW - 500))
    assert (made.partitions, made.start_ms, made.last_update_ms) == ({P0, P1}, NOW - 500, NOW)


def test_partitions_already_there_need_no_record() -> None:
    current = txn(ONGOING)
    assert add(current, frozenset({P0})) is current


@pytest.mark.parametrize(
    ("current", "options", "code"),
    [
        (ONGOING, {"producer_id": OTHER_PID}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ONGOING, {"epoch": 4}, ErrorCode.PRODUCER_FENCED),
        (ONGOING, {"epoch": 6}, ErrorCode.PRODUCER_FENCED),
        (PREPARE_COMMIT, {}, ErrorCode.CONCURRENT_TRANSACTIONS),
        (PREPARE_ABORT, {}, ErrorCode.CONCURRENT_TRANSACTIONS),
        (PREPARE_ABORT, {"epoch": 4}, ErrorCode.PRODUCER_FENCED),
        (PREPARE_ABORT, {"epoch": 4, "pending": True}, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_adding_is_refused(current: State, options: dict, code: ErrorCode) -> None:
    assert code_of(add, txn(current), **options) is code


def test_verification_names_the_missing_partitions() -> None:
    assert state.missing_partitions(txn(ONGOING), PID, 5, frozenset({P0, P1})) == {P1}
    assert state.missing_partitions(txn(EMPTY), PID, 5, frozenset({P1})) == {P1}


@pytest.mark.parametrize(
    ("current", "producer_id", "epoch", "code"),
    [
        (ONGOING, OTHER_PID, 5, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ONGOING, PID, 4, ErrorCode.PRODUCER_FENCED),
        (PREPARE_COMMIT, PID, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_verification_is_refused(current: State, producer_id: int, epoch: int, code: ErrorCode) -> None:
    assert code_of(state.missing_partitions, txn(current), producer_id, epoch, frozenset({P0})) is code


# --- B10: EndTxn v0-4

OK = "ok"


@pytest.mark.parametrize(
    ("current", "commit", "answer"),
    [
        (ONGOING, True, PREPARE_COMMIT),
        (ONGOING, False, PREPARE_ABORT),
        (EMPTY, True, ErrorCode.INVALID_TXN_STATE),
        (EMPTY, False, ErrorCode.INVALID_TXN_STATE),
        (PREPARE_COMMIT, True, ErrorCode.CONCURRENT_TRANSACTIONS),
        (PREPARE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (PREPARE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
        (PREPARE_ABORT, False, ErrorCode.CONCURRENT_TRANSACTIONS),
        (COMPLETE_COMMIT, True, OK),
        (COMPLETE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
        (COMPLETE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
        (COMPLETE_ABORT, False, OK),
    ],
)
def test_what_end_txn_answers_in_each_state_before_tv2(current: State, commit: bool, answer: object) -> None:
    before = txn(current, epoch=5)
    if isinstance(answer, ErrorCode):
        assert code_of(end, before, 5, commit, TV0) is answer
    elif answer == OK:
        assert end(before, 5, commit, TV0) is before
    else:
        made = end(before, 5, commit, TV0)
        assert (made.state, made.producer_epoch, made.client_version) == (answer, 5, TV0)
        assert state.complete(made, NOW).producer_epoch == 5


@pytest.mark.parametrize(("epoch", "producer_id"), [(4, PID), (6, PID)])
def test_classic_end_at_another_epoch_is_fenced(epoch: int, producer_id: int) -> None:
    assert code_of(end, txn(ONGOING), epoch, True, TV0, producer_id=producer_id) is ErrorCode.PRODUCER_FENCED


def test_classic_end_checks_id_and_epoch_before_markers_in_flight() -> None:
    prepared = txn(PREPARE_COMMIT)
    assert code_of(end, prepared, 5, False, TV0, pending=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(end, prepared, 4, False, TV0, pending=True) is ErrorCode.PRODUCER_FENCED
    code = code_of(end, prepared, 5, True, TV0, pending=True, producer_id=OTHER_PID)
    assert code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_b20_delayed_classic_end_has_the_same_epoch_and_ends_the_next_transaction() -> None:
    first = state.complete(end(txn(ONGOING), 5, True, TV0), NOW)
    second = state.add_partitions(first, PID, 5, frozenset({P1}), TV0, NOW)
    assert end(second, 5, True, TV0).state is PREPARE_COMMIT


# --- B23: EndTxn v5

CURRENT, RETRY, OTHER = 5, 4, 3
FENCED, INVALID, CONCURRENT = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS
BUMPS = "bumps"


@pytest.mark.parametrize(
    ("current", "epoch", "commit", "answer"),
    [
        (ONGOING, CURRENT, True, PREPARE_COMMIT),
        (ONGOING, CURRENT, False, PREPARE_ABORT),
        (ONGOING, RETRY, True, FENCED),
        (ONGOING, RETRY, False, FENCED),
        (EMPTY, CURRENT, False, BUMPS),
        (EMPTY, CURRENT, True, INVALID),
        (EMPTY, RETRY, False, FENCED),
        (EMPTY, RETRY, True, FENCED),
        (COMPLETE_ABORT, RETRY, False, OK),
        (COMPLETE_ABORT, CURRENT, False, BUMPS),
        (COMPLETE_ABORT, RETRY, True, INVALID),
        (COMPLETE_ABORT, CURRENT, True, INVALID),
        (COMPLETE_COMMIT, RETRY, True, OK),
        (COMPLETE_COMMIT, CURRENT, True, INVALID),
        (COMPLETE_COMMIT, CURRENT, False, BUMPS),
        (COMPLETE_COMMIT, RETRY, False, INVALID),
        (PREPARE_COMMIT, RETRY, True, CONCURRENT),
        (PREPARE_COMMIT, RETRY, False, INVALID),
        (PREPARE_COMMIT, CURRENT, True, FENCED),
        (PREPARE_ABORT, RETRY, False, CONCURRENT),
        (PREPARE_ABORT, RETRY, True, INVALID),
        (PREPARE_ABORT, CURRENT, False, FENCED),
        (EMPTY, OTHER, False, FENCED),
        (ONGOING, OTHER, True, FENCED),
        (COMPLETE_COMMIT, OTHER, True, FENCED),
        (COMPLETE_ABORT, OTHER, False, FENCED),
        (COMPLETE_ABORT, 6, False, FENCED),
    ],
)
def test_what_end_txn_answers_in_each_state_by_tv2(current: State, epoch: int, commit: bool, answer: object) -> None:
    before = txn(current, epoch=5)
    if isinstance(answer, ErrorCode):
        assert code_of(end, before, epoch, commit, TV2) is answer
        return
    made = end(before, epoch, commit, TV2)
    if answer == OK:
        assert made is before
        return
    assert made.state is (PREPARE_ABORT if answer == BUMPS else answer)
    assert (made.producer_epoch, made.last_producer_epoch, made.client_version) == (6, 5, TV2)
    assert made.start_ms == (NOW if answer == BUMPS else NOW - 1000)
    done = state.complete(made, NOW)
    assert (done.producer_id, done.producer_epoch, done.partitions) == (PID, 6, frozenset())


def test_tv2_end_checks_markers_in_flight_before_id_and_epoch() -> None:
    code = code_of(end, txn(PREPARE_COMMIT), 1, True, TV2, pending=True, producer_id=OTHER_PID)
    assert code is ErrorCode.CONCURRENT_TRANSACTIONS


def test_tv2_end_with_another_producer_id() -> None:
    code = code_of(end, txn(ONGOING), 5, True, TV2, producer_id=OTHER_PID)
    assert code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_b20_delayed_tv2_end_is_fenced_both_ways() -> None:
    first = state.complete(end(txn(ONGOING), 5, True, TV2), NOW)
    second = state.add_partitions(first, PID, 6, frozenset({P1}), TV2, NOW)
    assert code_of(end, second, 5, True, TV2) is ErrorCode.PRODUCER_FENCED
    assert code_of(end, second, 5, False, TV2) is ErrorCode.PRODUCER_FENCED


def test_b4_tv2_end_at_the_last_epoch_rotates_and_its_retry_answers_the_same() -> None:
    prepared = end(txn(ONGOING, epoch=32766), 32766, True, TV2)
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (PID, 32767, NEW_PID)
    done = state.complete(prepared, NOW)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (NEW_PID, 0, PID)
    assert done.next_producer_id == -1
    assert end(done, 32766, True, TV2) is done
    assert code_of(end, done, 32766, False, TV2) is ErrorCode.INVALID_TXN_STATE


def test_b24_a_tv2_transaction_ended_by_v4_gets_a_classic_end() -> None:
    begun = state.add_partitions(txn(EMPTY), PID, 5, frozenset({P0}), TV2, NOW)
    done = state.complete(end(begun, 5, True, TV0), NOW)
    assert (done.producer_epoch, done.state, done.client_version) == (5, COMPLETE_COMMIT, TV0)


# --- B13: timeouts


def test_a_transaction_is_timed_out_after_its_timeout_not_at_it() -> None:
    open_txn = txn(ONGOING, start_ms=NOW, timeout_ms=1000)
    assert not state.is_timed_out(open_txn, NOW + 1000)
    assert state.is_timed_out(open_txn, NOW + 1001)


def test_a_transaction_with_the_largest_timeout_has_none() -> None:
    assert not state.is_timed_out(txn(ONGOING, start_ms=NOW, timeout_ms=2**31 - 1), NOW + 2**40)
    assert state.is_timed_out(txn(ONGOING, start_ms=NOW, timeout_ms=2**31 - 2), NOW + 2**40)


@pytest.mark.parametrize("current", [EMPTY, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_only_an_open_transaction_times_out(current: State) -> None:
    assert not state.is_timed_out(txn(current, start_ms=0), NOW)


def late(version: int = TV2) -> Transaction:
    """After the abort of a timed-out transaction: the producer still holds epoch 5."""
    return state.complete(state.fence(txn(ONGOING, epoch=5), version, NOW, new_producer_id), NOW)


def test_a_late_tv2_producer_is_told_what_b13_says() -> None:
    aborted = late()
    assert (aborted.state, aborted.producer_epoch) == (COMPLETE_ABORT, 6)
    assert code_of(end, aborted, 5, True, TV2) is ErrorCode.INVALID_TXN_STATE
    assert end(aborted, 5, False, TV2) is aborted
    assert initialise(aborted, (PID, 5)).producer_epoch == 6


def test_a_late_classic_producer_is_fenced() -> None:
    aborted = late()
    assert code_of(end, aborted, 5, True, TV0) is ErrorCode.PRODUCER_FENCED
    assert code_of(end, aborted, 5, False, TV0) is ErrorCode.PRODUCER_FENCED
    assert code_of(add, aborted) is ErrorCode.PRODUCER_FENCED


def test_fencing_at_the_very_last_epoch_keeps_it() -> None:
    assert state.fence(txn(ONGOING, epoch=32767), 1, NOW, new_producer_id).producer_epoch == 32767


# --- B7: expiry


@pytest.mark.parametrize(("current", "may_expire"), [(s, s in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)) for s in State])
def test_only_what_is_at_rest_expires(current: State, may_expire: bool) -> None:
    used = txn(current)
    assert state.is_expired(used, used.last_update_ms + 100, 100) is may_expire
    assert not state.is_expired(used, used.last_update_ms + 99, 100)
