"""One Spark session and one broker of each kind for the whole run: a JVM costs seconds. Topics have own names."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_shim.spark.session import build_session
from kafka_shim.targets import Target, make, spark_jvm

KINDS = ("shim", "kafka-native")


# Hundreds of small queries: compiling them costs more than running them.
SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    made = build_session("tests", SETTINGS)
    yield made
    made.stop()


@pytest.fixture
def compiled(session: SparkSession) -> Iterator[SparkSession]:
    """The session with queries compiled, for the few tests with rows enough to pay for it."""
    compiling = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.adaptive.enabled": "true",
    }
    for name, value in compiling.items():
        session.conf.set(name, value)
    yield session
    for name in compiling:
        session.conf.set(name, SETTINGS[name])


BROKER_SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    # Kafka writes every minute which records were deleted; one that is killed before that has them again.
    "log.initial.task.delay.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
}


@pytest.fixture(scope="session")
def brokers() -> Iterator[Callable[[str], Target]]:
    """The broker of a kind, started when it is first asked for."""
    started: dict[str, Target] = {}

    def get(kind: str) -> Target:
        if kind not in started:
            started[kind] = make(kind, settings=BROKER_SETTINGS).start()
        return started[kind]

    yield get
    for target in started.values():
        target.close()


@pytest.fixture
def shim(brokers: Callable[[str], Target]) -> str:
    """Address of the shim."""
    return brokers("shim").bootstrap


@pytest.fixture(params=["shim", pytest.param("kafka-native", marks=pytest.mark.soak)])
def bootstrap(request: pytest.FixtureRequest, brokers: Callable[[str], Target]) -> str:
    """Address of the shim, and in the long form of Apache Kafka: test_jobs.py compares what each job leaves on both."""
    return brokers(request.param).bootstrap


_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A prefix for topics that no other test has."""
    return f"t{next(_numbers)}-"


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A directory for checkpoints and tables that is removed at the end."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a run waits for a JVM or two; on a busy machine that alone takes minutes."""
    for item in items:
        if "spark" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900))


def pytest_configure(config: pytest.Config) -> None:
    # For the session's JVM, and for those of jobs in processes of their own.
    os.environ.update(spark_jvm.environment())
    # Py4J closes its sockets when they are collected.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
