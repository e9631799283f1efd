"""The exactly-once sink: what it does with failing tasks and repeated batches, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from kafka_shim.spark import generator, kafka_topic, stream, triggers
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.kafka_topic import Source
from kafka_shim.spark.sink import foreach_batch, progress, task_writer
from kafka_shim.spark.sink.task_writer import SinkOptions, TaskAddress, write_task
from kafka_shim.spark.tests.conftest import KINDS
from kafka_shim.spark.tests.probe import BatchIdProbe
from kafka_shim.targets import Target

COUNT = 1_000


@pytest.fixture
def topics(shim: str, name: str) -> str:
    kafka.create(shim, name + generator.ORDERS)
    kafka.create(shim, f"{name}out")
    generator.write(shim, COUNT, prefix=name, repeats=False, aborts=False)
    return name


def failing_once_at_the_end(frame: DataFrame) -> DataFrame:
    """The same rows; the first attempt of a task fails after it has handed over its last row."""

    def pass_and_fail(chunks: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from chunks
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            raise RuntimeError("a task failed on purpose")

    return frame.mapInArrow(pass_and_fail, frame.schema)


@pytest.mark.parametrize("sink", [stream.FOREACH_BATCH, stream.DATA_SOURCE])
def test_a_task_that_fails_after_its_sends_writes_nothing_twice(
    session: SparkSession, shim: str, topics: str, scratch: Path, sink: str
) -> None:
    frame = failing_once_at_the_end(stream.build(session, "map", Source(shim, ""), topics))
    triggers.follow(stream.start(frame, shim, f"{topics}out", scratch, sink=sink), quiet=True)
    assert sorted(row["order_id"] for row in kafka.values(shim, f"{topics}out")) == list(range(COUNT))


def test_sparks_own_sink_doubles_the_rows_of_such_a_task(
    session: SparkSession, shim: str, topics: str, scratch: Path
) -> None:
    # Small chunks: rows reach the producer while the task runs, not with its end.
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    try:
        frame = failing_once_at_the_end(stream.build(session, "map", Source(shim, ""), topics))
        triggers.follow(stream.start(frame, shim, f"{topics}out", scratch, sink=stream.SPARK), quiet=True)
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    times = Counter(row["order_id"] for row in kafka.values(shim, f"{topics}out"))
    # Each task had sent all its rows when it failed, and nothing takes them back.
    assert times == Counter(dict.fromkeys(range(COUNT), 2))


def test_a_batch_run_again_writes_nothing(session: SparkSession, bootstrap: str, name: str) -> None:
    topic = kafka.create(bootstrap, f"{name}out")
    rows = session.range(0, 200, numPartitions=2).selectExpr("cast(id as string) as value")
    options = SinkOptions(bootstrap, topic)
    assert foreach_batch.write_batch(rows, 0, options, query_id=f"{name}query") == 200
    assert foreach_batch.write_batch(rows, 0, options, query_id=f"{name}query") == 0
    assert foreach_batch.write_batch(rows, 1, options, query_id=f"{name}query") == 200
    times = Counter(kafka.values(bootstrap, topic))
    assert times == Counter({number: 2 for number in range(200)})


def test_a_batch_that_the_same_function_tries_again_fences_the_failed_run(
    session: SparkSession, bootstrap: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fences = []
    fence = foreach_batch.fence

    def counted(*arguments: Any) -> Any:
        fences.append(arguments)
        return fence(*arguments)

    monkeypatch.setattr(foreach_batch, "fence", counted)
    topic = kafka.create(bootstrap, f"{name}out")
    rows = session.range(0, 20, numPartitions=2).selectExpr("cast(id as string) as value")
    write = foreach_batch.exactly_once(bootstrap, topic=topic, query_id=f"{name}query")
    write(rows, 0)
    first = len(fences)
    write(rows, 1)
    assert len(fences) == first, "it is the batch after the one before"
    with pytest.raises(Exception, match="failing"):
        write(rows.selectExpr("raise_error('failing') as value"), 2)
    write(rows, 2)
    assert len(fences) == 2 * first > 0
    assert Counter(kafka.values(bootstrap, topic)) == Counter({number: 3 for number in range(20)})


@pytest.fixture
def as_query(session: SparkSession) -> Iterator[Callable[[str], None]]:
    """Lets the test write as a streaming query does."""
    yield lambda query: session.sparkContext.setLocalProperty(foreach_batch.QUERY_ID_PROPERTY, query)
    session.sparkContext.setLocalProperty(foreach_batch.QUERY_ID_PROPERTY, None)  # type: ignore[arg-type]


def test_queries_that_share_a_function_each_fence_their_own_failed_run(
    session: SparkSession, bootstrap: str, name: str, as_query: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch of one was taken for the one before that of the other, whose failed run was not fenced then."""
    fenced: list[str] = []
    fence = foreach_batch.fence

    def noted(options: SinkOptions, query_id: str, tasks: Any) -> None:
        fenced.append(query_id.removeprefix(name))
        fence(options, query_id, tasks)

    monkeypatch.setattr(foreach_batch, "fence", noted)
    write = foreach_batch.exactly_once(bootstrap, topic=kafka.create(bootstrap, f"{name}out"))
    rows = session.range(0, 20, numPartitions=2).selectExpr("cast(id as string) as value")
    for query, batch_id in (("a", 0), ("b", 0), ("a", 1)):
        as_query(name + query)
        write(rows, batch_id)
    assert fenced == ["a", "b"], "each query goes on where it was"
    with pytest.raises(Exception, match="failing"):
        write(rows.selectExpr("raise_error('failing') as value"), 2)
    for query, batch_id in (("b", 1), ("a", 2)):
        as_query(name + query)
        write(rows, batch_id)
    assert fenced == ["a", "b", "a"]


