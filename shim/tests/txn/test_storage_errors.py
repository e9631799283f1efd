"""The end of a transaction whose records cannot be written."""

from __future__ import annotations

import errno

import pytest

from kafka_shim.cext.segment import append
from kafka_shim.config import TopicConfig
from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.tests.txn.harness import Node, code_of, state_of
from kafka_shim.txn.transaction import (
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_COMMIT,
    TV1,
    TV2,
)


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


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("is_stored", [False, True], ids=["refused", "stored"])
@pytest.mark.parametrize("version", [TV1, TV2])
@pytest.mark.parametrize("write", [1, 2, 3, 4], ids=["prepare", "first-marker", "second-marker", "complete"])
def test_a_write_of_the_end_that_fails_while_no_fault_is_armed_costs_nothing_that_was_answered(
    node: Node, monkeypatch: pytest.MonkeyPatch, write: int, version: int, is_stored: bool, reason: int
) -> None:
    """With a fault armed the end goes step by step. `is_stored`: the write fails although the bytes are in the file."""
    producer = node.init("app")
    for partition, value in enumerate("ab"):
        node.produce("app", producer, "orders", partition, value)
    count = 0

    def put(fd: int, buffers: tuple[bytearray]) -> int:
        nonlocal count
        count += 1
        if count != write:
            return append(fd, buffers)
        if is_stored:
            append(fd, buffers)
        raise OSError(reason, "the disk")

    told = (producer[0], 1) if version == TV2 else (-1, -1)
    with monkeypatch.context() as patch:
        patch.setattr("kafka_shim.cext.segment.append", put)
        if write == 1:
            assert code_of(node.end, "app", producer, True, version) is ErrorCode.NOT_COORDINATOR
        else:
            assert node.end("app", producer, True, version) == told
    assert count >= write
    assert state_of(node).state is (ONGOING if write == 1 else PREPARE_COMMIT)
    node.clock.advance(1000)
    node.logs.reopen_offline()
    if write == 1:
        assert node.end("app", producer, True, version) == told
    else:
        node.clock.advance(60_000)
    for _ in range(2):
        assert state_of(node).state is COMPLETE_COMMIT
        for partition, value in enumerate("ab"):
            assert node.visible("orders", partition) == [value]
            assert [is_marker for _, is_marker, _ in node.stored("orders", partition)] == [False, True]
        node.crash()
