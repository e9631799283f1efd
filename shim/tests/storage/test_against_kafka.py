"""Files of the shim before Apache Kafka 4.3.1 itself: its dump tool, and its broker on the same directory."""

from __future__ import annotations

import os
import random
import shutil
import threading
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.cext.records import build, iterate
from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.faults import Faults
from kafka_shim.storage.data_dir import read_topic_id
from kafka_shim.storage.dump import Dump, Options
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.appends import append_as_client, start_verification
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, put, records

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]

DUMP = "org.apache.kafka.tools.DumpLogSegments"


def fill(log: PartitionLog) -> None:
    """Everything that a log can hold, over several segments."""
    for number in range(60):
        append_as_client(
            log,
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
    from kafka_shim.targets import jvm

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
    logs = Logs(config, VirtualClock(RealClock().now_ms()), Faults())
    logs.open_dirs()
    logs.start(
        lambda name, number: (
            urlsafe_b64decode((read_topic_id(str(data_dir / f"{name}-{number}")) or "") + "=="),
            topic,
            0,
        )
    )
    return logs, logs.get("both", 0)


def random_history(log: PartitionLog, now_ms: int) -> None:
    """Keys written again and again, tombstones, transactions of three producers, over several closed segments."""
    dice = random.Random(5)
    sequences = dict.fromkeys((700, 701, 702), 0)
    opened: set[int] = set()
    for step in range(400):
        pid = dice.choice(list(sequences))
        rows = [
            (b"k%d" % dice.randrange(15), None if dice.random() < 0.2 else b"v%d" % step, now_ms, ())
            for _ in range(dice.randrange(1, 4))
        ]
        codec = dice.choice((0, 0, 1, 2, 3, 4))
        if step % 60 == 59:
            log.roll(now_ms)
        elif dice.random() < 0.3:
            append_as_client(log, build(rows, codec=codec), now_ms=now_ms, version=12)
        elif dice.random() < 0.7:
            data = build(
                rows, codec=codec, producer_id=pid, producer_epoch=0, base_sequence=sequences[pid], transactional=True
            )
            guard = start_verification(log, pid, sequences[pid], 0, False)
            append_as_client(log, data, now_ms=now_ms, version=11, verification=guard)
            sequences[pid] += len(rows)
            opened.add(pid)
        elif opened:
            end(log, opened.pop(), 0, commit=dice.random() < 0.6, now_ms=now_ms)
    for pid in sorted(opened):
        end(log, pid, 0, commit=True, now_ms=now_ms)
    append_as_client(log, build([(b"last", b"", now_ms, ())]), now_ms=now_ms, version=12)
    log.roll(now_ms)


def contents(log: PartitionLog) -> list[Any]:
    """Every batch and record, without the delete horizons, which depend on the time of the round."""
    return [
        (
            header.base_offset,
            header.last_offset,
            header.record_count,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.attributes,
            [(record.offset, record.timestamp, record.key, record.value) for record in iterate(buffer)],
        )
        for buffer, header in log.batches(0)
    ]


def test_kafkas_cleaner_and_the_shims_leave_the_same(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    from kafka_shim import targets

    settings = {
        "log.initial.task.delay.ms": "100",
        "log.cleaner.backoff.ms": "200",
        "log.cleaner.min.cleanable.ratio": "0.9999",
    }
    with targets.make("kafka-native", settings, tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        for future in admin.create_topics([NewTopic("both", 1, 1, config=compact)]).values():
            future.result()
        broker.stop()
        logs, log = open_kafkas(broker.data_dir)
        random_history(log, RealClock().now_ms())
        before = contents(log)
        logs.stop()
        ours = tmp_path / "ours"
        shutil.copytree(broker.data_dir, ours)

        broker.start()
        progress = broker.data_dir / "cleaner-offset-checkpoint"
        deadline = RealClock().monotonic_ms() + 60_000
        while f"both 0 {log.log_end_offset}" not in progress.read_text():
            assert RealClock().monotonic_ms() < deadline, progress.read_text()
            threading.Event().wait(0.2)
        broker.stop()

        logs, log = open_kafkas(ours)
        logs.cleaner.clean_now(log)
        found = contents(log)
        index = [entry for segment in log.segments for entry in segment.txn_index.entries()]
        logs.stop()
        logs, log = open_kafkas(broker.data_dir)
        assert found == contents(log)
        assert index == [entry for segment in log.segments for entry in segment.txn_index.entries()]
        assert len(found) < len(before) / 2
        logs.stop()


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

    from kafka_shim import targets

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
            logs.services.flusher.stop()
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
