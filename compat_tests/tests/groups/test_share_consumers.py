"""Share consumers of Java, franz-go and librdkafka, and Kafka's tools, on the shim and on Apache Kafka: the same
deliveries, the same output."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafka_shim.cext.records import build
from kafka_shim.compat.groups.share_process import ShareProcesses
from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.targets import Target, make
from kafka_shim.targets.requests import make as request
from kafka_shim.targets.requests import produce
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import Connection

pytestmark = pytest.mark.java
PATIENCE_S = 100


@pytest.fixture(scope="module", params=["shim", pytest.param("kafka-native", marks=pytest.mark.soak)])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with make(request.param) as started:
        yield started


@pytest.fixture
def processes() -> Iterator[ShareProcesses]:
    made = ShareProcesses()
    yield made
    made.close()


def prepare(target: Target, *values: bytes, partitions: int = 1) -> tuple[str, str]:
    """A topic with these records, and a group that reads it from the start. No lock ends by its time: what a killed
    member held is free when its connection ends, and one that only stands still must not lose its records."""
    nonce = os.urandom(3).hex()
    topic, group = f"t-{nonce}", f"g-{nonce}"
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    row = {"resource_type": 32, "resource_name": group, "configs": configs}
    with Connection(target.bootstrap) as client:
        wanted = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
        (told,) = client.request(request("CreateTopics", topics=[wanted], timeout_ms=30_000), 7).topics
        assert not told.error_code, told
        (changed,) = client.request(request("IncrementalAlterConfigs", resources=[row]), 1).responses
        assert not changed.error_code, changed
    send(target, topic, *values, partitions=partitions)
    return topic, group


def send(target: Target, topic: str, *values: bytes, partitions: int = 1) -> None:
    import time

    with Connection(target.bootstrap) as client:
        for partition in range(partitions):
            mine = values[partition::partitions]
            records = bytes(build([(None, value, time.time_ns() // 1_000_000, ()) for value in mine]))

            def is_written(partition: int = partition, records: bytes = records) -> bool:
                answer = client.request(produce(topic, partition, records), 11).responses[0].partition_responses[0]
                return not answer.error_code

            if mine:
                wait_until(is_written, "written", PATIENCE_S)


@pytest.mark.parametrize("kind", ["java", "franz-go"])
def test_explicit_and_implicit_acknowledgement(target: Target, processes: ShareProcesses, kind: str) -> None:
    topic, group = prepare(target, b"a", b"release", b"reject", b"b")
    other = f"{group}-i"
    explicit = processes.start(kind, "explicit", target.bootstrap, group, topic)
    wait_until(lambda: len(explicit.records) >= 5 and explicit.commits >= 2, "delivered twice", PATIENCE_S)
    assert explicit.deliveries == [(1, "a"), (1, "release"), (1, "reject"), (1, "b"), (2, "release")]
    assert not explicit.errors
    row = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    with Connection(target.bootstrap) as client:
        resource = {"resource_type": 32, "resource_name": other, "configs": [row]}
        client.request(request("IncrementalAlterConfigs", resources=[resource]), 1)
    implicit = processes.start("confluent" if kind == "java" else kind, "implicit", target.bootstrap, other, topic)
    wait_until(lambda: len(implicit.records) >= 4, "delivered", PATIENCE_S)
    assert implicit.values == ["a", "release", "reject", "b"]


def test_what_a_killed_member_held_goes_to_another(target: Target, processes: ShareProcesses) -> None:
    topic, group = prepare(target, b"a", b"hold")
    first = processes.start("java", "explicit", target.bootstrap, group, topic)
    wait_until(lambda: first.is_holding, "held", PATIENCE_S)
    first.kill()
    second = processes.start("java", "explicit", target.bootstrap, group, topic)
    wait_until(lambda: second.commits >= 1, "delivered to another", PATIENCE_S)
    assert second.deliveries == [(2, "a"), (2, "hold")]


def test_what_was_accepted_stays_so_over_a_crash_of_the_broker(processes: ShareProcesses) -> None:
    with make("shim") as target:
        topic, group = prepare(target, *[b"%d" % number for number in range(40)], partitions=2)
        member = processes.start("java", "explicit", target.bootstrap, group, topic)
        wait_until(lambda: len(member.records) >= 40 and member.commits >= 1, "delivered", PATIENCE_S)
        target.restart(kill=True)
        send(target, topic, b"after-0", b"after-1", partitions=2)
        wait_until(lambda: {"after-0", "after-1"} <= set(member.values), "delivered after the crash", PATIENCE_S)
        before = [value for value in member.values if not value.startswith("after")]
        # What was delivered, and not confirmed before the crash, may come again; what was confirmed may not.
        assert set(before) == {str(number) for number in range(40)}
        fresh = processes.start("java", "explicit", target.bootstrap, group, topic)
        send(target, topic, b"last-0", b"last-1", partitions=2)
        both = [member, fresh]
        wait_until(lambda: sum(each.values.count("last-0") for each in both) == 1, "delivered once", PATIENCE_S)
        assert not set(fresh.values) & set(before)


def test_kafkas_tools_say_the_same(target: Target) -> None:
    """kafka-console-share-consumer releases, then accepts; kafka-share-groups describes the group as it goes."""
    topic, group = prepare(target, b"a", b"b", b"c")
    with ToolDriver() as driver:

        def consume(*words: str) -> list[str]:
            shown = [f"--formatter-property=print.{name}=true" for name in ("partition", "offset", "delivery")]
            where = [
                "--bootstrap-server",
                target.bootstrap,
                "--topic",
                topic,
                "--group",
                group,
                "--timeout-ms",
                "60000",
            ]
            return driver.run("kafka-console-share-consumer", *where, *shown, *words).splitlines()

        def groups(*words: str) -> list[list[str]]:
            text = driver.run("kafka-share-groups", "--bootstrap-server", target.bootstrap, *words)
            return [line.split() for line in text.replace(topic, "T").replace(group, "G").splitlines() if line.strip()]

        def row(*options: str) -> list[list[str]]:
            return groups("--describe", "--group", group, *options)

        assert consume("--max-messages", "3", "--release") == [
            f"Partition:0\tOffset:{offset}\tDelivery:1\t{value}" for offset, value in enumerate("abc")
        ]
        assert consume("--max-messages", "2") == [
            f"Partition:0\tOffset:{offset}\tDelivery:2\t{value}" for offset, value in enumerate("ab")
        ]
        wait_until(lambda: ["G", "T", "0", "2", "1"] in row(), "the start offset has moved", PATIENCE_S)
        header = ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
        assert row() == [header, ["G", "T", "0", "2", "1"]]
        assert [line[:-1] for line in row("--verbose")] == [
            ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET"],
            ["G", "T", "0", "0", "2"],
        ]
        assert not row("--members")
        assert [line[-2:] for line in row("--state")] == [["STATE", "#MEMBERS"], ["Empty", "0"]]
        assert ["G", "Empty"] in groups("--list", "--state")
        reset = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest"]
        shown = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
        assert [line[:4] for line in groups(*reset, "--dry-run")] == [shown, ["G", "T", "0", "0"]]
        assert row() == [header, ["G", "T", "0", "2", "1"]]
        assert [line[:4] for line in groups(*reset, "--execute")] == [shown, ["G", "T", "0", "0"]]
        assert row() == [header, ["G", "T", "0", "0", "3"]]
        assert consume("--max-messages", "3", "--reject") == [
            f"Partition:0\tOffset:{offset}\tDelivery:1\t{value}" for offset, value in enumerate("abc")
        ]
        assert groups("--delete-offsets", "--group", group, "--topic", topic) == [
            ["TOPIC", "STATUS"],
            ["T", "Successful"],
        ]
        assert [line[:6] for line in row()] == [["Share", "group", "'G'", "has", "no", "offset"]]
        assert groups("--delete", "--group", group) == [
            ["Deletion", "of", "requested", "share", "groups", "('G')", "was", "successful."]
        ]
        assert not [line for line in groups("--list") if line == ["G"]]