def test_a_second_query_of_a_function_with_one_query_id_is_refused(
    session: SparkSession, bootstrap: str, name: str, as_query: Callable[[str], None]
) -> None:
    """Its rows were taken for repeats of the first one's, or stopped the query with an error about changed rows."""
    topic = kafka.create(bootstrap, f"{name}out")
    write = foreach_batch.exactly_once(bootstrap, topic=topic, query_id=f"{name}query")
    rows = session.range(0, 20, numPartitions=2).selectExpr("cast(id as string) as value")
    for query, batch_id in (("a", 0), ("a", 1)):
        as_query(name + query)
        write(rows, batch_id)
    as_query(f"{name}b")
    with pytest.raises(progress.SinkError, match=f"another query writes with query_id='{name}query'"):
        write(rows, 0)
    as_query(f"{name}a")
    write(rows, 2)
    assert Counter(kafka.values(bootstrap, topic)) == Counter({number: 3 for number in range(20)})


def test_rows_may_name_topic_partition_key_headers_and_time(session: SparkSession, bootstrap: str, name: str) -> None:
    topics = [kafka.create(bootstrap, f"{name}{number}") for number in range(2)]
    at = datetime(2025, 6, 15, 12, 0, 0, 123_000)
    rows = session.createDataFrame(
        [
            (topics[0], 1, b"k", "first", [("h", b"1"), ("h", None)], at),
            (topics[1], 0, None, None, None, at),
        ],
        "topic string, partition int, key binary, value string, "
        "headers array<struct<key: string, value: binary>>, timestamp timestamp",
    )
    assert foreach_batch.write_batch(rows, 0, SinkOptions(bootstrap, None), query_id=f"{name}query") == 2
    found = [kafka.read(bootstrap, topic) for topic in topics]
    told = [[(m.partition(), m.key(), m.value(), m.headers(), m.timestamp()[1]) for m in each] for each in found]
    at_ms = round(at.timestamp() * 1000)
    assert told == [
        [(1, b"k", b"first", [("h", b"1"), ("h", None)], at_ms)],
        [(0, None, None, None, at_ms)],
    ]


