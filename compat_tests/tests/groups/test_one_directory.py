"""Groups in one data directory under both brokers: Apache Kafka goes on where the shim stopped, and the other way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kafka_shim.compat.groups.conversations import beat, commit_fields, first_member, modern, stay, sync_fields
from kafka_shim.compat.groups.script import Script
from kafka_shim.compat.tests.groups.conftest import wait_for_coordinator
from kafka_shim.targets import Target, make
from kafka_shim.targets.requests import protocols, subscription


class Work:
    """A classic group, a consumer group and offsets without a group, begun with one broker."""

    def __init__(self, target: Target) -> None:
        wait_for_coordinator(target)
        self._suffix = os.urandom(3).hex()
        script = Script(target.bootstrap, self._suffix)
        topic, classic, consumer = script.topic("t", 3), script.group("classic"), script.group("consumer")
        self._topic, self._classic, self._consumer, self._simple = topic, classic, consumer, script.group("simple")
        mine = {"protocols": protocols("range", metadata=subscription(topic)), "session_timeout_ms": 300_000}
        joined = self._joined = first_member(script, classic, **mine)
        script.ask("SyncGroup", 5, **sync_fields(classic, joined, {joined.member_id: b"\0\0\0\0\0\0\xff\xff\xff\xff"}))
        script.ask("OffsetCommit", 9, **commit_fields(classic, joined, topic, 7))
        modern(script, consumer, subscribed_topic_names=[topic], instance_id="one")
        script.ask("OffsetCommit", 9, **commit_fields(self._simple, None, topic, 9))
        script.ask(
            "OffsetCommit",
            9,
            **commit_fields(consumer, None, topic, 8, member_id="member-a", generation_id_or_member_epoch=2),
        )
        self._told = self._seen(script)
        script.close()

    def _seen(self, script: Script) -> list[Any]:
        """What a broker tells of the groups."""
        first = len(script.said)
        groups = [{"group_id": each, "topics": None} for each in (self._classic, self._consumer, self._simple)]
        script.ask("OffsetFetch", 9, groups=groups)
        script.ask("DescribeGroups", 6, groups=[self._classic])
        script.ask("ConsumerGroupDescribe", 1, group_ids=[self._consumer])
        return script.said[first:]

    def go_on(self, target: Target) -> None:
        """The members' next requests, to another broker."""
        wait_for_coordinator(target)
        script = Script(target.bootstrap, self._suffix)
        script.name(self._topic, "t")
        assert _without_names(self._seen(script)) == _without_names(self._told)
        assert beat(script, self._classic, self._joined).error_code == 0
        answer = stay(script, self._consumer, "member-a", 2, instance_id="one")
        assert (answer.error_code, answer.member_epoch) == (0, 2), "no rebalance: the topics' hash is the same"
        script.close()


def _without_names(said: Any) -> Any:
    """Members by nothing: their ids are told apart elsewhere."""
    if isinstance(said, dict):
        return {key: _without_names(value) for key, value in said.items() if key not in ("member_id", "group_id")}
    if isinstance(said, list | tuple):
        return [_without_names(each) for each in said]
    return said


def test_each_broker_goes_on_with_the_others_groups(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with make("shim", data_dir=directory) as target:
        begun_here = Work(target)
    with make("kafka-native", data_dir=directory) as target:
        begun_here.go_on(target)
        begun_there = Work(target)
    with make("shim", data_dir=directory) as target:
        begun_there.go_on(target)
