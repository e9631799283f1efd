"""JoinGroup and SyncGroup of members that only wait, or whose assignment is there, are served from frame to frame in
`cext.plain_joins` and `cext.plain_syncs`. The answers, the group and its timers must be those of the handlers."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_shim import scheduler
from kafka_shim.api import TABLE
from kafka_shim.cext.messages import decode
from kafka_shim.cext.replies import DelayedBase
from kafka_shim.dispatch import Dispatcher
from kafka_shim.embedded import Broker
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_state import COMPLETING, PREPARING
from kafka_shim.group.decision import JOIN
from kafka_shim.protocol.headers import encode_request_frame, response_class
from kafka_shim.session import Listener, Session
from kafka_shim.targets.requests import make, protocols
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP = 11, 13, 14
STEPS, SEEDS = 300, range(6)
FLEXIBLE = {JOIN_GROUP: 6, LEAVE_GROUP: 4, SYNC_GROUP: 4}
ID = re.compile(rb"(c-|-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Of a member.
FIELDS = ("instance_id", "client_id", "client_host", "protocols", "assignment", "is_new")
TIMES = ("session_timeout_ms", "rebalance_timeout_ms")
# The time between two looks at timers that were started with the same delay.
SLACK_MS = 10_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(group_max_size="12") as running, Connection(running.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
        # What is waited for depends on the machine's time otherwise.
        running.call(setattr, running.state.groups._runtime.image, "gathering_ms", 0)
        yield running


class Application:
    """Members of one group that mostly do what they should. What they do is decided by one seed, and each id that they
    are given is told by its number."""

    def __init__(self, broker: Broker, group: str, seed: int) -> None:
        self.broker, self.group, self.chance = broker, group, random.Random(seed)
        self.runtime = broker.state.groups.classic._runtime
        self.dispatcher = Dispatcher(broker.state, TABLE)
        self.session = Session(Listener("PLAINTEXT", "127.0.0.1", 0), ("127.0.0.1", 1), ("127.0.0.1", 2))
        self.numbers: dict[bytes, bytes] = {}
        self.ids: list[str] = []
        self.joined: dict[str, Any] = {}
        self.waiting: list[tuple[int, int, DelayedBase]] = []

    def _told(self, frame: bytes) -> bytes:
        return ID.sub(lambda found: self.numbers.setdefault(found[0], b"%d" % len(self.numbers)), frame)

    def _read(self, key: int, version: int, frame: bytes) -> bytes:
        answer: Any = decode(response_class(key), version, frame, 8 + (version >= FLEXIBLE[key]))
        if key == JOIN_GROUP and answer.member_id:
            if answer.generation_id > 0:
                self.joined[answer.member_id] = answer
            if answer.member_id not in self.ids:
                self.ids.append(answer.member_id)
        return self._told(frame)

    def _ask(self, request: Any, version: int) -> bytes:
        client_id = self.chance.choice([None, "c", "c"])
        frame = encode_request_frame(request, version, self.chance.randrange(1000), client_id)
        reply = self.dispatcher.handle(self.session, memoryview(frame)[4:])
        assert reply is not None
        if reply.delayed is None:
            assert reply.parts is not None
            return self._read(request.API_KEY, version, b"".join(reply.parts))
        self.waiting.append((request.API_KEY, version, reply.delayed))
        return b"waits"

    def _came(self) -> Iterator[bytes]:
        for entry in list(self.waiting):
            key, version, delayed = entry
            if delayed.outcome is not None:
                self.waiting.remove(entry)
                parts = self.dispatcher.completed(delayed).parts
                assert parts is not None
                yield self._read(key, version, b"".join(parts))

    def _fields(self, member_id: str) -> dict[str, Any]:
        names = self.chance.choice([["range"]] * 30 + [["range", "sticky"], ["é"], ["other"], []])
        return {
            "group_id": self.group,
            "member_id": member_id,
            "session_timeout_ms": self.chance.choice([30_000] * 30 + [1]),
            "rebalance_timeout_ms": self.chance.choice([30_000, 60_000]),
            "protocol_type": self.chance.choice(["consumer"] * 30 + ["connect"]),
            "protocols": protocols(*names, metadata=b"m" * self.chance.choice([4] * 20 + [300])),
        }

    def first(self) -> bytes:
        return self._ask(make("JoinGroup", **self._fields("")), self.chance.choice([3, 4, 5, 6, 7, 8, 9, 9, 9]))

    def join(self) -> bytes:
        group = self.runtime.groups_of(self.group).by_id.get(self.group)
        awaited = [] if group is None else [*(set(group.members) - group.joining), *group.pending_joins]
        in_order = [each for each in self.ids if each in awaited]
        member_id = self.chance.choice([*self.ids[-2:], *in_order[:8] * 4, "nobody"])
        request = make("JoinGroup", **self._fields(member_id))
        version = self.chance.choice([4, 5, 6, 7, 8, 9])
        if version >= 5 and self.chance.random() < 0.05:
            request.group_instance_id = "static"
        return self._ask(request, version)

    def sync(self) -> bytes:
        if not self.joined:
            return b"none"
        newest = max(each.generation_id for each in self.joined.values())
        known = self.chance.choice([each for each in self.joined.values() if each.generation_id == newest])
        version = self.chance.choice([0, 1, 2, 3, 4, 5, 5])
        request = make("SyncGroup", group_id=self.group, member_id=known.member_id, generation_id=newest)
        if self.chance.random() < 0.1:
            request.generation_id -= 1
        if version >= 5:
            request.protocol_type = self.chance.choice(["consumer"] * 30 + ["wrong", None])
            request.protocol_name = self.chance.choice([known.protocol_name] * 30 + ["wrong", None])
        if known.leader == known.member_id:
            given = {"sticky": b"s"}.get(known.protocol_name, b"r")
            rows = [{"member_id": each.member_id, "assignment": given} for each in known.members]
            request = make("SyncGroup", **{**vars_of(request), "assignments": rows})
        return self._ask(request, version)

    def leave(self) -> bytes:
        ids = self.chance.sample(self.ids, min(len(self.ids), self.chance.choice([1, 1, 2])))
        members = [{"member_id": each} for each in ids] or [{"member_id": "nobody"}]
        return self._ask(make("LeaveGroup", group_id=self.group, members=members), 3)

    async def step(self) -> list[Any]:
        """Do something. Returns the answers that came, in the order of the requests, and what is known afterwards."""
        group = self.runtime.groups_of(self.group).by_id.get(self.group)
        if group is not None and group.state is COMPLETING:
            acts = [self.first, self.join, *[self.sync] * 12, self.leave]
        else:
            is_forming = group is not None and group.state is PREPARING
            acts = [*[self.first] * (1 if is_forming else 4), *[self.join] * 8, *[self.sync] * 2, self.leave]
        act: Callable[[], bytes] = self.chance.choice(acts)
        await asyncio.sleep(0)
        answered = act()
        await self.settle()
        return [act.__name__, answered, *self._came(), self._known()]

    async def settle(self) -> None:
        """Wait for a join that ends the initial delay, which is none, and for what waits for turns of the loop."""
        while self._is_busy():  # noqa: ASYNC110  (a turn of the loop wakes nobody)
            await asyncio.sleep(0)

    def _is_busy(self) -> bool:
        due_ms = self.runtime.timers.due_in_ms((self.group, JOIN, ""))
        return (due_ms is not None and due_ms <= 0) or bool(self.broker.state.groups.classic._turns._waiting)

    def _number(self, member_id: str | None) -> bytes | None:
        return None if member_id is None else self._told(member_id.encode())

    def _known(self) -> Any:
        group = self.runtime.groups_of(self.group).by_id.get(self.group)
        if not isinstance(group, ClassicGroup):
            return group is None
        rows = [
            (self._number(member_id), [getattr(each, name) for name in FIELDS + TIMES], each.is_waiting)
            for member_id, each in group.members.items()
        ]
        timers = {
            (key[1], self._number(key[2])): round((self.runtime.timers.due_in_ms(key) or 0) / SLACK_MS)
            for key in self.runtime.timers._entries
            if key[0] == self.group
        }
        ids = (group.joining, group.pending_syncs, set(group.pending_joins))
        sets = [sorted(self._told(each.encode()) for each in found) for found in ids]
        phase = group.state, group.previous_state, group.generation_id, self._number(group.leader_id), group.protocol
        return rows, timers, phase, sets, group.protocol_counts, group.metadata_bytes, group.new_member_added


def vars_of(request: Any) -> dict[str, Any]:
    names = ("group_id", "member_id", "generation_id", "protocol_type", "protocol_name")
    return {name: getattr(request, name) for name in names}


def run(broker: Broker, group: str, seed: int) -> list[Any]:
    async def main() -> list[Any]:
        members = Application(broker, group, seed)
        return [await members.step() for _ in range(STEPS)]

    found: list[Any] = broker.call(main)
    return found


def test_members_that_wait_and_that_sync_are_served_as_the_handlers_have_it(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled: Counter[int] = Counter()
    answers: Counter[str] = Counter()

    def counted(key: int, handle: Callable[..., Any]) -> Callable[..., Any]:
        def called(context: Any, request: Any) -> Any:
            handled[key] += 1
            return handle(context, request)

        return called

    monkeypatch.setattr(scheduler, "SLICE_US", 10**9)  # else a slow machine leaves a request to the next turn
    for key in (JOIN_GROUP, SYNC_GROUP):
        if not TABLE[key].is_loaded:
            TABLE[key].load()
    for seed in SEEDS:
        with monkeypatch.context() as patch:
            for key in (JOIN_GROUP, SYNC_GROUP):
                patch.setattr(TABLE[key], "handle", counted(key, TABLE[key].handle))
            short = run(broker, f"short-{seed}", seed)
        with monkeypatch.context() as patch:
            for key in (JOIN_GROUP, SYNC_GROUP):
                patch.setattr(TABLE[key], "plain", None)
            whole = run(broker, f"whole-{seed}", seed)
        for number, (one, other) in enumerate(zip(short, whole, strict=True)):
            assert one == other, f"seed {seed}, step {number}"
        answers.update(step[0] for step in short)
    assert answers["first"] + answers["join"] - handled[JOIN_GROUP] > 200, (handled, answers)
    assert answers["sync"] - handled[SYNC_GROUP] > 100, (handled, answers)


class Short(dict[str, None]):
    """Has no memory for a change."""

    def pop(self, *arguments: Any) -> Any:
        raise MemoryError


def test_the_groups_are_read_again_where_memory_ends_in_a_join_that_waits(broker: Broker) -> None:
    async def main() -> tuple[Any, ...]:
        members = Application(broker, "no memory", 0)
        fields = {**members._fields(""), "session_timeout_ms": 30_000, "protocol_type": "consumer"}
        fields["protocols"] = protocols("range")
        for member_id in ("", "first", "", "second"):
            fields["member_id"] = members.ids[-1] if member_id else ""
            if member_id == "second":
                group = members.runtime.groups_of("no memory").by_id["no memory"]
                group.enter(PREPARING, 0)
                group.pending_joins = Short(group.pending_joins)
            members._ask(make("JoinGroup", **fields), 9)
            await members.settle()
            list(members._came())
        again = members.runtime.groups_of("no memory").by_id.get("no memory")
        return again is not group, len(members.waiting), "no memory" in members.runtime.purgatory.values()

    assert broker.call(main) == (True, 0, False)


def test_a_new_group_has_gathered_with_the_last_who_has_an_id(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[int]:
        monkeypatch.setattr(broker.state.groups._runtime.image, "gathering_ms", 10**9)
        members = Application(broker, "gathered", 0)
        fields = {**members._fields(""), "session_timeout_ms": 30_000, "protocol_type": "consumer"}
        fields["protocols"] = protocols("range")
        for member_id in ("", "", "first", "second"):
            fields["member_id"] = members.ids[len(member_id) == 6] if member_id else ""
            members._ask(make("JoinGroup", **fields), 9)
            await members.settle()
            came = list(members._came())
            assert bool(came) is (member_id == "second"), "nobody is left out"
        return [answer.generation_id for answer in members.joined.values()]

    assert broker.call(main) == [1, 1]
