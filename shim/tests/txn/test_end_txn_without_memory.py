"""Memory ends while an EndTxn is served from frame to frame: the transaction ends."""

from __future__ import annotations

import errno

import pytest

from kafka_shim.cext import segment as cext_segment
from kafka_shim.dispatch import Dispatcher
from kafka_shim.targets.requests import make
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import make_topic
from kafka_shim.tests.txn.test_plain_end_txn import LATER_MS, begin, end, end_one, slot_of
from kafka_shim.txn.quick_completion import QuickCompletion
from kafka_shim.txn.transaction import COMPLETE_COMMIT, PREPARE_COMMIT


def lose(dispatcher: Dispatcher, follow_up: object) -> None:
    """There is no memory for the call. The traceback does not keep what was to be called."""
    del follow_up
    raise MemoryError


@pytest.mark.parametrize("place", ["run", "finish_marked"])
def test_a_decision_ends_later_if_there_is_no_memory_for_what_follows_it(broker, client, monkeypatch, place):
    make_topic(client, "t", 1)
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
    end_one(client, ("t", 0))
    producer = begin(client, ("t", 0))
    with monkeypatch.context() as patch:
        if place == "run":
            patch.setattr(Dispatcher, "run", lose)
        else:
            append, count = cext_segment.append, iter(range(1 << 30))

            def put(fd: int, buffers: object) -> int:
                if next(count) == 1:
                    raise OSError(errno.ENOSPC, "full")
                return append(fd, buffers)

            patch.setattr(cext_segment, "append", put)
            patch.setattr(QuickCompletion, "finish_marked", no_memory_left)
        assert end(client, producer).error_code == 0
        slot = slot_of(broker)
        assert (slot.transaction.state, slot.pending) == (PREPARE_COMMIT, True)
    broker.clock.advance(LATER_MS)
    assert slot.transaction.state is COMPLETE_COMMIT
    assert not (slot.pending or slot.is_ending or slot.unmarked)
