"""The image in the Kafka modules of Testcontainers, unchanged: each starts it by a script of its own."""

from __future__ import annotations

import os

import pytest
from confluent_kafka import Consumer, Producer
from testcontainers.community.kafka import KafkaContainer

from kafka_shim.targets import images

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def image(containers: None) -> str:
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    return images.shim_image()


@pytest.mark.parametrize("mode", ["with ZooKeeper", "in KRaft mode"])
def test_the_module_for_python(image: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    container = KafkaContainer(image)
    if mode == "in KRaft mode":
        # It compares the tag with versions of Confluent's image.
        monkeypatch.setattr(container, "_verify_min_kraft_version", lambda: None)
        container.with_kraft()
    with container:
        bootstrap = container.get_bootstrap_server()
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce("events", b"hello", b"key")
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["events"])
        try:
            message = consumer.poll(30)
            assert message is not None
            assert (message.key(), message.value()) == (b"key", b"hello")
        finally:
            consumer.close()
        cluster = producer.list_topics().cluster_id
        if mode == "in KRaft mode":
            assert cluster == container.cluster_id
