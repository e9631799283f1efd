"""A request that waits for others: who completes it, who goes on, and what happens to its connection meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.cext.replies import Outcome
from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.connection import Connection as ServerConnection
from kafka_shim.embedded import Broker
from kafka_shim.errors import DisconnectError, ErrorCode
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.targets.requests import make, protocols
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.turns.harness import answer_when
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection, ConnectionLostError

JOIN_GROUP = 11
JOIN = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "protocol_type": "consumer"}


def delayed() -> DelayedResponse:
    return DelayedResponse(lambda code: code)


def on_loop(run: Callable[[], Any]) -> Any:
    """Call on an event loop, and let what it wakes run."""

    async def main() -> Any:
        result = run()
        await asyncio.sleep(0)
        return result

    return asyncio.run(main())


def test_only_the_first_response_counts_and_who_waits_goes_on_once() -> None:
    one, woken = delayed(), list[Any]()
    purgatory: dict[DelayedResponse, str] = {}

    def run() -> None:
        one.park(purgatory, "g")
        one.then(lambda: woken.append(one.result().response), RealClock().soon())
        assert purgatory == {one: "g"}
        one.answer("first", ("flush",))
        one.answer("second")
        one.fail(ErrorCode.NOT_COORDINATOR)
        one.fail_unexpectedly(ZeroDivisionError())
        assert woken == [], "on the next turn"

    on_loop(run)
    assert woken == ["first"]
    assert one.result().flushes == ("flush",)
    assert purgatory == {}


def test_who_comes_after_the_response_goes_on_too() -> None:
    one, woken = delayed(), list[int]()

    def run() -> None:
        one.answer("response")
        one.then(lambda: woken.append(1), RealClock().soon())

    on_loop(run)
    assert woken == [1]


def test_a_wake_up_for_which_there_is_no_memory_is_tried_again() -> None:
    one, woken = delayed(), list[int]()
    purgatory: dict[DelayedResponse, str] = {}
    has_memory = False

    def soon(function: Callable[[], None]) -> None:
        if not has_memory:
            raise MemoryError
        function()

    one.park(purgatory, "g")
    one.then(lambda: woken.append(1), soon)
    with pytest.raises(MemoryError):
        one.answer("response")
    assert (woken, purgatory) == ([], {one: "g"})
    has_memory = True
    one.wake()
    one.wake()
    assert (woken, purgatory) == ([1], {})


def test_what_the_handler_does_to_the_outcome_is_done_when_it_is_read() -> None:
    one = delayed()
    one.edit = lambda outcome: Outcome(f"{outcome.response}, edited")
    one.answer("response")
    assert one.outcome.response == "response"
    assert one.result().response == "response, edited"


def test_a_request_that_still_waits_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="still waits"):
        delayed().result()


def test_one_for_whom_nobody_waits_leaves_the_purgatory_too() -> None:
    """Memory ended between."""
    one, purgatory = delayed(), dict[DelayedResponse, str]()
    one.park(purgatory, "g")
    one.answer("response")
    assert purgatory == {}


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_virtual_clock_stands_still_until_who_waits_has_gone_on(is_awaited: bool) -> None:
    async def main() -> list[float]:
        clock, one, seen = VirtualClock(), delayed(), list[float]()

        async def wait() -> None:
            await one
            seen.append(clock.monotonic_ms())

        if is_awaited:
            waiting = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
        else:
            one.then(lambda: seen.append(clock.monotonic_ms()), clock.soon())
        began_ms = clock.monotonic_ms()
        clock.call_later(10, one.answer, "response")
        clock.call_later(1000, lambda: None)
        await clock.advance_and_drain(2000)
        if is_awaited:
            await waiting
        return [at_ms - began_ms for at_ms in seen]

    assert asyncio.run(main()) == [10]


@pytest.fixture
def options() -> dict[str, str]:
    return {}


@pytest.fixture
def broker(options: dict[str, str]):
    with Broker(**options) as running:
        with Connection(running.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
            describe = make("DescribeGroups", groups=["g"])
            answer_when(client, describe, 5, lambda answer: answer.groups[0].error_code != 14)
        yield running


@pytest.fixture
def clients(broker: Broker):
    """Two connections."""
    with ExitStack() as stack:
        yield [stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S)) for _ in range(2)]


def join(member_id: str = "", **fields: Any) -> Any:
    return make("JoinGroup", group_id="g", member_id=member_id, protocols=protocols("range"), **JOIN, **fields)


def stable(client: Connection, version: int = 5) -> Any:
    """The first member, in a generation of its own."""
    given = client.request(join(), version)
    joined = client.request(join(given.member_id), version)
    who = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    assert client.request(make("SyncGroup", **who), 3).error_code == 0
    return joined


def connections(broker: Broker) -> Any:
    return broker._server._registry.connections  # type: ignore[union-attr]


def waiting(broker: Broker) -> list[Any]:
    """The connections of which a request waits."""
    return [one for one in connections(broker) if one.is_waiting]


def wait_for_purgatory(broker: Broker, count: int) -> None:
    purgatory = broker.state.groups._runtime.purgatory
    until(broker, lambda: len(purgatory) == count)


@pytest.mark.parametrize("version", [5, 9])
def test_a_join_that_waits_has_no_task_and_its_client_the_answer_when_all_have_joined(
    broker: Broker, clients: Any, version: int
) -> None:
    first, second = clients
    leader = stable(first, version)
    given = second.request(join(), version)
    second.send(join(given.member_id), version)
    # Behind the request that waits: it is served after it.
    second.send(make("Heartbeat", group_id="g", generation_id=leader.generation_id, member_id=given.member_id), 3)
    wait_for_purgatory(broker, 1)
    assert broker.call(lambda: [one.task for one in waiting(broker)]) == [None]
    assert first.request(join(leader.member_id), version).generation_id == leader.generation_id + 1
    assert second.receive(JOIN_GROUP, version)[1].generation_id == leader.generation_id + 1
    assert second.receive(12, 3)[1].error_code == ErrorCode.ILLEGAL_GENERATION
    assert broker.call(lambda: waiting(broker)) == []
    wait_for_purgatory(broker, 0)


@pytest.fixture
def two(broker: Broker, clients: Any):
    """The leader of a stable group, with its connection, and another one, of which a join waits."""
    first, second = clients
    leader = stable(first)
    given = second.request(join(), 5)
    second.send(join(given.member_id), 5)
    wait_for_purgatory(broker, 1)
    yield first, leader, second, given.member_id


def test_the_answer_to_a_connection_that_is_gone_is_dropped(broker: Broker, two: Any) -> None:
    first, leader, second, member_id = two
    failures: list[Any] = []
    broker.call(lambda: asyncio.get_running_loop().set_exception_handler(lambda _, fact: failures.append(fact)))
    second.close()
    until(broker, lambda: len(connections(broker)) == 1)
    joined = first.request(join(leader.member_id), 5)
    assert {member.member_id for member in joined.members} == {leader.member_id, member_id}
    wait_for_purgatory(broker, 0)
    assert (broker.state.metrics.errors_unexpected, failures) == (0, [])


def test_who_waits_when_the_broker_stops_has_an_answer(broker: Broker, two: Any) -> None:
    broker.stop()
    assert two[2].receive(JOIN_GROUP, 5)[1].error_code == ErrorCode.NOT_COORDINATOR


def test_who_has_a_response_that_found_no_memory_on_its_way_is_sent_it_at_the_end(broker: Broker, two: Any) -> None:
    (one,) = broker.state.groups._runtime.purgatory
    response = make_response(member_id="late")
    broker.call(lambda: one.complete(response))
    broker.call(broker.state.groups._runtime.dismiss)
    assert two[2].receive(JOIN_GROUP, 5)[1].member_id == "late"


def make_response(**fields: Any) -> JoinGroupResponse:
    return JoinGroupResponse(protocol_name="", **fields)


def test_an_error_of_ours_is_the_answer_of_the_request_that_waited(broker: Broker, two: Any) -> None:
    second = two[2]
    (one,) = broker.state.groups._runtime.purgatory
    broker.call(one.fail_unexpectedly, ZeroDivisionError("ours"))
    assert second.receive(JOIN_GROUP, 5)[1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert broker.state.metrics.errors_unexpected == 1
    assert second.request(make("ApiVersions"), 0).error_code == 0


def test_a_fault_that_drops_the_answer_closes_the_connection(broker: Broker, two: Any) -> None:
    (one,) = broker.state.groups._runtime.purgatory
    broker.call(one.fail_unexpectedly, DisconnectError("dropped"))
    with pytest.raises(ConnectionLostError):
        two[2].receive(JOIN_GROUP, 5)
    assert broker.state.metrics.errors_unexpected == 0


@pytest.mark.parametrize("has_fsync", [False, True])
def test_no_other_answer_stands_in_the_place_of_one_that_cannot_be_sent(
    broker: Broker, two: Any, monkeypatch: pytest.MonkeyPatch, has_fsync: bool
) -> None:
    """It has a number where a text belongs, or there is no memory for the task that waits for its fsync."""
    second = two[2]

    (one,) = broker.state.groups._runtime.purgatory
    second.send(make("ApiVersions"), 0)
    with monkeypatch.context() as patch:
        if has_fsync:
            patch.setattr(ServerConnection, "_wait_for", no_memory_left)
            broker.call(one.answer, make_response(), (Future[None](),))
        else:
            broker.call(one.answer, make_response(member_id=5))
        with pytest.raises(ConnectionLostError):
            second.receive_frame()
    assert broker.state.metrics.errors_unexpected == 1


@pytest.mark.parametrize("is_failing", [False, True])
def test_an_answer_that_waits_for_its_fsync_reaches_also_who_sends_nothing_more(
    broker: Broker, two: Any, is_failing: bool
) -> None:
    second = two[2]
    flushed: Future[None] = Future()
    (one,) = broker.state.groups._runtime.purgatory
    broker.call(one.answer, make_response(member_id="flushed"), (flushed,))
    until(broker, lambda: [one.task is not None for one in waiting(broker)] == [True])
    second._socket.shutdown(socket.SHUT_WR)
    until(broker, lambda: any(one._closing_reason is not None for one in connections(broker)))
    if is_failing:
        flushed.set_exception(OSError("no fsync"))
    else:
        flushed.set_result(None)
    told = second.receive(JOIN_GROUP, 5)[1]
    assert (told.error_code, told.member_id) == (
        (ErrorCode.NOT_COORDINATOR, "") if is_failing else (ErrorCode.NONE, "flushed")
    )


@pytest.mark.parametrize("options", [{"kafka_shim_http_listener": "127.0.0.1:0"}])
@pytest.mark.parametrize("is_flushed", [False, True])
def test_the_time_in_the_purgatory_counts(broker: Broker, two: Any, is_flushed: bool) -> None:
    second = two[2]
    total = broker._server._dispatcher.times[JOIN_GROUP].total  # type: ignore[union-attr]
    before = sum(total.counts)
    assert before == 3, "two joins of the leader, and the one that gave the other its id"
    flushed: Future[None] = Future()
    (one,) = broker.state.groups._runtime.purgatory
    broker.call(one.answer, make_response(), (flushed,) if is_flushed else ())
    if is_flushed:
        until(broker, lambda: [one.task is not None for one in waiting(broker)] == [True])
        assert sum(total.counts) == before
        flushed.set_result(None)
    second.receive(JOIN_GROUP, 5)
    assert sum(total.counts) == before + 1


def test_a_client_that_sends_nothing_more_is_closed_although_its_request_waits(broker: Broker, two: Any) -> None:
    second = two[2]
    second._socket.shutdown(socket.SHUT_WR)
    assert second._socket.recv(1) == b""


def test_a_request_that_a_test_held_back_waits_too(broker: Broker, clients: Any) -> None:
    """It has a task, which awaits the response."""
    first, second = clients
    leader = stable(first)
    given = second.request(join(), 5)
    broker.faults.arm("request.received", "hold", where={"api_key": JOIN_GROUP}, nth=1)
    second.send(join(given.member_id), 5)
    wait_until(lambda: broker.faults.reached("request.received"), "the join is held")
    assert broker.faults.release("request.received") == 1
    wait_for_purgatory(broker, 1)
    first.request(join(leader.member_id), 5)
    assert second.receive(JOIN_GROUP, 5)[1].generation_id == leader.generation_id + 1
