"""The commands that read, and those of records, against a real Apache Kafka; the shim has them in its unit tests."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from kafka_shim.cli import main
from kafka_shim.client.cluster import Cluster
from kafka_shim.client.writing import Producer
from kafka_shim.targets import Target, make

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(600)]
Run = Callable[..., str]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Target]:
    with make("kafka-native") as started:
        yield started


@pytest.fixture
def run(kafka: Target, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command, which must succeed, and return its stdout."""
    monkeypatch.setenv("KAFKA_SHIM_BOOTSTRAP", kafka.bootstrap)

    def call(*words: str, given: bytes = b"") -> str:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
        status = main(list(words))
        out, err = capsysbinary.readouterr()
        assert status == 0, err.decode()
        return out.decode()

    return call


def test_commands_work_against_apache_kafka(run: Run, kafka: Target) -> None:
    run("topics", "create", "t", "--partitions", "2")
    run("produce", "t", "--key-separator", ":", "-p", "0", "-H", "h=x", given=b"k:a\nk:b\n")
    run("produce", "t", "-p", "1", "--transactional-id", "x", "--compression", "zstd", given=b"c\n")
    lines: list[dict[str, object]] = []
    deadline = time.monotonic() + 60
    # Kafka answers a commit before its marker is written; until then nobody reads the transaction.
    while len(lines) < 3 and time.monotonic() < deadline:
        lines = [json.loads(line) for line in run("consume", "t", "--json", "--read-committed").splitlines()]
    lines.sort(key=lambda one: str(one["value"]))
    assert [(one["key"], one["value"], one["headers"]) for one in lines] == [
        ("k", "a", [["h", "x"]]),
        ("k", "b", [["h", "x"]]),
        (None, "c", []),
    ]
    assert sorted(run("consume", "t", "--group", "g").split()) == ["a", "b", "c"]
    groups = json.loads(run("groups", "list", "--json"))
    assert groups == [{"group": "g", "type": "Consumer", "state": "Empty"}]
    described = json.loads(run("groups", "describe", "--all", "--json"))
    assert {(one["topic"], one["partition"], one["lag"]) for one in described} == {("t", 0, 0), ("t", 1, 0)}
    reset = json.loads(run("groups", "reset-offsets", "g", "--to-earliest", "--execute", "--json"))
    assert {one["newOffset"] for one in reset} == {0}
    (node,) = json.loads(run("cluster", "nodes", "--json"))
    assert (node["nodeId"], node["fenced"]) == (1, False)
    features = {one["feature"]: one["level"] for one in json.loads(run("cluster", "features", "--json"))}
    assert features["transaction.version"] == 2
    assert "PLAINTEXT" in run("cluster", "listeners")
    assert run("cluster", "health").startswith("healthy: 1 broker,")
    run("configs", "describe", "--entity-type", "topics", "--entity-name", "t", "--json")
    with Cluster(kafka.bootstrap) as cluster:
        producer = Producer(cluster, transactional_id="open", transaction_timeout_ms=900_000)
        producer.begin()
        producer.send("t", b"open", partition=0)
        producer.flush()
        found = json.loads(run("top", "--once", "--json", "--refresh", "0.5"))
        assert [one["transactionalId"] for one in found["transactions"]] == ["open"]
        assert [(one["group"], one["lag"]) for one in found["groups"]] == [("g", 5)]
        assert found["refused"] == []
        listed = json.loads(run("transactions", "list", "--json"))
        assert {one["transactionalId"] for one in listed} == {"open", "x"}
        producer.abort()
