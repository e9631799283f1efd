"""AlterReplicaLogDirs and DescribeLogDirs over two directories, and directories that are cordoned."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_shim.cli import main
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import TRANSACTION_STATE_TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafka_shim.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kafka_shim.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kafka_shim.targets.waiting import right_answer
from kafka_shim.tests.api.admin import BROKER, DELETE, SET, alter, create, new_topic
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection


@pytest.fixture
def dirs(tmp_path: Path) -> list[str]:
    return [str(tmp_path / "a"), str(tmp_path / "b")]


@pytest.fixture
def client(dirs):
    with Broker(log_dirs=",".join(dirs)) as broker, Connection(broker.bootstrap_servers) as connection:
        yield connection


def move(client, path, topic="t", partition=0, version=2):
    entry = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[partition])])
    (result,) = client.request(AlterReplicaLogDirsRequest(dirs=[entry]), version).results
    assert result.topic_name == topic
    return [(one.partition_index, one.error_code) for one in result.partitions]


def places(client):
    """(path, topic, partition, is a future one, lag) of all partitions."""
    return [
        (result.log_dir, topic.name, one.partition_index, one.is_future_key, one.offset_lag)
        for result in client.request(DescribeLogDirsRequest(topics=None), 5).results
        for topic in result.topics
        for one in topic.partitions
    ]


def cordoned(client):
    return [one.is_cordoned for one in client.request(DescribeLogDirsRequest(topics=[]), 5).results]


@pytest.mark.parametrize("version", [1, 2])
def test_partition_moves_and_is_shown_in_both_directories_meanwhile(client, dirs, version):
    make_topic(client, "t")
    for _ in range(20):
        assert produce(client, "t", 0, batch(b"v" * 1000)).error_code == 0
    ((home, *_),) = places(client)
    (target,) = set(dirs) - {home}
    change = ("replica.alter.log.dirs.io.max.bytes.per.second", SET, "1")
    assert alter(client, BROKER, "", change)[0] == 0
    assert move(client, target, version=version) == [(0, 0)]
    current, future = sorted(places(client), key=lambda place: place[3])
    assert current == (home, "t", 0, False, 0)
    assert future in [(target, "t", 0, True, lag) for lag in (0, 20)]
    assert move(client, home) == [(0, 0)], "the move ends"
    assert places(client) == [(home, "t", 0, False, 0)]
    assert alter(client, BROKER, "", (change[0], DELETE, None))[0] == 0
    assert move(client, target) == [(0, 0)]
    right_answer(lambda: places(client), lambda found: found == [(target, "t", 0, False, 0)], f"moved to {target}")


def test_what_cannot_be_moved(client, dirs):
    make_topic(client, "t")
    assert move(client, "/nowhere") == [(0, ErrorCode.LOG_DIR_NOT_FOUND)]
    assert move(client, dirs[0], partition=7) == [(7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert move(client, dirs[1], topic="later") == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    make_topic(client, "later")
    assert (dirs[1], "later", 0, False, 0) in places(client)


@pytest.mark.option("cordoned.log.dirs")
def test_cordoned_directory_is_told_and_takes_nothing(client, dirs):
    make_topic(client, "t")
    assert cordoned(client) == [False, False]
    assert alter(client, BROKER, "1", ("cordoned.log.dirs", SET, dirs[0])) == (0, None)
    assert cordoned(client) == [True, False]
    create(client, new_topic("u", 3))
    assert {path for path, topic, *_ in places(client) if topic == "u"} == {dirs[1]}
    assert move(client, dirs[0], topic="u") == [(0, ErrorCode.INVALID_REPLICA_ASSIGNMENT)]
    assert alter(client, BROKER, "1", ("cordoned.log.dirs", SET, "*")) == (0, None)
    refused = create(client, new_topic("v"))["v"]
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "have all their log directories cordoned" in refused.error_message
    code, message = alter(client, BROKER, "1", ("cordoned.log.dirs", SET, "/c"))
    assert code == ErrorCode.INVALID_REQUEST
    assert "Missing entries : /c" in message
    assert alter(client, BROKER, "1", ("cordoned.log.dirs", DELETE, None)) == (0, None)
    assert cordoned(client) == [False, False]
    assert create(client, new_topic("v"))["v"].error_code == 0


def test_a_cordoned_directory_that_the_next_start_has_no_more_stops_no_start(dirs, caplog):
    """The order of KIP-1066: cordon it, move its partitions, stop, take it out of `log.dirs`."""
    with Broker(log_dirs=",".join(dirs)) as broker, Connection(broker.bootstrap_servers) as client:
        assert alter(client, BROKER, "1", ("cordoned.log.dirs", SET, dirs[1])) == (0, None)
    with Broker(log_dirs=dirs[0]) as broker, Connection(broker.bootstrap_servers) as client:
        assert cordoned(client) == [False]
        assert alter(client, BROKER, "1", ("cordoned.log.dirs", DELETE, None)) == (0, None)
    assert "cordoned.log.dirs, stored for this broker, is ignored: All entries in" in caplog.text


def test_directories_cordoned_by_the_file_take_nothing_once_metadata_version_knows_of_it(tmp_path: Path, dirs) -> None:
    """KIP-1066. Kafka's BrokerLifecycleManager tells of them with its next heartbeat."""
    config = tmp_path / "server.properties"
    node = "node.id=1\nprocess.roles=broker,controller\ncontroller.quorum.voters=1@localhost:9093\n"
    config.write_text(f"{node}log.dirs={','.join(dirs)}\n")
    cluster = "MkU3OEVBNTcwNTJENDM2Qk"
    words = ["storage", "format", "--config", str(config), "-t", cluster, "--release-version", "4.2"]
    assert main(words) == 0
    with (
        Broker(log_dirs=",".join(dirs), cordoned_log_dirs="*") as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        assert create(client, new_topic("t"))["t"].error_code == 0
        for value in ("", dirs[0]):
            code, _ = alter(client, BROKER, "1", ("cordoned.log.dirs", SET, value))
            assert code == ErrorCode.INVALID_CONFIG
        update = FeatureUpdateKey(feature="metadata.version", max_version_level=30, upgrade_type=1)
        assert client.request(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0
        assert create(client, new_topic("u"))["u"].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert alter(client, BROKER, "1", ("cordoned.log.dirs", SET, "")) == (0, None)
        assert create(client, new_topic("u"))["u"].error_code == 0


def test_transactions_of_a_directory_that_is_left_are_known_when_another_one_fails(tmp_path: Path, dirs) -> None:
    ids = [f"id-{number}" for number in range(16)]
    with Broker(log_dirs=",".join(dirs)) as broker, Connection(broker.bootstrap_servers) as client:
        look_up = FindCoordinatorRequest(key_type=1, coordinator_keys=ids)
        assert {one.error_code for one in client.request(look_up, 4).coordinators} == {0}
        for transactional_id in ids:
            begin = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
            assert client.request(begin, 5).error_code == 0
        home = {number: path for path, topic, number, *_ in places(client) if topic == TRANSACTION_STATE_TOPIC}
    assert set(home.values()) == set(dirs)
    shutil.rmtree(dirs[1])
    Path(dirs[1]).write_text("no directory")
    with Broker(log_dirs=",".join(dirs)) as broker, Connection(broker.bootstrap_servers) as client:
        answer = client.request(DescribeTransactionsRequest(transactional_ids=ids), 0).transaction_states
    known = {state.transactional_id for state in answer if state.error_code == 0}
    assert known == {one for one in ids if home[internal_partition(one, 50)] == dirs[0]}