def test_keys_go_to_the_partitions_of_sparks_own_sink(session: SparkSession, bootstrap: str, name: str) -> None:
    """They went to others, so that a topic written by both had records of one key in two partitions."""
    topics = [kafka.create(bootstrap, f"{name}{role}", 5) for role in ("own", "once")]
    rows = session.range(20).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    kafka_topic.write(rows, bootstrap, topics[0])
    assert foreach_batch.write_batch(rows, 0, SinkOptions(bootstrap, topics[1]), query_id=f"{name}query") == 20
    own, once = ({message.key(): message.partition() for message in kafka.read(bootstrap, each)} for each in topics)
    assert own == once
    assert len(own) == 20
    assert len(set(own.values())) > 1


def test_the_topic_of_the_sink_stands_over_that_of_the_rows(bootstrap: str, name: str) -> None:
    """As in Spark's own sink. Rows that Spark's Kafka source has read name their topic, and were written back to it."""
    source, out = (kafka.create(bootstrap, f"{name}{role}", 1) for role in ("source", "out"))
    options = SinkOptions(bootstrap, out)
    progress.ensure_progress_topic(options.settings, f"{name}query", 1)
    rows = [{"value": str(number), "topic": source} for number in range(2)]
    assert write_task(rows, TaskAddress(f"{name}query", 0, 0, 1), options).rows == 2
    assert (kafka.values(bootstrap, source), kafka.values(bootstrap, out)) == ([], [0, 1])


def test_a_batch_run_again_with_other_tasks_is_refused_before_its_first_row(
    session: SparkSession, bootstrap: str, name: str
) -> None:
    topic = kafka.create(bootstrap, f"{name}out")
    rows = session.range(0, 90, numPartitions=2).selectExpr("cast(id as string) as value")
    options = SinkOptions(bootstrap, topic)
    foreach_batch.write_batch(rows, 0, options, query_id=f"{name}query")
    with pytest.raises(progress.TaskCountChangedError, match="partly written with 2 tasks"):
        foreach_batch.write_batch(rows.repartition(3), 0, options, query_id=f"{name}query")
    assert len(kafka.read(bootstrap, topic)) == 90


def parts(session: SparkSession, *ranges: tuple[int, int]) -> DataFrame:
    """Numbers as values, each range a partition; one may be empty."""
    frames = [
        session.range(start, end + 1, numPartitions=1).where(f"id < {end}").selectExpr("cast(id as string) as value")
        for start, end in ranges
    ]
    return reduce(DataFrame.union, frames)


def test_a_batch_run_again_in_another_order_is_known_by_its_rows(
    session: SparkSession, bootstrap: str, name: str
) -> None:
    """Spark deals out Kafka's partitions to tasks in another order when a query is started again."""
    topic, query_id = kafka.create(bootstrap, f"{name}out"), f"{name}query"
    options = SinkOptions(bootstrap, topic)
    first, again = parts(session, (0, 60), (60, 100), (100, 100)), parts(session, (60, 100), (100, 100), (0, 60))
    progress.ensure_progress_topic(options.settings, query_id, 3)
    share = foreach_batch.shares_of(first, 3)[0]
    rows = [{"value": str(number)} for number in range(60)]
    assert write_task(rows, TaskAddress(query_id, 0, 0, 3), options, share=share).rows == 60  # then the driver died
    assert foreach_batch.write_batch(again, 0, options, query_id=query_id) == 40
    assert foreach_batch.write_batch(first, 0, options, query_id=query_id) == 0
    assert Counter(kafka.values(bootstrap, topic)) == Counter(range(100))


