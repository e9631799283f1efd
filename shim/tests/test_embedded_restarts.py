"""Restarts, resets and crashes of an embedded broker: what stays, and what does not."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim import Broker, server
from kafka_shim.client.groups import list_groups
from kafka_shim.client.offsets import commit_offsets
from kafka_shim.client.requests import make
from kafka_shim.client.writing import Producer
from kafka_shim.targets.waiting import right_answer, wait_until
from kafka_shim.wire_client import Connection, WireClientError


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def each_broker(request):
    """A broker in a thread, and in a process."""
    with Broker(process=request.param) as broker:
        yield broker


def test_a_restart_keeps_port_and_data_in_memory(each_broker):
    broker = each_broker
    address, cluster_id, directory = broker.bootstrap_servers, broker.cluster_id, broker.data_dir
    broker.produce("t", "a")
    assert broker.restart() is broker
    assert (broker.bootstrap_servers, broker.cluster_id, broker.data_dir) == (address, cluster_id, directory)
    assert [one.text for one in broker.consume("t")] == ["a"]
    broker.stop()
    assert not directory.exists()


def test_a_killed_broker_comes_back_with_port_and_data_in_memory():
    with Broker(process=True) as broker:
        address, directory = broker.bootstrap_servers, broker.data_dir
        broker.produce("t", "a")
        broker.kill()
        host, port = address.split(":")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, int(port)))
        broker.start()
        assert broker.bootstrap_servers == address
        assert [one.text for one in broker.consume("t")] == ["a"]
        broker.kill()
    assert not directory.exists()


def test_a_broker_that_crashes_by_itself_is_waited_for_and_recovers():
    with Broker(process=True, faults="log.after_append=kill@20") as broker:
        with pytest.raises(WireClientError):
            for number in range(30):
                broker.produce("t", str(number))
        assert broker.wait_for_crash() == -9
        broker.restart()  # no fault is armed any more
        assert broker.consume("t")[0].text == "0"
        with pytest.raises(TimeoutError, match="still runs"):
            broker.wait_for_crash(0.01)


def test_a_reset_leaves_nothing_and_keeps_the_port(each_broker):
    broker = each_broker
    address = broker.bootstrap_servers
    broker.produce("t", "a")
    with broker.cluster() as cluster:
        commit_offsets(cluster, "g", {("t", 0): 1})
        Producer(cluster, transactional_id="x").begin()
        topic = {"resource_type": 4, "resource_name": "", "configs": [{"name": "log.retention.ms", "value": "7"}]}
        assert not cluster.any().request(make("IncrementalAlterConfigs", resources=[topic])).responses[0].error_code
    broker.reset()
    assert (broker.bootstrap_servers, broker.topics()) == (address, [])
    with broker.cluster() as cluster:
        assert list_groups(cluster) == []
        listed = cluster.any().request(make("ListTransactions"))
        assert listed.transaction_states == []
        resource = {"resource_type": 4, "resource_name": "", "configuration_keys": None}
        (found,) = cluster.any().request(make("DescribeConfigs", resources=[resource])).results
        assert "log.retention.ms" not in [one.name for one in found.configs]
        assert [topic.name for topic in cluster.metadata().topics] == []
    broker.produce("t", "b")
    assert [one.text for one in broker.consume("t")] == ["b"]


def test_a_reset_sets_faults_and_the_clock_back():
    with Broker(clock="virtual", faults="txn.after_prepare=error") as broker:
        before_ms = broker.clock.now_ms()
        faults = broker.faults
        broker.clock.advance("1d")
        faults.disarm()
        faults.arm("log.before_write", "error", where={"topic": "t"})
        broker.reset()
        assert broker.clock.now_ms() == before_ms
        broker.produce("t", "a")
        assert broker.faults.is_armed_besides("log.before_write")
        assert not broker.faults.is_armed_besides("txn.after_prepare")


def test_a_reset_takes_milliseconds():
    with Broker() as broker:
        broker.reset()

        def reset_s() -> float:
            broker.produce("t", "a")
            started = time.perf_counter()
            broker.reset()
            return time.perf_counter() - started

        right_answer(reset_s, lambda seconds: seconds < 0.25, "some 5 ms; a start of a process is 300")


@pytest.mark.parametrize("end", [Broker.stop, Broker.restart, Broker.reset])
def test_the_end_lets_held_callers_go(end: Callable[[Broker], object], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "DRAIN_SECONDS", 600)  # for a request that is held; the end gives up before
    with Broker() as broker:
        broker.produce("t", "a")
        broker.faults.arm("request.received", "hold", where={"api_key": 0})
        with Connection(broker.bootstrap_servers) as client:
            for _ in range(2):  # the second is received once the first one is answered
                client.send(make("Produce", acks=-1, timeout_ms=1, topic_data=[]), 9)
            wait_until(lambda: broker.faults.reached("request.received"), "the request is held")
            end(broker)


def test_a_directory_that_was_given_is_not_reset(tmp_path: Path):
    with Broker(data_dir=tmp_path) as broker:
        broker.produce("t", "a")
        with pytest.raises(TypeError, match="given a directory"):
            broker.reset()
        assert len(broker.consume("t")) == 1
