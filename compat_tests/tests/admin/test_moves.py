"""Partitions move between directories by Kafka's tool, and Apache Kafka goes on with a move that a kill interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_shim.targets import jvm, make
from kafka_shim.targets.requests import make as message
from kafka_shim.targets.waiting import PATIENCE_S, right_answer
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection

COUNT = 200


def dirs_of(path: Path) -> list[Path]:
    return [path / "data", path / "more"]


def reassign(bootstrap: str, path: Path, target: Path, *arguments: str) -> str:
    plan = path / "plan.json"
    partition = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    common = ["--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan)]
    return jvm.run("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *common, *arguments).stdout.decode()


def places(connection: Connection) -> list[tuple[str, bool, int]]:
    response = connection.request(message("DescribeLogDirs", topics=None), 4)
    return [
        (result.log_dir, one.is_future_key, one.offset_lag)
        for result in response.results
        for topic in result.topics
        if topic.name == "t"
        for one in topic.partitions
    ]


def end_offset(connection: Connection) -> int:
    partition = {"partition_index": 0, "timestamp": -1}
    request = message("ListOffsets", replica_id=-1, topics=[{"name": "t", "partitions": [partition]}])
    return int(connection.request(request, 5).topics[0].partitions[0].offset)


def await_place(connection: Connection, target: Path) -> None:
    right_answer(lambda: places(connection), lambda found: found == [(str(target), False, 0)], f"moved to {target}")


@pytest.mark.java
def test_tool_moves_a_partition(tmp_path: Path) -> None:
    dirs = dirs_of(tmp_path)
    settings = {"log.dirs": ",".join(map(str, dirs))}
    with make("shim", settings=settings, data_dir=dirs[0]) as shim, Connection(shim.bootstrap) as connection:
        make_topic(connection, "t")
        for _ in range(COUNT):
            assert produce(connection, "t", 0, batch(b"v" * 1000)).error_code == 0
        ((home, *_),) = places(connection)
        target = next(one for one in dirs if str(one) != home)
        assert "Successfully started moving log directory" in reassign(shim.bootstrap, tmp_path, target, "--execute")
        await_place(connection, target)
        said = reassign(shim.bootstrap, tmp_path, target, "--verify")
        assert "Reassignment of replica t-0-1 completed successfully." in said
        assert end_offset(connection) == COUNT


@pytest.mark.java
@pytest.mark.parametrize("point", ["move.before_assign", "move.after_assign", "move.between_renames"])
def test_kafka_goes_on_with_a_move_that_a_kill_interrupted(tmp_path: Path, point: str) -> None:
    dirs = dirs_of(tmp_path)
    settings = {"log.dirs": ",".join(map(str, dirs))}
    shim = make("shim", settings=settings, data_dir=dirs[0])
    shim.environment["KAFKA_SHIM_FAULTS"] = f"{point}=kill"
    with shim, Connection(shim.bootstrap) as connection:
        make_topic(connection, "t")
        for _ in range(COUNT):
            assert produce(connection, "t", 0, batch(b"v" * 1000)).error_code == 0
        ((home, *_),) = places(connection)
        target = next(one for one in dirs if str(one) != home)
        topics = [{"name": "t", "partitions": [0]}]
        connection.request(message("AlterReplicaLogDirs", dirs=[{"path": str(target), "topics": topics}]), 2)
        shim.process.wait(PATIENCE_S)
    with make("kafka-native", settings=settings, data_dir=dirs[0]) as kafka, Connection(kafka.bootstrap) as connection:
        await_place(connection, target)
        assert end_offset(connection) == COUNT
    with make("shim", settings=settings, data_dir=dirs[0]) as again, Connection(again.bootstrap) as connection:
        assert places(connection) == [(str(target), False, 0)]
        assert end_offset(connection) == COUNT
