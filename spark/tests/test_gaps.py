"""Spark's readers over topics with holes: none stuck, nothing taken for lost, nothing twice, on both brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_shim.spark import plain_clients
from kafka_shim.spark.gaps import readers, shapes
from kafka_shim.spark.kafka_topic import READ_UNCOMMITTED
from kafka_shim.spark.tests.conftest import KINDS
from kafka_shim.targets import Target


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_gets_every_shape_right_before_and_after_it_grows(
    session: SparkSession, brokers: Callable[[str], Target], name: str, scratch: Path, kind: str
) -> None:
    target = brokers(kind)
    made = shapes.make_all(target, name)
    found, going = readers.empty(), readers.empty()
    for step in ("first", "second"):
        assert readers.differences(made, readers.batch(session, made)) == {}, step
        uncommitted = readers.batch(session, made, READ_UNCOMMITTED)
        assert readers.differences(made, uncommitted, committed=False) == {}, step
        readers.stream(session, made, scratch / "now", found)
        assert readers.streamed_differences(made, found) == {}, step
        readers.stream(session, made, scratch / "going", going, processingTime="100 milliseconds")
        assert readers.streamed_differences(made, going) == {}, step
        if step == "first":
            shapes.finish_all(made, restart=True)
    jumped = next(shape for shape in made if shape.name == "epoch-jump")
    messages = sorted(plain_clients.read(target.bootstrap, jumped.topic), key=lambda message: message.offset())
    epochs = [message.leader_epoch() for message in messages]
    assert epochs == sorted(epochs)
    assert len(set(epochs)) > 1
