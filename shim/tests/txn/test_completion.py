"""What follows the decision of a transaction, when it does not go well: bugs, lost topics, old decisions (B10, B12)."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from kafka_shim import memory_dir
from kafka_shim.cext import records as cext_records
from kafka_shim.cext.segment import append
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC as TOPIC
from kafka_shim.line_limit import MAX_LINES
from kafka_shim.metadata.image import RESOURCE_TOPIC
from kafka_shim.tests.txn.harness import Node
from kafka_shim.txn.coordinator import ABORTS, MOST_LOOKED_AT_AT_ONCE
from kafka_shim.txn.retries import LONGEST_PAUSE_MS
from kafka_shim.txn.transaction import COMPLETE_ABORT, COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT, TV2

HOUR_MS = 3_600_000


def fail_as_a_bug(**facts: object) -> None:
    raise RuntimeError("a bug")


def begin(node: Node, name: str = "app", timeout_ms: int = 60_000) -> tuple[int, int]:
    producer = node.init(name, None, timeout_ms)
    for partition in range(2):
        node.produce(name, producer, "orders", partition, f"{name}-{partition}")
    return producer


@pytest.mark.parametrize("commit", [True, False])
def test_a_hook_of_a_topic_hears_of_the_markers_there_alone(node: Node, commit: bool):
    heard: list[tuple[str | None, str]] = []

    def hook(of: str | None) -> Callable[..., None]:
        return lambda log, *facts: heard.append((of, f"{log.topic}-{log.partition} {facts}"))

    node.logs.on_marker.extend((topic, hook(topic)) for topic in ("orders", "elsewhere", None))
    producer_id, epoch = producer = begin(node)
    node.end("app", producer, commit)
    shown = [f"orders-{partition} {(producer_id, epoch + 1, commit, 1)}" for partition in range(2)]
    assert heard == [(topic, text) for text in shown for topic in ("orders", None)]


def visible(node: Node) -> list[str]:
    return node.visible("orders", 0) + node.visible("orders", 1)


@pytest.mark.parametrize("write", [2, 3, 4], ids=["first-marker", "second-marker", "complete"])
def test_a_bug_at_any_write_after_the_decision_is_survived(node: Node, write: int) -> None:
    """A partition whose marker was never written must not count as marked: its transaction would hang for ever."""
    producer = begin(node)
    node.faults.arm("log.before_write", fail_as_a_bug, nth=write)
    assert node.end("app", producer, True) == (producer[0], 1)
    node.faults.disarm()
    node.clock.advance(100)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert visible(node) == ["app-0", "app-1"]
    assert node.end("app", producer, True) == (producer[0], 1)


@pytest.mark.parametrize("marker", [0, 1])
def test_a_marker_that_the_disk_refuses_is_written_later_and_the_others_once(
    node: Node, monkeypatch: pytest.MonkeyPatch, marker: int
) -> None:
    producer = begin(node)
    outcome = node.coordinator.decide("app", *producer, True, TV2)
    assert outcome.follow_up is not None
    written: list[int] = []

    def put(fd: int, buffers: list[bytearray]) -> int:
        written.append(fd)
        if len(written) == marker + 1:
            raise OSError(errno.ENOSPC, "no space")
        return append(fd, buffers)

    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.cext.segment.append", put)
        outcome.follow_up()
    assert len(written) == 2
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
    assert node.coordinator.describe("app").partitions == {("orders", marker)}
    assert visible(node) == [f"app-{1 - marker}"]
    refusal = f"marker for orders-{marker} refused with KAFKA_STORAGE_ERROR"
    assert any(refusal in line for line in node.coordinator.explanations.lines("app"))
    node.clock.advance(100)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert visible(node) == ["app-0", "app-1"]
    for partition in range(2):
        assert [is_marker for _, is_marker, _ in node.stored("orders", partition)] == [False, True]


def test_a_completion_that_nobody_goes_on_with_is_tried_again(node: Node) -> None:
    """As after memory ends between the decision and the response."""
    producer = begin(node)
    outcome = node.coordinator.decide("app", *producer, True, TV2)
    assert (outcome.response, visible(node)) == ((producer[0], 1), [])
    del outcome
    gc.collect()
    node.clock.advance(100)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert visible(node) == ["app-0", "app-1"]


def test_markers_to_decide_about_and_plain_ones_are_written_in_one_turn(node: Node) -> None:
    """A topic with LogAppendTime leaves its markers to Python's rules."""
    node.metadata.create_topic("appended", 1, 1, {"message.timestamp.type": "LogAppendTime"})
    producer = begin(node)
    node.produce("app", producer, "appended", 0, "more")
    node.end("app", producer, True)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert [visible(node), node.visible("appended", 0)] == [["app-0", "app-1"], ["more"]]
    for topic, partition in (("orders", 0), ("orders", 1), ("appended", 0)):
        assert [is_marker for _, is_marker, _ in node.stored(topic, partition)] == [False, True]


