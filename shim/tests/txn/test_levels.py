"""Brokers below the newest level of `transaction.version`."""

from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.tests.txn.harness import A0, Node, code_of, state_of
from kafka_shim.txn.transaction import (
    COMPLETE_ABORT,
    EMPTY,
    ONGOING,
    TV0,
)


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
