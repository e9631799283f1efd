"""JoinGroup and SyncGroup of very many members, on several turns."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.api import TABLE
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.classic_requests import ClassicRequests
from kafka_shim.group.member_turns import LOST_MS, MOST_PER_TURN, MemberTurns
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.targets.requests import make, protocols
from kafka_shim.tests.turns.harness import answer_when
from kafka_shim.wire_client import Connection

MEMBERS = 2 * MOST_PER_TURN + 10


def delayed() -> DelayedResponse:
    return DelayedResponse(lambda code: code)


def refuse(one: DelayedResponse) -> None:
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)


def test_requests_beyond_a_slice_wait_for_later_turns_in_the_order_in_which_they_came() -> None:
    async def main() -> None:
        turns, served = MemberTurns(VirtualClock()), []

        def serve(one: DelayedResponse, number: int) -> None:
            served.append(number)
            one.answer(number)

        for number in range(MEMBERS):
            turns.serve(delayed(), serve, number)
        assert served == list(range(MOST_PER_TURN))
        await asyncio.sleep(0)
        turns.serve(delayed(), serve, MEMBERS)  # behind those that wait
        assert served == list(range(2 * MOST_PER_TURN))
        await asyncio.sleep(0)
        assert served == list(range(MEMBERS + 1))
        turns.serve(delayed(), serve, -1)
        assert served[-1] == -1, "a slice that is not over serves at once"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in range(MOST_PER_TURN):
            turns.serve(delayed(), serve, number)
        assert served[-1] == MOST_PER_TURN - 1, "a turn on which nobody waited leaves a whole slice"

    asyncio.run(main())


def test_a_slice_ends_when_its_time_is_over() -> None:
    async def main() -> None:
        clock = VirtualClock()
        turns, served = MemberTurns(clock), []

        def serve(one: DelayedResponse) -> None:
            served.append(one)
            clock.advance(0.13)

        for _ in range(5):
            turns.serve(delayed(), serve)
        assert len(served) == 3  # two looks at the clock find time left
        await asyncio.sleep(0)
        assert len(served) == 5

    asyncio.run(main())


def test_a_turn_whose_end_found_no_memory_holds_up_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(turns: MemberTurns) -> None:
        raise MemoryError

    async def main() -> None:
        clock, errors = VirtualClock(), []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
        turns, served = MemberTurns(clock), []

        def serve(one: DelayedResponse, number: int) -> None:
            served.append(number)

        with monkeypatch.context() as patch:
            patch.setattr(MemberTurns, "_next_turn", no_memory)
            for number in range(MOST_PER_TURN + 1):
                turns.serve(delayed(), serve, number)
            await asyncio.sleep(0)
        assert [type(error) for error in errors] == [MemoryError]
        assert len(served) == MOST_PER_TURN
        clock.advance(LOST_MS)
        turns.serve(delayed(), serve, MOST_PER_TURN + 1)
        await asyncio.sleep(0)
        assert served == list(range(MOST_PER_TURN + 2))

    asyncio.run(main())


def test_requests_that_wait_are_served_although_there_is_no_memory_for_the_next_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise they waited for the next request of a member, which may never come."""

    def no_memory(*_: object) -> None:
        raise MemoryError

    async def main() -> None:
        clock = VirtualClock()
        turns, served = MemberTurns(clock), []
        count = 3 * MOST_PER_TURN
        for number in range(count):
            turns.serve(delayed(), lambda _, number: served.append(number), number)
        assert len(served) == MOST_PER_TURN
        with monkeypatch.context() as patch:
            patch.setattr(clock, "call_later", no_memory)
            await asyncio.sleep(0)
        assert served == list(range(count))
        turns.serve(delayed(), lambda _: served.append(count))
        assert served[-1] == count

    asyncio.run(main())


