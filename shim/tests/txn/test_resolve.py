"""Transactions that an overtaking marker left undecided are resolved by force (B11, D18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.txn.harness import Node, code_of, state_of
from kafka_shim.txn.retries import LONGEST_PAUSE_MS
from kafka_shim.txn.transaction import (
    PREPARE_COMMIT,
)


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
    log = node.logs.get("orders", 0)
    end_offset = log.log_end_offset
    told = node.coordinator.resolve("app").response
    assert told == ["orders-0: ended by another marker, left as it is", "now CompleteCommit"]
    assert (log.log_end_offset, node.visible("orders", 0)) == (end_offset, [])
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
