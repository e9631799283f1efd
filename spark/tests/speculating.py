"""Run by a test in a process of its own, because a Spark cannot start to speculate later: both forms of the sink, and
what they say, a line each. ``speculating.py SCRATCH``; no broker is asked."""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_shim.spark import triggers
from kafka_shim.spark.session import build_session
from kafka_shim.spark.sink.data_source import KafkaExactlyOnce
from kafka_shim.spark.sink.foreach_batch import exactly_once
from kafka_shim.spark.tests.conftest import SETTINGS

NOBODY = "127.0.0.1:1"


def main(scratch: Path) -> None:
    session = build_session("speculating", {**SETTINGS, "spark.speculation": " True"})
    lines = scratch / "lines"
    lines.mkdir()
    (lines / "one.txt").write_text("a\nb\n")
    rows = session.readStream.text(str(lines))
    session.dataSource.register(KafkaExactlyOnce)
    forms = {
        "foreach-batch": rows.writeStream.foreachBatch(exactly_once(NOBODY, topic="out")),
        "data-source": rows.repartition(1)
        .writeStream.format(KafkaExactlyOnce.name())
        .options(**{"kafka.bootstrap.servers": NOBODY, "topic": "out", "tasks": "1"}),
    }
    for name, writer in forms.items():
        query = writer.option("checkpointLocation", str(scratch / name)).trigger(availableNow=True).start()
        try:
            triggers.follow(query, quiet=True)
        except Exception as refused:
            print(name, "spark.speculation is on" in str(refused), flush=True)
        else:
            print(name, "wrote", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
