"""A shim, a generator, the streaming job with the exactly-once sink, the audit, and its page.

``make spark-demo`` runs it. A task of the streaming job is killed on the way, inside its transaction; the audit then
shows that nothing was lost and nothing came twice.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path

import click

from kafka_shim.history.operations import OK, POLL, SEND, Operation
from kafka_shim.spark import generator, plain_clients, stream, triggers
from kafka_shim.spark.audit import __main__ as audit
from kafka_shim.spark.audit import history, page, workload
from kafka_shim.spark.kafka_topic import Source
from kafka_shim.spark.session import build_session
from kafka_shim.spark.sink import faults
from kafka_shim.targets import make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

HISTORY, OUT, AUDITED = "history", "orders-taxed", "audited"
PARTITIONS = 2
CHUNK = 10_000


def log_output(bootstrap: str, orders: int, log: history.HistoryLog) -> None:
    """Logs, as operations, what the job had to write and what a read_committed reader found. Each order must occur
    once.

    The job's own writers do not report offsets, so the reader's are used. An order that occurs twice has two offsets.
    """
    seen: set[tuple[str, str]] = set()
    by_key: dict[str, list[list[object]]] = {}
    for message in plain_clients.read(bootstrap, OUT):
        key = f"{OUT}-{message.partition()}"
        order = json.loads(plain_clients.value_of(message))
        by_key.setdefault(key, []).append([message.offset(), str(order["order_id"])])
    for key, records in by_key.items():
        for first in range(0, len(records), 500):
            chunk = records[first : first + 500]
            sends = [[SEND, key, None, value] for _, value in chunk if (key, str(value)) not in seen]
            seen.update((key, str(value)) for _, value in chunk)
            log.add(Operation(0, 100, OK, sends))
            log.add(Operation(0, 101, OK, [[POLL, {key: chunk}]]))
    written = {value for _, value in seen}
    never = [str(number) for number in range(orders) if str(number) not in written]
    if never:
        log.add(Operation(0, 100, OK, [[SEND, f"{OUT}-0", None, value] for value in never]))


def pipeline(session: SparkSession, bootstrap: str, orders: int, scratch: Path) -> triggers.Summary:
    """The streaming job, while the generator writes."""
    writer = threading.Thread(target=generate, args=(bootstrap, orders), name="generator")
    writer.start()
    source = Source(bootstrap, "", max_offsets_per_trigger=CHUNK)
    query = stream.start(
        stream.build(session, "map", source), bootstrap, OUT, scratch / "checkpoint", interval="500 milliseconds"
    )
    follower = threading.Thread(target=_stop_when_done, args=(query, writer), name="follower")
    follower.start()
    summary = triggers.follow(query)
    follower.join()
    return summary


def generate(bootstrap: str, orders: int) -> None:
    """Generates orders in pieces, so that new data arrive while the job runs."""
    for first in range(0, orders, CHUNK):
        generator.write(bootstrap, min(CHUNK, orders - first), first=first, repeats=False)
        time.sleep(0.2)


def _stop_when_done(query: StreamingQuery, writer: threading.Thread) -> None:
    writer.join()
    query.processAllAvailable()
    query.stop()


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--orders", type=int, default=100_000, show_default=True)
@click.option("--audited", type=int, default=100_000, show_default=True, help="Records of the audited producers.")
@click.option("--planted", type=int, default=0, show_default=True, help="Plant each anomaly so many times.")
@click.option("--kind", default="shim", show_default=True, help="Broker: shim, kafka-native or external=HOST:PORT.")
@click.option("--page", "page_path", type=click.Path(path_type=Path), default=Path("build/spark-demo.html"))
def main(orders: int, audited: int, planted: int, kind: str, page_path: Path) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spark-demo-") as name, make(kind) as target:
        scratch, bootstrap = Path(name), target.bootstrap
        click.echo(f"{kind} serves at {bootstrap}")
        for topic in (generator.ORDERS, generator.PAYMENTS, OUT, AUDITED, HISTORY):
            plain_clients.create(bootstrap, topic, PARTITIONS)
        # Inherited by Spark's workers: the second batch loses a task after its rows were sent.
        os.environ[faults.VARIABLE] = "after_offsets:kill:1:1"
        os.environ[faults.COUNTER] = str(scratch / "fault")
        session = build_session("demo")
        summary = pipeline(session, bootstrap, orders, scratch)
        killed = len(list(scratch.glob("fault.*")))
        note = f"streaming job, tasks killed inside their transaction: {killed}; {summary.line()}"
        click.echo(note)
        log = history.HistoryLog(bootstrap, HISTORY)
        committed = workload.write(bootstrap, AUDITED, PARTITIONS, audited, log)
        workload.read(bootstrap, AUDITED, committed, log)
        log_output(bootstrap, orders, log)
        for operation in workload.planted(planted):
            log.add(operation)
        log.close()
        report, rates = audit.run(session, bootstrap, HISTORY, AUDITED)
        session.stop()
    for line in report.lines():
        click.echo(line)
    page_path.parent.mkdir(parents=True, exist_ok=True)
    page_path.write_text(page.render(report, f"{kind}: streaming job and audit", rates, summary.triggers, note))
    click.echo(f"{time.monotonic() - began:.0f} s in all; page: {page_path}")
    raise SystemExit(not report.is_clean)


if __name__ == "__main__":
    main()
