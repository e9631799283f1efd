"""Heartbeats by which a member only stays are answered from frame to frame in `cext.plain_heartbeats`. The answers, and
the timers, must be those of the handlers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, Api
from kafka_shim.api.controller import CONTROLLER_TABLE
from kafka_shim.embedded import Broker
from kafka_shim.group.classic_requests import ClassicRequests
from kafka_shim.group.decision import SESSION
from kafka_shim.targets.requests import make, protocols
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

CLASSIC, CONSUMER = 12, 68
LAST = {CLASSIC: 4, CONSUMER: 1}
SESSION_MS = 30_000
# By how much a timer may have been moved before it is looked at.
SLACK_MS = 10_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers, timeout_s=60) as connection:
        make_topic(connection, "t", 2)
        connection.request(make("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
        yield connection


class Ways:
    """Has both ways of an API serve the same request."""

    def __init__(self, broker: Broker, client: Connection, key: int) -> None:
        self.api: Api = TABLE[key]
        if not self.api.is_loaded:
            self.api.load()
        self._broker, self._client = broker, client
        self._plain, self._handle = self.api.plain, self.api.handle
        assert self._plain is not None
        self.served: Counter[str] = Counter()
        self.api.handle = self._counted

    def _counted(self, context: Any, request: Any) -> Any:
        self.served["handler"] += 1
        return self._handle(context, request)

    def ask(self, request: Any, version: int) -> Any:
        """The answer, the same by both ways; each moves the session's timer, or neither does."""
        found = []
        timers = self._broker.state.groups.classic._runtime.timers
        timer = request.group_id, SESSION, request.member_id
        for plain in (self._plain, None):
            self.api.plain = plain
            is_known = self._broker.call(lambda: timers.due_in_ms(timer) is not None)
            if is_known:
                self._broker.call(timers.schedule, timer, 1_000_000)
            before = self.served["handler"]
            answer = self._client.request(request, version)
            if plain is not None and self.served["handler"] == before:
                self.served["short"] += 1
            due_ms = self._broker.call(timers.due_in_ms, timer)
            is_moved = due_ms is not None and due_ms < 1_000_000 - SLACK_MS
            found.append((repr(answer), is_moved))
        assert found[0] == found[1]
        return answer, is_moved

    def restore(self) -> None:
        self.api.plain, self.api.handle = self._plain, self._handle


@pytest.fixture
def classic(broker: Broker, client: Connection) -> Iterator[Ways]:
    ways = Ways(broker, client, CLASSIC)
    yield ways
    ways.restore()


@pytest.fixture
def consumer(broker: Broker, client: Connection) -> Iterator[Ways]:
    ways = Ways(broker, client, CONSUMER)
    yield ways
    ways.restore()


def join(client: Connection, group: str, instance_id: str | None = None) -> dict[str, Any]:
    """A member of a stable classic group."""
    fields: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
        "group_instance_id": instance_id,
    }
    given = client.request(make("JoinGroup", **fields), 5)
    if given.error_code:  # the member id comes first
        given = client.request(make("JoinGroup", member_id=given.member_id, **fields), 5)
    who = {"group_id": group, "generation_id": given.generation_id, "member_id": given.member_id}
    assert client.request(make("SyncGroup", **who, group_instance_id=instance_id), 3).error_code == 0
    return who


@pytest.mark.parametrize("version", range(5))
def test_a_classic_member_stays(client: Connection, classic: Ways, version: int) -> None:
    who = join(client, f"stays-{version}")
    answer, is_moved = classic.ask(make("Heartbeat", **who), version)
    assert (answer.error_code, is_moved, classic.served["short"]) == (0, True, 1)


