"""What clients are told to push is what Apache Kafka tells them; pushes of real clients are understood."""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.embedded import Broker
from kafka_shim.targets import jvm, make
from kafka_shim.targets.requests import make as message
from kafka_shim.wire_client import Connection

PATIENCE_S = 60
REPORTER = "kafka_shim.telemetry.prometheus_reporter.PrometheusReporter"
PREFIXES = "org.apache.kafka.producer.,org.apache.kafka.consumer.fetch,a,b,c,org.apache.kafka.admin.,zz,yy,x.y.z"
IDS = [hashlib.sha256(bytes([number])).digest()[:16] for number in range(6)]


def told(bootstrap: str) -> list[object]:
    """What the broker answers to the same requests of six clients, and to their pushes."""
    seen: list[object] = []
    with Connection(bootstrap, client_id="app-7") as connection:
        for client in IDS:
            answer = connection.request(message("GetTelemetrySubscriptions", client_instance_id=client), 0)
            seen.append(
                (
                    answer.error_code,
                    answer.client_instance_id,
                    answer.subscription_id,
                    answer.accepted_compression_types,
                    answer.push_interval_ms,
                    answer.telemetry_max_bytes,
                    answer.delta_temporality,
                    answer.requested_metrics,
                )
            )
            for fields in (
                {"subscription_id": answer.subscription_id + 1},
                {"subscription_id": answer.subscription_id},
                {"subscription_id": answer.subscription_id, "terminating": True, "compression_type": 9},
                {"subscription_id": answer.subscription_id, "terminating": True},
            ):
                push = message("PushTelemetry", client_instance_id=client, metrics=b"", **fields)
                seen.append(connection.request(push, 0).error_code)
            again = connection.request(message("GetTelemetrySubscriptions", client_instance_id=client), 0)
            seen.append((again.error_code, again.requested_metrics))
        for client in (bytes(16), bytes(15) + b"\x01", bytes(15) + b"\x05"):
            push = message("PushTelemetry", client_instance_id=client, metrics=b"", subscription_id=1)
            seen.append(connection.request(push, 0).error_code)
    return seen


@pytest.mark.java
def test_subscriptions_and_refusals_are_kafkas(tmp_path: Path) -> None:
    with make("shim") as shim, make("kafka-native") as kafka, ToolDriver() as driver:
        for target in (shim, kafka):
            common = ("--bootstrap-server", target.bootstrap)
            for name, arguments in {
                "one": ("--metrics", PREFIXES, "--interval", "30000"),
                "two": ("--metrics", "org.apache.kafka.producer.,k,l,m,n,o", "--match", "client_id=app-[0-9]"),
                "no": ("--metrics", "*", "--match", "client_software_name=nobody"),
            }.items():
                driver.run("kafka-client-metrics", *common, "--alter", "--name", name, *arguments)
        texts = [
            driver.run("kafka-client-metrics", "--bootstrap-server", target.bootstrap, *arguments)
            for arguments in (("--describe",), ("--list",))
            for target in (shim, kafka)
        ]
        assert sorted(texts[0].splitlines()) == sorted(texts[1].splitlines())
        assert sorted(texts[2].split()) == sorted(texts[3].split()) == ["no", "one", "two"]
        ours, theirs = told(shim.bootstrap), told(kafka.bootstrap)
        assert ours == theirs
        assert "k" in theirs[0][7]  # type: ignore[index]


def want_everything(broker: Broker) -> None:
    """Every client is told to push all its metrics five times a second."""
    with Connection(broker.bootstrap_servers) as connection:
        configs = [
            {"name": name, "config_operation": 0, "value": value}
            for name, value in (("metrics", "*"), ("interval.ms", "200"))
        ]
        resource = {"resource_type": 16, "resource_name": "all", "configs": configs}
        answer = connection.request(message("IncrementalAlterConfigs", resources=[resource]), 1)
        assert answer.responses[0].error_code == 0


@pytest.mark.java
def test_pushes_of_javas_producer_are_understood() -> None:
    """KafkaProducer pushes while it sends. What it pushed is forgotten when it closes: that push says so."""
    with Broker(metric_reporters=REPORTER) as broker:
        want_everything(broker)
        line = jvm.command(
            jvm.TOOLS["kafka-producer-perf-test"],
            *("--topic", "t", "--num-records", "1000000", "--record-size", "10", "--throughput", "100"),
            *("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", "client.id=app"),
        )
        deadline = time.monotonic() + PATIENCE_S
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            sent: dict[str, float] = {}
            while not sent.get("org_apache_kafka_producer_record_send_total"):
                assert time.monotonic() < deadline, f"not pushed: {sorted(sent)}"
                time.sleep(0.1)
                series = broker.call(broker.state.client_metrics.receivers[0].series)
                sent = {one.name: one.value for one in series}
                labels = [dict(one.labels) for one in series]
        finally:
            process.kill()
            process.wait()
    assert "org_apache_kafka_producer_batch_size_max" in sent, sorted(sent)
    assert {one["client_id"] for one in labels} == {"app"}
    assert {one["client_software_name"] for one in labels} == {"apache-kafka-java"}


def test_pushes_of_librdkafka_are_understood() -> None:
    with Broker(metric_reporters=REPORTER) as broker:
        want_everything(broker)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "app"})
        deadline = time.monotonic() + PATIENCE_S
        series = []
        while not series:
            assert time.monotonic() < deadline, "nothing was pushed"
            producer.produce("t", b"v")
            producer.poll(0.05)
            known = broker.call(lambda: broker.state.client_metrics)
            series = known.receivers[0].series()
        assert any(one.name.startswith("org_apache_kafka_producer_") for one in series)
        assert {dict(one.labels)["client_id"] for one in series} == {"app"}
        producer.flush(60)
