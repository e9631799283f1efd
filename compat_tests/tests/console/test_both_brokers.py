"""The console is a client like any other: it shows this broker and Apache Kafka alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from kafka_shim.compat.tests.console.test_page import SCRIPT, is_done, shown
from kafka_shim.console.app import Console
from kafka_shim.console.sessions import Sessions
from kafka_shim.targets import make
from kafka_shim.tests.console.asking import get

BROKERS = ["shim", pytest.param("kafka-native", marks=[pytest.mark.java, pytest.mark.soak])]


@pytest.fixture(params=BROKERS)
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    with make(request.param) as started:
        yield started.bootstrap


def write(bootstrap: str) -> Producer:
    """Records of three transactions: one committed, one aborted, one that is open."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
    for name, end in (("committed", "commit"), ("aborted", "abort"), ("open", "")):
        settings = {"transactional.id": name, "transaction.timeout.ms": 900_000}  # the last stays open
        producer = Producer({"bootstrap.servers": bootstrap, **settings})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", key=name, value='{"a":1}', headers=[("h", b"v")])
        producer.flush(30)
        if end:
            getattr(producer, f"{end}_transaction")(30)
    return producer


def read_as_a_group(bootstrap: str) -> None:
    group = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, **group})
    consumer.subscribe(["t"])
    message = None
    deadline = time.monotonic() + 60
    while message is None and time.monotonic() < deadline:
        message = consumer.poll(1)
    assert message is not None
    consumer.commit(message, asynchronous=False)
    consumer.close()


def test_records_transactions_and_groups(bootstrap: str) -> None:
    producer = write(bootstrap)
    read_as_a_group(bootstrap)
    console = Console(Sessions(bootstrap, {}))
    page = get(console, "records", topic="t", direction="forward")
    assert [(row.get("transaction"), row.get("control", {}).get("type")) for row in page["records"]] == [
        ("committed", None),
        (None, "COMMIT"),
        ("aborted", None),
        (None, "ABORT"),
        ("open", None),
    ]
    first = page["records"][0]
    assert (first["key"]["text"], first["value"]["kind"], first["headers"][0][0]) == ("committed", "json", "h")
    assert page["partitions"] == [{"partition": 0, "earliest": 0, "latest": 5, "lastStable": 4}]
    assert [topic["offsets"] for topic in get(console, "topics", internal="no")["topics"]] == [5]
    held = get(console, "held")["partitions"]
    assert [(row["topic"], row["latest"] - row["lastStable"], row["open"][0]["name"]) for row in held] == [
        ("t", 1, "open")
    ]
    one = get(console, "transaction", name="open")
    assert (one["state"], one["held"][0]["isFirst"]) == ("Ongoing", True)
    group: dict[str, Any] = get(console, "group", name="g")
    assert [(row["committed"], row["end"], row["lag"]) for row in group["offsets"]] == [(1, 5, 4)]
    assert [(row["name"], row["lag"]) for row in get(console, "groups")["groups"]] == [("g", 4)]
    assert get(console, "configs", kind="topic", name="t")["configs"]
    assert get(console, "cluster")["brokers"][0]["disks"]
    assert get(console, "acls")["note"]
    assert get(console, "users")["count"] == get(console, "quotas")["count"] == 0
    assert [row["partition"] for row in get(console, "producers", topic="t")["producers"]] == [0, 0, 0]
    console.close()
    producer.abort_transaction(30)


@pytest.mark.slow
def test_people_change_what_they_confirm_in_a_browser(bootstrap: str, tmp_path: Path) -> None:
    """Each change of the console, and what another client sees of it then."""
    producer = write(bootstrap)
    read_as_a_group(bootstrap)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with shown(bootstrap, tmp_path) as view:
        view.elements("topics", "<h1>made ", act="create")
        view.elements("topics/made", act="record", until=is_done)
        assert get(view.console, "records", topic="made", direction="forward")["records"][0]["value"]["text"] == SCRIPT

        options = ConfigResource(ConfigResource.Type.TOPIC, "made")
        view.elements("topics/made/configs", act="option", until=is_done)
        told = {name: one.value for name, one in admin.describe_configs([options])[options].result(30).items()}
        assert told["cleanup.policy"] == "compact"

        view.elements("groups/g", act="reset", until=is_done)
        (reset,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")]).values()
        assert [(one.topic, one.offset) for one in reset.result(30).topic_partitions] == [("t", 0)]

        view.elements("transactions/open", act="end", until=is_done)
        with pytest.raises(KafkaException, match=r"FENCED|fenced|newer producer"):
            producer.commit_transaction(30)
        assert get(view.console, "held")["partitions"] == []

        view.elements("topics/t", act="delete", until=is_done)
        assert "t" not in admin.list_topics(timeout=30).topics
