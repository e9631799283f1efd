"""What `storage upgrade-to-kafka` writes is all that Apache Kafka needs to go on with a directory of the shim."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kafka_shim import Broker
from kafka_shim.cli import main
from kafka_shim.targets import jvm
from kafka_shim.targets.base import free_ports
from kafka_shim.wire_client import Connection, WireClientError

pytestmark = [pytest.mark.soak, pytest.mark.java, pytest.mark.timeout(300)]


def test_kafka_starts_with_the_properties_and_has_the_records(tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "kafka.properties"
    with Broker(data_dir=data) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(100):
            producer.produce("t", str(number).encode(), partition=0)
        assert producer.flush(60) == 0
    port, controller = free_ports(2)
    words = ["--listener", f"127.0.0.1:{port}", "--controller-listener", f"127.0.0.1:{controller}"]
    assert main(["storage", "upgrade-to-kafka", str(data), "--config-file", str(config), *words]) == 0
    with (tmp_path / "kafka.log").open("wb") as log:
        kafka = subprocess.Popen(jvm.command("kafka.Kafka", str(config)), stdout=log, stderr=log)
    try:
        while not answers(port):
            assert kafka.poll() is None, (tmp_path / "kafka.log").read_text()[-3000:]
        options = {"group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", **options})
        consumer.subscribe(["t"])
        read: list[bytes | None] = []
        while len(read) < 100:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is None:
                read.append(message.value())
        consumer.close()
    finally:
        kafka.terminate()
        kafka.wait(60)
    assert read == [str(number).encode() for number in range(100)]
    assert main(["storage", "check", str(data)]) == 0


def answers(port: int) -> bool:
    try:
        Connection(f"127.0.0.1:{port}").close()
    except (WireClientError, OSError):
        return False
    return True
