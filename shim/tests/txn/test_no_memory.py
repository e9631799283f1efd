"""Memory ends between the append of a transition and what follows it: the state is that of the log, and every
transaction ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

from kafka_shim.cext import segment as cext_segment
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.no_memory import no_memory_left, runs_out
from kafka_shim.tests.txn.harness import Node
from kafka_shim.txn.explain import Explanations
from kafka_shim.txn.log import TransactionLog
from kafka_shim.txn.transaction import COMPLETE_COMMIT, PREPARE_COMMIT, Transaction

# More calls than any request makes behind an append.
MOST_CALLS = 400
# A retry is due within this time, and so is the periodic work.
LATER_MS = 20_000
# A partition that went offline is opened again after this time.
REOPENED_MS = 1000


def initialise(node: Node, name: str) -> None:
    node.init(name)


def begin(node: Node, name: str) -> None:
    node.produce(name, node.init(name), "orders", 0, name)


def commit(node: Node, name: str) -> None:
    producer = node.init(name)
    for partition in range(2):
        node.produce(name, producer, "orders", partition, name)
    node.end(name, producer, True)


def abort(node: Node, name: str) -> None:
    producer = node.init(name)
    node.produce(name, producer, "orders", 0, name)
    node.end(name, producer, False)


def fence(node: Node, name: str) -> None:
    node.produce(name, node.init(name), "orders", 0, name)
    node.init(name)


def recorded(txn: Transaction | None) -> object:
    """What a record holds at every level."""
    if txn is None:
        return None
    return txn.state, txn.producer_id, txn.producer_epoch, txn.partitions, txn.timeout_ms, txn.last_update_ms


def stored(node: Node) -> dict[str, Transaction | None]:
    """The state that a start would find."""
    log = TransactionLog(node.config, node.logs, node.metadata, Explanations())
    log.load()
    node.metadata.on_topic_deleted.pop()
    return {name: slot.transaction for name, slot in log.slots.items()}


def initialise_again(node: Node, name: str) -> tuple[int, int]:
    """The first InitProducerId aborts what is open, and the next is served."""
    with suppress(KafkaError):
        return node.init(name)
    return node.init(name)


@pytest.mark.parametrize(
    ("request_of", "append", "appends"),
    [
        (initialise, 0, "append_batch"),
        (begin, 1, "append_batch"),
        (commit, 3, "append_batch"),
        (commit, 0, "append_marker"),
        (commit, 1, "append_marker"),
        (commit, 4, "append_batch"),
        (abort, 2, "append_batch"),
        (abort, 0, "append_marker"),
        (abort, 3, "append_batch"),
        (fence, 2, "append_batch"),
        (fence, 3, "append_batch"),
    ],
)
def test_state_is_the_logs_and_the_transaction_ends(
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
    request_of: Callable[[Node, str], None],
    append: int,
    appends: str,
) -> None:
    topic = TRANSACTION_STATE_TOPIC if appends == "append_batch" else "orders"
    if appends == "append_marker":
        monkeypatch.setattr("kafka_shim.txn.marking.commit_each", lambda *_: {})  # each marker by itself
    # An id for each call: with more the look for time-outs takes slices, which need an event loop.
    monkeypatch.setattr("kafka_shim.txn.coordinator.MOST_LOOKED_AT_AT_ONCE", MOST_CALLS)
    for nth in range(MOST_CALLS):
        name = f"{request_of.__name__}-{nth}"
        is_reached = runs_out(request_of, node, name, appends=appends, topic=topic, append=append, call=nth)
        # An append that found no memory on the way took its partition offline.
        node.clock.advance(REOPENED_MS)
        node.logs.reopen_offline()
        known = {one.transactional_id: one for one in node.coordinator.transactions()}
        assert {one: recorded(txn) for one, txn in known.items()} == {
            one: recorded(txn) for one, txn in stored(node).items() if txn is not None
        }, nth
        node.clock.advance(LATER_MS)
        assert not node.coordinator.describe(name).is_prepared, nth
        producer = initialise_again(node, name)
        node.produce(name, producer, "orders", 0, "more")
        node.end(name, producer, True)
        assert node.coordinator.describe(name).state is COMPLETE_COMMIT, nth
        if not is_reached:
            break
    assert 1 < nth < MOST_CALLS - 1


@pytest.mark.parametrize("partition", [0, 1])
def test_a_marker_behind_which_memory_ends_is_written_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, partition: int
) -> None:
    producer = node.init("app")
    for each in range(2):
        node.produce("app", producer, "orders", each, "value")
    log = node.logs.get("orders", partition)

    append, writes = cext_segment.append, count()

    def put(fd: int, buffers: object) -> int:
        written = append(fd, buffers)
        if next(writes) == 1 + partition:  # behind PREPARE
            raise MemoryError
        return written

    with monkeypatch.context() as patch:
        patch.setattr(cext_segment, "append", put)
        node.end("app", producer, True)
    # Nothing of it is known, so it is not served: the reopening cuts it off.
    assert log.is_offline
    assert log.log_end_offset == 1
    assert node.visible("orders", 1 - partition) == ["value"]
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
    node.clock.advance(REOPENED_MS)
    node.logs.reopen_offline()
    node.clock.advance(LATER_MS)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    for each in range(2):
        assert node.visible("orders", each) == ["value"]
        assert [is_marker for _, is_marker, _ in node.stored("orders", each)] == [False, True]


@pytest.mark.parametrize("marker", [0, 1])
def test_a_marker_whose_hook_finds_no_memory_is_not_taken_for_written(node: Node, marker: int) -> None:
    """The group coordinator ends pending offsets there: it must hear of each marker."""
    producer = node.init("app")
    for partition in range(2):
        node.produce("app", producer, "orders", partition, "value")
    heard: list[tuple[str, int]] = []

    def hear(log: PartitionLog, *_: object) -> None:
        if len(heard) == marker:
            heard.append(("", -1))
            raise MemoryError
        heard.append((log.topic, log.partition))

    node.logs.on_marker.append((None, hear))
    node.end("app", producer, True)
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
    node.clock.advance(LATER_MS)
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT
    assert {("orders", 0), ("orders", 1)} <= set(heard)
    assert [node.visible("orders", partition) for partition in range(2)] == [["value"], ["value"]]


def test_completion_that_had_no_memory_for_its_retry_goes_on(node: Node) -> None:
    producer = node.init("app")
    node.produce("app", producer, "orders", 0, "value")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka_shim.txn.marking.commit_each", no_memory_left)
        patch.setattr(node.clock, "call_later", no_memory_left)
        node.end("app", producer, True)
    assert node.visible("orders", 0) == []
    node.clock.advance(LATER_MS)
    assert node.visible("orders", 0) == ["value"]
    assert node.coordinator.describe("app").state is COMPLETE_COMMIT


def test_a_marker_refused_for_ever_keeps_no_other_from_its_retry(node: Node) -> None:
    """There was no memory for the timer either."""
    producer = node.init("app")
    for partition in range(2):
        node.produce("app", producer, "orders", partition, "value")
    epoch = node.logs.get(TRANSACTION_STATE_TOPIC, node.coordinator.partition_for("app")).leader_epoch
    node.logs.get("orders", 0).append_marker(*producer, epoch + 5, False, 0, node.clock.now_ms())
    offline = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    fenced = KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    with pytest.MonkeyPatch.context() as patch:
        failures = {("orders", 0): fenced, ("orders", 1): offline}
        patch.setattr("kafka_shim.txn.marking.commit_each", lambda *_: failures)
        patch.setattr(node.clock, "call_later", no_memory_left)
        with suppress(MemoryError):
            node.end("app", producer, True)
    assert node.visible("orders", 1) == []
    node.clock.advance(LATER_MS)
    assert node.visible("orders", 1) == ["value"]
    assert node.coordinator.describe("app").partitions == {("orders", 0)}
    assert node.coordinator.describe("app").state is PREPARE_COMMIT
