"""The coordinator over real logs, rows A1, B2-B8, B10, B12, B17, B20, B23, D1, D2, D8, under a virtual clock."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.tests.txn.harness import A0, A1, Node, Stopped, code_of, state_of, stop_here
from kafka_shim.txn.producer_ids import ProducerIds
from kafka_shim.txn.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    TV0,
    TV2,
)

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
