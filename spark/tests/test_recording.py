"""A recording of a streaming job replays on each broker without a difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_shim.spark import generator, stream, triggers
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.kafka_topic import Source
from kafka_shim.targets import make
from kafka_shim.targets.recording import recorder, replay

COUNT = 1_200
OUT = "out"


def stream_orders(session: SparkSession, bootstrap: str, checkpoint: Path) -> None:
    """Orders in transactions, of which one is aborted, each to a topic once: in three micro-batches of two tasks."""
    for topic in (generator.ORDERS, generator.PAYMENTS, OUT):
        kafka.create(bootstrap, topic)
    generator.write(bootstrap, COUNT)
    frame = stream.build(session, "dedupe", Source(bootstrap, "", max_offsets_per_trigger=500))
    summary = triggers.follow(stream.start(frame, bootstrap, OUT, checkpoint), quiet=True)
    assert len(summary.triggers) >= 3
    assert sorted(row["order_id"] for row in kafka.values(bootstrap, OUT)) == list(range(COUNT))


@pytest.mark.parametrize("recorded_on", ["shim", "kafka-native"])
def test_a_streaming_job_replays_without_a_difference(session: SparkSession, scratch: Path, recorded_on: str) -> None:
    capture = scratch / "capture"
    with make(recorded_on) as target, recorder(target.bootstrap, capture) as address:
        stream_orders(session, address, scratch / "checkpoint")
    for to in ("shim", "kafka-native"):
        with make(to) as target:
            outcome = replay(capture, target.bootstrap)
        assert not outcome.findings, f"{recorded_on} -> {to}\n" + "\n".join(map(str, outcome.findings))
        assert outcome.requests > 200
        assert outcome.records > 2 * COUNT
