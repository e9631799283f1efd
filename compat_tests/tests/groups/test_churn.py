"""A chain of three stages with three consumers each, while members come and go: nothing is lost (D16).

Every record goes through all stages. A stage may see one twice only where at-least-once allows it: its member was
killed, or its commit was refused because a rebalance had begun. No live member is ever told that it is unknown.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.compat.groups.process import Member, Members
from kafka_shim.targets import Target, make
from kafka_shim.targets.waiting import PATIENCE_S, wait_until

STAGES = 3
PARTITIONS = 6
# Records that members read, in all stages together, before one comes or goes again.
A_BIT = 150
# What a killed member held is read this much later. A live one stands still for seconds on a busy machine, and may not
# be given up meanwhile.
SESSION_MS = 30_000
# A member may be told these when it commits into a rebalance; UNKNOWN_MEMBER_ID and a fenced epoch are not among them.
ALLOWED = {"REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "_ASSIGNMENT_LOST"}


@pytest.fixture
def target() -> Iterator[Target]:
    settings = {
        "group.consumer.min.session.timeout.ms": "3000",
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.heartbeat.interval.ms": "200",
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.assignment.interval.ms": "200",
    }
    with make(os.environ.get("KAFKA_SHIM_TARGET", "shim"), settings=settings) as started:
        yield started


class Chain:
    """Topics t0 to t3, and the members of the group of each stage."""

    def __init__(self, target: Target, kind: str, seed: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        run = os.urandom(3).hex()
        self.topics = [f"chain-{run}-{number}" for number in range(STAGES + 1)]
        admin = AdminClient({"bootstrap.servers": target.bootstrap})
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in self.topics]).values():
            made.result(30)
        self.bootstrap = target.bootstrap
        self.kind = kind
        self.members = Members(target.bootstrap, session=SESSION_MS)
        self.stages: list[list[Member]] = [[] for _ in range(STAGES)]
        self.random = random.Random(seed)
        self.kills = 0
        self.sent: list[str] = []
        for stage in range(STAGES):
            for _ in range(3):
                self.start(stage)

    def start(self, stage: int) -> None:
        group = f"{self.topics[stage]}-group"
        self.stages[stage].append(
            self.members.start(self.kind, group, self.topics[stage], forward=self.topics[stage + 1])
        )

    def produce(self, until: threading.Event) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        while not until.is_set():
            for _ in range(20):
                value = f"v{len(self.sent)}"
                self.sent.append(value)
                producer.produce(self.topics[0], value)
            producer.poll(0)
            time.sleep(0.1)
        assert producer.flush(30) == 0

    def step(self) -> None:
        """One member comes or goes."""
        stage = self.random.randrange(STAGES)
        members = self.stages[stage]
        if len(members) < 2 or (len(members) < 4 and self.random.random() < 0.5):
            self.start(stage)
            return
        member = members.pop(self.random.randrange(len(members)))
        if self.random.random() < 0.3:
            self.kills += 1
            member.kill()
        else:
            member.stop()

    def read(self) -> int:
        """The number of records that the members of all stages have told of."""
        return sum(len(member.records) for member in self.members.all)

    def arrived(self) -> list[str]:
        """Everything in the last topic."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.partition.eof": True})
        consumer.assign([TopicPartition(self.topics[-1], number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        found: list[str] = []
        ends = 0
        while ends < PARTITIONS:
            message: Any = consumer.poll(PATIENCE_S)
            assert message is not None, "the last topic does not end"
            if message.error():
                ends += 1
            else:
                found.append(message.value().decode())
        consumer.close()
        return found


@pytest.mark.parametrize("steps", [15, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", ["confluent", "confluent-consumer"])
def test_nothing_is_lost_while_members_come_and_go(kind: str, steps: int, target: Target) -> None:
    chain = Chain(target, kind, seed=len(kind))
    ended = threading.Event()
    source = threading.Thread(target=chain.produce, args=(ended,))
    try:
        source.start()
        for _ in range(steps):
            before = chain.read()
            chain.step()
            wait_until(lambda before=before: chain.read() >= before + A_BIT, "records go on between changes", 60)
        ended.set()
        source.join()
        wait_until(lambda: set(chain.sent) <= set(chain.arrived()), "everything arrives")
        found = chain.arrived()
        assert set(found) == set(chain.sent)
        errors = {error for member in chain.members.all for error in member.errors}
        assert errors <= ALLOWED
        if not chain.kills and not errors:
            assert len(found) == len(chain.sent)
        for stage in chain.stages:
            for member in stage:
                member.stop()
    finally:
        ended.set()
        source.join()
        chain.members.close()