def test_a_fault_that_is_armed_behind_the_decision_is_reached_at_the_steps_that_are_left(node: Node) -> None:
    producer = begin(node)
    outcome = node.coordinator.decide("app", *producer, True, TV2)
    assert outcome.follow_up is not None
    reached: list[object] = []
    for point in ("txn.answered", "txn.after_marker", "txn.before_complete", "txn.after_complete"):
        node.faults.arm(point, lambda point=point, **_: reached.append(point), nth=None)
    outcome.follow_up()
    assert reached == [
        "txn.answered",
        *["txn.after_marker", "txn.answered"] * 2,
        "txn.before_complete",
        "txn.after_complete",
    ]
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT


def test_a_crash_between_the_answer_and_the_markers_loses_nothing(node: Node) -> None:
    producer = begin(node)
    outcome = node.coordinator.decide("app", *producer, True, TV2)
    assert outcome.response == (producer[0], 1)
    assert outcome.follow_up is not None
    assert visible(node) == []
    node.crash()
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert visible(node) == ["app-0", "app-1"]


def test_a_retried_end_leaves_nothing_to_do(node: Node) -> None:
    producer = begin(node)
    node.end("app", producer, True)
    outcome = node.coordinator.decide("app", *producer, True, TV2)
    assert (outcome.response, outcome.follow_up) == ((producer[0], 1), None)


def test_a_bug_in_the_retry_itself_is_tried_again(node: Node) -> None:
    producer = begin(node)
    node.faults.arm("log.before_write", fail_as_a_bug, nth=2)
    node.end("app", producer, True)
    node.faults.arm("log.before_write", fail_as_a_bug)
    node.clock.advance(1000)
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
    node.faults.disarm()
    node.clock.advance(LONGEST_PAUSE_MS)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert visible(node) == ["app-0", "app-1"]


def test_a_bug_with_one_timed_out_transaction_spares_the_others(node: Node) -> None:
    begin(node, "first", 1000)
    begin(node, "second", 1000)
    node.faults.arm("log.before_write", fail_as_a_bug, nth=1)
    node.clock.advance(10_000)
    node.faults.disarm()
    assert node.coordinator.describe("first").state is ONGOING
    assert node.coordinator.describe("second").state is COMPLETE_ABORT
    node.clock.advance(10_000)
    assert node.coordinator.describe("first").state is COMPLETE_ABORT


def test_many_that_time_out_at_once_are_aborted_in_slices(node: Node) -> None:
    names = [f"app-{number}" for number in range(2 * MOST_LOOKED_AT_AT_ONCE + 20)]
    for name in names:
        begin(node, name, 1000)

    def open_ones() -> int:
        return sum(node.coordinator.describe(name).state is ONGOING for name in names)

    node.clock.advance(5_000)
    left = [len(names), *(open_ones() for _ in node.coordinator._slices_of_aborts()), open_ones()]
    first, second, last = (before - after for before, after in itertools.pairwise(left))
    assert 0 < first <= MOST_LOOKED_AT_AT_ONCE
    assert 0 < second <= MOST_LOOKED_AT_AT_ONCE
    assert (last, left[-1]) == (len(names) - first - second, 0)


