"""Random requests of both protocols in one group: nothing but Kafka's codes, one owner a partition, and what is in
memory is what the log says."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from kafka_shim.errors import KafkaError
from kafka_shim.group.classic_state import State
from kafka_shim.group.consumer import ConsumerGroup
from kafka_shim.group.groups import Groups
from kafka_shim.group.replay import replay
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.tests.group.committed import stored_state
from kafka_shim.tests.group.harness import Later, Node, subscription

STEPS = 250
NAMES = "abcde"
TOPICS = ("one", "two")
MOODS = ("modern", "both", "classic")


class Client:
    """One application that behaves, mostly: what it was told last."""

    def __init__(self, node: Node, name: str, source: random.Random) -> None:
        self.node = node
        self.name = name
        self.random = source
        self.instance_id = f"i-{name}" if source.random() < 0.3 else None
        # The consumer protocol's.
        self.epoch = 0
        self.owned: dict[bytes, set[int]] = {}
        # The classic protocol's.
        self.joined: Any = None
        self.waits: Later | None = None

    def act(self, mood: str) -> None:
        if (mood == "classic" and self.epoch) or (mood == "modern" and self.joined is not None):
            self.leave()
        mine = {"modern": (self.stay,), "classic": (self.classic,), "both": (self.stay, self.classic)}[mood]
        self.random.choice((*mine * 4, self.leave, self.commit))()

    def stay(self) -> None:
        said: dict[str, Any] = {"topic_partitions": self.owned}
        if self.epoch == 0 or self.random.random() < 0.2:
            topics = self.random.choice((["one"], ["one", "two"], []))
            said["subscribed_topic_names"] = topics
            said["subscribed_topic_regex"] = "" if topics else "o.*"
        if self.epoch == 0:
            said["topic_partitions"] = []
            said["server_assignor"] = self.random.choice((None, "range", "uniform"))
        try:
            answer = self.node.modern("g", f"m-{self.name}", self.epoch, instance_id=self.instance_id, **said)
        except KafkaError:
            self.epoch, self.owned = 0, {}
            raise
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {bytes(each.topic_id): set(each.partitions) for each in answer.assignment.topic_partitions}

    def leave(self) -> None:
        epoch, self.epoch, self.owned = self.epoch, 0, {}
        if self.joined is not None:
            joined, self.joined = self.joined, None
            self.node.leave("g", joined.member_id)
        if epoch:
            for_now = self.instance_id is not None and self.random.random() < 0.5
            self.node.modern("g", f"m-{self.name}", -2 if for_now else -1, instance_id=self.instance_id)

    def classic(self) -> None:
        if self.waits is not None:
            if not self.waits.is_done:
                return
            answer, self.waits = self.waits.response, None
            self.joined = None if answer.error_code else answer
        fields: dict[str, Any] = {"protocols": (("range", subscription("one")),), "group_instance_id": self.instance_id}
        if self.joined is None:
            answer = self.node.join("g", **fields)
            if not isinstance(answer, Later) and answer.member_id and answer.error_code:
                answer = self.node.join("g", answer.member_id, **fields)
        elif self.random.random() < 0.5:
            answer = self.node.join("g", self.joined.member_id, **fields)
        else:
            given = {each.member_id: b"" for each in self.joined.members}
            self.node.sync("g", self.joined, given, group_instance_id=self.instance_id)
            self.node.beat("g", self.joined, group_instance_id=self.instance_id)
            return
        if isinstance(answer, Later):
            self.waits = answer
        else:
            self.joined = None if answer.error_code else answer

    def commit(self) -> None:
        if self.epoch:
            self.node.commit("g", "one", 1, f"m-{self.name}", self.epoch)
        elif self.joined is not None:
            self.node.commit("g", "one", 1, self.joined.member_id, self.joined.generation_id)
        else:
            self.node.commit("g", "one", 1)


def check(group: ConsumerGroup) -> None:
    members = group.members.values()
    held = [
        (topic_id, partition)
        for member in members
        for epochs in (member.assigned, member.pending_revocation)
        for topic_id, found in epochs.items()
        for partition in found
    ]
    assert len(held) == len(set(held)), "a partition has two owners"
    owners = {(topic_id, partition) for topic_id, found in group.owners.items() for partition in found}
    assert owners == set(held)
    wanted = [(topic, each) for found in group.target.values() for topic, numbers in found.items() for each in numbers]
    assert len(wanted) == len(set(wanted)), "a partition has two targets"
    assert group.target.keys() <= group.members.keys()
    assert group.classic_count == sum(member.uses_classic for member in members)
    assert set(group.static_members.values()) <= group.members.keys()


def replayed(node: Node) -> Groups:
    steps = replay(node.logs.get(TOPIC, node.groups.partition_for("g")))
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Groups = done.value
            return found


@pytest.mark.parametrize("seed", range(6))
def test_random_requests_leave_a_group_that_its_log_tells(node: Node, seed: int) -> None:
    source = random.Random(seed)
    for name in TOPICS:
        node.topic(name, 3)
    clients = [Client(node, name, source) for name in NAMES]
    kinds, mood = set(), ""
    for step in range(STEPS):
        if step % 40 == 0:
            mood = MOODS[(step // 40 + seed) % len(MOODS)]
        with suppress(KafkaError):
            source.choice(clients).act(mood)
        if source.random() < 0.3:
            node.advance(source.choice((0, 300, 1000, 6000)))
        if step == STEPS // 2:
            node.metadata.create_partitions("one", 5)
        group = node.groups.find("g")
        if group is None:
            continue
        kinds.add(group.TYPE)
        if isinstance(group, ConsumerGroup):
            check(group)
        if step % 10 == 0 and (isinstance(group, ConsumerGroup) or group.state in (State.STABLE, State.EMPTY)):
            live = stored_state(node.loader.groups(node.groups.partition_for("g")))
            assert stored_state(replayed(node))["g"] == live["g"], f"step {step}"
    assert kinds == {"classic", "consumer"}, "both protocols had their turn"
    node.advance(120_000)
    assert node.state("g") == "Empty"
    assert len(node.timers) == 0
