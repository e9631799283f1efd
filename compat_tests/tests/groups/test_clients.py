"""Real consumers in groups: join, rebalance on join, leave, crash and topic growth, static restart, a broker killed.

Each consumer is a process; what it prints is what it consumed. It commits after printing, so that what is printed twice
is what at-least-once allows, and nothing may be missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kafka_shim.compat.groups.process import Member, Members, covers
from kafka_shim.targets import Target, make
from kafka_shim.targets.waiting import wait_until

CLASSIC = ["kafka-python", "aiokafka", "confluent", "java"]
MODERN = ["confluent-consumer", "java-consumer"]
PARTITIONS = 4
# A commit that meets a rebalance is told so; cooperative consumers go on reading meanwhile.
IN_REBALANCE = {
    "RebalanceInProgressException",
    "RebalanceInProgressError",
    "REBALANCE_IN_PROGRESS",
    "ILLEGAL_GENERATION",  # librdkafka, when the commit left before the join's answer came
}


SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "200",
}
# What a session takes where a test waits for its end. Elsewhere none may end: on a busy machine a member stands still
# for seconds, and a static one takes as long to start again.
SHORT_SESSION = {"group.consumer.min.session.timeout.ms": "3000", "group.consumer.session.timeout.ms": "6000"}
LONG_SESSION_MS = 60_000


@pytest.fixture(scope="module")
def shim() -> Iterator[Target]:
    settings = {**SETTINGS, "group.consumer.session.timeout.ms": str(LONG_SESSION_MS)}
    with make(os.environ.get("KAFKA_SHIM_TARGET", "shim"), settings=settings) as started:
        yield started


@pytest.fixture
def members(shim: Target) -> Iterator[Members]:
    made = Members(shim.bootstrap, session=LONG_SESSION_MS)
    yield made
    made.close()


class Source:
    """A topic and what was produced to it."""

    def __init__(self, target: Target, name: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.name = f"{name}-{os.urandom(3).hex()}"
        self.values: list[str] = []
        self._target = target
        self._admin = AdminClient({"bootstrap.servers": target.bootstrap})
        self._admin.create_topics([NewTopic(self.name, PARTITIONS, 1)])[self.name].result(30)

    def produce(self, count: int, partitions: int = PARTITIONS) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._target.bootstrap, "linger.ms": 1})
        for number in range(count):
            value = f"{self.name}:{len(self.values)}"
            self.values.append(value)
            producer.produce(self.name, value, partition=number % partitions)
        assert producer.flush(30) == 0

    def grow(self, total: int) -> None:
        from confluent_kafka.admin import NewPartitions

        self._admin.create_partitions([NewPartitions(self.name, total)])[self.name].result(30)

    def all_in(self, *consumers: Member) -> bool:
        return set(self.values) <= {value for each in consumers for value in each.values}


@pytest.fixture
def source(shim: Target, request: pytest.FixtureRequest) -> Source:
    made = Source(shim, "source")
    made.produce(200)
    return made


def assert_exactly(source: Source, *consumers: Member) -> None:
    """Each record once: nothing was interrupted between its print and its commit."""
    assert sorted(value for each in consumers for value in each.values) == sorted(source.values)


@pytest.mark.parametrize("kind", [*CLASSIC, *MODERN])
def test_members_share_lose_and_regain_partitions(kind: str, members: Members, source: Source) -> None:
    first = members.start(kind, source.name, source.name)
    wait_until(lambda: source.all_in(first), "the first member reads all")
    second = members.start(kind, source.name, source.name)
    wait_until(lambda: covers([first, second], source.name, PARTITIONS), "two members share")
    source.produce(200)
    wait_until(lambda: source.all_in(first, second), "both read on")
    first.stop()
    wait_until(lambda: covers([second], source.name, PARTITIONS), "the second takes over")
    source.produce(100)
    wait_until(lambda: source.all_in(first, second), "the second reads all")
    source.grow(PARTITIONS + 2)
    wait_until(lambda: covers([second], source.name, PARTITIONS + 2), "new partitions are taken")
    source.produce(60, PARTITIONS + 2)
    wait_until(lambda: source.all_in(first, second), "new partitions are read")
    second.stop()
    assert_exactly(source, first, second)
    third = members.start(kind, source.name, source.name)
    wait_until(lambda: covers([third], source.name, PARTITIONS + 2), "a third starts where the others ended")
    source.produce(10, PARTITIONS + 2)
    wait_until(lambda: source.all_in(first, second, third), "and reads what is new")
    third.stop()
    assert_exactly(source, first, second, third)
    assert not first.errors + second.errors + third.errors


@pytest.mark.alone
def test_a_crashed_member_is_replaced_after_its_session() -> None:
    with make(os.environ.get("KAFKA_SHIM_TARGET", "shim"), settings={**SETTINGS, **SHORT_SESSION}) as target:
        members = Members(target.bootstrap)
        try:
            source = Source(target, "source")
            source.produce(200)
            crash_one_of_each_kind(members, source)
        finally:
            members.close()


def crash_one_of_each_kind(members: Members, source: Source) -> None:
    # All kinds at once, each in its group: a session takes as long as it takes.
    kinds = [*CLASSIC, *MODERN]
    groups = {kind: [members.start(kind, f"crash-{kind}", source.name) for _ in range(2)] for kind in kinds}
    for kind, both in groups.items():
        wait_until(lambda both=both: covers(both, source.name, PARTITIONS), f"{kind}: two members share", 60)
        wait_until(lambda both=both: source.all_in(*both), f"{kind}: all is read")
    for first, _ in groups.values():
        first.kill()
    killed = time.monotonic()
    for kind, (_, second) in groups.items():
        wait_until(lambda second=second: covers([second], source.name, PARTITIONS), f"{kind}: the survivor has all")
    assert time.monotonic() - killed < 6 + 3, "session timeout, and a heartbeat or two"
    source.produce(40)
    for kind, (first, second) in groups.items():
        wait_until(lambda both=(first, second): source.all_in(*both), f"{kind}: the survivor reads on")
        second.stop()
        assert not second.errors, kind


@pytest.mark.parametrize("kind", [*CLASSIC, *MODERN])
def test_a_static_member_restarts_without_a_rebalance(kind: str, members: Members, source: Source) -> None:
    other = members.start(kind, source.name, source.name, instance="other")
    one = members.start(kind, source.name, source.name, instance="one")
    wait_until(lambda: covers([other, one], source.name, PARTITIONS), "two members share")
    wait_until(lambda: source.all_in(other, one), "all is read")
    before = list(other.assigned), list(one.assigned)
    one.kill() if kind in CLASSIC else one.stop()
    again = members.start(kind, source.name, source.name, instance="one")
    wait_until(lambda: bool(again.assigned), "it is back")
    assert (other.assigned, again.assigned) == before
    source.produce(40)
    wait_until(lambda: source.all_in(other, one, again), "both read on")
    assert not other.errors + again.errors


@pytest.mark.parametrize(
    ("kind", "assignor"),
    [
        ("kafka-python", "sticky"),
        ("confluent", "cooperative-sticky"),
        ("java", "cooperative-sticky"),
        ("confluent-consumer", "range"),
        pytest.param("kafka-python", "roundrobin", marks=pytest.mark.soak),
        pytest.param("aiokafka", "roundrobin", marks=pytest.mark.soak),
        pytest.param("aiokafka", "sticky", marks=pytest.mark.soak),
        pytest.param("confluent", "roundrobin", marks=pytest.mark.soak),
        pytest.param("java", "roundrobin", marks=pytest.mark.soak),
        pytest.param("java", "sticky", marks=pytest.mark.soak),
        pytest.param("java-consumer", "range", marks=pytest.mark.soak),
    ],
)
def test_every_assignor(kind: str, assignor: str, members: Members, source: Source) -> None:
    both = [members.start(kind, source.name, source.name, assignor=assignor) for _ in range(2)]
    wait_until(lambda: covers(both, source.name, PARTITIONS), "two members share")
    wait_until(lambda: source.all_in(*both), "all is read")
    both[0].stop()
    wait_until(lambda: covers([both[1]], source.name, PARTITIONS), "the other takes over")
    both[1].stop()
    assert set(both[0].errors + both[1].errors) <= IN_REBALANCE


@pytest.mark.parametrize("pair", [("java", "java-consumer"), ("confluent", "confluent-consumer")])
def test_a_group_changes_its_protocol_while_it_runs(pair: tuple[str, str], members: Members, source: Source) -> None:
    classic, modern = pair
    old = members.start(classic, source.name, source.name)
    wait_until(lambda: source.all_in(old), "the classic member reads all")
    new = members.start(modern, source.name, source.name)
    wait_until(lambda: covers([old, new], source.name, PARTITIONS), "both protocols share")
    source.produce(100)
    wait_until(lambda: source.all_in(old, new), "both read on")
    new.stop()
    wait_until(lambda: covers([old], source.name, PARTITIONS), "the group is classic again")
    source.produce(100)
    wait_until(lambda: source.all_in(old, new), "it reads on")
    newer = members.start(modern, source.name, source.name)
    wait_until(lambda: covers([old, newer], source.name, PARTITIONS), "upgraded again")
    old.stop()
    wait_until(lambda: covers([newer], source.name, PARTITIONS), "the last classic member left")
    source.produce(20)
    wait_until(lambda: source.all_in(old, new, newer), "nothing is missing")
    assert_exactly(source, old, new, newer)


def test_a_pattern_follows_the_topics(members: Members, shim: Target) -> None:
    prefix = f"pattern-{os.urandom(3).hex()}"
    first = Source(shim, f"{prefix}-one")
    first.produce(40)
    kinds = ["confluent", "java", *MODERN]
    started = {kind: members.start(kind, f"{prefix}-{kind}", f"^{prefix}-.*") for kind in kinds}
    for kind, member in started.items():
        wait_until(lambda member=member: first.all_in(member), f"{kind}: the topic that was there is read")
    second = Source(shim, f"{prefix}-two")
    second.produce(40)
    for kind, member in started.items():
        # The broker matches again ten seconds after the last time at the earliest.
        wait_until(lambda member=member: second.all_in(member), f"{kind}: the new topic is found")
        member.stop()
        assert sorted(member.values) == sorted(first.values + second.values), kind


def test_groups_go_on_after_the_broker_was_killed() -> None:
    with make("shim", settings={"group.consumer.assignment.interval.ms": "200"}) as target:
        made = Members(target.bootstrap)
        try:
            source = Source(target, "source")
            source.produce(200)
            kinds = ["kafka-python", "aiokafka", "confluent", "confluent-consumer", "java", "java-consumer"]
            started = {kind: made.start(kind, f"g-{kind}", source.name) for kind in kinds}
            for kind, member in started.items():
                wait_until(lambda member=member: source.all_in(member), f"{kind} reads all", 60)
                wait_until(lambda member=member: member.is_committed, f"{kind} commits all", 60)
            target.restart(kill=True)
            source.produce(100)
            for kind, member in started.items():
                wait_until(lambda member=member: source.all_in(member), f"{kind} reads on", 60)
                assert sorted(member.values) == sorted(source.values), f"{kind}: each record once"
        finally:
            made.close()
