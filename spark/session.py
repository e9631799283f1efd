"""The one place that knows which Spark and which Kafka connector the pipelines run on.

``KAFKA_SHIM_SPARK_VERSION`` moves both to another 4.x release; ``KAFKA_SHIM_SPARK_MASTER`` (default ``local[2]``) says where tasks run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

SPARK_VERSION = os.environ.get("KAFKA_SHIM_SPARK_VERSION", "4.0.0")
SCALA_VERSION = "2.13"
PACKAGES = (
    f"org.apache.spark:spark-sql-kafka-0-10_{SCALA_VERSION}:{SPARK_VERSION}",
    f"org.apache.spark:spark-avro_{SCALA_VERSION}:{SPARK_VERSION}",
)


def build_session(app_name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the Kafka and Avro connectors, bound to the loopback address, workers on this very Python.

    ``settings`` are Spark's own names and win over the defaults here.
    """
    from pyspark.sql import SparkSession

    # Spark's workers look for `python3` on PATH, which need not be the interpreter that has the project's packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers must find this package also when it runs from a checkout that is not installed.
    home = str(Path(__file__).resolve().parent.parent)
    paths = [home, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != home)]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    builder = (
        SparkSession.builder.appName(app_name)
        .master(os.environ.get("KAFKA_SHIM_SPARK_MASTER", "local[2]"))
        .config("spark.jars.packages", ",".join(PACKAGES))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