def test_slices_of_aborts_follow_each_other_and_leave_alone_what_ended_meanwhile(node: Node) -> None:
    names = [f"app-{number}" for number in range(MOST_LOOKED_AT_AT_ONCE + 20)]
    producers = {name: begin(node, name, 1000) for name in names}
    node.clock.advance(5_000)
    last = names[-1]

    async def scenario() -> None:
        node.coordinator.abort_timed_out()
        assert node.coordinator.describe(last).state is ONGOING
        node.end(last, producers[last], True)
        while node.coordinator.scheduler.is_scheduled(ABORTS):  # noqa: ASYNC110  (a slice wakes nobody)
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert {node.coordinator.describe(name).state for name in names[:-1]} == {COMPLETE_ABORT}
    assert node.coordinator.describe(last).state is COMPLETE_COMMIT


def test_a_retry_that_outlived_its_topic_does_not_write_into_the_next_one(node: Node) -> None:
    """`__transaction_state` is deleted while markers wait for a partition; the id starts over in its successor."""
    producer = begin(node)
    node.logs.get("orders", 1).fail(OSError(5, "Input/output error"))
    node.end("app", producer, True)
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
    node.metadata.delete_topic(TOPIC)
    node.metadata.ensure_internal_topic(TOPIC)
    fresh = node.init("app")
    node.clock.advance(1000)
    node.metadata.delete_topic("orders")
    node.clock.advance(1000)
    assert fresh[0] != producer[0]
    now = node.coordinator.describe("app")
    assert (now.producer_id, now.state.name) == (fresh[0], "EMPTY")
    assert len(node.stored(TOPIC, node.coordinator.partition_for("app"))) == 1


def test_a_resumed_marker_has_the_time_of_its_writing(node: Node) -> None:
    """With the time of a decision made before a long outage it would look old: to retention, and to the expiry of its
    producer."""
    producer = begin(node)
    node.faults.arm("txn.after_prepare", fail_as_a_bug)
    with pytest.raises(RuntimeError):
        node.coordinator.completion.finish(*prepared(node, producer))
    node.coordinator.stop()
    node.clock.set_wall(node.clock.now_ms() + 30 * HOUR_MS)
    node.crash()
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    log = node.logs.get("orders", 0)
    marker = [record for buffer, batch in log.batches() if batch.is_control for record in cext_records.iterate(buffer)]
    assert [record.timestamp for record in marker] == [node.clock.now_ms()]


def prepared(node: Node, producer: tuple[int, int]):
    """The slot and its prepared value, as EndTxn makes them."""
    from kafka_shim.txn import state
    from kafka_shim.txn.transaction import TV2

    slot = node.coordinator._log.slots["app"]
    now_ms = node.clock.now_ms()
    ids = partial(node.coordinator.producer_ids.next, [])
    return slot, state.end(slot.transaction, *producer, True, TV2, now_ms, ids)


def test_a_start_goes_on_when_a_resumed_transaction_cannot_be_ended_yet(node: Node) -> None:
    producer = begin(node)
    node.logs.get("orders", 1).fail(OSError(5, "Input/output error"))
    node.end("app", producer, True)
    node.coordinator.stop()
    slot = node.coordinator._log.slots["app"]
    completion = node.coordinator.completion
    node.faults.arm("txn.after_marker", fail_as_a_bug)
    completion.resume_all([slot])
    node.faults.disarm()
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
    node.crash()
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert visible(node) == ["app-0", "app-1"]


def test_a_stopped_coordinator_has_no_retry_left_of_two_that_were_due(node: Node) -> None:
    """A second failure of one transaction comes while the retry of the first still waits."""
    producer = begin(node)
    overtake(node, producer, 0)
    node.logs.get("orders", 1).fail(OSError(5, "Input/output error"))
    node.end("app", producer, True)
    assert node.coordinator.resolve("app").response[-1] == "still PrepareCommit"
    node.coordinator.stop()
    assert node.logs.reopen_offline()
    node.clock.advance(1000)
    assert node.coordinator.describe("app").state is PREPARE_COMMIT


