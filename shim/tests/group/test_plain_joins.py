"""The JoinGroup by which a new member gets its id is answered from frame to frame in `cext.plain_joins`. The answers,
and what the group and its timers know afterwards, must be those of the handler."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, Api
from kafka_shim.embedded import Broker
from kafka_shim.group import classic_join
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.classic_requests import ClassicRequests
from kafka_shim.group.decision import SESSION
from kafka_shim.group.timers import Timers
from kafka_shim.randomness import Randomness
from kafka_shim.targets.requests import make, protocols
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

JOIN_GROUP = 11
MEMBER_ID_REQUIRED = 79
GROUP_MAX_SIZE_REACHED = 81
SESSION_MS = 30_000
# The time between two looks at timers that were started with the same delay.
SLACK_MS = 10_000
# The characters of a uuid behind a dash.
SUFFIX = 37


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(group_max_size="2") as running:
        yield running


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers, timeout_s=60) as connection:
        make_topic(connection, "t", 2)
        connection.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
        yield connection


class Ways:
    """Has both ways serve the same request."""

    def __init__(self, broker: Broker) -> None:
        self.api: Api = TABLE[JOIN_GROUP]
        if not self.api.is_loaded:
            self.api.load()
        self.broker = broker
        self.plain, self._handle = self.api.plain, self.api.handle
        assert self.plain is not None
        self.served: Counter[str] = Counter()
        self.api.handle = self._counted
        runtime = broker.state.groups.classic._runtime
        self._runtime, self._timers = runtime, runtime.timers

    def _counted(self, context: Any, request: Any) -> Any:
        self.served["handler"] += 1
        return self._handle(context, request)

    def group(self, name: str) -> Any:
        return self._runtime.groups_of(name).by_id.get(name)

    def _left(self, group_id: str, member_id: str) -> tuple[Any, ...]:
        """What is known of the group, and of the member that has just got its id. Forgets that member."""
        group = self.group(group_id)
        if not isinstance(group, ClassicGroup):
            return (group is None,)
        due_ms = self._timers.due_in_ms((group_id, SESSION, member_id))
        about = None if due_ms is None else round(due_ms / SLACK_MS), member_id in group.pending_joins
        if member_id in group.pending_joins:
            group.remove(member_id)
            self._timers.cancel((group_id, SESSION, member_id))
        kept = group.state, group.generation_id, list(group.members), list(group.pending_joins), group.leader_id
        return (*about, *kept, group.protocol_counts, group.metadata_bytes)

    def ask(self, client: Connection, request: Any, version: int) -> Any:
        """The answer, the same by both ways, and whether the fast path gave it."""
        found, answers = [], []
        for plain in (self.plain, None):
            self.api.plain = plain
            before = self.served["handler"]
            answer = client.request(request, version)
            answers.append(answer)
            if plain is not None and self.served["handler"] == before:
                self.served["short"] += 1
            left = self.broker.call(self._left, request.group_id, answer.member_id)
            known = answer.member_id
            if answer.error_code == MEMBER_ID_REQUIRED:
                answer.member_id = known[:-SUFFIX]
            found.append((repr(answer), left))
        assert found[0] == found[1]
        return answers[0]

    def restore(self) -> None:
        self.api.plain, self.api.handle = self.plain, self._handle


@pytest.fixture
def ways(broker: Broker) -> Iterator[Ways]:
    both = Ways(broker)
    yield both
    both.restore()


def fields(group: str, **others: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
        **others,
    }


def stable(client: Connection, group: str) -> str:
    """A group of one member. Returns its id."""
    given: Any = client.request(make("JoinGroup", **fields(group)), 5)
    given = client.request(make("JoinGroup", **fields(group, member_id=given.member_id)), 5)
    who = {"group_id": group, "generation_id": given.generation_id, "member_id": given.member_id}
    answer: Any = client.request(make("SyncGroup", **who), 3)
    assert (given.error_code, answer.error_code) == (0, 0)
    return str(given.member_id)


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_member_gets_its_id(client: Connection, ways: Ways, version: int) -> None:
    group = f"new-{version}"
    stable(client, group)
    before = ways.served["handler"]
    answer = ways.ask(client, make("JoinGroup", **fields(group)), version)
    assert (answer.error_code, answer.generation_id) == (MEMBER_ID_REQUIRED, -1)
    assert (ways.served["short"], ways.served["handler"] - before) == (1, 1)


def test_the_id_is_a_client_id_and_a_uuid_and_joins(client: Connection, ways: Ways) -> None:
    """With a client id that is not ASCII, and with none."""
    stable(client, "ids")
    for client_id, start in (("é", "é-"), (None, "-"), ("consumer-1", "consumer-1-")):
        with Connection(ways.broker.bootstrap_servers, client_id=client_id) as other:
            given: Any = other.request(make("JoinGroup", **fields("ids")), 9)
            assert given.member_id.startswith(start)
            assert len(given.member_id) == len(start) + SUFFIX - 1
            group = ways.group("ids")
            assert ways.broker.call(lambda given=given, group=group: list(group.pending_joins)) == [given.member_id]
            ways.broker.call(group.remove, given.member_id)
    assert ways.served["handler"] == 2


def test_whatever_else_a_first_join_may_be(client: Connection, ways: Ways) -> None:
    """Groups of all states and kinds, and each field right and wrong, in each version."""
    chance = random.Random(1)
    stable(client, "stable")
    left = stable(client, "left")
    client.request(make("LeaveGroup", group_id="left", members=[{"member_id": left}]), 3)
    modern = {"group_id": "modern", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 30_000}
    client.request(make("ConsumerGroupHeartbeat", **modern, topic_partitions=[], subscribed_topic_names=["t"]), 1)
    stable(client, "rebalancing")
    with Connection(ways.broker.bootstrap_servers) as second:
        given: Any = second.request(make("JoinGroup", **fields("rebalancing")), 5)
        second.send(make("JoinGroup", **fields("rebalancing", member_id=given.member_id)), 5)
        codes: Counter[int] = Counter()
        for number in range(300):
            version = 4 + number % 6
            said = fields(chance.choice(["stable", "left", "rebalancing"] * 4 + ["modern", ""]))
            said["session_timeout_ms"] = chance.choice([SESSION_MS] * 9 + [1, -1, 2**31 - 1])
            said["protocol_type"] = chance.choice(["consumer"] * 9 + ["connect", ""])
            names = chance.choice([["range"]] * 6 + [["range", "é"], ["other"], [], ["a", "range"], ["x"] * 17])
            said["protocols"] = protocols(*names, metadata=b"m" * chance.choice([0, 1, 300]))
            said["member_id"] = chance.choice([""] * 9 + ["nobody"])
            if version >= 8:
                said["reason"] = chance.choice([None, "", "why", "é"])
            codes[ways.ask(client, make("JoinGroup", **said), version).error_code] += 1
    assert len(codes) >= 5
    assert ways.served["short"] > 60


def test_what_is_full_is_left_to_the_handler(client: Connection, ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    member_id = stable(client, "full")
    group = ways.group("full")
    request = make("JoinGroup", **fields("full", protocols=protocols("range", metadata=b"more")))
    for limit, code in (("MAX_METADATA_BYTES", GROUP_MAX_SIZE_REACHED), ("MAX_PENDING_JOINS", MEMBER_ID_REQUIRED)):
        ways.broker.call(group.pending_joins.update, {"oldest": None})
        before = ways.served["handler"]
        with monkeypatch.context() as patch:
            patch.setattr(classic_join, limit, 1)
            answer: Any = client.request(request, 9)
        assert (answer.error_code, ways.served["handler"]) == (code, before + 1)
    assert ways.broker.call(list, group.pending_joins) == [answer.member_id]
    ways.broker.call(group.members.update, {"another": group.members[member_id]})
    ways.broker.call(group.protocol_counts.update, {"range": 2})
    assert client.request(request, 9).error_code == GROUP_MAX_SIZE_REACHED
    assert ways.served["handler"] == before + 2


def test_a_version_before_member_ids_were_required_is_left_to_the_handler(client: Connection, ways: Ways) -> None:
    given: Any = client.request(make("JoinGroup", **fields("old")), 3)
    assert given.error_code == 0
    assert ways.served["handler"] == 1


class Full(dict[str, None]):
    """Has no memory for one more."""

    def __setitem__(self, key: str, value: None) -> None:
        raise MemoryError


def _no_id(*arguments: Any) -> str:
    raise MemoryError


@pytest.mark.parametrize("where", ["id", "timer", "group"])
def test_the_handler_answers_where_memory_ends(
    client: Connection, ways: Ways, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Nothing of the fast path is left: neither a timer nor an id that nobody got."""
    name = f"memory-{where}"
    stable(client, name)
    group, timers = ways.group(name), ways._timers
    count = ways.broker.call(lambda: len(timers))
    handle: Callable[..., Any] = ways.api.handle
    known = group.pending_joins

    def restored(context: Any, request: Any) -> Any:
        patch.undo()
        group.pending_joins = known
        assert (list(known), len(timers)) == ([], count)
        return handle(context, request)

    ways.api.handle = restored
    with monkeypatch.context() as patch:
        if where == "id":
            patch.setattr(ClassicRequests, "new_id", _no_id)
        elif where == "timer":
            patch.setattr(Timers, "schedule", _no_id)
        else:
            group.pending_joins = Full()
        answer: Any = client.request(make("JoinGroup", **fields(name)), 9)
    ways.api.handle = handle
    assert answer.error_code == MEMBER_ID_REQUIRED
    assert ways.broker.call(lambda: list(group.pending_joins)) == [answer.member_id]
    assert ways.broker.call(lambda: len(timers)) == count + 1


