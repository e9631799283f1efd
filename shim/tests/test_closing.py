"""Very many connections that close at once take many turns of the loop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.closing import CLOSES_PER_TURN, Closing
from kafka_shim.embedded import Broker
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import metadata
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection

COUNT = 4 * CLOSES_PER_TURN
# So that no client finds the queue full, and tries again after a second.
ROOM = {"socket.listen.backlog.size": COUNT}


def test_what_waits_is_closed_at_once_when_there_is_no_memory_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it waited until the next connection closed."""

    async def main() -> None:
        clock = VirtualClock(start_ms=0)
        closing = Closing(clock)
        closed: list[int] = []
        for number in range(3 * CLOSES_PER_TURN):
            closing.run(lambda number=number: closed.append(number))
        monkeypatch.setattr(clock, "call_later", no_memory_left)
        await asyncio.sleep(0)
        assert closed == list(range(3 * CLOSES_PER_TURN))
        for number in range(CLOSES_PER_TURN + 1):
            closing.run(lambda number=number: closed.append(number))
        assert len(closed) == 4 * CLOSES_PER_TURN + 1
        monkeypatch.undo()
        for number in range(CLOSES_PER_TURN + 1):
            closing.run(lambda number=number: closed.append(number))
        assert len(closed) == 5 * CLOSES_PER_TURN + 1
        await asyncio.sleep(0)
        assert len(closed) == 5 * CLOSES_PER_TURN + 2

    asyncio.run(main())


def test_a_turn_closes_its_share_and_the_next_turns_the_rest(loop_factory: Callable[[], Any]) -> None:
    async def main() -> None:
        closing = Closing(VirtualClock(start_ms=0))
        closed: list[int] = []
        for number in range(2 * CLOSES_PER_TURN + 1):
            closing.run(lambda number=number: closed.append(number))
        turns = [len(closed)]
        while len(closed) <= 2 * CLOSES_PER_TURN:
            await asyncio.sleep(0)
            turns.append(len(closed))
        assert [turn for turn in turns if turn != CLOSES_PER_TURN] == [2 * CLOSES_PER_TURN, 2 * CLOSES_PER_TURN + 1]
        assert closed == list(range(2 * CLOSES_PER_TURN + 1))
        # A stop forgets the others.
        for number in range(2 * CLOSES_PER_TURN):
            closing.run(lambda number=number: closed.append(number))
        closing.stop()
        before = len(closed)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(closed) == before

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


@pytest.mark.parametrize("way", ["clients go", "listener goes", "clients are idle", "clients do not log in"])
def test_no_turn_of_the_loop_ends_more_connections_than_its_share(way: str) -> None:
    listen = "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"
    options = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT", **ROOM}
    with Broker(listen=listen, **options) as broker, ExitStack() as stack:
        server = broker._server
        registry = server._registry
        (other,) = [one for one in broker.state.listeners if one.name == "OTHER"]
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", other.port), timeout=PATIENCE_S))
            for _ in range(COUNT)
        ]
        with Connection(broker.bootstrap_servers) as client:
            metadata(client)
            stopped, may_go = threading.Event(), threading.Event()

            async def watch() -> list[int]:
                while len(registry.connections) < COUNT + 1:  # noqa: ASYNC110 nobody tells
                    await asyncio.sleep(0.01)
                stopped.set()
                may_go.wait(PATIENCE_S)
                if way == "listener goes":
                    broker.state.listeners.remove(other)
                    server._socket_server._remove(other)
                late = [one for one in registry.connections if one.session.listener is other]
                if way == "clients are idle":
                    for one in late:
                        one.last_active_ms -= 2 * broker.state.config.connections_max_idle_ms
                    registry._close_idle()
                if way == "clients do not log in":
                    for one in late:
                        registry.await_login(one)
                        registry._logins[one].deadline_ms = 0
                    registry._close_late_logins()
                turns, before = [], COUNT + 1
                while before > 1:
                    await asyncio.sleep(0)
                    now = len(registry.connections)
                    turns.append(before - now)
                    before = now
                return turns

            def close() -> None:
                stopped.wait(PATIENCE_S)
                if way == "clients go":
                    for each in clients:
                        each.close()
                may_go.set()

            thread = threading.Thread(target=close)
            thread.start()
            turns = broker.call(watch)
            thread.join()
            assert sum(turns) == COUNT
            assert max(turns) <= CLOSES_PER_TURN
            metadata(client)


@pytest.mark.parametrize("way", ["idle", "login"])
def test_a_connection_that_is_used_again_before_its_turn_stays(way: str) -> None:
    """A request that came in between was carried out, and its answer was lost."""
    with Broker(**ROOM) as broker, ExitStack() as stack:
        registry = broker._server._registry
        address = broker.bootstrap_servers.rpartition(":")
        for _ in range(COUNT):
            stack.enter_context(socket.create_connection((address[0], int(address[2])), timeout=PATIENCE_S))

        async def run() -> int:
            while len(registry.connections) < COUNT:  # noqa: ASYNC110 nobody tells
                await asyncio.sleep(0.01)
            for each in registry.connections:
                if way == "idle":
                    each.last_active_ms = -(1 << 60)
                else:
                    registry.await_login(each)
                    registry._logins[each].deadline_ms = -(1 << 60)
            (registry._close_idle if way == "idle" else registry._close_late_logins)()
            used = [each for each in registry.connections if not each.is_closing]
            for each in used:
                each.last_active_ms = broker.state.clock.monotonic_ms()
                registry.logged_in(each)
            while len(registry.connections) > len(used) or registry.closing._late:  # noqa: ASYNC110 nobody tells
                await asyncio.sleep(0)
            assert registry.connections == set(used)
            return len(used)

        assert broker.call(run) == COUNT - CLOSES_PER_TURN
