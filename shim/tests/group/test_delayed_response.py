"""A request that waits for others: who completes it, who goes on, and what happens to its connection meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.cext.request_end import DelayedResponse, Outcome
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets.requests import make, protocols
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.turns.harness import answer_when
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection

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
        one.then(lambda: woken.append(one.result().response))
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
        one.then(lambda: woken.append(1))

    on_loop(run)
    assert woken == [1]


def test_a_wake_up_for_which_there_is_no_memory_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one, woken = delayed(), list[int]()
    purgatory: dict[DelayedResponse, str] = {}

    def no_memory(*_: object) -> None:
        raise MemoryError

    def run() -> None:
        one.park(purgatory, "g")
        one.then(lambda: woken.append(1))
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "call_soon", no_memory)
            with pytest.raises(MemoryError):
                one.answer("response")
        assert purgatory == {one: "g"}
        one.wake()
        one.wake()

    on_loop(run)
    assert woken == [1]
    assert purgatory == {}


def test_what_the_handler_does_to_the_outcome_is_done_when_it_is_read() -> None:
    one = delayed()
    one.edit = lambda outcome: Outcome(f"{outcome.response}, edited")
    one.answer("response")
    assert one.outcome.response == "response"
    assert one.result().response == "response, edited"


def test_a_request_that_still_waits_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="still waits"):
        delayed().result()


@pytest.fixture
def broker():
    with Broker() as running:
        with Connection(running.bootstrap_servers, timeout_s=PATIENCE_S) as client:
            client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
            describe = make("DescribeGroups", groups=["g"])
            answer_when(client, describe, 5, lambda answer: answer.groups[0].error_code != 14)
        yield running


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
    purgatory = broker.state.groups._runtime._purgatory
    until(broker, lambda: len(purgatory) == count)


@pytest.mark.parametrize("version", [5, 9])
def test_a_join_that_waits_has_no_task_and_its_client_the_answer_when_all_have_joined(
    broker: Broker, version: int
) -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S)) for _ in range(2)
        )
        leader = stable(first, version)
        given = second.request(join(), version)
        second.send(join(given.member_id), version)
        # Behind the request that waits: it is served after it.
        second.send(make("Heartbeat", group_id="g", generation_id=leader.generation_id, member_id=given.member_id), 3)
        wait_for_purgatory(broker, 1)
        assert broker.call(lambda: [one.task for one in waiting(broker)]) == [None]
        assert first.request(join(leader.member_id), version).generation_id == leader.generation_id + 1
        assert second.receive(11, version)[1].generation_id == leader.generation_id + 1
        assert second.receive(12, 3)[1].error_code == ErrorCode.ILLEGAL_GENERATION
        assert broker.call(lambda: waiting(broker)) == []
        wait_for_purgatory(broker, 0)


def test_the_answer_to_a_connection_that_is_gone_is_dropped(broker: Broker) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as first:
        leader = stable(first)
        with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as second:
            given = second.request(join(), 5)
            second.send(join(given.member_id), 5)
            wait_for_purgatory(broker, 1)
        until(broker, lambda: len(connections(broker)) == 1)
        joined = first.request(join(leader.member_id), 5)
        assert {member.member_id for member in joined.members} == {leader.member_id, given.member_id}
        wait_for_purgatory(broker, 0)
    assert broker.state.metrics.errors_unexpected == 0


def test_who_waits_when_the_broker_stops_has_an_answer(broker: Broker) -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S)) for _ in range(2)
        )
        stable(first)
        given = second.request(join(), 5)
        second.send(join(given.member_id), 5)
        wait_for_purgatory(broker, 1)
        broker.stop()
        assert second.receive(11, 5)[1].error_code == ErrorCode.NOT_COORDINATOR


def test_an_error_of_ours_is_the_answer_of_the_request_that_waited(broker: Broker) -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S)) for _ in range(2)
        )
        stable(first)
        given = second.request(join(), 5)
        second.send(join(given.member_id), 5)
        wait_for_purgatory(broker, 1)
        (one,) = broker.state.groups._runtime._purgatory
        broker.call(one.fail_unexpectedly, ZeroDivisionError("ours"))
        assert second.receive(11, 5)[1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert broker.state.metrics.errors_unexpected == 1
        assert second.request(make("ApiVersions"), 0).error_code == 0


def test_a_client_that_sends_nothing_more_is_closed_although_its_request_waits(broker: Broker) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S))
        stable(first)
        given = first_id(broker)
        host, port = broker.bootstrap_servers.split(":")
        half = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
        half.sendall(encode_request_frame(join(given), 5, 1, "c"))
        wait_for_purgatory(broker, 1)
        half.shutdown(socket.SHUT_WR)
        assert half.recv(1) == b""


def first_id(broker: Broker) -> str:
    with Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S) as client:
        return str(client.request(join(), 5).member_id)


def test_a_request_that_a_test_held_back_waits_too(broker: Broker) -> None:
    """It has a task, which awaits the response."""
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=PATIENCE_S)) for _ in range(2)
        )
        leader = stable(first)
        given = second.request(join(), 5)
        broker.faults.arm("request.received", "hold", where={"api_key": 11}, nth=1)
        second.send(join(given.member_id), 5)
        wait_until(lambda: broker.faults.reached("request.received"), "the join is held")
        assert broker.faults.release("request.received") == 1
        wait_for_purgatory(broker, 1)
        first.request(join(leader.member_id), 5)
        assert second.receive(11, 5)[1].generation_id == leader.generation_id + 1
