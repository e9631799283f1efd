"""The jobs as clients of Spark Connect: what works there, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim.spark import generator, stream
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.tests.connecting import ConnectServer

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

COUNT = 2_000
# The batch is not a stream's: the refusal comes before anything is asked of it.
FOREACH_BATCH = """
from kafka_shim.spark.session import build_session
from kafka_shim.spark.sink import foreach_batch, progress
from kafka_shim.spark.sink.task_writer import SinkOptions
session = build_session("refused")
refused = []
for ask in (
    lambda: foreach_batch.exactly_once("127.0.0.1:1", topic="out"),
    lambda: foreach_batch.write_batch(session.range(1), 0, SinkOptions("127.0.0.1:1", "out", ()), query_id="q"),
):
    try:
        ask()
    except progress.SinkError as error:
        refused.append(str(error))
print(len(refused), set(refused))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    made = ConnectServer(tmp_path_factory.mktemp("connect"))
    try:
        made.wait_until_ready()
        yield made
    finally:
        made.close()


@pytest.fixture
def topics(shim: str, name: str) -> str:
    kafka.create(shim, name + generator.ORDERS)
    kafka.create(shim, f"{name}out")
    generator.write(shim, COUNT, prefix=name, repeats=False, aborts=False)
    return name


def numbers(bootstrap: str, topic: str) -> list[int]:
    return sorted(row["order_id"] for row in kafka.values(bootstrap, topic))


def stream_words(shim: str, topics: str, checkpoint: Path, sink: str) -> list[object]:
    words = ["stream", "--pipeline", "map", "--bootstrap-servers", shim, "--prefix", topics, "--out", f"{topics}out"]
    return [*words, "--sink", sink, "--checkpoint", checkpoint, "--max-offsets-per-trigger", 700]


def test_batches_read_a_topic_and_write_one(server: ConnectServer, shim: str, topics: str, scratch: Path) -> None:
    orders, table = topics + generator.ORDERS, scratch / "table"
    said = server.run("topic-to-table", "--bootstrap-servers", shim, "--topics", orders, "--out", table)
    assert f"{table}: {COUNT:,} rows in " in said
    words = ("--in", table, "--bootstrap-servers", shim, "--topic", f"{topics}out")
    assert f"{topics}out: {COUNT:,} rows in " in server.run("table-to-topic", *words)
    copied, given = (
        Counter((message.key(), message.value()) for message in kafka.read(shim, topic))
        for topic in (f"{topics}out", orders)
    )
    assert copied == given


@pytest.mark.parametrize("sink", [stream.SPARK, stream.DATA_SOURCE])
def test_a_stream_goes_on_from_its_checkpoint(
    server: ConnectServer, shim: str, topics: str, scratch: Path, sink: str
) -> None:
    words = stream_words(shim, topics, scratch / "checkpoint", sink)
    assert f" batches, {COUNT:,} rows in " in server.run(*words)
    generator.write(shim, 10, first=COUNT, prefix=topics, repeats=False, aborts=False)
    assert "1 batches, 10 rows in " in server.run(*words)
    assert numbers(shim, f"{topics}out") == list(range(COUNT + 10))


def test_the_other_form_of_the_sink_is_refused_before_it_writes(server: ConnectServer) -> None:
    said = server.run(program=FOREACH_BATCH)
    assert "2 {'Spark Connect has no RDDs for this form: use the data source kafka_exactly_once'}" in said
