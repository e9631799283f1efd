"""Memory ends on the way of a request: its connection is closed, the broker serves others and can be stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim import connection, server, waiters
from kafka_shim.clock import RealClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.memory_pool import LARGE_BYTES, ReceiveMemory
from kafka_shim.registry import Registry
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import fetch_request, make_topic, metadata
from kafka_shim.turns import MOST_LOOKS, STEPS_BETWEEN_LOOKS, Turns
from kafka_shim.waiters import Waiter
from kafka_shim.wire_client import Connection, ConnectionLostError

# That something comes to its end at all, however slow the machine is.
PATIENCE_S = 60


def only_connection(broker: Broker) -> connection.Connection:
    (found,) = registry(broker).connections
    return found


def registry(broker: Broker) -> Registry:
    assert broker._server is not None
    return broker._server._registry


@pytest.fixture
def parked() -> Iterator[tuple[Broker, Connection]]:
    """A Fetch waits for a minute, and its waking has found no memory."""

    def lose(broker: Broker) -> None:
        (waiter,) = broker.state.parked
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "call_soon", no_memory_left)
            waiter.wake()

    with (
        Broker(loop_factory=asyncio.new_event_loop, clock="virtual") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t")
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
        wait_until(lambda: broker.state.parked, "the request waits")
        broker.call(lose, broker)
        yield broker, client


def test_a_request_whose_waking_finds_no_memory_is_answered_when_its_wait_is_over(
    parked: tuple[Broker, Connection],
) -> None:
    broker, client = parked
    broker.clock.advance(59_999)
    assert broker.call(lambda: len(broker.state.parked)) == 1
    broker.clock.advance(1)
    assert client.receive(1, 12)[1].error_code == ErrorCode.NONE
    assert not broker.state.parked


def test_a_request_whose_waking_finds_no_memory_is_woken_by_the_stop(parked: tuple[Broker, Connection]) -> None:
    broker, client = parked
    broker.stop()
    assert client.receive(1, 12)[1].error_code == ErrorCode.NONE


def test_a_request_whose_waking_finds_no_memory_ends_with_its_connection(parked: tuple[Broker, Connection]) -> None:
    broker, client = parked
    client.close()
    wait_until(lambda: not broker.state.parked, "it is cancelled")


def test_a_request_that_cannot_be_woken_does_not_hold_up_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DRAIN_SECONDS", 0.01)
    broker = Broker(loop_factory=asyncio.new_event_loop).start()
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t")
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=600_000), 12)
        wait_until(lambda: broker.state.parked, "the request waits")
        monkeypatch.setattr(Waiter, "wake", lambda _: None)
        broker.stop()
        with pytest.raises(ConnectionLostError):
            client.receive(1, 12)


@pytest.mark.parametrize("is_woken", [True, False])
def test_a_wait_ends_although_its_timer_finds_no_memory_either(is_woken: bool) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        waiter, real = Waiter(RealClock(loop)), loop.call_soon

        def call_soon(callback: Any, *arguments: Any, **context: Any) -> Any:
            if arguments and isinstance(arguments[0], waiters.Pause):
                raise MemoryError
            return real(callback, *arguments, **context)

        waiting = asyncio.ensure_future(waiter.wait(1))
        await asyncio.sleep(0)
        loop.call_soon = call_soon  # type: ignore[method-assign,assignment]
        if is_woken:
            waiter.wake()
        assert await asyncio.wait_for(waiting, PATIENCE_S) is is_woken

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(run())


# --- a connection


class Frame:
    """A received frame of which no part can be taken."""

    def __len__(self) -> int:
        return LARGE_BYTES

    __getitem__ = no_memory_left


def answer_is_taken(one: connection.Connection) -> None:
    one._clock = SimpleNamespace(monotonic_ms=no_memory_left)
    one.resume_writing()


def frame_is_not_handled(one: connection.Connection) -> None:
    one._failed(RuntimeError("a bug"))


def throttle_time_begins(one: connection.Connection) -> None:
    one.session.muted_ms = 10
    one._mute()


def request_fails_that_waited(one: connection.Connection) -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    one._wait_for(SimpleNamespace(waiting=fail(), is_abandonable=False, is_delayed=False))


def login_is_not_handled(one: connection.Connection) -> None:
    one._dispatcher = SimpleNamespace(broker=None, handle=lambda *_: None)
    one.session.muted_ms = 10
    turn = asyncio.get_running_loop().create_future()
    turn.set_result(None)
    one._task = asyncio.get_running_loop().create_task(one._handle_in_turn(turn, b""))


HAPPENS = (answer_is_taken, frame_is_not_handled, throttle_time_begins, request_fails_that_waited, login_is_not_handled)


@pytest.mark.parametrize("happens", HAPPENS)
def test_a_connection_that_finds_no_memory_to_go_on_is_closed(
    loop_factory: Any, monkeypatch: pytest.MonkeyPatch, happens: Callable[[connection.Connection], None]
) -> None:
    """The loop may tell it only once, or tell nobody of the error: its client would wait for ever."""
    with Broker(loop_factory=loop_factory) as broker, Connection(broker.bootstrap_servers, timeout_s=60) as client:
        metadata(client)
        monkeypatch.setattr(connection.logger, "error", no_memory_left)
        monkeypatch.setattr(connection, "pause", no_memory_left)
        broker.call(lambda: happens(only_connection(broker)))
        with pytest.raises(ConnectionLostError):
            client.receive(3, 12)
        wait_until(lambda: not registry(broker).connections, "the connection is forgotten")


def test_a_connection_whose_answer_no_memory_is_left_to_send_is_closed(loop_factory: Any) -> None:
    """uvloop's transport has the answer already, finds no memory to have itself called, and waits for that to close."""

    async def answer() -> list[bytes]:
        return [b"an answer"]

    def find_none(one: connection.Connection) -> None:
        waits = SimpleNamespace(abort=one._transport.abort, close=lambda: None, write=no_memory_left)
        one._transport = waits
        one._wait_for(SimpleNamespace(waiting=answer(), is_abandonable=False, is_delayed=False))

    with Broker(loop_factory=loop_factory) as broker, Connection(broker.bootstrap_servers, timeout_s=60) as client:
        metadata(client)
        broker.call(lambda: find_none(only_connection(broker)))
        with pytest.raises(ConnectionLostError):
            client.receive(3, 12)
        wait_until(lambda: not registry(broker).connections, "the connection is forgotten")


