"""Kafka's own tools on the shim: kafka-consumer-groups as it comes, DumpLogSegments on `__consumer_offsets`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_shim.compat.groups.conversations import first_member, modern, stay, sync_fields
from kafka_shim.compat.groups.script import Script
from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.group.consumer_protocol import write_assignment
from kafka_shim.targets import Target, jvm, make
from kafka_shim.targets.requests import protocols, subscription

DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture
def target() -> Iterator[Target]:
    # A tool takes its time to start: sessions are long.
    settings = dict.fromkeys(("group.consumer.max.session.timeout.ms", "group.consumer.session.timeout.ms"), "300000")
    with make("shim", settings=settings) as started:
        yield started


@pytest.fixture
def script(target: Target) -> Iterator[Script]:
    made = Script(target.bootstrap, os.urandom(3).hex())
    yield made
    made.close()


@pytest.fixture
def tool(target: Target) -> Iterator[Callable[..., list[list[str]]]]:
    with ToolDriver() as driver:

        def run(*words: str) -> list[list[str]]:
            text = driver.run("kafka-consumer-groups", "--bootstrap-server", target.bootstrap, *words)
            return [line.split() for line in text.splitlines() if line.strip()]

        yield run


def commit(script: Script, group: str, topic: str, offset: int) -> None:
    entry = {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": offset}]}
    script.ask("OffsetCommit", 9, group_id=group, topics=[entry])


def test_kafka_consumer_groups_lists_describes_resets_and_deletes(
    script: Script, tool: Callable[..., list[list[str]]]
) -> None:
    from kafka_shim.targets.requests import produce

    topic = script.topic("tool")
    script._main.request(produce(topic, 0, [(None, b"v")] * 10), 9)
    simple, classic, consumer = script.group("simple"), script.group("classic"), script.group("consumer")
    commit(script, simple, topic, 4)
    mine = {"protocols": protocols("range", metadata=subscription(topic)), "session_timeout_ms": 300_000}
    joined = first_member(script, classic, **mine)
    assignment = write_assignment({topic: [0]}, 0)
    script.ask("SyncGroup", 5, **sync_fields(classic, joined, {joined.member_id: assignment}))
    modern(script, consumer, subscribed_topic_names=[topic])

    assert {simple, classic, consumer} <= {row[0] for row in tool("--list")}
    states = {row[0]: row[1:] for row in tool("--list", "--state") if row[0] in (simple, classic, consumer)}
    assert states == {simple: ["Empty"], classic: ["Stable"], consumer: ["Stable"]}
    kinds = {row[0]: row[1] for row in tool("--list", "--type") if row[0] in (classic, consumer)}
    assert kinds == {classic: "Classic", consumer: "Consumer"}
    described = next(row for row in tool("--describe", "--group", simple) if row[0] == simple)
    assert described[1:6] == [topic, "0", "4", "10", "6"]
    member = next(row for row in tool("--describe", "--group", classic, "--members") if row[0] == classic)
    assert member[1:5] == [joined.member_id, "/127.0.0.1", "script", "1"]
    member = next(
        row for row in tool("--describe", "--group", consumer, "--members", "--verbose") if row[0] == consumer
    )
    assert member[1] == "member-a"
    assert f"{topic}:0" in " ".join(member)
    state = next(row for row in tool("--describe", "--group", consumer, "--state") if row[0] == consumer)
    assert state[-2:] == ["Stable", "1"]
    offsets = next(row for row in tool("--describe", "--group", consumer, "--offsets") if row[0] == consumer)
    assert offsets[1:3] == [topic, "0"]

    reset = tool("--reset-offsets", "--group", simple, "--topic", topic, "--to-offset", "7", "--execute")
    assert [simple, topic, "0", "7"] in reset
    assert next(row for row in tool("--describe", "--group", simple) if row[0] == simple)[3] == "7"
    tool("--delete-offsets", "--group", simple, "--topic", topic)
    tool("--delete", "--group", simple)
    assert simple not in {row[0] for row in tool("--list")}


def test_kafka_share_groups_lists_describes_resets_and_deletes(script: Script, target: Target) -> None:
    from kafka_shim.targets.requests import produce

    topic = script.topic("shared", 2)
    script._main.request(produce(topic, 0, [(None, b"v")] * 10), 9)
    group = script.group("share")
    member = {"group_id": group, "member_id": "sharer"}
    joined = script.ask("ShareGroupHeartbeat", 1, **member, member_epoch=0, subscribed_topic_names=[topic])
    assert joined.error_code == 0
    with ToolDriver() as driver:

        def tool(*words: str) -> list[list[str]]:
            text = driver.run("kafka-share-groups", "--bootstrap-server", target.bootstrap, *words)
            return [line.split() for line in text.splitlines() if line.strip()]

        assert [group] in tool("--list")
        assert [group, "Stable"] in tool("--list", "--state")
        members = next(row for row in tool("--describe", "--group", group, "--members") if row[0] == group)
        assert members[1:4] == ["sharer", "/127.0.0.1", "script"]
        states = next(row for row in tool("--describe", "--group", group, "--state") if row[0] == group)
        assert states[-2:] == ["Stable", "1"]
        script.ask("ShareGroupHeartbeat", 1, **member, member_epoch=-1)
        reset = tool("--reset-offsets", "--group", group, "--topic", f"{topic}:0", "--to-earliest", "--execute")
        assert [group, topic, "0", "0"] in reset
        rows = [row for row in tool("--describe", "--group", group) if row[0] == group]
        assert sorted(row[1:5] for row in rows) == [[topic, "0", "0", "10"], [topic, "1", "-", "-"]]
        tool("--delete-offsets", "--group", group, "--topic", topic)
        assert not [row for row in tool("--describe", "--group", group) if row[0] == group and topic in row]
        tool("--delete", "--group", group)
        assert [group] not in tool("--list")


def test_dump_log_segments_reads_what_the_groups_wrote(script: Script, target: Target) -> None:
    topic, group, other = script.topic("dumped"), script.group("dumped"), script.group("modern")
    commit(script, group, topic, 42)
    joined = first_member(script, group, protocols=protocols("range", metadata=subscription(topic)))
    script.ask("SyncGroup", 5, **sync_fields(group, joined, {joined.member_id: b"\0\0\0\0\0\0\xff\xff\xff\xff"}))
    regex = {"subscribed_topic_names": [], "subscribed_topic_regex": f"dumped.*{script.suffix}"}
    modern(script, other, subscribed_topic_names=[topic])
    modern(script, f"{other}-regex", **regex)
    stay(script, other, "member-a", -1)
    script.ask("DeleteGroups", 2, groups_names=[other])
    sharer = {"group_id": script.group("sharers"), "member_id": "sharer", "subscribed_topic_names": [topic]}
    script.ask("ShareGroupHeartbeat", 1, **sharer)
    script.close()
    target.stop()
    files = sorted(
        str(each) for each in Path(target.data_dir).glob("__consumer_offsets-*/*.log") if each.stat().st_size
    )
    done = jvm.run(DUMP, "--offsets-decoder", "--files", ",".join(files))
    text = done.stdout.decode()
    assert "error" not in done.stderr.decode().lower()
    assert not re.search(r"could not|unknown|malformed", text, re.IGNORECASE)
    kinds = set(re.findall(r'key: \{"type":"(\d+)"', text))
    assert {"1", "2", "3", "5", "6", "7", "8", "16", "10", "11", "12", "13", "14", "15"} <= kinds
    states = [each for each in Path(target.data_dir).glob("__share_group_state-*/*.log") if each.stat().st_size]
    done = jvm.run(DUMP, "--share-group-state-decoder", "--files", ",".join(map(str, states)))
    assert f'"groupId":"{script.group("sharers")}"' in done.stdout.decode()
    assert '"stateEpoch":2,' in done.stdout.decode()
    assert '"offset":42' in text
    assert f'"regularExpression":"dumped.*{script.suffix}"' in text
    assert '"protocol":"range"' in text
