"""The only module that depends on the versions of Spark and of its Kafka connector.

Settings come from environment variables. ``KAFKA_SHIM_SPARK_VERSION`` selects another 4.x release of Spark's connectors
(with the package pyspark of the same version). ``KAFKA_SHIM_SPARK_MASTER`` is the master URL.
``KAFKA_SHIM_SPARK_MEMORY`` is the heap size of the driver. ``KAFKA_SHIM_SPARK_LOG`` names a file for the output of
Spark's JVM. Spark's own ``SPARK_REMOTE`` names a server of Spark Connect, which then runs the jobs.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

SPARK_VERSION = os.environ.get("KAFKA_SHIM_SPARK_VERSION", "4.0.0")
SCALA_VERSION = "2.13"
PACKAGES = (
    f"org.apache.spark:spark-sql-kafka-0-10_{SCALA_VERSION}:{SPARK_VERSION}",
    f"org.apache.spark:spark-avro_{SCALA_VERSION}:{SPARK_VERSION}",
)
# Two tasks at a time, four attempts each. Without the second number a local Spark never retries a task.
MASTER = "local[2,4]"
MEMORY = "1g"
LOG_TAIL_CHARACTERS = 4000
# The port of the JVM in which spark-submit runs, for the Python program that it starts.
IS_SUBMITTED = "PYSPARK_GATEWAY_PORT"
# The URL of a server of Spark Connect (``sc://HOST:PORT``).
REMOTE = "SPARK_REMOTE"
# What the jobs count on wherever they run.
OF_THE_JOBS = {
    "spark.sql.session.timeZone": "UTC",
    # A query reads all retained batches of old state again at a restart.
    "spark.sql.streaming.minBatchesToRetain": "10",
}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


class SparkStartError(RuntimeError):
    """Spark did not start; the text ends with what its JVM printed."""


def build_session(app_name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the Kafka and Avro connectors, bound to the loopback address, workers on this very Python. In a
    program that spark-submit started it is the session that its options describe, and with `REMOTE` one of that server,
    which has to have the connectors.

    ``settings`` are Spark's own names and win over the defaults here; options of Java are added to them. Raises
    SparkStartError when Spark does not start.
    """
    from pyspark.sql import SparkSession

    if IS_SUBMITTED in os.environ:
        return _submitted(app_name, settings or {})
    if REMOTE in os.environ:
        return _remote(app_name, settings or {})
    # Spark's workers look for `python3` on PATH, which need not be the interpreter that has the project's packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Do not depend on a host name that may not resolve, or not to this machine.
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    home = Path(__file__).resolve().parent
    defaults = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("KAFKA_SHIM_SPARK_MEMORY", MEMORY),
        JAVA_OPTIONS: f"-Dlog4j2.configurationFile=file:{home / 'log4j2.properties'}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "kafka-shim-spark-warehouse"),
        **OF_THE_JOBS,
    }
    builder = SparkSession.builder.appName(app_name).master(os.environ.get("KAFKA_SHIM_SPARK_MASTER", MASTER))
    given = dict(settings or {})
    if JAVA_OPTIONS in given:
        given[JAVA_OPTIONS] = f"{defaults[JAVA_OPTIONS]} {given[JAVA_OPTIONS]}"
    for name, value in {**defaults, **given}.items():
        builder = builder.config(name, value)
    with _jvm_output() as log:
        try:
            return builder.getOrCreate()
        except Exception as failed:
            java = os.environ.get("JAVA_HOME") or shutil.which("java")
            need = "" if java else "; it needs a JDK 17, there is no java on the PATH, and JAVA_HOME is not set"
            told = log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:].strip()
            raise SparkStartError(f"Spark did not start{need}:\n{told}") from failed


def _submitted(app_name: str, settings: Mapping[str, str]) -> SparkSession:
    """The session of spark-submit. Master, addresses, memory and packages are the cluster's affair: a default here
    would win over an option there. Options there win over those of the jobs.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName(app_name).getOrCreate()
    given = session.sparkContext.getConf()
    for name, value in {**OF_THE_JOBS, **settings}.items():
        if not given.contains(name):
            session.conf.set(name, value)
    return session


def _remote(app_name: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a server of Spark Connect. What a client sends there by `addArtifacts` does not reach the tasks of a
    streaming query (Spark 4.0.0): for the sink this package is on the PYTHONPATH of the server and its executors.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName(app_name).remote(os.environ[REMOTE]).getOrCreate()
    for name, value in {**OF_THE_JOBS, **settings}.items():
        session.conf.set(name, value)
    return session


@contextlib.contextmanager
def _jvm_output() -> Iterator[Path]:
    """Redirects stdout and stderr of a JVM that is started in the block to a file, because Ivy's tables and Spark's
    warnings would hide the jobs' own output.
    """
    named = os.environ.get("KAFKA_SHIM_SPARK_LOG")
    path = Path(named) if named else Path(tempfile.gettempdir()) / f"kafka-shim-spark-{os.getpid()}.log"
    if not named:
        atexit.register(path.unlink, missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield path
    finally:
        for number, copy in enumerate(kept, start=1):
            os.dup2(copy, number)
            os.close(copy)