def test_a_lost_connection_leaves_the_registry_although_memory_ends_before() -> None:
    with Broker() as broker:
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            metadata(client)
            one = broker.call(only_connection, broker)
            one._memory = SimpleNamespace(waiting=SimpleNamespace(pop=no_memory_left))
        wait_until(lambda: not registry(broker).connections, "the connection is forgotten")
        assert not registry(broker).per_ip
        assert one.session.is_closed


@pytest.mark.parametrize("step", ["logged_in", "_wake"])
def test_a_lost_connection_leaves_the_registry_and_its_session_ends_although_memory_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with Broker() as broker:
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            metadata(client)
            one = broker.call(only_connection, broker)
            monkeypatch.setattr(Registry, step, no_memory_left)
        wait_until(lambda: one.session.is_closed, "its session ends")
        monkeypatch.undo()
        assert not registry(broker).connections
        assert not registry(broker).per_ip


class FullDict(dict[str, int]):
    """Finds no memory for the first entry."""

    def __setitem__(self, key: str, value: int) -> None:
        if not vars(self).setdefault("refused", False):
            self.refused = True
            raise MemoryError
        super().__setitem__(key, value)


class FullSet(set[connection.Connection]):
    """Cannot grow: Python's own has the entry then."""

    def add(self, one: connection.Connection) -> None:
        super().add(one)
        raise MemoryError


@pytest.mark.parametrize(
    ("table", "full"), [("per_ip", FullDict), ("_by_listener", FullDict), ("connections", FullSet)]
)
def test_a_connection_that_no_memory_is_left_to_count_is_closed_and_not_counted(
    broker: Broker, table: str, full: Callable[[Any], Any]
) -> None:
    found, metrics = registry(broker), broker.state.metrics

    def counts() -> list[Any]:
        open_now = metrics.connections_opened - metrics.connections_closed
        return [len(found.connections), open_now, dict(found.per_ip), dict(found._by_listener)]

    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        metadata(other)
        wait_until(lambda: len(found.connections) == 1, "those of the start are gone")
        before = counts()
        setattr(found, table, full(getattr(found, table)))
        with Connection(broker.bootstrap_servers, timeout_s=60) as client, pytest.raises(ConnectionLostError):
            metadata(client)
        metadata(other)
        assert counts() == before
    wait_until(lambda: not found.connections, "the last one is forgotten")
    assert counts()[1:3] == [0, {}]


def test_memory_of_frames_is_given_back_although_it_ends_while_they_are_handled(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        metadata(client)
        one, memory = broker.call(only_connection, broker), broker.state.receive_memory
        for step in (one._grow, one._handle_whole):
            one._frame_bytes, one._filled_bytes = 3 * LARGE_BYTES, 3 * LARGE_BYTES + 1
            memory.used_bytes += LARGE_BYTES
            with pytest.raises(MemoryError):
                broker.call(step, Frame())
            broker.call(one._drop_frame)
            assert memory.used_bytes == 0


def test_a_buffer_is_given_back_although_there_is_no_memory_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ReceiveMemory()
    buffer = memory.take(LARGE_BYTES)
    monkeypatch.setattr(memory, "_free", Frame())
    monkeypatch.setattr(Frame, "append", no_memory_left, raising=False)
    monkeypatch.setattr(Frame, "__len__", lambda _: 0)
    with pytest.raises(MemoryError):
        memory.give_back(buffer)
    assert memory.used_bytes == 0


# --- steps


def steps_of(count: int) -> Iterator[None]:
    for _ in range(count):
        yield


class Clock(RealClock):
    """The look of this number finds no memory, of those between two shares."""

    failing = 0

    def monotonic_us(self) -> int:
        self.failing -= sys._getframe(1).f_code.co_name != "_take_share"
        if self.failing == 0:
            self.failing = -1
            raise MemoryError
        return super().monotonic_us()


@pytest.mark.parametrize("failing", range(1, 8))
def test_requests_in_steps_end_although_there_was_no_memory_to_look_at_the_clock(failing: int) -> None:
    count = STEPS_BETWEEN_LOOKS * MOST_LOOKS * 2

    async def run() -> list[Any]:
        clock = Clock()
        turns = Turns(clock)
        clock.failing = failing
        waiting = [asyncio.ensure_future(turns.run(steps_of(count), None)) for _ in range(2)]  # type: ignore[arg-type]
        return await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE_S)

    assert {type(one) for one in asyncio.run(run())} <= {type(None), MemoryError}
