"""Groups in one data directory under both brokers: Apache Kafka goes on where the shim stopped, and the other way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.compat.groups import streams_conversations
from kafka_shim.compat.groups.conversations import beat, commit_fields, first_member, modern, stay, sync_fields
from kafka_shim.compat.groups.script import Script
from kafka_shim.compat.groups.streams_conversations import at_once, begin, owning, stateless
from kafka_shim.compat.tests.groups.conftest import wait_for_coordinator
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import Target, make
from kafka_shim.targets.requests import protocols, subscription

# No member is given up before the other broker has started, however long that takes on a busy machine.
SESSION_MS = "600000"
SETTINGS = {
    f"group.{kind}.{option}session.timeout.ms": SESSION_MS
    for kind in ("consumer", "share", "streams")
    for option in ("", "max.")
}
PARTITIONS = 3
LOADING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class Work:
    """A classic group, a consumer group, a share group, a streams group and offsets without a group, begun with one
    broker."""

    def __init__(self, target: Target) -> None:
        wait_for_coordinator(target)
        self._suffix = os.urandom(3).hex()
        script = Script(target.bootstrap, self._suffix)
        topic, classic, consumer = script.topic("t", PARTITIONS), script.group("classic"), script.group("consumer")
        self._topic, self._classic, self._consumer, self._simple = topic, classic, consumer, script.group("simple")
        self._share = script.group("share")
        mine = {"protocols": protocols("range", metadata=subscription(topic)), "session_timeout_ms": int(SESSION_MS)}
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
        self._share_epoch = self._begin_share(script)
        self._streams = script.group("streams")
        self._streams_epoch = self._begin_streams(script)
        self._told = self._seen(script)
        script.close()

    def _begin_streams(self, script: Script) -> int:
        """A streams group of one member, which has its tasks. Returns the member's epoch."""
        joined = begin(script, at_once(script, self._streams), stateless(self._topic))
        epoch: int = joined.member_epoch
        tasks = [joined]

        def has_tasks() -> bool:
            nonlocal epoch
            if not tasks[-1].active_tasks:
                tasks.append(self._beat_streams(script, epoch))
                epoch = tasks[-1].member_epoch
            return bool(tasks[-1].active_tasks)

        script.until(has_tasks, bool, "the member has no tasks")
        self._beat_streams(script, epoch, **owning(tasks[-1]))
        return epoch

    def _beat_streams(self, script: Script, epoch: int, **fields: Any) -> Any:
        return streams_conversations.stay(script, self._streams, "member-a", epoch, **fields)

    def _beat_share(self, script: Script, epoch: int, **fields: Any) -> Any:
        return script.ask(
            "ShareGroupHeartbeat", 1, group_id=self._share, member_id="sharer", member_epoch=epoch, **fields
        )

    def _begin_share(self, script: Script) -> int:
        """A share group of one member, with what it read of one partition. Returns the member's epoch."""
        epoch: int = self._beat_share(script, 0, subscribed_topic_names=[self._topic]).member_epoch

        def joined() -> Any:
            nonlocal epoch
            answer = self._beat_share(script, epoch)
            epoch = answer.member_epoch
            return answer

        script.until(
            joined,
            lambda answer: answer.assignment is not None and bool(answer.assignment.topic_partitions),
            "the member has no partitions",
        )
        batches = [{"first_offset": 3, "last_offset": 5, "delivery_state": 2, "delivery_count": 1}]
        self._ask_states(
            script,
            "WriteShareGroupState",
            1,
            state_epoch=2,
            leader_epoch=0,
            start_offset=1,
            delivery_complete_count=3,
            state_batches=batches,
        )
        return epoch

    def _ask_states(self, script: Script, api: str, version: int, **fields: Any) -> Any:
        """A request to the share coordinator about partition 1, once that has been loaded."""
        topics = [{"topic_id": script.topic_id(self._topic), "partitions": [{"partition": 1, **fields}]}]
        script.until(
            lambda: script.quietly(api, version, group_id=self._share, topics=topics),
            lambda told: told.results[0].partitions[0].error_code not in LOADING,
            "the share coordinator does not load",
        )
        return script.ask(api, version, group_id=self._share, topics=topics).results[0].partitions[0]

    def _wait_for_share_states(self, script: Script) -> None:
        """Waits until the states of all share partitions are loaded. Asked before, Kafka describes their offsets as if
        there were none, once its persister has tried five times."""
        asked = [{"partition": number, "leader_epoch": -1} for number in range(PARTITIONS)]
        topics = [{"topic_id": script.topic_id(self._topic), "partitions": asked}]
        script.until(
            lambda: script.quietly("ReadShareGroupStateSummary", 1, group_id=self._share, topics=topics),
            lambda told: not LOADING & {one.error_code for one in told.results[0].partitions},
            "the share coordinator does not load",
        )

    def _seen(self, script: Script) -> list[Any]:
        """What a broker tells of the groups."""
        first = len(script.said)
        groups = [{"group_id": each, "topics": None} for each in (self._classic, self._consumer, self._simple)]
        script.ask("OffsetFetch", 9, groups=groups)
        script.ask("DescribeGroups", 6, groups=[self._classic])
        script.ask("ConsumerGroupDescribe", 1, group_ids=[self._consumer])
        script.ask("ShareGroupDescribe", 1, group_ids=[self._share])
        script.ask("DescribeShareGroupOffsets", 1, groups=[{"group_id": self._share, "topics": None}])
        self._ask_states(script, "ReadShareGroupState", 0, leader_epoch=-1)
        script.ask("StreamsGroupDescribe", 0, group_ids=[self._streams])
        script.ask("ListGroups", 5, types_filter=["share", "streams"])
        return script.said[first:]

    def go_on(self, target: Target) -> None:
        """The members' next requests, to another broker."""
        wait_for_coordinator(target)
        script = Script(target.bootstrap, self._suffix)
        script.name(self._topic, "t")
        self._wait_for_share_states(script)
        assert _without_names(self._seen(script)) == _without_names(self._told)
        assert beat(script, self._classic, self._joined).error_code == 0
        answer = stay(script, self._consumer, "member-a", 2, instance_id="one")
        assert (answer.error_code, answer.member_epoch) == (0, 2), "no rebalance: the topics' hash is the same"
        answer = self._beat_share(script, self._share_epoch)
        assert (answer.error_code, answer.member_epoch) == (0, self._share_epoch)
        answer = self._beat_streams(script, self._streams_epoch)
        assert (answer.error_code, answer.member_epoch) == (0, self._streams_epoch)
        state = self._ask_states(script, "WriteShareGroupState", 1, state_epoch=1, leader_epoch=-1, start_offset=-1)
        assert state.error_code == ErrorCode.FENCED_STATE_EPOCH
        state = self._ask_states(script, "WriteShareGroupState", 1, state_epoch=2, leader_epoch=-1, start_offset=6)
        assert state.error_code == 0
        script.close()


def _without_names(said: Any) -> Any:
    """Members by nothing: their ids are told apart elsewhere."""
    if isinstance(said, dict):
        return {key: _without_names(value) for key, value in said.items() if key not in ("member_id", "group_id")}
    if isinstance(said, list | tuple):
        return [_without_names(each) for each in said]
    return said


@pytest.mark.timeout(600)  # one broker after the other, of which each may take 120 s to start and 30 s to stop
def test_each_broker_goes_on_with_the_others_groups(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with make("shim", settings=SETTINGS, data_dir=directory) as target:
        begun_here = Work(target)
    with make("kafka-native", settings=SETTINGS, data_dir=directory) as target:
        begun_here.go_on(target)
        begun_there = Work(target)
    with make("shim", settings=SETTINGS, data_dir=directory) as target:
        begun_there.go_on(target)