def test_a_batch_run_again_with_other_rows_is_refused(session: SparkSession, bootstrap: str, name: str) -> None:
    topic, query_id = kafka.create(bootstrap, f"{name}out"), f"{name}query"
    options = SinkOptions(bootstrap, topic)
    foreach_batch.write_batch(parts(session, (0, 60), (60, 100)), 0, options, query_id=query_id)
    with pytest.raises(progress.RowsChangedError, match="the 60 rows that task 0 has committed"):
        foreach_batch.write_batch(parts(session, (0, 50), (50, 100)), 0, options, query_id=query_id)
    address = TaskAddress(f"{query_id}-2", 0, 0, 1)
    progress.ensure_progress_topic(options.settings, address.query_id, 1)
    rows = [{"value": "1", "key": None}, {"value": "2", "key": None}]
    assert not write_task(rows, address, options).skipped
    assert write_task(rows[::-1], address, options).skipped
    for changed in (rows[:1], [rows[0], rows[0]], [*rows, rows[0]]):
        with pytest.raises(progress.RowsChangedError, match="task 0 has committed 2 rows"):
            write_task(changed, address, options)
    assert len(kafka.read(bootstrap, topic)) == 102


def test_partitions_get_the_numbers_of_the_tasks_that_wrote_them() -> None:
    a, b, empty = progress.Share(2, "a"), progress.Share(2, "b"), progress.Share(0, "0")

    def done(**shares: progress.Share | None) -> dict[int, progress.TaskProgress]:
        return {int(task[1:]): progress.TaskProgress(6, 5, 3, share) for task, share in shares.items()}

    assert progress.assign([a, b, empty], {}, 5) == [0, 1, 2]
    assert progress.assign([a, b, empty], done(t1=b), 5) == [0, 1, 2]
    assert progress.assign([b, empty, a], done(t0=a), 5) == [1, 2, 0]
    assert progress.assign([empty, a, empty], done(t1=empty, t2=empty), 5) == [1, 0, 2]
    assert progress.assign([a, a, b], done(t2=a), 5) == [2, 0, 1]
    assert progress.assign([b, a], done(t0=a), 6) == [0, 1], "another batch's rows mean nothing"
    assert progress.assign([b, a], done(t0=None), 5) == [0, 1]
    with pytest.raises(progress.RowsChangedError):
        progress.assign([a, b], done(t0=a, t1=a), 5)


def test_a_task_itself_refuses_a_batch_that_had_another_number_of_tasks(bootstrap: str, name: str) -> None:
    topic = kafka.create(bootstrap, f"{name}out")
    options = SinkOptions(bootstrap, topic)
    progress.ensure_progress_topic(options.settings, f"{name}query", 3)
    rows = [{"value": "0"}]
    assert write_task(rows, TaskAddress(f"{name}query", 5, 1, 2), options).rows == 1
    for task in range(3):
        with pytest.raises(progress.TaskCountChangedError, match=r"batch 5 was partly written with 2 tasks \(task 1 "):
            write_task(rows, TaskAddress(f"{name}query", 5, task, 3), options)
    # The batch after it may have any number.
    assert write_task(rows, TaskAddress(f"{name}query", 6, 2, 3), options).rows == 1
    assert kafka.values(bootstrap, topic) == [0, 0]


def test_tasks_know_the_id_of_their_batch_and_query(
    session: SparkSession, shim: str, topics: str, scratch: Path
) -> None:
    """What the data source stands on: Spark tells a Python stream writer its batch id on the driver alone."""
    session.dataSource.register(BatchIdProbe)
    frame = stream.build(session, "map", Source(shim, "", max_offsets_per_trigger=400), topics).repartition(2)
    writer = frame.writeStream.format("batch_id_probe").option("path", str(scratch / "told"))
    query = writer.option("checkpointLocation", str(scratch / "checkpoint")).trigger(availableNow=True).start()
    query_id = query.id
    triggers.follow(query, quiet=True)
    told = (scratch / "told").read_text().splitlines()
    assert len(told) >= 3
    assert told == [f"{batch} 2 {query_id}" for batch in range(len(told))]


