"""What time ends: transactions that stay open (B13), and transactional ids that nobody uses (B7)."""

from __future__ import annotations

import itertools

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.tests.txn.harness import Node, code_of, state_of
from kafka_shim.txn import expiry
from kafka_shim.txn.transaction import COMPLETE_ABORT, ONGOING, TV0

# --- B13


def test_a_timed_out_transaction_is_aborted_within_ten_seconds(node: Node) -> None:
    producer = node.init("app", None, 15_000)
    node.produce("app", producer, "orders", 0, "a")
    node.clock.advance(15_000)
    assert state_of(node).state is ONGOING
    node.clock.advance(10_000)
    assert state_of(node).state is COMPLETE_ABORT
    assert node.markers == [("orders", 0, producer[0], 1, False)]
    assert code_of(node.produce, "app", producer, "orders", 0, "b") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(node.end, "app", producer, True) is ErrorCode.INVALID_TXN_STATE
    assert node.end("app", producer, False) == (producer[0], 1)
    assert code_of(node.end, "app", producer, True, TV0) is ErrorCode.PRODUCER_FENCED
    add = node.coordinator.add_partitions
    assert code_of(add, "app", *producer, frozenset({("orders", 0)}), TV0) is ErrorCode.PRODUCER_FENCED
    assert node.init("app", producer) == (producer[0], 1)


def test_the_timeout_runs_from_the_first_partition_and_not_from_the_last(node: Node) -> None:
    producer = node.init("app", None, 15_000)
    node.produce("app", producer, "orders", 0, "a")
    node.clock.advance(14_000)
    node.produce("app", producer, "orders", 1, "b")
    node.clock.advance(6_001)
    assert state_of(node).state is COMPLETE_ABORT


def test_the_timeout_runs_on_across_a_restart(node: Node) -> None:
    producer = node.init("app", None, 15_000)
    node.produce("app", producer, "orders", 0, "a")
    node.clock.advance(9_000)
    node.crash()
    node.clock.advance(10_000)
    assert state_of(node).state is COMPLETE_ABORT


# --- B7: expiry

WEEK_MS = 7 * 24 * 3600 * 1000


@pytest.mark.parametrize("commit", [True, False, None])
def test_an_unused_transactional_id_expires_and_leaves_a_tombstone(node: Node, commit: bool | None) -> None:
    producer = node.init("app")
    if commit is not None:
        node.produce("app", producer, "orders", 0, "a")
        node.end("app", producer, commit)
    node.clock.advance(WEEK_MS - 3_600_000)
    assert state_of(node) is not None
    node.clock.advance(2 * 3_600_000)
    assert code_of(node.coordinator.describe, "app") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert node.stored("__transaction_state", node.coordinator.partition_for("app"))[-1][2] is None
    node.crash()
    assert code_of(node.coordinator.describe, "app") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert node.init("app")[1] == 0


def test_ids_expire_in_slices_and_not_those_that_are_used_meanwhile(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "MOST_LOOKED_AT_AT_ONCE", 3)
    monkeypatch.setattr(expiry, "TOMBSTONES_PER_BATCH", 2)
    names = [f"app-{number}" for number in range(20)]
    for name in names:
        node.init(name)
    node.clock.set_wall(node.clock.now_ms() + 2 * WEEK_MS)
    slices = expiry.remove_expired(node.coordinator._log, node.clock, node.config.transactional_id_expiration_ms)
    for _ in range(len(names) // 3):
        next(slices)  # all are found, and none is removed yet
    node.init(names[-1])
    left = [len(node.coordinator.transactions()), *(len(node.coordinator.transactions()) for _ in slices)]
    assert left[0] == len(names)
    assert all(before - after <= 3 * 2 for before, after in itertools.pairwise(left))
    assert [txn.transactional_id for txn in node.coordinator.transactions()] == [names[-1]]


def test_an_open_transaction_never_expires(node: Node) -> None:
    producer = node.init("app", None, 900_000)
    node.produce("app", producer, "orders", 0, "a")
    node.clock.set_wall(node.clock.now_ms() + 2 * WEEK_MS)
    node.coordinator.remove_expired()
    assert state_of(node).state is ONGOING
