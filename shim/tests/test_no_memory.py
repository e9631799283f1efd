"""Memory ends on the way of a request: its connection is closed, the broker serves others and can be stopped."""

from __future__ import annotations

import asyncio

import pytest

from kafka_shim import server
from kafka_shim.embedded import Broker
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import fetch_request, make_topic
from kafka_shim.wire_client import Connection, ConnectionLostError


def test_a_request_whose_waking_finds_no_memory_does_not_hold_up_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DRAIN_SECONDS", 0.01)

    def lose(broker: Broker) -> None:
        (waiter,) = broker.state.parked
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "call_soon", no_memory_left)
            with pytest.raises(MemoryError):
                waiter.wake()

    broker = Broker(loop_factory=asyncio.new_event_loop).start()
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t")
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=600_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        broker.call(lose, broker)
        broker.stop()
        with pytest.raises(ConnectionLostError):
            client.receive(1, 12)
