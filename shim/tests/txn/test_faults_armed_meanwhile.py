"""A thread arms a fault point while an EndTxn is served from frame to frame, behind the look whether any is armed."""

from __future__ import annotations

from itertools import count

import pytest

from kafka_shim.cext import segment as cext_segment
from kafka_shim.faults import HOLDS
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import fetch, make_topic
from kafka_shim.tests.txn.test_plain_end_txn import LATER_MS, begin, end, end_one, slot_of
from kafka_shim.txn.transaction import COMPLETE_COMMIT, PREPARE_COMMIT

# What an end reaches behind PREPARE.
POINTS = (
    "log.before_write",
    "log.after_write",
    "log.after_append",
    "txn.answered",
    "txn.after_marker",
    "txn.before_complete",
)
CASES = [(point, action) for point in POINTS for action in ("error", "oserror", "hold")]


@pytest.mark.parametrize(
    "point, action", [(point, action) for point, action in CASES if action != "hold" or point in HOLDS]
)
def test_a_point_armed_behind_the_decision_is_reached_and_the_transaction_ends(
    broker, client, monkeypatch, point, action
):
    make_topic(client, "t", 2, retention_ms="-1")
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
    end_one(client, ("t", 0), ("t", 1))
    producer = begin(client, ("t", 0), ("t", 1))
    append, faults, writes = cext_segment.append, broker._faults, count()

    def put(fd: int, buffers: object) -> int:
        if next(writes) == 0:  # that of PREPARE
            faults.arm(point, action)
        return append(fd, buffers)

    with monkeypatch.context() as patch:
        patch.setattr(cext_segment, "append", put)
        assert end(client, producer).error_code == 0
    slot = slot_of(broker)
    assert (slot.transaction.state, slot.pending, slot.is_ending) == (PREPARE_COMMIT, True, action == "hold")
    assert faults.reached(point) >= 1
    broker.faults.disarm()
    broker.call(broker.state.logs.reopen_offline)
    broker.clock.advance(LATER_MS)
    assert slot.transaction.state is COMPLETE_COMMIT
    assert not (slot.pending or slot.is_ending or slot.unmarked)
    for partition in range(2):
        read = fetch(client, "t", partition, 0, isolation_level=1)
        assert read.error_code == 0
        assert read.last_stable_offset == read.high_watermark >= 4
