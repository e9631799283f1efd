"""Every job from its command line on the shim and on Apache Kafka: what comes out must be the same, offsets as well."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_shim.spark import generator, stream, table_to_topic, task_progress, topic_to_table
from kafka_shim.spark import plain_clients as kafka
from kafka_shim.spark.audit import __main__ as audit
from kafka_shim.spark.audit import history, workload
from kafka_shim.spark.tests.conftest import KINDS
from kafka_shim.targets import Target

COUNT = 600
SINKS = {"map": stream.DATA_SOURCE, "dedupe": stream.FOREACH_BATCH, "windows": stream.SPARK, "join": stream.SPARK}


def call(command: click.Command, *arguments: object, status: int = 0) -> str:
    """What it prints to stdout."""
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert done.exit_code == status, (done.output, done.exception)
    return done.stdout


def records(bootstrap: str, topic: str) -> list[tuple[Any, ...]]:
    """What a plain client reads: partition, offset, key, value, headers."""
    return sorted((m.partition(), m.offset(), m.key(), m.value(), m.headers()) for m in kafka.read(bootstrap, topic))


def rows(session: SparkSession, table: Path) -> list[str]:
    """Without times: these are the run's own."""
    return sorted(session.read.parquet(str(table)).drop("timestamp").toJSON().collect())


def run_all(session: SparkSession, bootstrap: str, name: str, scratch: Path) -> dict[str, Any]:
    """The results of all jobs, by a name of each."""
    results: dict[str, Any] = {}
    servers = ("--bootstrap-servers", bootstrap)
    orders = name + generator.ORDERS
    for topic in (orders, name + generator.PAYMENTS):
        kafka.create(bootstrap, topic)
    output = call(generator.main, *servers, "--count", COUNT, "--prefix", name)
    assert output.splitlines()[-1].startswith(f"{COUNT + COUNT // 100 + COUNT // 2} records in ")
    results["generator"] = [records(bootstrap, name + topic) for topic in (generator.ORDERS, generator.PAYMENTS)]

    parsed = ("--key-format", "string", "--value-format", "json", "--value-schema", stream.ORDER, "--headers")
    table = scratch / "table"
    output = call(topic_to_table.main, *servers, "--topics", orders, *parsed, "--min-partitions", 4, "--out", table)
    assert f"{table}: {COUNT + COUNT // 100} rows in " in output
    results["topic to table"] = rows(session, table)
    begin = json.dumps({orders: {"0": 20, "1": 30}})
    part = ("--from", begin, "--to", json.dumps({orders: {"0": 90, "1": 91}}), "--isolation", "read_uncommitted")
    call(topic_to_table.main, *servers, "--topics", orders, *part, "--out", scratch / "part")
    results["part of a topic"] = rows(session, scratch / "part")
    late = json.dumps({orders: {"0": 0, "1": 2**40}})
    call(topic_to_table.main, *servers, "--topics", orders, "--from-timestamp-ms", late, "--out", scratch / "late")
    results["by time"] = rows(session, scratch / "late")
    page = scratch / "page" / "increments.html"
    steps = ("--max-offsets-per-trigger", 250, "--checkpoint", scratch / "table-checkpoint", "--page", page)
    call(topic_to_table.main, *servers, "--topics", orders, *steps, "--out", scratch / "increments")
    results["increments"] = rows(session, scratch / "increments")
    assert page.read_text().count("<svg") == 2

    copy = kafka.create(bootstrap, f"{name}copy")
    back = ("--key-format", "string", "--value-format", "json", "--value-schema", stream.ORDER, "--keep-partition")
    output = call(table_to_topic.main, "--in", table, *servers, "--topic", copy, *back)
    assert f"{copy}: {COUNT + COUNT // 100} rows in " in output
    # Tasks write a partition side by side, so the order is nobody's promise.
    results["table to topic"] = sorted(entry[0:1] + entry[2:] for entry in records(bootstrap, copy))

    for pipeline, sink in SINKS.items():
        out, place = kafka.create(bootstrap, f"{name}{pipeline}"), scratch / pipeline
        given = ("--pipeline", pipeline, *servers, "--prefix", name, "--out", out, "--sink", sink)
        told = ("--progress", f"{place}.jsonl", "--page", f"{place}.html")
        bounds = ("--checkpoint", f"{place}-checkpoint", "--max-offsets-per-trigger", 1_000)
        output = call(stream.main, *given, *told, *bounds)
        assert " batches, " in output.splitlines()[-1]
        assert Path(f"{place}.jsonl").read_text().startswith('{"batch_id": 0, ')
        assert f"stream {pipeline} -&gt; {out}" in Path(f"{place}.html").read_text()
        results[f"stream {pipeline}"] = sorted(entry[0:1] + entry[2:] for entry in records(bootstrap, out))

    data, logged = kafka.create(bootstrap, f"{name}data"), kafka.create(bootstrap, f"{name}history")
    log = history.HistoryLog(bootstrap, logged)
    workload.read(bootstrap, data, workload.write(bootstrap, data, 2, 2_500, log), log)
    for operation in workload.planted(1):
        log.add(operation)
    log.close()
    page = scratch / "audit.html"
    output = call(audit.main, *servers, "--history", logged, "--data", data, "--page", page, "--title", "A", status=1)
    *found, summary, last = output.splitlines()
    assert last == f"page: {page}"
    results["audit"] = [line.replace(name, "") for line in found], summary.split(";")[0]
    assert "<h1>A</h1>" in page.read_text()
    return results


@pytest.mark.timeout(1200)
def test_every_job_gives_the_same_on_both_brokers(
    session: SparkSession, brokers: Callable[[str], Target], name: str, scratch: Path
) -> None:
    found = {kind: run_all(session, brokers(kind).bootstrap, name, scratch / kind) for kind in KINDS}
    shim, apache = found["shim"], found["kafka-native"]
    assert len(shim) == 11
    for job, result in shim.items():
        assert result, job
        assert result == apache[job], job


def test_a_batch_tells_how_far_its_tasks_are(session: SparkSession) -> None:
    lines: list[str] = []
    with task_progress.told(session, "counting", lines.append, every_s=0.01):
        assert session.sparkContext.parallelize(range(30), 30).count() == 30
    assert lines
    assert all(re.fullmatch(r"counting: stage \d+: \d+ of 30 tasks", line) for line in lines)
