"""The streaming pipelines against what Python says of the same orders; `test_jobs` holds them on Apache Kafka against
what comes out here."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_shim.spark import generator, stream, triggers
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.kafka_topic import Source

COUNT = 2_500


def prepare(bootstrap: str, name: str, count: int = COUNT) -> str:
    """Topics with orders and payments; returns the name of an empty one for the result."""
    for topic in (generator.ORDERS, generator.PAYMENTS):
        kafka.create(bootstrap, name + topic)
    generator.write(bootstrap, count, prefix=name)
    return kafka.create(bootstrap, f"{name}out")


def run(session: SparkSession, bootstrap: str, name: str, pipeline: str, checkpoint: Path, **given: Any) -> int:
    source = Source(bootstrap, "", max_offsets_per_trigger=1_000)
    frame = stream.build(session, pipeline, source, name)
    summary = triggers.follow(stream.start(frame, bootstrap, f"{name}out", checkpoint, **given), quiet=True)
    return summary.rows


def expected_windows(count: int) -> dict[tuple[str, int], tuple[int, int]]:
    """Number and sum of each customer's orders by minute; repeats count, and the watermark holds back the end."""
    totals: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    last_ms = 0
    for number in range(count):
        order: dict[str, Any] = generator.order(number)
        times = 2 if number % generator.REPEAT_EVERY == 0 else 1
        cell = totals[order["customer"], order["at_ms"] // 60_000 * 60_000]
        cell[0] += times
        cell[1] += times * order["amount_cents"]
        last_ms = max(last_ms, order["at_ms"])
    return {where: (n, cents) for where, (n, cents) in totals.items() if where[1] + 60_000 <= last_ms - 10_000}


def test_map_keeps_repeats_and_drops_what_was_aborted(
    session: SparkSession, shim: str, name: str, scratch: Path
) -> None:
    prepare(shim, name)
    run(session, shim, name, "map", scratch)
    found = kafka.values(shim, f"{name}out")
    numbers = [number for number in range(COUNT) for _ in range(2 if number % generator.REPEAT_EVERY == 0 else 1)]
    assert sorted(row["order_id"] for row in found) == numbers
    assert all(row["tax_cents"] == row["amount_cents"] * 19 // 100 for row in found)


@pytest.mark.parametrize("sink", [stream.FOREACH_BATCH, stream.DATA_SOURCE])
def test_dedupe_gives_each_order_once(
    session: SparkSession, bootstrap: str, name: str, scratch: Path, sink: str
) -> None:
    prepare(bootstrap, name)
    run(session, bootstrap, name, "dedupe", scratch, sink=sink)
    assert sorted(row["order_id"] for row in kafka.values(bootstrap, f"{name}out")) == list(range(COUNT))


def test_windows_are_the_sums_that_python_gets(session: SparkSession, shim: str, name: str, scratch: Path) -> None:
    prepare(shim, name)
    run(session, shim, name, "windows", scratch)
    rows = kafka.values(shim, f"{name}out")
    found = {(row["customer"], row["window_ms"]): (row["orders"], row["amount_cents"]) for row in rows}
    assert len(found) == len(rows)
    assert found == expected_windows(COUNT)


def test_join_finds_each_payment_of_an_order(session: SparkSession, shim: str, name: str, scratch: Path) -> None:
    prepare(shim, name)
    run(session, shim, name, "join", scratch)
    rows = kafka.values(shim, f"{name}out")
    assert sorted(row["order_id"] for row in rows) == [n for n in range(COUNT) if generator.is_paid(n)]
    assert {row["paid_after_ms"] for row in rows} == {generator.PAYS_AFTER_MS}


def test_a_second_run_goes_on_at_the_checkpoint(
    session: SparkSession, bootstrap: str, name: str, scratch: Path
) -> None:
    prepare(bootstrap, name, 1_000)
    run(session, bootstrap, name, "dedupe", scratch)
    generator.write(bootstrap, 500, first=1_000, prefix=name)
    # The repeats of the first run are not read again: 500 orders, 5 repeats.
    assert run(session, bootstrap, name, "dedupe", scratch) == 505
    assert sorted(row["order_id"] for row in kafka.values(bootstrap, f"{name}out")) == list(range(1_500))


def test_processing_time_goes_on_as_records_come(session: SparkSession, shim: str, name: str, scratch: Path) -> None:
    prepare(shim, name, 1_000)
    frame = stream.build(session, "map", Source(shim, ""), name)
    query = stream.start(frame, shim, f"{name}out", scratch, interval="100 milliseconds")
    try:
        query.processAllAvailable()
        generator.write(shim, 100, first=1_000, prefix=name, repeats=False)
        query.processAllAvailable()
        assert {row["order_id"] for row in kafka.values(shim, f"{name}out")} == set(range(1_100))
    finally:
        query.stop()


def test_progress_counts_rows_and_lag(session: SparkSession, shim: str, name: str, scratch: Path) -> None:
    prepare(shim, name, 2_000)
    frame = stream.build(session, "map", Source(shim, "", max_offsets_per_trigger=500), name)
    lines: list[str] = []
    summary = triggers.follow(stream.start(frame, shim, f"{name}out", scratch), lines.append)
    # 2,000 orders, 20 repeats; markers and aborted records take offsets, too.
    assert summary.rows == 2_020
    assert len(summary.triggers) >= 5
    assert [trigger.batch_id for trigger in summary.triggers] == list(range(len(summary.triggers)))
    assert summary.triggers[0].lag >= 1_500
    assert summary.triggers[-1].lag == 0
    assert len(lines) == len(summary.triggers)
    assert summary.line().startswith(f"{len(lines)} batches, 2,020 rows in ")
