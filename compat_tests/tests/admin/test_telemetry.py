"""What clients are told to push is what Apache Kafka tells them; pushes of real clients are understood."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_shim.compat.tool_driver import ToolDriver
from kafka_shim.embedded import Broker
from kafka_shim.targets import make
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


def test_pushes_of_librdkafka_are_understood() -> None:
    with Broker(metric_reporters=REPORTER) as broker:
        with Connection(broker.bootstrap_servers) as connection:
            configs = [
                {"name": name, "config_operation": 0, "value": value}
                for name, value in (("metrics", "*"), ("interval.ms", "200"))
            ]
            resource = {"resource_type": 16, "resource_name": "all", "configs": configs}
            answer = connection.request(message("IncrementalAlterConfigs", resources=[resource]), 1)
            assert answer.responses[0].error_code == 0
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
        producer.flush(10)
