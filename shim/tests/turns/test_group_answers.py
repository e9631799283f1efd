"""The answers of a large group, on several turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.group import late_responses
from kafka_shim.group.decision import SESSION, SYNC, Decision
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.group.timers import Timers
from kafka_shim.targets.requests import make
from kafka_shim.tests.turns.harness import (
    answer_when,
)
from kafka_shim.wire_client import Connection


def test_members_of_a_large_group_have_their_answers_at_once_and_are_sent_them_in_turns() -> None:
    count = 5 * late_responses.REPLIES_PER_TURN
    woken: list[int] = []

    async def member(delayed: DelayedResponse, number: int) -> Any:
        outcome = await delayed
        woken.append(number)
        return outcome.response

    async def run(state: Any) -> None:
        groups = state.groups._runtime
        waiting = [DelayedResponse(lambda code: code) for _ in range(count)]
        tasks = [asyncio.ensure_future(member(each, number)) for number, each in enumerate(waiting)]
        await asyncio.sleep(0)
        decision = Decision()
        for number, each in enumerate(waiting):
            decision.reply(each, f"answer {number}")
            decision.schedule("g", SESSION, f"m{number}", 60_000)
        decision.schedule("g", SYNC, "", 60_000)
        groups.carry_out(0, groups.loader.groups(0), decision, 0)
        # The timers of their sessions are started with the answers, that of the group at once.
        assert len(groups.timers._entries) == 1 + late_responses.REPLIES_PER_TURN
        assert len(groups.timers) == 1 + count
        assert all(each.outcome is not None for each in waiting)
        waiting[-1].fail(None)  # type: ignore[arg-type]
        turns = []
        while len(woken) < count:
            before = len(woken)
            await asyncio.sleep(0)
            turns.append(len(woken) - before)
        assert max(turns) <= late_responses.REPLIES_PER_TURN
        assert [await task for task in tasks] == [f"answer {number}" for number in range(count)]
        assert len(groups.timers._entries) == 1 + count
        # A stop sends the rest at once.
        last = [DelayedResponse(lambda code: code) for _ in range(count)]
        tasks = [asyncio.ensure_future(member(each, number)) for number, each in enumerate(last)]
        await asyncio.sleep(0)
        decision = Decision()
        for each in last:
            decision.reply(each, "last")
        groups.carry_out(0, groups.loader.groups(0), decision, 0)
        groups.scheduler.stop()
        groups.dismiss()
        assert {await asyncio.wait_for(task, 60) for task in tasks} == {"last"}

    run_in_broker(run)


def run_in_broker(run: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    with Broker() as running:
        with Connection(running.bootstrap_servers, timeout_s=60) as client:
            client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
            describe = make("DescribeGroups", groups=["g"])
            answer_when(client, describe, 5, lambda answer: answer.groups[0].error_code != 14)
        running.call(run, running.state)


@pytest.mark.parametrize(
    "what, call",
    [("answer", call) for call in range(3)]  # one of a turn
    + [("timer", call) for call in (0, 1, late_responses.REPLIES_PER_TURN - 1, late_responses.REPLIES_PER_TURN + 1)],
)
def test_members_have_their_answers_and_their_timers_also_if_memory_ends_on_the_way(
    monkeypatch: pytest.MonkeyPatch, what: str, call: int
) -> None:
    """Nobody would have looked at the rest until the next large answer: clients waited, and members that went away were
    not given up."""
    count = 3 * late_responses.REPLIES_PER_TURN

    async def run(state: Any) -> None:
        groups = state.groups._runtime
        waiting = [DelayedResponse(lambda code: code) for _ in range(count)]
        decision = Decision()
        for number, each in enumerate(waiting):
            decision.reply(each, number)
            decision.schedule("g", SESSION, f"m{number}", 60_000)
        left = call

        def failing(function: Callable[..., Any]) -> Callable[..., Any]:
            def called(*arguments: Any) -> Any:
                nonlocal left
                left -= 1
                if left == -1:
                    raise MemoryError
                return function(*arguments)

            return called

        loop = asyncio.get_running_loop()
        soon = failing(loop.call_soon) if what == "answer" else loop.call_soon
        futures = [loop.create_future() for _ in waiting]
        for each, future in zip(waiting, futures, strict=True):
            each.then(partial(future.set_result, None), soon)
        if what == "timer":
            monkeypatch.setattr(Timers, "_arm", failing(Timers._arm))
        groups.carry_out(0, groups.loader.groups(0), decision, 0)
        await asyncio.wait_for(asyncio.gather(*futures), 60)
        assert [each.result().response for each in waiting] == list(range(count))
        assert len(groups.timers._entries) == count
        assert left < 0

    run_in_broker(run)
