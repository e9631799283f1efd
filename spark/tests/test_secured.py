"""Spark's Kafka source and sink, and the exactly-once sink, on listeners with TLS and SASL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from kafka_shim import Broker
from kafka_shim.spark.sink import foreach_batch

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CELLS = [(True, ""), *((True, one) for one in MECHANISMS), *((False, one) for one in MECHANISMS)]
SAMPLE = (True, "SCRAM-SHA-512")
ROWS = 100


@pytest.fixture(
    params=[pytest.param(cell, marks=() if cell == SAMPLE else pytest.mark.soak) for cell in CELLS],
    ids=lambda cell: f"{'tls' if cell[0] else 'clear'}-{cell[1] or 'none'}",
)
def secured(request: pytest.FixtureRequest) -> Iterator[Broker]:
    tls, sasl = request.param
    users = {"alice": 'pass"word'} if sasl and sasl != "OAUTHBEARER" else None
    with Broker(tls=tls, sasl=sasl or None, users=users) as broker:
        yield broker


def values(broker: Broker, topic: str) -> list[int]:
    """What a reader of committed records finds, read by librdkafka."""
    config: dict[str, Any] = broker.client_config("confluent-kafka", "alice")
    own = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = confluent_kafka.Consumer({**config, **own})
    consumer.subscribe([topic])
    found: list[int] = []
    while len(found) < ROWS:
        message = consumer.poll(60)
        assert message is not None, f"{len(found)} of {ROWS} rows"
        assert message.error() is None
        found.append(int(message.value()))
    consumer.close()
    return sorted(found)


def test_source_sink_and_exactly_once_sink(session: SparkSession, secured: Broker, scratch: Path) -> None:
    options = secured.client_config("spark", "alice")
    rows = session.range(0, ROWS, numPartitions=2).selectExpr("cast(id as string) as value")
    rows.write.format("kafka").options(**options).option("topic", "written").save()
    assert values(secured, "written") == list(range(ROWS))

    def read(how: Any) -> Any:
        return how.format("kafka").options(**options, subscribe="written", startingOffsets="earliest")

    batch = read(session.read).load().selectExpr("cast(value as string) as value")
    assert sorted(int(row.value) for row in batch.collect()) == list(range(ROWS))

    client = secured.client_config("confluent-kafka", "alice")
    servers = client.pop("bootstrap.servers")
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in client.items()}
    sink = foreach_batch.exactly_once(servers, topic="exact", client=texts)
    stream = read(session.readStream).load().selectExpr("cast(value as string) as value")
    query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(scratch / "checkpoint"))
    assert query.trigger(availableNow=True).start().awaitTermination(300)
    assert values(secured, "exact") == list(range(ROWS))
