"""Options for the JVM of a Spark that runs for a minute in a test, and the archive of the classes it loads (class data
sharing). Together they save two thirds of the CPU of its start.

``python -m kafka_shim.targets.spark_jvm`` creates the archive once for each JVM and folder of pyspark, in ``.cache``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import subprocess

from kafka_shim.targets.class_archive import QUIET
from kafka_shim.targets.kafka_jars import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# What spark-submit, which pyspark starts, adds to the command line of its JVM.
VARIABLE = "SPARK_SUBMIT_OPTS"
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@functools.cache
def archive_path() -> Path:
    """Returns the path of the archive, whether it exists or not. An archive holds the paths of its jars."""
    version = subprocess.run(["java", "-version"], capture_output=True, check=False).stderr
    spec = importlib.util.find_spec("pyspark")
    folder = os.path.realpath(spec.origin or "") if spec is not None else ""
    return ROOT / ".cache" / f"spark-{hashlib.sha256(version + folder.encode()).hexdigest()[:12]}.jsa"


def environment() -> dict[str, str]:
    """Returns the variable that makes Spark start so, for the environment of a process."""
    path = archive_path()
    archive = (f"-XX:SharedArchiveFile={path}", *QUIET) if path.is_file() else ()
    return {VARIABLE: " ".join((*SHORT_LIVED, *archive))}


def make_archive() -> Path:
    """Runs a query in a Spark of its own, whose JVM writes the archive when it ends."""
    path = archive_path()
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}")
    partial.unlink(missing_ok=True)
    os.environ[VARIABLE] = " ".join((*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={partial}", *QUIET))
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    made = session.getOrCreate()
    rows = made.range(0, 100, 1, 2).selectExpr("id % 7 as key", "cast(id as string) as value")
    assert rows.groupBy("key").count().count() == 7
    assert rows.rdd.map(lambda row: row.key).count() == 100
    made.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    # Its JVM ends when its input does, and only then writes the archive.
    gateway.proc.stdin.close()
    gateway.proc.wait(300)
    if partial.is_file():
        partial.rename(path)
    return path


if __name__ == "__main__":
    print(make_archive())
