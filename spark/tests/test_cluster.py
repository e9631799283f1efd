"""Jobs on executors that have nothing of this project on their path, by spark-submit."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.spark import stream
from kafka_shim.spark.tests import submitting
from kafka_shim.targets import make


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_local_cluster_writes_each_order_once_though_an_executor_is_killed(shim: str, scratch: Path) -> None:
    orders, per_batch = 6_000, 1_500
    submitting.write_orders(shim, orders)
    python, site = submitting.python_without_project(scratch)
    options = {"spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": str(site)}
    environment = {
        **submitting.bare_environment(scratch),
        "PYTHONPATH": str(site),
        "PYSPARK_PYTHON": str(python),
    }
    job = submitting.stream_job(shim, scratch / "checkpoint", per_batch, stream.FOREACH_BATCH)
    driver = submitting.Submitted("local-cluster[2,1,1024]", job, scratch, environment, options)
    try:
        assert driver.wait_for_batches(1), "".join(driver.tail)
        submitting.kill_executor(driver.process.pid)
        assert driver.batches < orders // per_batch, "the job was over before an executor died"
        status = driver.end()
    except BaseException:
        driver.kill()
        raise
    assert status == 0, "".join(driver.tail)
    outcome = submitting.audit(shim, orders)
    assert outcome.found == orders
    assert outcome.is_exact, outcome


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kind", "sink"),
    [("shim", stream.FOREACH_BATCH), ("shim", stream.DATA_SOURCE), ("kafka-native", stream.FOREACH_BATCH)],
)
def test_a_standalone_cluster_writes_each_order_once_though_it_loses_a_machine(
    scratch: Path, kind: str, sink: str
) -> None:
    orders, per_batch = 20_000, 2_000
    python, site = submitting.python_without_project(scratch)
    cluster = submitting.Standalone(scratch)
    environment = {**submitting.bare_environment(scratch), "PYTHONPATH": str(site), "PYSPARK_PYTHON": str(python)}
    options = {"spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": str(site)}
    try:
        with make(kind) as target:
            submitting.write_orders(target.bootstrap, orders)
            job = submitting.stream_job(target.bootstrap, scratch / "checkpoint", per_batch, sink)
            driver = submitting.Submitted(cluster.master, job, scratch, environment, options)
            try:
                assert driver.wait_for_batches(2), "".join(driver.tail)
                submitting.kill_executor(cluster.workers[0].pid)
                assert driver.wait_for_batches(driver.batches + 3), "".join(driver.tail)
                cluster.lose_worker(1)
                assert driver.batches < orders // per_batch, "the job was over before it lost a machine"
                status = driver.end()
            except BaseException:
                driver.kill()
                raise
            assert status == 0, "".join(driver.tail)
            outcome = submitting.audit(target.bootstrap, orders)
    finally:
        cluster.close()
    assert outcome.found == orders
    assert outcome.is_exact, outcome


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("sink", [stream.FOREACH_BATCH, stream.DATA_SOURCE])
def test_a_packed_environment_brings_all_that_the_executors_need(shim: str, scratch: Path, sink: str) -> None:
    orders, per_batch = 4_000, 1_000
    environment = submitting.packed_environment(scratch)
    topics = f"packed-{sink}-"
    submitting.write_orders(shim, orders, prefix=topics)
    cluster = submitting.Standalone(scratch)
    # Relative: the same word names the driver's folder and what each executor unpacks.
    variables = {**submitting.bare_environment(scratch), "PYSPARK_PYTHON": "./environment/bin/python"}
    options = {"spark.executor.memory": "512m"}
    try:
        job = submitting.stream_job(shim, scratch / "checkpoint", per_batch, sink, prefix=topics)
        driver = submitting.Submitted(cluster.master, job, scratch, variables, options, archives=[environment])
        try:
            status = driver.end()
        except BaseException:
            driver.kill()
            raise
        assert status == 0, "".join(driver.tail)
        unpacked = list(scratch.glob("worker-*/*/*/environment/bin/python"))
        assert unpacked, "no executor unpacked the environment"
        outcome = submitting.audit(shim, orders, prefix=topics)
    finally:
        cluster.close()
    assert outcome.found == orders
    assert outcome.is_exact, outcome
