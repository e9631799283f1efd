"""Spark jobs end to end on the shim and on Apache Kafka, in turn, on the same session: ``python -m bench.spark_bench``.

Every round runs each job on each broker, in an order that changes from round to round; the first round only warms up.
Figures are medians of the rounds, ratios medians of the rounds' ratios; CPU is that of the broker, and that of Spark:
its JVM, Python workers and this program, which is the driver. What fills the topics is not measured.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import psutil

from kafka_shim.spark import generator, plain_clients, stream, table_to_topic, topic_to_table, triggers
from kafka_shim.spark.audit import __main__ as audit
from kafka_shim.spark.audit import history, workload
from kafka_shim.spark.formats import Format
from kafka_shim.spark.kafka_topic import Source
from kafka_shim.spark.session import build_session
from kafka_shim.targets import Target, make

KINDS = ("shim", "kafka-native")
RAW = Format()
Job = Callable[[Any, str, str, Path, int], None]


def read_topic(session: Any, bootstrap: str, prefix: str, scratch: Path, orders: int) -> None:
    rows = topic_to_table.copy(session, Source(bootstrap, prefix + generator.ORDERS), scratch / "table", RAW, RAW)
    assert rows == orders


def write_topic(session: Any, bootstrap: str, prefix: str, scratch: Path, orders: int) -> None:
    assert table_to_topic.copy(session, scratch / "table", bootstrap, f"{prefix}copy", RAW, RAW) == orders


def stream_exactly_once(session: Any, bootstrap: str, prefix: str, scratch: Path, orders: int) -> None:
    _stream(session, bootstrap, prefix, scratch / "map", orders, "map", stream.FOREACH_BATCH)


def stream_windows(session: Any, bootstrap: str, prefix: str, scratch: Path, orders: int) -> None:
    _stream(session, bootstrap, prefix, scratch / "windows", orders, "windows", stream.SPARK)


def stream_dedupe(session: Any, bootstrap: str, prefix: str, scratch: Path, orders: int) -> None:
    _stream(session, bootstrap, prefix, scratch / "dedupe", orders, "dedupe", stream.DATA_SOURCE)


def audit_histories(session: Any, bootstrap: str, prefix: str, scratch: Path, orders: int) -> None:
    report, _ = audit.run(session, bootstrap, f"{prefix}history", f"{prefix}audited")
    assert report.is_clean, report.errors


def _stream(session: Any, bootstrap: str, prefix: str, path: Path, orders: int, pipeline: str, sink: str) -> None:
    source = Source(bootstrap, "", max_offsets_per_trigger=max(orders // 4, 1))
    frame = stream.build(session, pipeline, source, prefix)
    summary = triggers.follow(stream.start(frame, bootstrap, f"{prefix}{pipeline}", path, sink=sink), quiet=True)
    assert summary.rows == orders


JOBS: dict[str, Job] = {
    "topic to Parquet": read_topic,
    "Parquet to topic": write_topic,
    "stream, exactly-once sink": stream_exactly_once,
    "stream, dedupe, data source": stream_dedupe,
    "stream, windows, Spark's sink": stream_windows,
    "audit": audit_histories,
}


def cpu_s(*roots: int) -> float:
    """User and system time of processes with all that they started, also of what has ended."""
    total = 0.0
    for root in roots:
        process = psutil.Process(root)
        for each in (process, *process.children(recursive=True)):
            try:
                times = each.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


def round_on(session: Any, jvm: int, target: Target, prefix: str, orders: int) -> dict[str, dict[str, float]]:
    """Every job once, on topics of this round."""
    bootstrap = target.bootstrap
    assert target.pid is not None
    for topic in (generator.ORDERS, generator.PAYMENTS, "copy", "map", "dedupe", "windows", "audited", "history"):
        plain_clients.create(bootstrap, prefix + topic)
    generator.write(bootstrap, orders, prefix=prefix, repeats=False)
    log = history.HistoryLog(bootstrap, f"{prefix}history")
    workload.read(bootstrap, f"{prefix}audited", workload.write(bootstrap, f"{prefix}audited", 2, orders, log), log)
    log.close()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="spark-bench-") as scratch:
        for name, job in JOBS.items():
            before = cpu_s(target.pid), cpu_s(jvm) + time.process_time()
            began = time.perf_counter()
            job(session, bootstrap, prefix, Path(scratch), orders)
            figures[name] = {
                "seconds": time.perf_counter() - began,
                "broker_cpu_s": cpu_s(target.pid) - before[0],
                "spark_cpu_s": cpu_s(jvm) + time.process_time() - before[1],
            }
    return figures


def table(rounds: list[dict[str, dict[str, dict[str, float]]]], orders: int) -> str:
    lines = [
        f"medians of {len(rounds)} paired rounds, {orders:,} orders; seconds (CPU s of broker + Spark)",
        f"{'job':32}{'Kafka':>24}{'shim':>24}{'time':>10}{'CPU':>8}   (shim/Kafka)",
    ]
    for name in JOBS:
        cells = []
        for kind in ("kafka-native", "shim"):
            middle = {
                key: statistics.median(each[kind][name][key] for each in rounds)
                for key in ("seconds", "broker_cpu_s", "spark_cpu_s")
            }
            cells.append(f"{middle['seconds']:.2f} ({middle['broker_cpu_s']:.2f} + {middle['spark_cpu_s']:.2f})")
        time_ratio, cpu_ratio = _ratio(rounds, name, "seconds"), _ratio(rounds, name, "broker_cpu_s", "spark_cpu_s")
        lines.append(f"{name:32}{cells[0]:>24}{cells[1]:>24}{time_ratio:>9.2f}x{cpu_ratio:>7.2f}x")
    return "\n".join(lines)


def _ratio(rounds: list[dict[str, dict[str, dict[str, float]]]], name: str, *keys: str) -> float:
    """The median of the rounds' ratios of the sum of some figures."""
    sums = [{kind: sum(each[kind][name][key] for key in keys) for kind in KINDS} for each in rounds]
    return statistics.median(each["shim"] / each["kafka-native"] for each in sums)


@click.command(help=__doc__.splitlines()[0])
@click.option("--orders", type=int, default=200_000, show_default=True)
@click.option("--repeats", type=int, default=5, show_default=True, help="Rounds after the one that warms up.")
@click.option("--quick", is_flag=True, help="One round of 20,000 orders: to see that it works.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), default=Path("build/spark-bench.json"))
def main(orders: int, repeats: int, quick: bool, json_path: Path) -> None:
    if quick:
        orders, repeats = 20_000, 1
    session = build_session("bench")
    gateway = session.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc.pid
    targets = {kind: make(kind, is_measured=True) for kind in KINDS}
    rounds: list[dict[str, dict[str, dict[str, float]]]] = []
    try:
        for target in targets.values():
            target.start()
        for number in range(repeats + 1):
            order = KINDS if number % 2 else KINDS[::-1]
            figures = {}
            for kind in order:
                print(f"round {number} of {repeats}: {kind} ...", file=sys.stderr, flush=True)
                figures[kind] = round_on(session, jvm, targets[kind], f"round-{number}-", orders)
            if number:
                rounds.append(figures)
    finally:
        for target in targets.values():
            target.close()
        session.stop()
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_text(json.dumps(rounds, indent=1) + "\n")
    click.echo(table(rounds, orders))


if __name__ == "__main__":
    main()