def test_a_broker_with_metrics_counts_the_code_of_its_answers() -> None:
    with (
        Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t", 2)
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
        stable(client, "measured")
        times = broker.call(lambda: broker._server._dispatcher.times[JOIN_GROUP])
        before = dict(times.errors)
        ways = Ways(broker)
        try:
            for version in (5, 9):
                client.request(make("JoinGroup", **fields("measured")), version)
        finally:
            ways.restore()
        assert not ways.served, "the handler answered"
        after = {code: count - before.get(code, 0) for code, count in times.errors.items()}
        assert after == {MEMBER_ID_REQUIRED: 2, 0: 0}


def test_the_ids_of_many_members_are_different_and_read_from_the_system_at_once(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stable(client, "many-ids")
    sizes: list[int] = []
    bytes_of = Randomness.bytes_of
    monkeypatch.setattr(Randomness, "bytes_of", lambda self, size: sizes.append(size) or bytes_of(self, size))
    found = {client.request(make("JoinGroup", **fields("many-ids")), 9).member_id for _ in range(130)}
    assert len(found) == 130
    assert len(sizes) <= 3


def test_members_of_two_groups_by_turns_come_to_their_own(client: Connection, ways: Ways) -> None:
    """Of the same length, and one of them not ASCII: what the last request said is looked at first."""
    groups = ("turn-1", "turn-2", "turn-é")
    members = {group: stable(client, group) for group in groups}
    before = ways.served["handler"]
    for group in groups * 2:
        given: Any = client.request(make("JoinGroup", **fields(group)), 9)
        known = ways.broker.call(ways.group, group)
        assert (list(known.members), given.member_id in known.pending_joins) == ([members[group]], True)
    assert ways.served["handler"] - before == 2  # those that are not ASCII