def test_the_data_source_refuses_a_batch_of_more_tasks_than_it_was_told(
    session: SparkSession, shim: str, topics: str, scratch: Path
) -> None:
    session.dataSource.register(stream.KafkaExactlyOnce)
    frame = stream.build(session, "map", Source(shim, ""), topics).repartition(2)
    writer = frame.writeStream.format("kafka_exactly_once").option("kafka.bootstrap.servers", shim)
    query = writer.option("tasks", "1").option("topic", f"{topics}out").option("checkpointLocation", str(scratch))
    with pytest.raises(StreamingQueryException, match="more tasks than tasks=1"):
        triggers.follow(query.trigger(availableNow=True).start(), quiet=True)


def test_speculation_is_refused_by_both_forms(scratch: Path) -> None:
    root = Path(__file__).resolve().parent.parent.parent
    command = [sys.executable, "-m", "kafka_shim.spark.tests.speculating", str(scratch)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["foreach-batch True", "data-source True"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_zombie_of_a_task_is_fenced_and_leaves_nothing(
    kind: str, brokers: Callable[[str], Target], name: str
) -> None:
    bootstrap, query_id = brokers(kind).bootstrap, f"{name}zombie"
    topic = kafka.create(bootstrap, f"{name}out", 1)
    options = SinkOptions(bootstrap, topic)
    progress.ensure_progress_topic(options.settings, query_id, 1)
    zombie = task_writer.open_producer(options, query_id, 0)
    zombie.begin_transaction()
    zombie.produce(topic, b'"zombie"')
    zombie.flush(30)
    outcome = write_task([{"value": '"alive"'}], TaskAddress(query_id, 0, 0, 1), options)
    assert (outcome.rows, outcome.skipped) == (1, False)
    with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
        zombie.commit_transaction(30)
    assert kafka.values(bootstrap, topic) == ["alive"]


def test_a_second_topic_of_a_query_is_refused_until_it_has_an_id_of_its_own(
    session: SparkSession, bootstrap: str, name: str, as_query: Callable[[str], None]
) -> None:
    """Its rows were taken for repeats of those of the first topic, and lost."""
    topics = [kafka.create(bootstrap, f"{name}{number}") for number in range(2)]
    rows = session.range(0, 20, numPartitions=2).selectExpr("cast(id as string) as value")
    as_query(f"{name}query")
    foreach_batch.exactly_once(bootstrap, topic=topics[0])(rows, 0)
    advice = f"each but that of {topics[0]}, which under another id would write this batch again"
    with pytest.raises(progress.TopicChangedError, match=advice):
        foreach_batch.exactly_once(bootstrap, topic=topics[1])(rows, 0)
    with pytest.raises(progress.TopicChangedError, match=advice):
        write_task([], TaskAddress(f"{name}query", 0, 0, 2), SinkOptions(bootstrap, None))
    second = foreach_batch.exactly_once(bootstrap, topic=topics[1], query_id=f"{name}second")
    for write in (foreach_batch.exactly_once(bootstrap, topic=topics[0]), second):
        write(rows, 0)
    for topic in topics:
        assert sorted(kafka.values(bootstrap, topic)) == list(range(20))


def test_a_batch_that_the_caller_keeps_stays_kept(session: SparkSession, shim: str, name: str) -> None:
    """It was dropped, so that what the caller did with it next computed it again."""
    topic = kafka.create(shim, f"{name}out")
    rows = session.range(0, 20, numPartitions=2).selectExpr("cast(id as string) as value", "'kept' as key").persist()
    write = foreach_batch.exactly_once(shim, topic=topic, query_id=f"{name}query")
    write(rows, 0)
    assert rows.storageLevel.useMemory
    rows.unpersist()
    write(rows, 1)
    assert not rows.storageLevel.useMemory
    assert Counter(kafka.values(shim, topic)) == Counter({number: 2 for number in range(20)})
