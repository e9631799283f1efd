"""Kafka's kafka-transactions and kafka-dump-log on the shim's transactions and files; our command beside them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kafka_shim.cext.records import build
from kafka_shim.targets import jvm
from kafka_shim.targets.requests import create_topic, make, produce
from kafka_shim.targets.shim_process import ROOT, ShimProcess
from kafka_shim.wire_client import Connection, check

pytestmark = pytest.mark.java

HOUR_MS = 3_600_000
# Longer than the tools take, each of which starts a JVM.
TIMEOUT_MS = 900_000


@pytest.fixture(scope="module")
def broker() -> Iterator[ShimProcess]:
    """Without verification a Produce v9 makes a hanging transaction, as brokers before KIP-890 let it."""
    settings = {"transaction.partition.verification.enable": "false", "transaction.state.log.num.partitions": "2"}
    with ShimProcess(settings) as started:
        with Connection(started.bootstrap) as client:
            create_topic(client, "t", 2)
            client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
        yield started


def initialise(client: Connection, transactional_id: str) -> tuple[int, int]:
    request = make("InitProducerId", transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS)
    while True:
        answer = client.request(request, 5)
        if answer.error_code != 51:
            check(answer.error_code)
            return answer.producer_id, answer.producer_epoch


def write(client: Connection, transactional_id: str, producer: tuple[int, int], version: int, age_ms: int = 0) -> int:
    """One transactional record into t-0; answers its offset."""
    batch = build(
        [(b"k", b"v", time.time_ns() // 1_000_000 - age_ms, ())],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    answer = client.request(produce("t", 0, batch, transactional_id=transactional_id), version)
    part = answer.responses[0].partition_responses[0]
    check(part.error_code)
    return int(part.base_offset)


def end(client: Connection, transactional_id: str, producer: tuple[int, int], commit: bool) -> tuple[int, int]:
    request = make(
        "EndTxn",
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )
    answer = client.request(request, 5)
    check(answer.error_code)
    return answer.producer_id, answer.producer_epoch


def table(text: str) -> list[dict[str, str]]:
    """A table of the tool as rows by column."""
    headers, *rows = [[cell.strip() for cell in line.split("\t")] for line in text.splitlines() if line.strip()]
    return [dict(zip(headers, row, strict=True)) for row in rows]


def kafka(broker: ShimProcess, *words: str) -> str:
    return jvm.tool("kafka-transactions", "--bootstrap-server", broker.bootstrap, *words)


def ours(broker: ShimProcess, *words: str, status: int = 0) -> str:
    line = [sys.executable, "-m", "kafka_shim", "transactions", *words, "--bootstrap-server", broker.bootstrap]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_list_describe_and_force_terminate(broker: ShimProcess) -> None:
    with Connection(broker.bootstrap) as client:
        app = initialise(client, "app")
        write(client, "app", app, 12)
        initialise(client, "idle")
    for tool in (kafka, ours):
        listed = {row["TransactionalId"]: row for row in table(tool(broker, "list"))}
        assert listed["app"]["TransactionState"] == "Ongoing"
        assert listed["app"]["ProducerId"] == str(app[0])
        assert listed["idle"]["TransactionState"] == "Empty"
    assert table(kafka(broker, "list")) == table(ours(broker, "list"))
    (described,) = table(kafka(broker, "describe", "--transactional-id", "app"))
    (mine,) = table(ours(broker, "describe", "app"))
    for row in (described, mine):
        assert int(row.pop("TransactionDurationMs")) >= 0
    assert described == mine
    assert described["TopicPartitions"] == "t-0"
    assert described["TransactionTimeoutMs"] == str(TIMEOUT_MS)
    (producer,) = table(kafka(broker, "describe-producers", "--topic", "t", "--partition", "0"))
    assert producer["CurrentTransactionStartOffset"] == "0"
    assert table(ours(broker, "describe-producers", "--topic", "t", "--partition", "0")) == [producer]
    kafka(broker, "forceTerminateTransaction", "--transactionalId", "app")
    (described,) = table(kafka(broker, "describe", "--transactional-id", "app"))
    assert described["TransactionState"] in ("CompleteAbort", "Empty")
    assert described["TopicPartitions"] == ""


def test_a_hanging_transaction_is_found_and_aborted(broker: ShimProcess) -> None:
    for tool in (kafka, ours):
        with Connection(broker.bootstrap) as client:
            app = initialise(client, "hanging")
            write(client, "hanging", app, 12)
            app = end(client, "hanging", app, True)
            offset = write(client, "hanging", app, 9, age_ms=HOUR_MS)
        found = table(tool(broker, "find-hanging", "--topic", "t"))
        assert [(row["Topic"], row["Partition"], row["StartOffset"]) for row in found] == [("t", "0", str(offset))]
        assert 59 <= int(found[0]["Duration(min)"]) < 75
        where = ("--topic", "t", "--partition", "0", "--start-offset", str(offset))
        tool(broker, "abort", *where)
        assert table(tool(broker, "find-hanging", "--topic", "t")) == []


def test_explain_tells_why(broker: ShimProcess) -> None:
    with Connection(broker.bootstrap) as client:
        app = initialise(client, "explained")
        write(client, "explained", app, 12)
        end(client, "explained", app, True)
        request = make("EndTxn", transactional_id="explained", producer_id=app[0], producer_epoch=9, committed=True)
        assert client.request(request, 5).error_code == 90
    text = ours(broker, "explain", "explained")
    assert "-> CompleteCommit" in text
    assert "EndTxn refused with PRODUCER_FENCED" in text
    assert "current is 1" in text
    assert ours(broker, "explain", "nobody") == ""


def test_d18_force_terminate_lets_go_of_an_overtaken_transaction(broker: ShimProcess) -> None:
    with Connection(broker.bootstrap) as client:
        app = initialise(client, "overtaken")
        write(client, "overtaken", app, 12)
        marker = {
            "producer_id": app[0],
            "producer_epoch": app[1],
            "transaction_result": False,
            "coordinator_epoch": 1000,
            "topics": [{"name": "t", "partition_indexes": [0]}],
        }
        answer = client.request(make("WriteTxnMarkers", markers=[marker]), 1)
        check(answer.markers[0].topics[0].partitions[0].error_code)
        end(client, "overtaken", app, True)
        (described,) = table(kafka(broker, "describe", "--transactional-id", "overtaken"))
        assert described["TransactionState"] == "PrepareCommit"
        assert "TRANSACTION_COORDINATOR_FENCED" in ours(broker, "explain", "overtaken")
        ours(broker, "force-terminate", "overtaken")
        (described,) = table(kafka(broker, "describe", "--transactional-id", "overtaken"))
        assert described["TransactionState"] == "Empty"


def test_kafka_reads_the_files(broker: ShimProcess) -> None:
    """Runs last: it stops the broker, so that the snapshots are written."""
    with Connection(broker.bootstrap) as client:
        app = initialise(client, "dumped")
        write(client, "dumped", app, 12)
        end(client, "dumped", app, False)
    broker.stop()
    directory = broker.data_dir
    logs = sorted(path for path in directory.glob("__transaction_state-*/*.log") if path.stat().st_size)
    text = dump("--transaction-log-decoder", "--files", ",".join(map(str, logs)))
    dumped = [line for line in text.splitlines() if '"dumped"' in line]
    assert [f'"transactionStatus":{status}' in line for status, line in zip((0, 1, 3, 5), dumped, strict=True)] == [
        True
    ] * 4
    data = dump("--deep-iteration", "--print-data-log", "--files", str(next(directory.glob("t-0/*.log"))))
    assert "isTransactional: true" in data
    assert "endTxnMarker: ABORT" in data
    snapshots = sorted(directory.glob("t-0/*.snapshot"))
    assert snapshots, "a clean stop leaves a snapshot of the producers"
    assert f"producerId: {app[0]}" in dump("--files", str(snapshots[-1]))
    (index,) = directory.glob("t-0/*.txnindex")
    assert f"producerId: {app[0]}" in dump("--files", str(index))


def dump(*words: str) -> str:
    return jvm.tool("kafka-dump-log", *words)
