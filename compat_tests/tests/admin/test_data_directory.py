"""One data directory, both brokers: Apache Kafka goes on where the shim stopped, and the shim where Kafka did."""

from __future__ import annotations

import asyncio

import pytest

from kafka_shim.clock import RealClock
from kafka_shim.config import BrokerConfig
from kafka_shim.errors import ErrorCode
from kafka_shim.faults import Faults
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.storage.logs import Logs
from kafka_shim.targets import jvm, make
from kafka_shim.targets.base import free_ports
from kafka_shim.targets.kafka_native import CLUSTER_ID, KafkaNative
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from kafka_shim.targets import Target


def create(connection: Connection, name: str, partitions: int, **options: str) -> None:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in options.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    answer = connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=30000))
    check(answer.topics[0].error_code, answer.topics[0].error_message, name)
    await_topic(connection, name, is_there=True)


def delete(connection: Connection, name: str) -> None:
    answer = connection.request(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30000))
    check(answer.responses[0].error_code, answer.responses[0].error_message, name)
    await_topic(connection, name, is_there=False)


def await_topic(connection: Connection, name: str, *, is_there: bool) -> None:
    """Kafka answers before its broker has seen the controller's record."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    wait_until(
        lambda: (connection.request(request).topics[0].error_code == ErrorCode.NONE) is is_there,
        f"topic {name} {'is' if is_there else 'is not'} there",
    )


def set_cluster_option(connection: Connection, name: str, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=4, resource_name="", configs=[AlterableConfig(name=name, value=value)]
    )
    answer = connection.request(IncrementalAlterConfigsRequest(resources=[resource]))
    check(answer.responses[0].error_code, answer.responses[0].error_message, name)


def produce(target: Target, topic: str, *values: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": target.bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(30) == 0


def consumed(target: Target, topic: str, count: int) -> list[str]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [message.value().decode() for message in consumer.consume(count, 30)]
    finally:
        consumer.close()


def described(target: Target) -> dict[str, object]:
    """What a user sees of topics and options."""
    with Connection(target.bootstrap) as connection:
        topics = connection.request(MetadataRequest(topics=None)).topics
        names = sorted(topic.name for topic in topics)
        resources = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in names]
        resources.append(DescribeConfigsResource(resource_type=4, resource_name=""))
        results = connection.request(DescribeConfigsRequest(resources=resources)).results
        return {
            "topics": {topic.name: (topic.topic_id, len(topic.partitions)) for topic in topics},
            "options": {
                (result.resource_type, result.resource_name): {
                    one.name: one.value for one in result.configs if one.config_source != 5
                }
                for result in results
            },
        }


def fill(target: Target) -> None:
    with Connection(target.bootstrap) as connection:
        create(connection, "kept", 3, retention_ms="7200000", max_message_bytes="200000")
        create(connection, "plain_one", 1)
        create(connection, "gone", 2, retention_ms="5")
        delete(connection, "gone")
        create(connection, "again", 1, retention_ms="5", cleanup_policy="compact")
        delete(connection, "again")
        create(connection, "again", 1, retention_bytes="77")
        set_cluster_option(connection, "log.cleaner.backoff.ms", "20000")
        set_cluster_option(connection, "log.retention.bytes", "123456789")
    produce(target, "kept", "one", "two")


def fresh_producer_id(target: Target) -> int:
    with Connection(target.bootstrap) as connection:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answers = [connection.request(request)]

        def is_given() -> bool:
            answers.append(connection.request(request))
            return answers[-1].error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

        # Kafka asks its controller for a block of ids after it has answered the first request so.
        if answers[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            wait_until(is_given, "a producer id")
        check(answers[-1].error_code)
        return int(answers[-1].producer_id)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stop", ["clean", "kill"])
def test_kafka_and_the_shim_take_turns_on_a_directory_of_the_shim(tmp_path: Path, stop: str):
    with make("shim", data_dir=tmp_path / "data") as shim:
        fill(shim)
        before = described(shim)
        first_id = fresh_producer_id(shim)
        if stop == "kill":
            shim.kill()
    with make("kafka-native", data_dir=tmp_path / "data") as kafka:
        assert described(kafka) == before
        assert consumed(kafka, "kept", 2) == ["one", "two"]
        second_id = fresh_producer_id(kafka)
        assert second_id > first_id
        produce(kafka, "kept", "three")
        with Connection(kafka.bootstrap) as connection:
            create(connection, "made-by-kafka", 2, cleanup_policy="compact")
            delete(connection, "plain_one")
        if stop == "kill":
            kafka.kill()
    with make("shim", data_dir=tmp_path / "data") as shim:
        after = described(shim)
        assert after["topics"]["kept"] == before["topics"]["kept"]
        assert after["topics"]["made-by-kafka"][1] == 2
        assert "plain_one" not in after["topics"]
        assert after["options"][(4, "")] == before["options"][(4, "")]
        assert consumed(shim, "kept", 3) == ["one", "two", "three"]
        assert fresh_producer_id(shim) > second_id
        produce(shim, "kept", "four")
    log = str(tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log")
    dumped = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", log)
    assert "isvalid: false" not in dumped
    assert dumped.count("LeaderChange") == 3


@pytest.mark.timeout(300)
def test_kafka_starts_from_a_snapshot_of_the_shim_with_nothing_before_it(tmp_path: Path):
    with make("shim", {"metadata.log.max.record.bytes.between.snapshots": "200"}, tmp_path / "data") as shim:
        fill(shim)
        before = described(shim)
        first_id = fresh_producer_id(shim)
    asyncio.run(prune(tmp_path / "data"))
    directory = tmp_path / "data" / "__cluster_metadata-0"
    assert not (directory / "00000000000000000000.log").exists()
    (*_, newest) = sorted(directory.glob("*.checkpoint"))
    dumped = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(newest))
    assert "SnapshotHeader" in dumped
    assert "SnapshotFooter" in dumped
    assert "isvalid: false" not in dumped
    with make("kafka-native", data_dir=tmp_path / "data") as kafka:
        assert described(kafka) == before
        assert consumed(kafka, "kept", 2) == ["one", "two"]
        assert fresh_producer_id(kafka) > first_id
        with Connection(kafka.bootstrap) as connection:
            create(connection, "made-by-kafka", 2)
    with make("shim", data_dir=tmp_path / "data") as shim:
        assert "made-by-kafka" in described(shim)["topics"]


async def prune(directory: Path) -> None:
    """Use the directory until segments go; server.properties allows none that are so small."""
    config = BrokerConfig(
        log_dirs=(str(directory),),
        metadata_log_segment_bytes=2000,
        metadata_log_max_record_bytes_between_snapshots=500,
        metadata_max_retention_bytes=4000,
    )
    logs = Logs(config, RealClock(), Faults())
    logs.open_dirs()
    store = MetadataStore(config, RealClock(), logs, Faults())
    store.start()
    logs.start(store.lookup)
    store.register([("PLAINTEXT", "127.0.0.1", 9092, 0)])
    for _ in range(100):
        store.next_producer_id_block()
        store.await_snapshot()
    store.stop()
    logs.stop()


class DynamicQuorum(KafkaNative):
    """Kafka with its voters in the log (KIP-853), as `format --standalone` makes it."""

    def properties(self) -> dict[str, str]:
        found = super().properties()
        found["controller.quorum.bootstrap.servers"] = found.pop("controller.quorum.voters").partition("@")[2]
        found["advertised.listeners"] = found["listeners"]
        return found

    def prepare(self) -> None:
        if not self.bootstrap:
            port, self.controller_port = free_ports(2)
            self.bootstrap = f"127.0.0.1:{port}"
        if not (self.data_dir / "meta.properties").exists():
            path = self.properties_path
            path.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
            jvm.run(
                "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "--standalone", "-c", str(path), timeout_s=60
            )
        super().prepare()


@pytest.mark.timeout(300)
def test_a_directory_with_a_dynamic_quorum_stays_one(tmp_path: Path):
    kafka = DynamicQuorum(data_dir=tmp_path / "data")
    with kafka, Connection(kafka.bootstrap) as connection:
        create(connection, "by-kafka", 1)
    with make("shim", data_dir=tmp_path / "data") as shim, Connection(shim.bootstrap) as connection:
        create(connection, "by-shim", 2)
        wanted = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        (partition,) = connection.request(DescribeQuorumRequest(topics=[wanted])).topics[0].partitions
        assert any(partition.current_voters[0].replica_directory_id)
    with kafka:
        assert {"by-kafka", "by-shim"} <= set(described(kafka)["topics"])


@pytest.mark.timeout(300)
def test_the_shim_takes_over_a_directory_of_kafka_with_snapshots(tmp_path: Path):
    """Kafka makes a snapshot after a few records here, cuts the log before it, and both must be read together."""
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "200",
        "metadata.log.segment.bytes": "8388608",
        "metadata.log.max.snapshot.interval.ms": "500",
    }
    with make("kafka-native", settings=settings, data_dir=tmp_path / "data") as kafka:
        fill(kafka)
        before = described(kafka)
        last_id = fresh_producer_id(kafka)
        for number in range(5):
            with Connection(kafka.bootstrap) as connection:
                create(connection, f"more-{number}", 1)
        before = described(kafka)
    snapshots = sorted((tmp_path / "data" / "__cluster_metadata-0").glob("*.checkpoint"))
    assert snapshots
    with make("shim", data_dir=tmp_path / "data") as shim:
        assert described(shim) == before
        assert consumed(shim, "kept", 2) == ["one", "two"]
        assert fresh_producer_id(shim) > last_id
        with Connection(shim.bootstrap) as connection:
            wanted = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
            quorum = connection.request(DescribeQuorumRequest(topics=[wanted]))
            assert quorum.topics[0].partitions[0].leader_epoch == 2
            create(connection, "made-by-shim", 2)
    with make("kafka-native", data_dir=tmp_path / "data") as kafka:
        assert "made-by-shim" in described(kafka)["topics"]
