"""The coordinator over real logs, rows A1, B2-B12, B17, B20, B23-B24, D1, D2, D8, D10, D18, under a virtual clock."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.config import TopicConfig
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.storage.results import StorageError
from kafka_shim.tests import descriptors
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.txn.harness import Node, code_of, state_of
from kafka_shim.txn.producer_ids import ProducerIds
from kafka_shim.txn.retries import LONGEST_PAUSE_MS
from kafka_shim.txn.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TV0,
    TV2,
)

A0, A1 = ("orders", 0), ("orders", 1)


# --- A1


def test_a_producer_without_transactional_id_gets_a_fresh_id_at_epoch_zero(node: Node) -> None:
    first = node.coordinator.init_producer_id(None, -5, (3, 4)).response
    second = node.coordinator.init_producer_id(None, 0, None).response
    assert first[1] == second[1] == 0
    assert second[0] == first[0] + 1


def test_no_producer_id_is_handed_out_twice_across_a_crash(node: Node) -> None:
    before = [node.coordinator.init_producer_id(None, 0, None).response[0] for _ in range(3)]
    node.crash()
    after = node.coordinator.init_producer_id(None, 0, None).response[0]
    assert after not in before
    assert after == 1000


# --- B1, B2, B5


def test_an_empty_transactional_id_is_an_invalid_request(node: Node) -> None:
    assert code_of(node.init, "") is ErrorCode.INVALID_REQUEST
    assert code_of(node.end, "", (1, 0), True) is ErrorCode.INVALID_REQUEST
    assert code_of(node.coordinator.add_partitions, "", 1, 0, frozenset({A0}), TV0) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_range_is_refused(node: Node, timeout_ms: int) -> None:
    assert code_of(node.init, "app", None, timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert node.init("app", None, 900_000) == (0, 0)


def test_an_unknown_transactional_id_has_no_mapping(node: Node) -> None:
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(node.end, "nobody", (1, 0), True) is unknown
    assert code_of(node.coordinator.add_partitions, "nobody", 1, 0, frozenset({A0}), TV0) is unknown
    assert code_of(node.coordinator.missing_partitions, "nobody", 1, 0, frozenset({A0})) is unknown
    assert code_of(node.coordinator.describe, "nobody") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert code_of(node.coordinator.describe, "") is ErrorCode.INVALID_REQUEST


def test_a_second_instance_fences_the_first(node: Node) -> None:
    first = node.init("app")
    second = node.init("app")
    assert second == (first[0], first[1] + 1)
    assert code_of(node.produce, "app", first, "orders", 0, "x") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(node.end, "app", first, True) is ErrorCode.PRODUCER_FENCED
    assert code_of(node.end, "app", (99, 1), True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# --- B3


def test_a_second_instance_aborts_the_open_transaction_first(node: Node) -> None:
    first = node.init("app")
    node.produce("app", first, "orders", 0, "lost")
    assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    assert node.markers == [("orders", 0, first[0], 1, False)]
    assert node.init("app") == (first[0], 2)
    assert node.visible("orders", 0) == []
    for commit in (True, False):
        assert code_of(node.end, "app", first, commit) is ErrorCode.PRODUCER_FENCED


def test_kip_360_previous_epoch_gets_the_same_answer_until_a_restart(node: Node) -> None:
    first = node.init("app")
    second = node.init("app", first)
    assert second == (first[0], 1)
    assert node.init("app", first) == second
    node.crash()
    assert code_of(node.init, "app", first) is ErrorCode.PRODUCER_FENCED
    assert node.init("app", second) == (first[0], 2)


# --- B4


def exhaust(node: Node, name: str = "app") -> tuple[int, int]:
    """Bring the transactional id to the last epoch, 32766."""
    producer = node.init(name)
    slot = node.coordinator._log.slots[name]
    slot.transaction.producer_epoch = 32765
    assert node.init(name) == (producer[0], 32766)
    return producer[0], 32766


def test_initialise_at_the_last_epoch_takes_a_new_producer_id(node: Node) -> None:
    old = exhaust(node)
    fresh = node.init("app")
    assert (fresh[0] != old[0], fresh[1]) == (True, 0)


@pytest.mark.parametrize("crash", [False, True])
def test_tv2_end_at_the_last_epoch_rotates(node: Node, crash: bool) -> None:
    old = exhaust(node)
    node.produce("app", old, "orders", 0, "a")
    fresh = node.end("app", old, True)
    assert (fresh[0] != old[0], fresh[1]) == (True, 0)
    assert node.markers == [("orders", 0, old[0], 32767, True)]
    if crash:
        node.crash()
    assert node.end("app", old, True) == fresh
    assert code_of(node.end, "app", old, False) is ErrorCode.INVALID_TXN_STATE
    assert code_of(node.produce, "app", old, "orders", 0, "b") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert node.produce("app", fresh, "orders", 0, "c") == 2
    assert node.visible("orders", 0) == ["a"]


# --- B7, B12: what a restart brings back


@pytest.mark.parametrize("how", ["crash", "restart"])
def test_everything_but_the_previous_epoch_comes_back(node: Node, how: str) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    other = node.init("other")
    node.end("app", producer, True)
    node.produce("other", other, "orders", 0, "c")
    before = {txn.transactional_id: txn for txn in node.coordinator.transactions()}
    getattr(node, how)()
    after = {txn.transactional_id: txn for txn in node.coordinator.transactions()}
    assert set(after) == {"app", "other"}
    for name, txn in before.items():
        txn.last_producer_epoch = -1
        assert after[name] == txn
    assert (after["app"].state, after["other"].state) == (COMPLETE_COMMIT, ONGOING)
    assert node.visible("orders", 0) == ["a"]
    assert node.end("other", other, True) == (other[0], 1)
    assert node.visible("orders", 0) == ["a", "c"]


def test_a_tv2_retry_after_a_restart_answers_the_bumped_epoch(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    bumped = node.end("app", producer, True)
    node.crash()
    assert node.end("app", producer, True) == bumped == (producer[0], 1)


class Stopped(Exception):
    pass


def test_a_retried_end_tells_a_rotated_producer_id_once_its_block_is_on_the_disk(node: Node) -> None:
    producer = exhaust(node)
    fsync: Future[None] = Future()
    node.coordinator.producer_ids = ProducerIds(lambda: (5000, 1000, fsync))
    node.produce("app", producer, "orders", 0, "v")
    told = []
    for _ in range(2):
        outcome = node.coordinator.decide("app", *producer, True, TV2)
        assert list(outcome.flushes) == [fsync]
        told.append(outcome.response)
        if outcome.follow_up is not None:
            outcome.follow_up()
    assert told == [(5000, 0)] * 2

    async def end_stepwise() -> tuple[int, int]:
        ending = asyncio.ensure_future(node.coordinator.end_stepwise("app", *producer, True, TV2))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not ending.done()
        fsync.set_result(None)
        return await ending

    assert asyncio.run(end_stepwise()) == (5000, 0)
    assert list(node.coordinator.decide("app", *producer, True, TV2).flushes) == []


def stop_here(**facts: object) -> None:
    raise Stopped


STEPS = [
    ("txn.before_prepare", 1, "before"),
    ("txn.after_prepare", 1, "after"),
    ("txn.after_marker", 1, "after"),
    ("txn.after_marker", 2, "after"),
    ("txn.before_complete", 1, "after"),
    ("txn.after_complete", 1, "after"),
]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("point", "nth", "decided"), STEPS)
def test_a_crash_at_any_step_of_the_end_is_all_or_nothing(
    node: Node, point: str, nth: int, decided: str, commit: bool
) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    node.faults.arm(point, stop_here, nth=nth)
    with pytest.raises(Stopped):
        asyncio.run(node.coordinator.end_stepwise("app", *producer, commit, TV2))
    node.crash()
    expected = COMPLETE_COMMIT if commit else COMPLETE_ABORT
    if decided == "before":
        assert state_of(node).state is ONGOING
        assert node.visible("orders", 0) == []
    else:
        assert state_of(node).state is expected
    assert node.end("app", producer, commit) == (producer[0], 1)
    assert state_of(node).state is expected
    assert node.visible("orders", 0) == (["a"] if commit else [])
    assert node.visible("orders", 1) == (["b"] if commit else [])
    for partition in (0, 1):
        log = node.logs.get("orders", partition)
        assert log.last_stable_offset == log.log_end_offset
        # A marker that was out before the crash is written again, as Kafka's coordinator sends it again.
        assert [marker for _, marker, _ in node.stored("orders", partition)][:2] == [False, True]


def test_only_what_was_prepared_is_resumed(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.crash()
    assert state_of(node).state is ONGOING
    assert node.visible("orders", 0) == []


# --- B8


def test_partitions_are_added_once(node: Node) -> None:
    producer = node.init("app")
    node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
    end = node.logs.get("__transaction_state", node.coordinator.partition_for("app")).log_end_offset
    node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
    assert node.logs.get("__transaction_state", node.coordinator.partition_for("app")).log_end_offset == end
    node.coordinator.add_partitions("app", *producer, frozenset({A1}), TV0)
    assert state_of(node).partitions == {A0, A1}


def test_verification_answers_without_changing_anything(node: Node) -> None:
    producer = node.init("app")
    assert node.coordinator.missing_partitions("app", *producer, frozenset({A0})) == {A0}
    assert state_of(node).state is EMPTY


# --- B9


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, "INVALID_TXN_STATE"), (10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE"), (12, None)],
)
def test_produce_to_a_partition_that_is_not_in_the_transaction(node: Node, version: int, code: str | None) -> None:
    producer = node.init("app")
    if code is None:
        assert node.produce("app", producer, "orders", 0, "a", version) == 0
        assert state_of(node).partitions == {A0}
    else:
        assert code_of(node.produce, "app", producer, "orders", 0, "a", version) is ErrorCode[code]
        node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
        assert node.produce("app", producer, "orders", 0, "a", version) == 0


@pytest.mark.parametrize(
    ("version", "code"), [(9, "NOT_ENOUGH_REPLICAS"), (11, "NOT_ENOUGH_REPLICAS"), (12, "CONCURRENT_TRANSACTIONS")]
)
def test_produce_while_the_transaction_before_is_being_ended(node: Node, version: int, code: str) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")

    async def scenario() -> None:
        node.faults.arm("txn.after_prepare", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        following = (producer[0], 1)
        assert code_of(node.produce, "app", following, "orders", 1, "b", version) is ErrorCode[code]
        node.faults.disarm()
        assert await ending == following

    asyncio.run(scenario())


def test_trouble_of_the_coordinator_has_the_text_of_kafka() -> None:
    from kafka_shim.txn import admission

    trouble = KafkaError(ErrorCode.NOT_COORDINATOR, "the reason")
    told = admission.as_produce_error(trouble, admission.REFUSED_AS_ABORTABLE)
    assert (told.code, told.message) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        "Unable to verify the partition has been added to the transaction. Underlying error: NOT_COORDINATOR",
    )


def test_produce_v12_waits_for_the_transaction_before(node: Node) -> None:
    from kafka_shim.txn import admission

    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("orders", 1)

    async def scenario(release_after_ms: int) -> list[object]:
        node.faults.arm("txn.after_prepare", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(
            admission.admit_patiently(node.coordinator, node.clock, node.config, "app", producer[0], 1, [(log, 0)])
        )
        await node.clock.advance_and_drain(release_after_ms)
        node.faults.disarm()
        await ending
        await node.clock.advance_and_drain(200)
        return (await waiting)[0]

    (outcome,) = asyncio.run(scenario(50))
    assert not isinstance(outcome, KafkaError)


def test_produce_v12_gives_up_after_its_time(node: Node) -> None:
    from kafka_shim.txn import admission

    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("orders", 1)

    async def scenario() -> list[object]:
        node.faults.arm("txn.after_prepare", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(
            admission.admit_patiently(node.coordinator, node.clock, node.config, "app", producer[0], 1, [(log, 0)])
        )
        await node.clock.advance_and_drain(99)
        assert not waiting.done()
        await node.clock.advance_and_drain(20)
        outcomes, _ = await waiting
        node.faults.disarm()
        await ending
        return outcomes

    (outcome,) = asyncio.run(scenario())
    assert isinstance(outcome, KafkaError)
    assert outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS


# --- B10, B20, B23, D1, D2, D8


def test_commit_and_abort_take_one_offset_in_each_partition(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    producer = node.end("app", producer, True)
    node.produce("app", producer, "orders", 0, "c")
    producer = node.end("app", producer, False)
    assert [offset for offset, _, _ in node.stored("orders", 0)] == [0, 1, 2, 3]
    assert [offset for offset, _, _ in node.stored("orders", 1)] == [0, 1]
    assert (node.visible("orders", 0), node.visible("orders", 1)) == (["a"], ["b"])
    assert [marker[3] for marker in node.markers] == [1, 1, 2]
    assert producer[1] == 2


def test_classic_end_answers_minus_ones_and_keeps_the_epoch(node: Node) -> None:
    producer = node.init("app")
    node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
    node.produce("app", producer, "orders", 0, "a", 9)
    assert node.end("app", producer, True, TV0) == (-1, -1)
    assert node.end("app", producer, True, TV0) == (-1, -1)
    assert code_of(node.end, "app", producer, False, TV0) is ErrorCode.INVALID_TXN_STATE
    assert node.markers == [("orders", 0, producer[0], 0, True)]
    assert node.visible("orders", 0) == ["a"]


def test_d1_a_delayed_tv2_end_does_not_touch_the_next_transaction(node: Node) -> None:
    first = node.init("app")
    node.produce("app", first, "orders", 0, "a")
    second = node.end("app", first, True)
    node.produce("app", second, "orders", 0, "b")
    for commit in (True, False):
        assert code_of(node.end, "app", first, commit) is ErrorCode.PRODUCER_FENCED
    assert state_of(node).state is ONGOING
    node.end("app", second, True)
    assert node.visible("orders", 0) == ["a", "b"]


@pytest.mark.parametrize("partition", [0, 1])
def test_d2_a_delayed_tv2_produce_is_refused_also_on_a_new_partition(node: Node, partition: int) -> None:
    first = node.init("app")
    node.produce("app", first, "orders", 0, "a")
    node.end("app", first, False)
    code = code_of(node.produce, "app", first, "orders", partition, "late")
    assert code is ErrorCode.INVALID_PRODUCER_EPOCH
    log = node.logs.get("orders", partition)
    assert log.last_stable_offset == log.log_end_offset


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)])
def test_d2_a_delayed_classic_produce_is_refused(node: Node, version: int, code: ErrorCode) -> None:
    producer = node.init("app")
    node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
    node.produce("app", producer, "orders", 0, "a", version)
    node.end("app", producer, False, TV0)
    assert code_of(node.produce, "app", producer, "orders", 0, "late", version) is code


def test_an_abort_of_nothing_bumps_the_epoch_without_a_marker(node: Node) -> None:
    producer = node.init("app")
    assert node.end("app", producer, False) == (producer[0], 1)
    assert node.markers == []
    assert state_of(node).state is COMPLETE_ABORT
    assert code_of(node.end, "app", (producer[0], 1), True) is ErrorCode.INVALID_TXN_STATE


def test_a_retry_while_prepared_is_concurrent(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")

    async def scenario() -> None:
        node.faults.arm("txn.after_marker", "hold")
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await asyncio.sleep(0)
        assert state_of(node).state is PREPARE_COMMIT
        assert code_of(node.end, "app", producer, True) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
        node.coordinator.abort_timed_out()
        node.coordinator.remove_expired()
        node.faults.disarm()
        await ending

    asyncio.run(scenario())
    assert node.visible("orders", 0) == ["a"]


@pytest.mark.parametrize("point", ["txn.before_prepare", "txn.after_prepare", "txn.after_marker", "txn.after_complete"])
def test_d11_an_injected_error_leaves_a_retry_that_works(node: Node, point: str) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.faults.arm(point, "error", "UNKNOWN_SERVER_ERROR", nth=1)

    async def scenario() -> None:
        with pytest.raises(KafkaError):
            await node.coordinator.end_stepwise("app", *producer, True, TV2)

    asyncio.run(scenario())
    node.faults.disarm()
    node.clock.advance(10_000)
    assert node.end("app", producer, True) == (producer[0], 1)
    assert node.visible("orders", 0) == ["a"]


# --- B17


def test_a_deleted_topic_drops_out_of_the_transaction(node: Node) -> None:
    node.topic("gone", 1)
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "gone", 0, "b")
    node.metadata.delete_topic("gone")
    assert node.end("app", producer, True) == (producer[0], 1)
    assert node.visible("orders", 0) == ["a"]


def test_partitions_added_to_a_topic_take_part(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.metadata.create_partitions("orders", 3)
    node.produce("app", producer, "orders", 2, "b")
    node.end("app", producer, True)
    assert node.visible("orders", 2) == ["b"]


# --- B11, D18


def test_d18_an_overtaking_marker_strands_the_transaction_until_it_is_resolved(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    epoch = node.logs.get("__transaction_state", node.coordinator.partition_for("app")).leader_epoch
    node.logs.get("orders", 0).append_marker(*producer, epoch + 5, False, 0, node.clock.now_ms())
    node.markers.clear()
    assert node.end("app", producer, True) == (producer[0], 1)
    assert node.markers == [("orders", 1, producer[0], 1, True)]
    assert state_of(node).state is PREPARE_COMMIT
    assert state_of(node).partitions == {("orders", 0)}  # Kafka shows what is left
    assert any(
        "the newest is " in line and "refused with" in line for line in node.coordinator.explanations.lines("app")
    )
    assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    node.crash()
    assert state_of(node).state is PREPARE_COMMIT
    assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    assert any("TRANSACTION_COORDINATOR_FENCED" in line for line in node.coordinator.explanations.lines("app"))
    assert node.coordinator.resolve("app").response[-1] == "now CompleteCommit"
    assert node.init("app") == (producer[0], 2)


def test_resolve_marks_what_is_still_open(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    epoch = node.logs.get("__transaction_state", node.coordinator.partition_for("app")).leader_epoch
    log = node.logs.get("orders", 0)
    log.append_marker(*producer, epoch + 5, False, 0, node.clock.now_ms())
    node.produce("app", producer, "orders", 0, "b")
    assert log.last_stable_offset < log.log_end_offset
    node.end("app", producer, True)
    assert state_of(node).state is PREPARE_COMMIT
    node.coordinator.resolve("app")
    assert log.last_stable_offset == log.log_end_offset
    assert node.visible("orders", 0) == ["b"]


@pytest.mark.parametrize("ahead", [1, 5])
def test_resolve_marks_what_is_open_at_the_epoch_of_the_decision_or_above(tmp_path: Path, ahead: int) -> None:
    node = Node(tmp_path, transaction_partition_verification_enable=False)
    node.topic("orders")
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("orders", 0)
    log.append_marker(*producer, log.leader_epoch + 5, False, 0, node.clock.now_ms())
    batch = cext_records.build(
        [(b"k", b"b", node.clock.now_ms(), ())],
        producer_id=producer[0],
        producer_epoch=producer[1] + ahead,
        base_sequence=0,
        transactional=True,
    )
    append_as_client(log, memoryview(batch), now_ms=node.clock.now_ms(), version=3)
    node.end("app", producer, True)
    assert state_of(node).state is PREPARE_COMMIT
    assert node.coordinator.resolve("app").response[-1] == "now CompleteCommit"
    assert log.last_stable_offset == log.log_end_offset
    assert node.visible("orders", 0) == ["b"]
    (status,) = log.producer_statuses()
    assert status.producer_epoch == producer[1] + ahead  # the producer goes on
    node.stop()


def test_resolve_does_not_give_up_a_partition_that_is_offline(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    epoch = node.logs.get("__transaction_state", node.coordinator.partition_for("app")).leader_epoch
    node.logs.get("orders", 0).append_marker(*producer, epoch + 5, False, 0, node.clock.now_ms())
    node.logs.get("orders", 1).fail(OSError(5, "Input/output error"))
    node.end("app", producer, True)
    assert node.coordinator.resolve("app").response[-1] == "still PrepareCommit"
    assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    node.crash()
    assert node.visible("orders", 1) == ["b"]


def test_resolve_says_which_partition_is_to_be_forced_again(node: Node) -> None:
    """A retry writes its marker at this coordinator's epoch, which the other one's marker outranks."""
    producer = node.init("app")
    for partition in (0, 1):
        node.produce("app", producer, "orders", partition, "a")
    log = node.logs.get("orders", 0)
    log.append_marker(*producer, log.leader_epoch + 5, False, 0, node.clock.now_ms())
    node.produce("app", producer, "orders", 0, "b")
    node.logs.get("orders", 1).fail(OSError(5, "Input/output error"))
    node.end("app", producer, True)
    node.faults.arm("log.before_write", "error", "KAFKA_STORAGE_ERROR", nth=1)
    told = node.coordinator.resolve("app").response
    assert told[0].startswith("orders-0: KAFKA_STORAGE_ERROR")
    assert told[0].endswith(", force it again later")
    assert told[1:] == ["orders-1: offline, it gets its marker when it is back", "still PrepareCommit"]
    node.faults.disarm()
    assert node.logs.reopen_offline()
    node.clock.advance(LONGEST_PAUSE_MS)
    assert state_of(node).partitions == {("orders", 0)}
    assert node.coordinator.resolve("app").response[-1] == "now CompleteCommit"
    assert (node.visible("orders", 0), node.visible("orders", 1)) == (["b"], ["a"])


def test_there_is_nothing_to_resolve_in_a_healthy_transaction(node: Node) -> None:
    node.init("app")
    assert node.coordinator.resolve("app").response == ["nothing to resolve: state Empty"]


# --- storage trouble


@pytest.mark.parametrize("write", [2, 3], ids=["marker", "complete"])
def test_what_cannot_be_written_after_the_decision_is_tried_again(node: Node, write: int) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.faults.arm("log.before_write", "error", "KAFKA_STORAGE_ERROR", nth=write)
    assert node.end("app", producer, True) == (producer[0], 1)
    assert state_of(node).state is PREPARE_COMMIT
    told = "cannot write the end, trying on: " if write == 3 else "marker for orders-0 refused with "
    assert any(told in line for line in node.coordinator.explanations.lines("app"))
    node.clock.advance(100)
    assert state_of(node).state is COMPLETE_COMMIT
    assert node.visible("orders", 0) == ["a"]


def test_a_decision_that_cannot_be_written_changes_nothing(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.faults.arm("log.before_write", "error", "KAFKA_STORAGE_ERROR", nth=1)
    assert code_of(node.end, "app", producer, True) is ErrorCode.NOT_COORDINATOR
    node.faults.disarm()
    assert state_of(node).state is ONGOING
    assert node.end("app", producer, True) == (producer[0], 1)


def test_a_transaction_whose_record_no_segment_can_hold_is_refused_as_an_unknown_error(node: Node) -> None:
    producer = node.init("app")
    log = node.logs.get(TRANSACTION_STATE_TOPIC, node.coordinator.partition_for("app"))
    log.configure(TopicConfig(node.config, {"segment.bytes": "1000"}))
    many = frozenset(("orders", number) for number in range(1000))
    assert code_of(node.coordinator.add_partitions, "app", *producer, many, TV2) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert state_of(node).state is EMPTY


@pytest.mark.parametrize("point", ["log.before_write", "log.after_write"])
@pytest.mark.parametrize("write", [1, 2, 3, 4], ids=["prepare", "first-marker", "second-marker", "complete"])
def test_a_full_disk_at_any_write_of_the_end_costs_nothing_that_was_answered(
    node: Node, point: str, write: int
) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    node.faults.arm(point, "oserror", "ENOSPC", nth=write)
    goes_on = point == "log.before_write"  # refused, nothing is damaged
    if write == 1:
        assert code_of(node.end, "app", producer, True) is ErrorCode.NOT_COORDINATOR
        if not goes_on:
            node.clock.advance(600_000)
            assert code_of(node.end, "app", producer, True) is ErrorCode.NOT_COORDINATOR
    else:
        assert node.end("app", producer, True) == (producer[0], 1)
        node.clock.advance(600_000)
        if goes_on:
            assert state_of(node).state is COMPLETE_COMMIT
        else:
            assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    node.crash()
    assert node.end("app", producer, True) == (producer[0], 1)
    assert state_of(node).state is COMPLETE_COMMIT
    assert (node.visible("orders", 0), node.visible("orders", 1)) == (["a"], ["b"])


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    "point",
    ["txn.before_prepare", "txn.after_prepare", "txn.after_marker", "txn.before_complete", "txn.after_complete"],
)
def test_a_timeout_during_a_held_step_changes_nothing(node: Node, point: str, commit: bool) -> None:
    producer = node.init("app", None, 1000)
    node.produce("app", producer, "orders", 0, "a")
    node.produce("app", producer, "orders", 1, "b")
    node.faults.arm(point, "hold", nth=1)

    async def end_late() -> tuple[int, int]:
        ending = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, commit, TV2))
        await asyncio.sleep(0)
        assert node.faults.reached(point) == 1
        node.clock.advance(60_000)
        node.faults.release(point)
        return await ending

    assert asyncio.run(end_late()) == (producer[0], 1)
    assert state_of(node).state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT)
    assert len(node.markers) == 2
    assert node.visible("orders", 0) + node.visible("orders", 1) == (["a", "b"] if commit else [])


# --- levels


@pytest.mark.parametrize("level", [0, 1])
def test_a_server_below_tv2_fences_with_classic_markers(node: Node, level: int) -> None:
    from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord

    node.metadata.commit([FeatureLevelRecord(name="transaction.version", feature_level=level)])
    producer = node.init("app", None, 15_000)
    node.coordinator.add_partitions("app", *producer, frozenset({A0}), TV0)
    node.produce("app", producer, "orders", 0, "a", 9)
    node.clock.advance(30_000)
    assert node.markers == [("orders", 0, producer[0], 1, False)]
    assert (state_of(node).state, state_of(node).producer_epoch) == (COMPLETE_ABORT, 1)
    value = node.stored("__transaction_state", node.coordinator.partition_for("app"))[-1][2]
    assert value is not None
    assert value[:2] == (b"\0\0" if level == 0 else b"\0\1")
    node.crash()
    assert state_of(node).producer_epoch == 1
    assert node.init("app") == (producer[0], 2)


def test_a_server_at_tv0_has_no_records_for_a_tv2_client(node: Node) -> None:
    from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord

    begun, idle = node.init("app", None, 15_000), node.init("idle")
    node.produce("app", begun, "orders", 0, "a")
    node.metadata.commit([FeatureLevelRecord(name="transaction.version", feature_level=0)])
    assert code_of(node.end, "app", begun, True) is ErrorCode.UNSUPPORTED_VERSION
    assert code_of(node.end, "idle", idle, False) is ErrorCode.UNSUPPORTED_VERSION
    assert code_of(node.produce, "idle", idle, "orders", 1, "b") is ErrorCode.UNSUPPORTED_VERSION
    assert state_of(node).state is ONGOING
    assert state_of(node, "idle").state is EMPTY
    node.clock.advance(30_000)
    assert state_of(node).state is COMPLETE_ABORT
    assert node.init("idle") == (idle[0], idle[1] + 1)
    node.crash()
    assert node.visible("orders", 0) == []


# --- explain


def test_every_refusal_is_explained(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="kafka_shim.txn")
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    second = node.end("app", producer, True)
    code_of(node.end, "app", (producer[0], 7), True)
    lines = node.coordinator.explanations.lines("app")
    assert [line.split(" ", 1)[1].split(" producer")[0] for line in lines[:4]] == [
        "-> Empty",
        "-> Ongoing",
        "-> PrepareCommit",
        "-> CompleteCommit",
    ]
    assert "EndTxn refused with PRODUCER_FENCED" in lines[4]
    assert f"producer id {producer[0]} epoch 7: epoch 7, current is {second[1]}" in lines[4]
    assert "last transitions: Ongoing epoch 0, PrepareCommit epoch 1, CompleteCommit epoch 1" in caplog.text


def test_a_request_that_fences_stands_before_the_transitions_that_it_causes(node: Node) -> None:
    node.produce("app", node.init("app"), "orders", 0, "a")
    assert code_of(node.init, "app") is ErrorCode.CONCURRENT_TRANSACTIONS
    node.init("app")
    assert [line.split(" ", 1)[1].split(" producer")[0] for line in node.coordinator.explanations.lines("app")] == [
        "-> Empty",
        "-> Ongoing",
        "InitProducerId refused with CONCURRENT_TRANSACTIONS: an open transaction is fenced and aborted first",
        "-> PrepareAbort",
        "-> CompleteAbort",
        "-> Empty",
    ]


def test_the_history_is_bounded(node: Node) -> None:
    from kafka_shim.txn import explain

    producer = node.init("app")
    for _ in range(explain.EVENTS_PER_ID * 2):
        node.produce("app", producer, "orders", 0, "a")
        producer = node.end("app", producer, True)
    assert len(node.coordinator.explanations.lines("app")) == explain.EVENTS_PER_ID
    explanations = explain.Explanations()
    for number in range(explain.IDS + 10):
        explanations.noted(f"id-{number}", 1, "here")
    assert explanations.lines("id-0") == []
    assert explanations.lines(f"id-{explain.IDS + 9}") == ["1 here"]


def test_a_history_is_gone_with_the_topic_of_the_transactional_ids(node: Node) -> None:
    node.init("app")
    node.coordinator.explanations.refused("EndTxn", "unknown", KafkaError(ErrorCode.INVALID_REQUEST, "no"), 1)
    node.metadata.delete_topic("__transaction_state")
    assert node.coordinator.explanations.lines("app") == node.coordinator.explanations.lines("unknown") == []


def test_prepared_aborts_are_told_apart_from_commits(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    node.faults.arm("txn.after_prepare", stop_here)
    with pytest.raises(Stopped):
        asyncio.run(node.coordinator.end_stepwise("app", *producer, False, TV2))
    assert state_of(node).state is PREPARE_ABORT
    node.crash()
    assert any("resumed the abort" in line for line in node.coordinator.explanations.lines("app"))


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\0\x7f\xff", b"\0\0\0\x03app"])
def test_a_record_that_no_broker_wrote_keeps_nobody_from_their_transactions(node: Node, key: bytes) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "a")
    log = node.logs.get("__transaction_state", node.coordinator.partition_for("app"))
    now_ms = node.clock.now_ms()
    log.append_batch(cext_records.build([(key, b"\0\1junk", now_ms, ())]), now_ms=now_ms)
    node.crash()
    assert state_of(node).state is ONGOING
    assert node.end("app", producer, True) == (producer[0], 1)
    assert node.visible("orders", 0) == ["a"]


def test_start_that_cannot_read_the_transactions_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that cannot be read now is not one that was never there: nobody would fence its last producer."""
    first = node.init("t")
    start_coordinator = node.start_coordinator

    def start_without_descriptors() -> None:
        with descriptors.none_left():
            start_coordinator()

    monkeypatch.setattr(node, "start_coordinator", start_without_descriptors)
    with pytest.raises(StorageError, match="cannot be loaded"):
        node.restart()
    monkeypatch.undo()
    node.start_coordinator()
    assert node.init("t") == (first[0], first[1] + 1)