def test_a_step_can_be_narrowed_to_one_marker(node: Node) -> None:
    seen: list[dict[str, object]] = []
    node.faults.arm("txn.after_marker", lambda **facts: seen.append(facts), where={"topic": "orders", "partition": 1})
    for name in ("app", "other"):
        asyncio.run(node.coordinator.end_stepwise(name, *begin(node, name), True, TV2))
    assert seen == [{"transactional_id": name, "topic": "orders", "partition": 1} for name in ("app", "other")]
    node.faults.disarm()
    node.faults.arm("txn.after_marker", lambda **facts: seen.append(facts), where={"transactional_id": "third"})
    begin(node, "third", 1000)
    node.clock.advance(10_000)
    assert [facts["partition"] for facts in seen[2:]] == [0, 1]


def test_a_bad_timeout_is_told_before_anything_about_the_coordinator(node: Node) -> None:
    node.metadata.delete_topic(TOPIC)
    for name, timeout_ms, code in (
        ("app", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("app", 1000, ErrorCode.NOT_COORDINATOR),
        ("", 0, ErrorCode.INVALID_REQUEST),
    ):
        with pytest.raises(KafkaError) as caught:
            node.init(name, None, timeout_ms)
        assert caught.value.code is code
    assert [line.split(" ", 2)[1] for line in node.coordinator.explanations.lines("app")] == ["InitProducerId"] * 2


@pytest.fixture
def flushing() -> Iterator[Node]:
    """A node with `flush.messages`: every step of an end waits for the disk."""
    directory = memory_dir.make()
    made = Node(directory, log_flush_interval_messages=1)
    made.topic("orders")
    yield made
    made.faults.disarm()
    made.stop()
    memory_dir.remove(directory)


def segment(node: Node, partition: int) -> str:
    return str(Path(node.logs.get("orders", partition).directory, "00000000000000000000.log"))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (what another thread does)
        await asyncio.sleep(0.001)


def test_a_marker_that_is_not_on_the_disk_does_not_complete_the_transaction(flushing: Node) -> None:
    """COMPLETE over a marker that a power cut takes would leave the partition hanging for ever."""
    node = flushing
    producer = begin(node)
    for partition in range(2):
        node.logs.get("orders", partition).flush()
    node.faults.arm("log.before_fsync", "oserror", "EIO", where={"path": segment(node, 1)})
    synced: list[str] = []

    async def end() -> None:
        with pytest.raises(KafkaError) as caught:
            await node.coordinator.end_stepwise("app", *producer, True, TV2)
        assert caught.value.code is ErrorCode.NOT_COORDINATOR
        node.clock.advance(1000)
        await until(lambda: not node.coordinator.completion.tasks)
        assert node.logs.find("orders", 1) is None
        assert node.coordinator.describe("app").state is PREPARE_COMMIT
        node.faults.disarm()
        node.faults.arm("log.before_fsync", lambda path: synced.append(path))  # noqa: PLW0108  (called by keyword)
        log = node.logs.partitions.loaded["orders", 1]
        before = log.log_end_offset
        assert node.logs.reopen_offline()
        node.clock.advance(LONGEST_PAUSE_MS)
        await until(lambda: node.coordinator.describe("app").state is COMPLETE_COMMIT)
        assert log.log_end_offset == before + 1  # the marker is written again
        assert log.recovery_point == log.log_end_offset

    asyncio.run(end())
    assert segment(node, 1) in synced
    assert visible(node) == ["app-0", "app-1"]


async def settled(node: Node) -> None:
    """No completion waits for the disk."""
    await until(lambda: not node.coordinator._log.slots["app"].is_ending)


def test_nothing_is_forced_while_a_completion_waits_for_the_disk(flushing: Node) -> None:
    """Else COMPLETE would be written over a marker whose fsync may fail yet."""
    node = flushing
    producer = begin(node)
    overtake(node, producer, 0)
    node.logs.get("orders", 1).flush()
    reached, released = threading.Event(), threading.Event()

    def wait(path: str) -> None:
        reached.set()
        assert released.wait(30)
        raise OSError(errno.EIO, "Input/output error")

    async def end() -> None:
        task = asyncio.create_task(node.coordinator.end_stepwise("app", *producer, True, TV2))
        await until(lambda: "orders" in node.coordinator._log.slots["app"].stuck and reached.is_set())
        assert node.coordinator.resolve("app").response == ["its completion is under way"]
        released.set()
        with pytest.raises(KafkaError):
            await task
        assert node.coordinator.describe("app").state is PREPARE_COMMIT
        node.faults.disarm()
        assert node.coordinator.describe("app").partitions == {("orders", 0), ("orders", 1)}
        node.clock.advance(1000)
        await settled(node)
        assert node.logs.find("orders", 1) is None
        assert node.logs.reopen_offline()
        node.clock.advance(LONGEST_PAUSE_MS)
        await settled(node)
        assert node.coordinator.describe("app").partitions == {("orders", 0)}
        node.coordinator.resolve("app")
        await until(lambda: node.coordinator.describe("app").state is COMPLETE_COMMIT)
        assert node.init("app") == (producer[0], 2)

    node.faults.arm("log.before_fsync", wait, where={"path": segment(node, 1)})
    asyncio.run(end())
    assert not node.coordinator._log.slots["app"].pending


def test_a_forced_marker_is_on_the_disk_before_the_transaction_is_complete(flushing: Node) -> None:
    node = flushing
    producer = begin(node)
    overtake(node, producer, 0)
    node.produce("app", producer, "orders", 0, "again")
    for partition in range(2):
        node.logs.get("orders", partition).flush()

    async def end() -> None:
        await node.coordinator.end_stepwise("app", *producer, True, TV2)
        node.faults.arm("log.before_fsync", "oserror", "EIO", where={"path": segment(node, 0)})
        assert node.coordinator.resolve("app").response[-1] == "still PrepareCommit"
        await settled(node)
        assert node.coordinator.describe("app").state is PREPARE_COMMIT
        node.clock.advance(1000)
        await settled(node)
        assert node.logs.find("orders", 0) is None
        node.faults.disarm()
        assert node.logs.reopen_offline()
        node.clock.advance(LONGEST_PAUSE_MS)
        await settled(node)
        assert node.coordinator._log.slots["app"].stuck
        node.coordinator.resolve("app")
        await until(lambda: node.coordinator.describe("app").state is COMPLETE_COMMIT)
        log = node.logs.get("orders", 0)
        assert log.recovery_point == log.log_end_offset == log.last_stable_offset

    asyncio.run(end())


def test_a_topic_alone_with_flush_messages_keeps_the_transaction_open_until_its_marker_is_on_the_disk(
    node: Node,
) -> None:
    """`__transaction_state` has no `flush.messages` here: the response of EndTxn waits for nothing."""
    from kafka_shim.protocol.records.config_record import ConfigRecord

    producer = begin(node)
    node.metadata.alter_configs(
        [ConfigRecord(resource_type=RESOURCE_TOPIC, resource_name="orders", name="flush.messages", value="1")]
    )
    node.faults.arm("log.before_fsync", "oserror", "EIO", where={"path": segment(node, 1)})

    async def end() -> None:
        assert node.end("app", producer, True) == (producer[0], 1)
        await settled(node)
        assert node.coordinator.describe("app").state is PREPARE_COMMIT
        node.clock.advance(1000)
        await settled(node)
        assert node.logs.find("orders", 1) is None
        node.faults.disarm()
        assert node.logs.reopen_offline()
        node.clock.advance(LONGEST_PAUSE_MS)
        await until(lambda: node.coordinator.describe("app").state is COMPLETE_COMMIT)

    asyncio.run(end())
    assert visible(node) == ["app-0", "app-1"]
    log = node.logs.get("orders", 1)
    assert log.recovery_point == log.log_end_offset


def overtake(node: Node, producer: tuple[int, int], partition: int) -> None:
    """Write the abort marker of another coordinator."""
    epoch = node.logs.get(TOPIC, node.coordinator.partition_for("app")).leader_epoch
    node.logs.get("orders", partition).append_marker(*producer, epoch + 5, False, 0, node.clock.now_ms())


def test_markers_that_stay_refused_are_tried_with_growing_pauses_and_one_line_says_why(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk refuses those of thousands of transactions; their histories have 32 lines, and a log is read."""
    caplog.set_level("INFO", logger="kafka_shim.txn")
    producer = begin(node)
    began_ms, tried_ms = node.clock.now_ms(), []

    def put(fd: int, buffers: list[bytearray]) -> int:
        tried_ms.append(node.clock.now_ms() - began_ms)
        raise OSError(errno.ENOSPC, "no space")

    outcome = node.coordinator.decide("app", *producer, True, TV2)
    before = node.coordinator.explanations.lines("app")
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.cext.segment.append", put)
        outcome.follow_up()
        node.clock.advance(3 * LONGEST_PAUSE_MS)
    pauses = [0, 100, 300, 700, 1500, 3100, 6300, 9500]
    assert tried_ms == [at for at in pauses for _ in range(2)]
    said = node.coordinator.explanations.lines("app")[len(before) :]
    assert [line.split()[1:5] for line in said] == [
        ["marker", "for", f"orders-{number}", "refused"] for number in (0, 1)
    ]
    assert caplog.text.count("app: marker for orders-") == 2
    node.clock.advance(LONGEST_PAUSE_MS)
    assert visible(node) == ["app-0", "app-1"]
    slot = node.coordinator._log.slots["app"]
    assert (slot.pause_ms, slot.said) == (0, {}), "the next transaction starts over"


def test_of_very_many_refused_markers_the_first_hundred_have_a_reason_in_the_history(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took a copy of all before: those of 40,000 partitions on a full disk took 4.5 s of the event loop."""
    node.topic("many", 300)
    producer = node.init("app")
    names = frozenset(("many", partition) for partition in range(300))
    node.coordinator.add_partitions("app", *producer, names, TV2)
    slot = node.coordinator._log.slots["app"]

    def put(fd: int, buffers: list[bytearray]) -> int:
        raise OSError(errno.ENOSPC, "no space")

    async def end() -> None:
        outcome = node.coordinator.decide("app", *producer, False, TV2)
        with monkeypatch.context() as patch:
            patch.setattr("kafka_shim.cext.segment.append", put)
            outcome.follow_up()
            await asyncio.gather(*node.coordinator.completion.tasks)

    asyncio.run(end())
    assert len(slot.unmarked) == 300
    before, last = node.coordinator.explanations.lines("app")[-2:]
    assert "marker for many-99 refused" in before
    assert last.endswith(" markers for more partitions are refused")


def test_markers_that_another_coordinator_fenced_are_warned_of_in_limited_lines(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.topic("many", 2 * MAX_LINES)
    producer = node.init("app")
    epoch = node.logs.get(TOPIC, node.coordinator.partition_for("app")).leader_epoch
    for partition in range(2 * MAX_LINES):
        node.produce("app", producer, "many", partition, "v")
        log = node.logs.get("many", partition)
        log.append_marker(*producer, epoch + 5, False, 0, node.clock.now_ms())
    caplog.clear()
    node.end("app", producer, True)
    node.clock.advance(60_000)
    told = [record for record in caplog.records if record.name == "kafka_shim.txn"]
    assert {record.levelname for record in told} == {"WARNING"}
    assert [record.getMessage().split(" refused")[0] for record in told[:MAX_LINES]] == [
        f"app: marker for many-{partition}" for partition in range(MAX_LINES)
    ]
    (rest,) = told[MAX_LINES:]
    assert rest.getMessage().startswith(f"{MAX_LINES} further lines")
