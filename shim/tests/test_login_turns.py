"""Requests before authentication are handled one in a turn of the loop, however many come at once."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter

import pytest

from kafka_shim.dispatch import Dispatcher
from kafka_shim.embedded import Broker
from kafka_shim.login_turns import LoginTurns
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.tests.security.sasl_client import listener_options, plain_jaas
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection

CROWD = 40
LISTEN = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


def test_a_turn_is_for_one_and_the_next_for_who_came_next():
    async def main() -> list[str]:
        turns, order = LoginTurns(), []

        async def wait(name: str) -> None:
            await turns.next_turn()
            order.append(name)

        assert turns.take()
        assert not turns.take()
        tasks = [asyncio.create_task(wait(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not turns._waiting
        for _ in range(3):
            await asyncio.sleep(0)
        assert turns.take()  # nobody waits any more
        late = asyncio.create_task(wait("late"))  # asks when the turn that was taken is over
        for _ in range(2):
            await asyncio.sleep(0)
        await asyncio.wait_for(late, 60)
        return order

    assert asyncio.run(main()) == ["a", "c", "late"]


def test_turns_go_on_where_memory_ends_when_the_next_one_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    """A turn was taken for good then, and nobody could log in any more."""

    async def main() -> list[str]:
        turns, order = LoginTurns(), []
        loop = asyncio.get_running_loop()
        call_soon = loop.call_soon

        def finds_none(callback, *arguments, **named):
            if callback == turns._next:
                raise MemoryError
            return call_soon(callback, *arguments, **named)

        async def wait(name: str) -> None:
            await turns.next_turn()
            order.append(name)

        with monkeypatch.context() as patch:
            patch.setattr(loop, "call_soon", finds_none)
            with pytest.raises(MemoryError):
                turns.take()
            with pytest.raises(MemoryError):
                turns.next_turn()
        assert turns.take()
        tasks = [asyncio.create_task(wait(name)) for name in "abc"]
        await asyncio.sleep(0)
        with monkeypatch.context() as patch:
            patch.setattr(loop, "call_soon", finds_none)
            await asyncio.wait_for(asyncio.gather(*tasks), 60)
        assert turns.take()
        return order

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_a_crowd_that_asks_at_once_is_handled_one_a_turn(monkeypatch: pytest.MonkeyPatch):
    turn, handled = 0, Counter[int]()
    handle = Dispatcher.handle

    def counted(self: Dispatcher, session, frame):
        if session.listener.name.startswith("SASL"):
            handled[turn] += 1
        return handle(self, session, frame)

    monkeypatch.setattr(Dispatcher, "handle", counted)

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        if not ends.is_set():
            asyncio.get_running_loop().call_soon(count_turns)

    ends, goes_on = threading.Event(), threading.Event()
    with Broker(listen=LISTEN, **listener_options("SASL_PLAINTEXT", PLAIN=plain_jaas(alice="a"))) as broker:
        (word,) = [one for one in broker._word(1).split(",") if one.startswith("SASL")]
        host, _, port = word.partition("://")[2].rpartition(":")
        crowd = [socket.create_connection((host, int(port)), timeout=60) for _ in range(CROWD)]
        until(broker, lambda: len(broker._server._registry.connections) == CROWD)
        broker._loop.call_soon_threadsafe(goes_on.wait)
        for one in crowd:
            one.sendall(encode_request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "stranger"))
        broker._loop.call_soon_threadsafe(count_turns)
        goes_on.set()
        for one in crowd:
            assert one.recv(4), crowd.index(one)
        assert broker._server._registry._login_bytes == 0, "nobody holds a request any more"
        for one in crowd:
            one.close()
        ends.set()
        with Connection(broker.bootstrap_servers) as client:
            assert client.request(MetadataRequest(topics=[]), 12).brokers
    assert sum(handled.values()) == CROWD
    assert max(handled.values()) <= 2  # one that found its turn free, one whose turn came
