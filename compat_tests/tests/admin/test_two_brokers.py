"""The command line against an Apache Kafka of two brokers: each question goes to the one that can answer it. The shim
is one broker, so Kafka alone can show that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from kafka_shim.cext.records import build
from kafka_shim.cli import main
from kafka_shim.client.cluster import TRANSACTION, Cluster
from kafka_shim.client.topics import create_topic
from kafka_shim.client.writing import Producer
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.requests import make, produce
from kafka_shim.targets.waiting import last_answer
from kafka_shim.wire_client import check

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
Run = Callable[..., str]
SETTINGS = {
    "transaction.state.log.num.partitions": "4",
    # A Produce v9 then makes a hanging transaction, as brokers before KIP-890 let it.
    "transaction.partition.verification.enable": "false",
}
TWO_HOURS_MS = 7_200_000


class SecondBroker(KafkaNative):
    """A broker, and no controller, of the cluster of another."""

    first: KafkaNative

    def properties(self) -> dict[str, str]:
        alone = {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.quorum.voters": f"1@{self.first.controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
        return {**super().properties(), **alone}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    second = SecondBroker(SETTINGS)
    with KafkaNative(SETTINGS) as second.first, second, Cluster(second.first.bootstrap) as cluster:
        yield cluster


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command, which must succeed and knows the first broker alone, and return its stdout."""
    (first,) = [one for one in cluster.metadata(()).brokers if one.node_id == 1]
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", f"{first.host}:{first.port}")

    def call(*words: str) -> str:
        status = main(list(words))
        out, err = capsys.readouterr()
        assert status == 0, err
        return out

    return call


def of_both(cluster: Cluster) -> dict[int, str]:
    """Node id -> a transactional id whose coordinator it is."""
    names = {cluster.coordinator_id(name, TRANSACTION): name for name in (f"id-{number}" for number in range(16))}
    assert set(names) == {1, 2}
    return names


def test_transactional_ids_of_all_coordinators_are_listed_and_described(cluster: Cluster, run: Run) -> None:
    create_topic(cluster, "t", partitions=2)
    names = of_both(cluster)
    for name in names.values():
        producer = Producer(cluster, transactional_id=name, transaction_timeout_ms=900_000)
        producer.begin()
        producer.send("t", b"open", partition=0)
        producer.flush()
    listed = json.loads(run("transactions", "list", "--json"))
    assert {one["coordinator"]: one["transactionalId"] for one in listed} == names
    assert len(listed) == 2
    described = json.loads(run("transactions", "describe", *names.values(), "--json"))
    assert {one["coordinatorId"]: one["transactionalId"] for one in described} == names
    for name in names.values():
        run("transactions", "force-terminate", name)


def test_hanging_transactions_are_found_and_aborted_at_the_leaders_of_their_partitions(
    cluster: Cluster, run: Run
) -> None:
    create_topic(cluster, "hung", partitions=2)
    leaders = cluster.by_leader([("hung", 0), ("hung", 1)])
    assert set(leaders) == {1, 2}
    for node_id, name in of_both(cluster).items():
        (partition,) = leaders[node_id]["hung"]
        begin = make("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
        begun = cluster.coordinator(name, TRANSACTION).request(begin)
        check(begun.error_code)
        when = time.time_ns() // 1_000_000 - TWO_HOURS_MS
        batch = build(
            [(None, b"v", when, ())],
            producer_id=begun.producer_id,
            producer_epoch=begun.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        answer = cluster.to(node_id).request(produce("hung", partition, batch, transactional_id=name), 9)
        check(answer.responses[0].partition_responses[0].error_code)
        found = json.loads(run("transactions", "find-hanging", "--json"))
        assert [(one["topic"], one["partition"]) for one in found] == [("hung", partition)]
        where = ("--topic", "hung", "--partition", str(partition))
        (known,) = json.loads(run("transactions", "describe-producers", *where, "--json"))
        run("transactions", "abort", *where, "--start-offset", str(known["currentTransactionStartOffset"]))
        assert json.loads(run("transactions", "find-hanging", "--json")) == []


def test_the_options_of_each_broker_are_set_and_shown(run: Run) -> None:
    for name in ("1", "2"):
        broker = ("--entity-type", "brokers", "--entity-name", name)
        run("configs", "alter", *broker, "--add-config", "log.cleaner.threads=2")

    def shown(name: str) -> list[str]:
        words = ("configs", "describe", "--entity-type", "brokers", "--entity-name", name, "--json")
        return [one["value"] for one in json.loads(run(*words)) if one["name"] == "log.cleaner.threads"]

    # Kafka answers before a broker has replayed what the controller wrote.
    for name in ("1", "2"):
        assert last_answer(lambda name=name: shown(name), lambda values: values == ["2"]) == ["2"]  # type: ignore[misc]
