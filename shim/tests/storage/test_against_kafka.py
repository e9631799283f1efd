"""Files of the shim before Apache Kafka 4.3.1 itself: its dump tool, and its broker on the same directory."""

from __future__ import annotations

import os
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cext.records import build
from shim.clock import RealClock
from shim.config import BrokerConfig, TopicConfig
from shim.faults import Faults
from shim.storage.data_dir import read_topic_id
from shim.storage.dump import Dump, Options
from shim.storage.log import PartitionLog
from shim.storage.logs import Logs
from shim.tests.storage.conftest import NOW_MS, Disk, end, put, records

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]

DUMP = "org.apache.kafka.tools.DumpLogSegments"


def fill(log: PartitionLog) -> None:
    """Everything that a log can hold, over several segments."""
    for number in range(60):
        log.append_as_leader(
            build(
                [
                    (
                        b"k%d" % (number % 9),
                        os.urandom(4500).hex().encode(),
                        NOW_MS + number,
                        (("h", None), ("i", b"x")),
                    ),
                    (b"z", None, -1, ()),
                ],
                codec=number % 5,
                producer_id=1,
                producer_epoch=0,
                base_sequence=number * 2,
            ),
            now_ms=NOW_MS,
            version=12,
        )
        put(log, b"t" * 20_000, key=b"t%d" % (number % 4), pid=2, seq=number, txn=True)
        if number % 3 == 2:
            end(log, 2, 0, commit=number % 2 == 0)


@pytest.mark.parametrize("compacted", [False, True])
def test_kafkas_dump_tool_accepts_every_file(make_disk: Callable[..., Disk], compacted: bool) -> None:
    from compat_tests import jvm

    disk = make_disk({"segment.bytes": "1048576", "cleanup.policy": "compact"})
    log = disk.open()
    fill(log)
    if compacted:
        disk.logs.cleaner.clean_now(log)
    disk.stop()
    paths = [str(disk.partition / name) for name in disk.files() if name[0] == "0" and not name.endswith(".deleted")]
    assert len(paths) > 8
    done = jvm.run(DUMP, "--print-data-log", "--files", ",".join(paths))
    dump = Dump(Options(contents=True))
    assert done.stdout.decode("utf-8", "replace").splitlines() == [line for path in paths for line in dump.lines(path)]
    assert b"isvalid: false" not in done.stdout
    # Every segment but the first begins behind a gap for this tool; a compacted one has more of them.
    complaints = [line for line in done.stderr.decode().splitlines() if not line.startswith("  ")]
    assert [line for line in complaints if not line.startswith("Non-consecutive offsets in ")] == []
    if not compacted:
        assert len(complaints) == len([path for path in paths if path.endswith(".log")]) - 1


def open_kafkas(data_dir: Path) -> tuple[Logs, PartitionLog]:
    config = BrokerConfig(log_dirs=(str(data_dir),))
    topic = TopicConfig(config, {"segment.bytes": "1048576"})
    logs = Logs(config, RealClock(), Faults())
    logs.open_dirs()
    logs.start(
        lambda name, number: (
            urlsafe_b64decode((read_topic_id(str(data_dir / f"{name}-{number}")) or "") + "=="),
            topic,
            0,
        )
    )
    return logs, logs.get("both", 0)


def consume(bootstrap: str, count: int) -> list[Any]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("both", 0, 0)])
    try:
        messages: list[Any] = []
        while len(messages) < count:
            got = consumer.consume(count - len(messages), timeout=30)
            assert got, f"{len(messages)} of {count} came"
            messages += got
        assert not any(message.error() for message in messages)
        return messages
    finally:
        consumer.close()


@pytest.mark.parametrize("clean", [pytest.param(True, marks=pytest.mark.soak), False])
def test_kafka_goes_on_after_the_shim_on_its_own_directory(tmp_path: Path, clean: bool) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    from compat_tests import targets

    with targets.make("kafka-native", {"log.cleaner.enable": "false"}, tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_topics([NewTopic("both", 1, 1, config={"segment.bytes": "1048576"})]).values():
            future.result()
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for number in range(200):
            producer.produce("both", value=b"kafka %d" % number)
        producer.flush()
        broker.stop()

        logs, log = open_kafkas(broker.data_dir)
        assert [value for _, value in records(log)] == [b"kafka %d" % number for number in range(200)]
        now_ms = RealClock().now_ms()  # producers expire by record time
        for number in range(150):
            data = {"seq": number, "txn": True, "timestamp": now_ms, "now_ms": now_ms}
            put(log, b"shim %d " % number + b"z" * 20_000, pid=500, **data)
            put(log, b"aborted", pid=501, **data)
            if number % 10 == 9:
                end(log, 501, 0, commit=False, now_ms=now_ms)
                end(log, 500, 0, commit=True, now_ms=now_ms)
        assert len(log.segments) > 2
        if clean:
            logs.stop()
        else:
            logs.home.flusher.stop()
            for segment in log.segments:
                segment.abandon()
            for data_dir in logs.dirs:
                data_dir.unlock()

        broker.start()
        expected = [b"kafka %d" % number for number in range(200)]
        expected += [b"shim %d " % number + b"z" * 20_000 for number in range(150)]
        assert [message.value() for message in consume(broker.bootstrap, len(expected))] == expected
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        producer.produce("both", value=b"kafka again")
        producer.flush()
        assert [message.value() for message in consume(broker.bootstrap, len(expected) + 1)][-1] == b"kafka again"
        broker.stop()

        logs, log = open_kafkas(broker.data_dir)
        assert records(log, isolation=1)[-1][1] == b"kafka again"
        entries = log.producers.entries
        assert (entries[500].last_sequence, entries[501].last_sequence) == (149, 149)
        logs.stop()
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
