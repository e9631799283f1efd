"""Records of an embedded broker without a client library, and what it has from its first start on."""

from __future__ import annotations

import contextlib
import shutil
import threading
from pathlib import Path

import pytest

from kafka_shim import Broker
from kafka_shim.client.requests import make
from kafka_shim.embedded_records import FirstRecords
from kafka_shim.tests.descriptors import none_left
from kafka_shim.tests.left_behind import running
from kafka_shim.tests.produced import metadata
from kafka_shim.wire_client import Connection, RequestError

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize("process", [False, True])
def test_a_directory_that_was_emptied_gets_the_users_again(tmp_path: Path, process: bool):
    broker = Broker(data_dir=tmp_path / "data", sasl="SCRAM-SHA-256", users={"alice": "secret"}, process=process)
    for _ in range(2):
        with broker:
            assert broker.topics() == []
        shutil.rmtree(tmp_path / "data")


def test_records_are_written_and_read(broker):
    broker.create_topic("t", 1, cleanup_policy="compact")
    broker.produce("t", "a", b"b", {"c": [1]}, None, key="k", headers={"h": "x"})
    found = broker.consume("t", count=4)
    assert [one.text for one in found] == ["a", "b", '{"c": [1]}', None]
    assert found[2].json() == {"c": [1]}
    with pytest.raises(TypeError, match="tombstone"):
        found[3].json()
    with pytest.raises(ValueError, match="Expecting value") as refused:
        found[0].json()
    assert refused.value.__notes__ == ["t-0, offset 0 has the value b'a'"]
    broker.produce("t", b"{" * 1000, key="k")
    with pytest.raises(ValueError, match="Expecting property name") as refused:
        broker.consume("t", count=5)[4].json()
    assert refused.value.__notes__ == [f"t-0, offset 4 has the value {b'{' * 80!r}..."]
    assert {(one.key, one.headers) for one in found} == {(b"k", (("h", b"x"),))}
    assert {one.timestamp_ms for one in found} == {broker.clock.now_ms()}
    broker.delete_topic("t")
    assert broker.topics() == []


def test_too_few_records_are_told(broker):
    broker.produce("t", "a")
    with pytest.raises(TimeoutError, match=r"t has 1 committed records after 0.01 s, not 2: \[b'a'\]"):
        broker.consume("t", count=2, timeout_s=0.01)
    assert broker.consume("t", partition=1) == []


def test_records_of_a_topic_that_is_not_made_yet_are_awaited(broker):
    with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        broker.consume("t")
    with pytest.raises(TimeoutError, match=r"there is no topic t after 0.01 s"):
        broker.consume("t", count=1, timeout_s=0.01)
    application = threading.Timer(0.05, broker.produce, ("t", "a"))
    application.start()
    assert [one.text for one in broker.consume("t", count=1)] == ["a"]
    application.join()


def test_a_topic_is_made_once(broker):
    broker.ensure_topic("t", 3)
    broker.ensure_topic("t", 3)
    with pytest.raises(ValueError, match="t has 3 partitions, not 2"):
        broker.ensure_topic("t", 2)


def test_records_of_a_secured_broker_are_written_and_read():
    with Broker(tls=True, sasl="SCRAM-SHA-256", users={"alice": "secret"}) as broker:
        broker.produce("t", "a")
        broker.restart()
        assert [one.text for one in broker.consume("t")] == ["a"]


@pytest.mark.parametrize("process", [False, True])
def test_clients_are_told_the_listener_that_is_as_they_are(process: bool):
    """They were told the first one with the protocol of another."""
    listen = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    protocols = "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"
    users = {"alice": "secret"}
    with Broker(
        listen=listen,
        listener_security_protocol_map=protocols,
        inter_broker_listener_name="INSIDE",
        sasl="SCRAM-SHA-256",
        users=users,
        process=process,
        **{"listener.name.outside.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;"},
    ) as broker:
        assert broker.client_config("java")["bootstrap.servers"] != broker.bootstrap_servers
        broker.produce("t", "a")
        with Connection(broker.bootstrap_servers) as client:
            assert len(metadata(client, "t").topics[0].partitions) == 1


@pytest.mark.parametrize("process", [False, True])
def test_what_was_removed_of_the_first_acls_is_not_back_after_a_restart(process):
    """The users and ACLs of the constructor were stored at every start. A reset begins with them again."""
    with Broker(process=process, acls=ACLS) as broker:
        assert of_topics(broker) == ["t"]
        broker.restart()
        assert of_topics(broker) == ["t"]
        with broker.cluster() as cluster:
            cluster.any().request(make("DeleteAcls", filters=[OF_TOPICS]))
        broker.restart()
        assert of_topics(broker) == []
        broker.reset()
        assert of_topics(broker) == ["t"]


@pytest.mark.parametrize("step", ["begin", "end"])
@pytest.mark.parametrize("process", [False, True])
def test_what_was_removed_is_not_back_after_a_restart_without_a_descriptor(
    process: bool, step: str, monkeypatch: pytest.MonkeyPatch
):
    """Data that could not be read was taken for new."""
    with Broker(process=process, acls=ACLS) as broker:
        with broker.cluster() as cluster:
            cluster.any().request(make("DeleteAcls", filters=[OF_TOPICS]))
        with monkeypatch.context() as patch, contextlib.suppress(OSError):
            without_descriptor(patch, step)
            broker.restart()
        broker.restart()
        assert of_topics(broker) == []


@pytest.mark.parametrize("process", [False, True])
def test_a_first_start_whose_data_cannot_be_known_again_is_told(process: bool, monkeypatch: pytest.MonkeyPatch):
    """The next one would store again what was removed meanwhile."""
    before = running()
    broker = Broker(process=process, acls=ACLS)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Too many open files"):
        without_descriptor(patch, "end")
        broker.start()
    assert running() <= before
    with broker:
        assert of_topics(broker) == ["t"]


def without_descriptor(patch: pytest.MonkeyPatch, step: str) -> None:
    """Let this process have none left in a step of `FirstRecords`."""
    real = getattr(FirstRecords, step)

    def take(*arguments: object) -> None:
        with none_left():
            real(*arguments)

    patch.setattr(FirstRecords, step, take)


ACLS = [{"principal": "User:ANONYMOUS", "cluster": True}, {"principal": "User:a", "topic": "t"}]
OF_TOPICS: dict[str, int | None] = {
    **dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter")),
    **{"resource_type_filter": 2, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
}


def of_topics(broker: Broker) -> list[str]:
    with broker.cluster() as cluster:
        return [each.resource_name for each in cluster.any().request(make("DescribeAcls", **OF_TOPICS)).resources]