def test_errors_of_requests_that_waited_are_theirs_alone() -> None:
    class OwnError(Exception):
        def __init__(self) -> None:
            made.append(weakref.ref(self))

    def fail(one: DelayedResponse, error: type[Exception]) -> None:
        raise error

    async def outcome(one: DelayedResponse) -> Any:
        try:
            return (await one).response
        except OwnError:
            return "raised"

    async def main() -> list[Any]:
        turns = MemberTurns(VirtualClock())
        for _ in range(MOST_PER_TURN):
            turns.serve(delayed(), lambda one: one.answer("at once"))
        refused, broken, stopped, last = all_four = [delayed() for _ in range(4)]
        turns.serve(refused, refuse)
        turns.serve(broken, fail, OwnError)
        turns.serve(stopped, served.append)
        turns.serve(last, lambda one: one.answer("last"))
        stopped.fail(ErrorCode.NOT_COORDINATOR)  # the broker stops: nothing is left to serve
        return await asyncio.gather(*(outcome(one) for one in all_four))

    made: list[weakref.ref[OwnError]] = []
    served: list[DelayedResponse] = []
    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(main()) == [ErrorCode.UNKNOWN_MEMBER_ID, "raised", ErrorCode.NOT_COORDINATOR, "last"]
        assert served == []
        assert [error() for error in made] == [None], "nothing waits for the garbage collector"
    finally:
        gc.enable()


def test_errors_of_requests_that_are_served_at_once_are_raised_or_answered() -> None:
    async def main() -> None:
        turns, refused = MemberTurns(VirtualClock()), delayed()

        def fail(one: DelayedResponse) -> None:
            raise ZeroDivisionError

        turns.serve(refused, refuse)
        assert refused.outcome is not None
        assert refused.outcome.response is ErrorCode.UNKNOWN_MEMBER_ID
        with pytest.raises(ZeroDivisionError):
            turns.serve(delayed(), fail)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("has_short_ways", [False, True])
def test_a_rebalance_of_hundreds_takes_many_turns_and_all_are_in_one_generation(
    has_short_ways: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, served = 0, {"_join": Counter[int](), "_sync": Counter[int]()}

    def counted(name: str) -> None:
        """Count the requests that the handler serves."""
        original = getattr(ClassicRequests, name)

        def serve(self: ClassicRequests, *arguments: Any) -> Any:
            served[name][turn] += 1
            return original(self, *arguments)

        monkeypatch.setattr(ClassicRequests, name, serve)

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        if not ends.is_set():
            asyncio.get_running_loop().call_soon(count_turns)

    def at_once(requests: list[Any], version: int) -> list[Any]:
        """All requests arrive in one turn of the loop."""
        arrived = threading.Event()
        loop.call_soon_threadsafe(arrived.wait)
        for client, request in zip(crowd, requests, strict=True):
            client.send(request, version)
        arrived.set()
        return [client.receive(requests[0].API_KEY, version)[1] for client in crowd]

    for name in served:
        counted(name)
    for key in (11, 14):
        if not TABLE[key].is_loaded:
            TABLE[key].load()
        if not has_short_ways:
            monkeypatch.setattr(TABLE[key], "plain", None)
    ends = threading.Event()
    who: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 300_000,
        "rebalance_timeout_ms": 300_000,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
    }
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(group_initial_rebalance_delay_ms=0))
        assert broker._loop is not None
        loop = broker._loop
        crowd = [stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=60)) for _ in range(MEMBERS)]
        crowd[0].request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        answer_when(crowd[0], make("DescribeGroups", groups=["g"]), 5, lambda answer: answer.groups[0].error_code != 14)
        ids = [crowd[0].request(make("JoinGroup", **who), 9).member_id]
        assert crowd[0].request(make("JoinGroup", **who, member_id=ids[0]), 9).generation_id == 1
        ids += [client.request(make("JoinGroup", **who), 9).member_id for client in crowd[1:]]
        served["_join"].clear()
        loop.call_soon_threadsafe(count_turns)
        who["protocols"] = protocols("range", metadata=b"other")  # for which also the first must join again
        joined = at_once([make("JoinGroup", **who, member_id=name) for name in ids], 9)
        assert {answer.error_code for answer in joined} == {0}
        assert {answer.generation_id for answer in joined} == {2}
        assert [answer.member_id for answer in joined] == ids
        synced = at_once(
            [
                make(
                    "SyncGroup",
                    group_id="g",
                    member_id=answer.member_id,
                    generation_id=2,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[{"member_id": one.member_id, "assignment": b"x"} for one in answer.members],
                )
                for answer in joined
            ],
            5,
        )
        ends.set()
    assert {(answer.error_code, bytes(answer.assignment)) for answer in synced} == {(0, b"x")}
    # With fast paths: the join of the first, which is not new, the one that ends the phase, and the leader's sync.
    expected = {"_join": 2, "_sync": 1} if has_short_ways else {"_join": MEMBERS, "_sync": MEMBERS}
    assert {name: counts.total() for name, counts in served.items()} == expected
    assert max(max(counts.values()) for counts in served.values()) <= MOST_PER_TURN
