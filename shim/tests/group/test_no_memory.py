"""Memory ends between the append of a group's records and what follows: what is then served is what the log says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.group.decision import Decision
from kafka_shim.group.groups import Groups, NotAppliedError
from kafka_shim.group.late_responses import REPLIES_PER_TURN
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.group.runtime import RECOVER_EVERY_MS
from kafka_shim.group.timers import CALLS_PER_TURN, NO_MEMORY_RETRY_MS, Timers
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.scheduler import Scheduler
from kafka_shim.tests.group.harness import REBALANCE_MS, SESSION_MS, Later, Node
from kafka_shim.tests.no_memory import no_memory_left, runs_out
from kafka_shim.tests.waiting import PATIENCE_S

# More calls than any request makes behind an append.
MOST_CALLS = 600
# A partition that went offline is opened again after this time.
REOPENED_MS = 1000


def join(node: Node, group: str) -> None:
    joined = node.member(group)
    if isinstance(joined, Later):  # a timer found no memory and is tried again, or members of before are waited for
        node.advance(2 * REBALANCE_MS)
        joined = joined.response
    node.sync(group, joined, {joined.member_id: b"a"})


def leave(node: Node, group: str) -> None:
    node.leave(group, node.stable(group).member_id)


def commit(node: Node, group: str) -> None:
    node.commit(group, "t", 7)


def commit_in_transaction(node: Node, group: str) -> None:
    producer = node.metadata.image.next_producer_id, 0
    node.commit_in_transaction(group, "t", 7, producer)
    try:
        node.end_transaction(group, producer, True)
    except MemoryError:  # then the coordinator writes the marker again
        node.end_transaction(group, producer, True)


def heartbeat(node: Node, group: str) -> None:
    node.modern(group, "m", subscribed_topic_names=["t"])


def delete(node: Node, group: str) -> None:
    node.commit(group, "t", 7)
    node.delete_group(group)


def groups_of_each_call(
    node: Node, request_of: Callable[[Node, str], None], append: int, appends: str
) -> Iterator[str]:
    """Make the request for one group after the other, each time with memory that ends at the next call behind the
    append, until it does not end. Yields each group once its partition can be used again."""
    for call in range(MOST_CALLS):
        name = f"{request_of.__name__}-{call}"
        is_reached = runs_out(request_of, node, name, appends=appends, topic=TOPIC, append=append, call=call)
        # An append that found no memory on the way took its partition offline.
        node.advance(REOPENED_MS)
        node.logs.reopen_offline()
        yield name
        if not is_reached:
            break
    assert 1 < call < MOST_CALLS - 1


def served(node: Node, group: str) -> object:
    found = node.groups.find(group)
    return node.committed(group, "t"), state_of(found)


def stored(node: Node, group: str) -> object:
    """What a start would find."""
    log = node.logs.get(TOPIC, node.groups.partition_for(group))
    groups = node.loader.__class__(node.clock, node.logs, TOPIC, lambda *_: iter(())).groups(log.partition)
    offset = groups.offsets.get(group, "t", 0)
    is_known = offset is not None and not groups.offsets.has_pending(group, "t", 0)
    return (offset.offset if is_known else -1, 0), state_of(groups.by_id.get(group))


def state_of(group: Any) -> object:
    """What records hold. An empty classic group need not have one."""
    members = sorted(getattr(group, "members", ()))
    return members and (type(group), members, getattr(group, "group_epoch", None) or group.generation_id)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is dropped
@pytest.mark.parametrize(
    ("request_of", "append", "appends"),
    [
        (join, 1, "append_batch"),
        (leave, 2, "append_batch"),
        (commit, 0, "append_batch"),
        (commit_in_transaction, 0, "append_batch"),
        (commit_in_transaction, 0, "mark_plain"),
        (heartbeat, 0, "append_batch"),
        (delete, 0, "append_batch"),
        (delete, 1, "append_batch"),
    ],
)
def test_what_is_served_is_what_the_log_says(
    node: Node, request_of: Callable[[Node, str], None], append: int, appends: str
) -> None:
    for name in groups_of_each_call(node, request_of, append, appends):
        assert served(node, name) == stored(node, name), name
        node.advance(2 * REBALANCE_MS)  # members that are not heard of leave
        request_of(node, name)
        assert served(node, name) == stored(node, name), name


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a generator that is dropped
def test_a_group_is_joined_later_if_memory_ended_behind_its_first_record(node: Node) -> None:
    """What is served meanwhile may be newer than the log: a generation that has given out no assignment is in none."""
    for name in groups_of_each_call(node, join, 0, "append_batch"):
        node.advance(2 * REBALANCE_MS)
        join(node, name)
        assert served(node, name) == stored(node, name), name


def test_timers_are_called_after_a_turn_whose_end_found_no_memory() -> None:
    """More of them than are called in one turn: those that were late, and new ones."""

    async def main() -> None:
        clock, called = VirtualClock(), list[tuple[str, str, str]]()
        timers = Timers(clock, called.append)
        for number in range(CALLS_PER_TURN + 1):
            timers.schedule(("g", "session", str(number)), 100)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timers, "_next_turn", no_memory_left)
            clock.advance(100)
            with contextlib.suppress(MemoryError):
                clock.advance(0)
        assert len(called) == CALLS_PER_TURN
        timers.schedule(("g", "session", "later"), NO_MEMORY_RETRY_MS)
        clock.advance(NO_MEMORY_RETRY_MS)
        await asyncio.sleep(0)
        assert sorted(one[2] for one in called) == sorted([*map(str, range(CALLS_PER_TURN + 1)), "later"])

    asyncio.run(main())


def test_a_block_that_fails_behind_one_inside_it_leaves_nothing_current() -> None:
    groups = Groups()
    with pytest.raises(NotAppliedError), groups:
        with groups:
            pass
        raise MemoryError
    assert not groups.is_current


def test_a_timer_that_finds_no_memory_is_called_later() -> None:
    async def main() -> None:
        clock, called = VirtualClock(), list[tuple[str, str, str]]()
        timers = Timers(clock, called.append)
        timers.schedule(("g", "session", "m"), 100)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timers, "_call_due", no_memory_left)
            clock.advance(100)
        clock.advance(NO_MEMORY_RETRY_MS - 1)
        assert called == []
        clock.advance(1)
        assert called == [("g", "session", "m")]

    asyncio.run(main())


@pytest.mark.parametrize("fails", ["_next_turn", "_call_due"])
def test_timers_that_found_no_memory_twice_are_called_after_the_next_event(fails: str) -> None:
    """The end of a turn that left some of them to the next, or each of them and its next attempt."""

    async def main() -> None:
        clock, called = VirtualClock(), list[tuple[str, str, str]]()
        timers = Timers(clock, called.append)
        names = [str(number) for number in range(2 * CALLS_PER_TURN + 1)]
        for name in names:
            timers.schedule(("g", "session", name), 100)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timers, fails, no_memory_left)
            if fails == "_call_due":
                patch.setattr(clock, "call_later", no_memory_left)
            for _ in names:
                with contextlib.suppress(MemoryError):
                    clock.advance(100)
            with contextlib.suppress(MemoryError):
                clock.advance(NO_MEMORY_RETRY_MS)
        assert len(called) < len(names)
        timers.schedule(("g", "session", "a heartbeat"), 1_000_000)
        for _ in range(4):
            await asyncio.sleep(0)
        assert sorted(one[2] for one in called) == sorted(names)
        assert len(timers) == 1

    asyncio.run(main())


@pytest.mark.parametrize("is_called", [False, True])
def test_a_timer_that_found_no_memory_twice_is_called_without_another_event(node: Node, is_called: bool) -> None:
    """It is the call that finds none, or what comes before it."""
    joined = node.member("g")
    node.sync("g", joined, {joined.member_id: b"a"})
    node.advance(1000)  # the other partitions are loaded
    refused = []

    def find_no_memory(*arguments: object) -> None:
        refused.append(arguments)
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch:
        if is_called:
            patch.setattr(node.timers, "_on_due", find_no_memory)
        else:
            patch.setattr(Timers, "_call_due", find_no_memory)
        patch.setattr(node.clock, "call_later", find_no_memory)
        patch.setattr(Timers, "_begin_turn", lambda timers: setattr(timers, "_called", 0))
        with contextlib.suppress(MemoryError):
            node.clock.advance(SESSION_MS)
    assert len(refused) >= 2
    assert node.groups.find("g").members
    node.advance(RECOVER_EVERY_MS)
    assert node.groups.find("g").members == {}


def test_members_that_were_to_be_answered_are_answered_after_memory_ended_twice(node: Node) -> None:
    runtime = node.groups._runtime
    delayed = [DelayedResponse(lambda code: code) for _ in range(REPLIES_PER_TURN + 1)]
    runtime.timers.defer_sessions([("g", "session", "m", SESSION_MS, False)])
    decision = Decision()
    for one in delayed:
        decision.reply(one, "response")

    async def main() -> list[Any]:
        waiting = [asyncio.ensure_future(one) for one in delayed]
        await asyncio.sleep(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timers, "schedule", no_memory_left)
            patch.setattr(Scheduler, "after", no_memory_left)
            with contextlib.suppress(NotAppliedError):
                runtime.carry_out(0, runtime.groups_of("g"), decision, node.clock.now_ms())
        assert not any(one.done() for one in waiting)
        await node.clock.advance_and_drain(RECOVER_EVERY_MS)
        return [(await asyncio.wait_for(one, PATIENCE_S)).response for one in waiting]

    assert node.loop.run_until_complete(main()) == ["response"] * len(delayed)


def test_a_timer_whose_next_attempt_found_no_memory_is_moved_as_any_other() -> None:
    async def main() -> None:
        clock, called = VirtualClock(), list[tuple[str, str, str]]()
        timers = Timers(clock, called.append)
        key = "g", "session", "m"
        timers.schedule(key, 100)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timers, "_call_due", no_memory_left)
            patch.setattr(clock, "call_later", no_memory_left)
            with contextlib.suppress(MemoryError):
                clock.advance(100)
        timers.schedule(key, 500)
        await asyncio.sleep(0)
        clock.advance(499)
        assert called == []
        clock.advance(1)
        assert called == [key]

    asyncio.run(main())


def test_a_partition_that_finds_no_memory_when_it_is_loaded_unasked_is_loaded_by_the_next_question(node: Node) -> None:
    node.commit("g", "t", 7)
    partition = node.groups.partition_for("g")
    node.crash()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kafka_shim.group.replay.replay", no_memory_left)
        node.advance(1000)
    assert partition not in node.loader.by_partition
    assert node.loader.reading == {}
    assert node.committed("g", "t") == (7, 0)


def test_a_change_that_waited_for_a_load_is_made_although_memory_ended_in_it(node: Node) -> None:
    """A marker, mostly: what is served without it says that its transaction is open."""
    node.commit("g", "t", 7)
    partition = node.groups.partition_for("g")
    node.crash()
    made: list[str] = []

    def change(_: object) -> None:
        made.append("once" if made else "without memory")
        if made == ["without memory"]:
            raise MemoryError

    node.loader.when_read(partition, change)
    with pytest.raises(MemoryError):
        node.committed("g", "t")
    assert node.committed("g", "t") == (7, 0)
    assert made == ["without memory", "once"]


@pytest.mark.parametrize("failing", ["after_step", "timer", "choice", "replay"])
def test_partitions_are_loaded_unasked_although_memory_ended_between_two_steps(node: Node, failing: str) -> None:
    joined = node.member("g")
    node.sync("g", joined, {joined.member_id: b"a"})
    node.crash()
    with pytest.MonkeyPatch.context() as patch:
        if failing == "after_step":
            patch.setattr(node.loader, "after_step", no_memory_left)
        elif failing == "timer":
            patch.setattr(node.loader, "_wake", no_memory_left)
        elif failing == "replay":
            patch.setattr("kafka_shim.group.replay.replay", no_memory_left)
        else:
            patch.setattr(node.loader, "_log", no_memory_left)
        with contextlib.suppress(MemoryError):
            node.clock.advance(1000)
    node.advance(RECOVER_EVERY_MS + 1000)
    assert sorted(node.loader.by_partition) == list(range(node.groups._runtime.partitions.count()))
    node.advance(SESSION_MS)
    assert node.groups.find("g").members == {}


def test_who_has_a_response_that_found_no_memory_on_its_way_is_sent_it_when_the_partition_is_dropped(
    node: Node,
) -> None:
    runtime = node.groups._runtime
    delayed = DelayedResponse(lambda code: code)

    async def main() -> object:
        answer = runtime.answer(delayed, "g")
        assert answer is delayed
        waiting = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        delayed.complete("response")
        groups = runtime.groups_of("g")
        groups.is_current = False
        assert runtime.groups_of("g") is not groups
        return (await asyncio.wait_for(waiting, PATIENCE_S)).response

    assert node.loop.run_until_complete(main()) == "response"
