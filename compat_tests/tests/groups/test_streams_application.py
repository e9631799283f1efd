"""Kafka Streams with both protocols of groups: a topology with a repartition and a changelog topic, exactly once, two
instances of which one is killed and comes back. Each count of each value is in the output once, on both brokers.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.compat.groups.streams_application import StreamsApplication
from kafka_shim.compat.groups.task_assignor_driver import TaskAssignorDriver, random_case
from kafka_shim.compat.tests.groups.conftest import wait_for_coordinator
from kafka_shim.targets import Target, jvm, make
from kafka_shim.targets.requests import make as make_request
from kafka_shim.targets.waiting import right_answer
from kafka_shim.tests.group.task_assignor_cases import answer
from kafka_shim.wire_client import Connection

PARTITIONS = 4
# A killed instance is gone after seconds, and a second one is taken in at once.
SETTINGS = {
    "group.min.session.timeout.ms": "3000",
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "500",
}
CLASSIC = {"consumer_session_timeout_ms": "6000", "consumer_heartbeat_interval_ms": "300"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Target]:
    with make("shim", settings=SETTINGS) as started:
        yield started


class Work:
    """The topics of one application, what is put in and what must come out."""

    def __init__(self, target: Target, folder: Path, protocol: str, seed: int = 1) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.name = f"counting-{os.urandom(3).hex()}"
        self.source, self.sink = f"{self.name}-in", f"{self.name}-out"
        self.target = target
        self.folder = folder
        self.protocol = protocol
        self.expected: Counter[str] = Counter()
        self._random = random.Random(seed)
        admin = AdminClient({"bootstrap.servers": target.bootstrap})
        for made in admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in (self.source, self.sink)]).values():
            made.result(30)

    def put(self, count: int) -> None:
        """Puts records in."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.target.bootstrap})
        for number in range(count):
            value = f"w{self._random.randrange(20)}"
            self.expected[value] += 1
            producer.produce(self.source, value, key=f"k{number}")
        assert producer.flush(60) == 0

    def instance(self, name: str) -> StreamsApplication:
        options = {"group_protocol": self.protocol, **(CLASSIC if self.protocol == "classic" else {})}
        where = self.folder / f"{self.name}-{name}"
        return StreamsApplication(self.target.bootstrap, self.name, self.source, self.sink, where, **options)

    def check(self, timeout_s: float = 90) -> None:
        """Waits until all counts are there, and sees that each is there once."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {"bootstrap.servers": self.target.bootstrap, "group.id": "looks", "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(self.sink, number, 0) for number in range(PARTITIONS)])
        found: list[tuple[str, int]] = []
        deadline = time.monotonic() + timeout_s
        while len(found) < self.expected.total() and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.5):
                assert message.error() is None
                found.append((message.key().decode(), int(message.value())))
        consumer.close()
        wanted = [(value, number) for value, count in self.expected.items() for number in range(1, count + 1)]
        assert Counter(found) == Counter(wanted)


def run(target: Target, folder: Path, protocol: str, records: int) -> Work:
    """Two instances; one is killed under way and comes back on its state, the other leaves."""
    work = Work(target, folder, protocol)
    work.put(records)
    with ExitStack() as stack:
        first = stack.enter_context(work.instance("one"))
        second = stack.enter_context(work.instance("two"))
        first.wait_until_running()
        second.wait_until_running()
        work.put(records)
        first.kill()
        work.put(records)
        again = stack.enter_context(work.instance("one"))
        again.wait_until_running()
        work.put(records)
        work.check()
        if protocol == "streams":
            check_described(target, work, members=2)
        second.close()
        work.put(records)
        work.check()
    return work


def check_described(target: Target, work: Work, members: int) -> None:
    """The API tells of the group, once each member has its tasks."""
    with Connection(target.bootstrap) as connection:
        asked = make_request("StreamsGroupDescribe", group_ids=[work.name])
        group: Any = right_answer(
            lambda: connection.request(asked, 0).groups[0],
            lambda told: (told.group_state, len(told.members)) == ("Stable", members),
            "the group is stable",
        )
    names = [topic.name for each in group.topology.subtopologies for topic in each.state_changelog_topics]
    assert names == [f"{work.name}-counts-changelog"]
    tasks = [
        (each.subtopology_id, number)
        for member in group.members
        for each in member.assignment.active_tasks
        for number in each.partitions
    ]
    assert sorted(tasks) == [(name, number) for name in ("0", "1") for number in range(PARTITIONS)]


def test_streams_application_counts_once(broker: Target, tmp_path: Path) -> None:
    work = run(broker, tmp_path, "streams", 500)
    listed = jvm.tool("kafka-streams-groups", "--bootstrap-server", broker.bootstrap, "--list", "--state")
    assert [line.split() for line in listed.splitlines() if work.name in line] == [[work.name, "Empty"]]
    arguments = ("--bootstrap-server", broker.bootstrap, "--delete", "--group", work.name)
    assert "successful" in jvm.tool("kafka-streams-groups", *arguments, "--delete-all-internal-topics", timeout_s=90)


@pytest.mark.soak
@pytest.mark.parametrize("protocol", ["streams", "classic"])
@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
def test_both_brokers_and_both_protocols_count_once(tmp_path: Path, kind: str, protocol: str) -> None:
    with make(kind, settings=SETTINGS) as target:
        wait_for_coordinator(target)
        run(target, tmp_path, protocol, 5000)


@pytest.mark.parametrize(
    "kinds",
    [
        ("shim", "kafka-native"),
        pytest.param(("shim", "kafka-native", "shim"), marks=pytest.mark.soak),
        pytest.param(("kafka-native", "shim", "kafka-native"), marks=pytest.mark.soak),
    ],
    ids="-then-".join,
)
def test_one_directory(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Apache Kafka goes on with the group where the shim stopped, and the other way."""
    data = tmp_path / "data"
    work = None
    for kind in kinds:
        with make(kind, settings=SETTINGS, data_dir=data) as target:
            wait_for_coordinator(target)
            if work is None:
                work = Work(target, tmp_path, "streams")
            work.target = target
            work.put(200)
            with work.instance("one") as instance:
                instance.wait_until_running()
                work.check()
                check_described(target, work, members=1)


def test_random_groups_are_assigned_as_kafka_assigns_them() -> None:
    source = random.Random(20261122)
    with TaskAssignorDriver() as driver:
        for number in range(1000):
            case = random_case(source)
            assert answer(case) == driver.assign(case), f"case {number}: {case}"
