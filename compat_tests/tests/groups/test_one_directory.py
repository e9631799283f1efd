"""Groups in one data directory under both brokers: Apache Kafka goes on where the shim stopped, and the other way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from compat_tests.groups.conversations import beat, commit_fields, first_member, modern, stay, sync_fields
from compat_tests.groups.script import Script, protocols, subscription
from compat_tests.targets import Target, make
from compat_tests.tests.groups.conftest import wait_for_coordinator


def seen(script: Script, classic: str, consumer: str) -> list[Any]:
    """What a broker tells of both groups."""
    first = len(script.said)
    script.ask("OffsetFetch", 9, groups=[{"group_id": each, "topics": None} for each in (classic, consumer, "simple")])
    script.ask("DescribeGroups", 6, groups=[classic])
    script.ask("ConsumerGroupDescribe", 1, group_ids=[consumer])
    return script.said[first:]


def hand_over(first: str, second: str, directory: Path) -> None:
    suffix = os.urandom(3).hex()
    with make(first, data_dir=directory) as target:
        _ready(target)
        script = Script(target.bootstrap, suffix)
        topic, classic, consumer = script.topic("t", 3), script.group("classic"), script.group("consumer")
        mine = {"protocols": protocols("range", metadata=subscription(topic)), "session_timeout_ms": 300_000}
        joined = first_member(script, classic, **mine)
        script.ask("SyncGroup", 5, **sync_fields(classic, joined, {joined.member_id: b"\0\0\0\0\0\0\xff\xff\xff\xff"}))
        script.ask("OffsetCommit", 9, **commit_fields(classic, joined, topic, 7))
        modern(script, consumer, subscribed_topic_names=[topic], instance_id="one")
        script.ask("OffsetCommit", 9, **commit_fields("simple", None, topic, 9))
        script.ask(
            "OffsetCommit",
            9,
            **commit_fields(consumer, None, topic, 8, member_id="member-a", generation_id_or_member_epoch=2),
        )
        before = seen(script, classic, consumer)
        script.close()
    with make(second, data_dir=directory) as target:
        _ready(target)
        script = Script(target.bootstrap, suffix)
        script.name(topic, "t")
        after = seen(script, classic, consumer)
        assert _without_names(after) == _without_names(before)
        assert beat(script, classic, joined).error_code == 0
        answer = stay(script, consumer, "member-a", 2, instance_id="one")
        assert (answer.error_code, answer.member_epoch) == (0, 2), "no rebalance: the topics' hash is the same"
        script.close()


def _ready(target: Target) -> None:
    wait_for_coordinator(target)


def _without_names(said: Any) -> Any:
    """Members by nothing: their ids are told apart elsewhere."""
    if isinstance(said, dict):
        return {key: _without_names(value) for key, value in said.items() if key not in ("member_id", "group_id")}
    if isinstance(said, list | tuple):
        return [_without_names(each) for each in said]
    return said


def test_kafka_goes_on_with_the_shims_groups(tmp_path: Path) -> None:
    hand_over("shim", "kafka-native", tmp_path / "data")


def test_the_shim_goes_on_with_kafkas_groups(tmp_path: Path) -> None:
    hand_over("kafka-native", "shim", tmp_path / "data")