def test_the_handler_answers_where_memory_ends(
    client: Connection, classic: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection was closed instead."""
    who = join(client, "memory")

    def keep(*arguments: Any) -> bool:
        raise MemoryError

    monkeypatch.setattr(ClassicRequests, "keep", keep)
    assert client.request(make("Heartbeat", **who), 4).error_code == 0
    assert classic.served == {"handler": 1}


def test_whatever_else_a_classic_heartbeat_may_be(client: Connection, classic: Ways) -> None:
    """Other groups, members, generations and instances, in each version."""
    chance = random.Random(1)
    plain, static, foreign = join(client, "plain"), join(client, "static", "one"), join(client, "é")
    rebalancing = join(client, "rebalancing")
    with Connection(classic._broker.bootstrap_servers) as second:
        fields = {
            "group_id": "rebalancing",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": 30_000,
            "protocol_type": "consumer",
            "protocols": protocols("range"),
        }
        second.send(make("JoinGroup", **fields), 3)
        while classic.ask(make("Heartbeat", **rebalancing), 4)[0].error_code == 0:
            pass
        codes: Counter[int] = Counter()
        for number in range(300):
            who = dict(chance.choice([plain, static, foreign, rebalancing]))
            version = number % 5
            who["generation_id"] += chance.choice([0, 0, 0, 1])
            who["member_id"] = chance.choice([who["member_id"]] * 6 + ["", "nobody", "é"])
            who["group_id"] = chance.choice([who["group_id"]] * 9 + ["", "nowhere"])
            if version >= 3:
                who["group_instance_id"] = chance.choice([None, None, "one", "two", ""])
            codes[classic.ask(make("Heartbeat", **who), version)[0].error_code] += 1
    assert len(codes) >= 5
    assert classic.served["short"] > 30


def test_a_member_of_the_consumer_protocol_stays(client: Connection, consumer: Ways) -> None:
    for version in (0, 1):
        who = {"group_id": f"modern-{version}", "member_id": "m"}
        first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": []}
        joined = client.request(make("ConsumerGroupHeartbeat", **who, **first, subscribed_topic_names=["t"]), 1)
        answer, is_moved = consumer.ask(
            make("ConsumerGroupHeartbeat", **who, member_epoch=joined.member_epoch), version
        )
        assert (answer.error_code, answer.member_epoch, is_moved) == (0, joined.member_epoch, True)
        assert consumer.served["short"] == version + 1


def test_whatever_else_a_heartbeat_of_the_consumer_protocol_may_be(client: Connection, consumer: Ways) -> None:
    who = {"group_id": "settled", "member_id": "m"}
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": []}
    joined = client.request(make("ConsumerGroupHeartbeat", **who, **first, subscribed_topic_names=["t"]), 1)
    epoch = joined.member_epoch
    old = join(client, "classic")
    said: list[dict[str, Any]] = [
        {},
        {"member_epoch": epoch + 1},
        {"member_epoch": -3},
        {"member_id": "nobody"},
        {"member_id": ""},
        {"group_id": ""},
        {"group_id": "nowhere"},
        {"group_id": "é"},
        {"group_id": "classic", "member_id": old["member_id"]},
        {"rack_id": ""},
        {"server_assignor": "none such"},
        {"rebalance_timeout_ms": 30_000},
        {"subscribed_topic_names": ["t"]},
        {"subscribed_topic_regex": ""},
        {"topic_partitions": []},
        {"instance_id": "x"},
    ]
    codes: Counter[int] = Counter()
    for fields in said:
        for version in (0, 1):
            if version == 0 and "subscribed_topic_regex" in fields:
                continue
            request = make("ConsumerGroupHeartbeat", **{**who, "member_epoch": epoch, **fields})
            codes[consumer.ask(request, version)[0].error_code] += 1
    assert len(codes) >= 5
    assert consumer.served["short"] == 2
    with Connection(consumer._broker.bootstrap_servers, client_id="another") as other:
        # The member's client is another now, which is recorded.
        request = make("ConsumerGroupHeartbeat", **who, member_epoch=epoch)
        before = consumer.served["handler"]
        consumer.api.plain = consumer._plain
        assert other.request(request, 1).error_code == 0
        assert consumer.served["handler"] == before + 1
        assert other.request(request, 1).error_code == 0
        assert consumer.served["handler"] == before + 1


def test_the_group_that_waits_for_others_is_left_to_the_handler(client: Connection, consumer: Ways) -> None:
    """A second member came: the group's epoch is ahead of the first's."""
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
    epochs = {}
    for member_id in ("a", "b"):
        request = make("ConsumerGroupHeartbeat", group_id="two", member_id=member_id, **first)
        epochs[member_id] = client.request(request, 1).member_epoch
    request = make("ConsumerGroupHeartbeat", group_id="two", member_id="a", member_epoch=epochs["a"])
    assert client.request(request, 1).error_code == 0
    assert consumer.served["handler"] == 3


def test_the_controller_serves_none() -> None:
    assert CLASSIC not in CONTROLLER_TABLE
    assert CONSUMER not in CONTROLLER_TABLE
