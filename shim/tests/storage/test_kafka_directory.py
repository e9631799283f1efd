"""Directories that Apache Kafka 4.3.1 wrote (`make_kafka_directory`), after a clean stop and as a crash leaves them."""

from __future__ import annotations

import tarfile
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan
from kafka_shim.cext.records import iterate
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.faults import Faults
from kafka_shim.storage.data_dir import read_topic_id
from kafka_shim.storage.dump import Dump, Options
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.logs import Logs
from kafka_shim.tests.storage.conftest import end, put, records

HERE = Path(__file__).parent
CLUSTER_ID = "a2Fma2Etc2hpbS10ZXN0cw"


def unpack(name: str, target: Path) -> Path:
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return target


@pytest.fixture(params=["kafka_clean", "kafka_crashed"])
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


@pytest.fixture
def start(kafka: Path) -> Iterator[Callable[[], Logs]]:
    lives: list[Logs] = []

    def begin() -> Logs:
        if lives:
            lives.pop().stop()
        config = BrokerConfig(log_dirs=(str(kafka / "data"),))
        topic = TopicConfig(config, {"segment.bytes": "1048576"})
        logs = Logs(config, VirtualClock(1_795_274_300_000), Faults())
        assert logs.open_dirs() == CLUSTER_ID
        lives.append(logs)
        logs.start(
            lambda name, number: (
                urlsafe_b64decode((read_topic_id(str(kafka / "data" / f"{name}-{number}")) or "") + "=="),
                topic,
                0,
            )
        )
        return logs

    yield begin
    for logs in lives:
        logs.stop()


def test_every_record_and_state_is_found(start: Callable[[], Logs]) -> None:
    logs = start()
    sizes = {log.topic: log.log_end_offset for log in logs.all()}
    assert {name: sizes[name] for name in ("plain", "lat", "compacted", "empty")} == {
        "plain": 6000,
        "lat": 500,
        "compacted": 10000,
        "empty": 0,
    }
    plain = logs.get("plain", 0)
    assert [value for _, value in records(plain)] == [b"v" * 500] * 6000
    (producer,) = plain.producers.entries.values()
    assert producer.last_sequence == 5999
    assert [value for _, value in records(logs.get("compacted", 0))][-1] == b"zstd 1999"
    assert all(scan(buffer).is_log_append_time for buffer, _ in logs.get("lat", 0).batches())
    assert len(plain.segments) == 3


def test_aborted_data_is_hidden_and_the_open_transaction_bounds_readers(start: Callable[[], Logs]) -> None:
    log = start().get("txn", 0)
    assert log.last_stable_offset == log.log_end_offset - 1
    seen = [value for _, value in records(log, isolation=1)]
    expected = [
        b"turn %d producer %d record %d " % (turn, number, record) + b"z" * 1000
        for turn in range(40)
        for number in range(3)
        for record in range(20)
        if (turn + number) % 3 != 0
    ]
    assert sorted(value or b"" for value in seen) == sorted(expected)
    assert sum(len(segment.txn_index) for segment in log.segments) == 40
    assert sum(entry.txn_first_offset >= 0 for entry in log.producers.entries.values()) == 1


def test_looking_up_every_offset_and_time_agrees_with_a_walk(start: Callable[[], Logs]) -> None:
    log = start().get("plain", 0)
    for buffer, header in log.batches():
        fetched = log.read(header.last_offset, 1)
        assert scan(fetched.records[0]).base_offset == header.base_offset
        assert bytes(fetched.records[0])[: header.size_bytes] == bytes(buffer)
    times = [
        (record.timestamp, record.offset)
        for buffer, header in log.batches()
        for record in iterate(buffer, 0, header.size_bytes)
    ]
    looked_up = sorted({timestamp + more for timestamp, _ in times[::70] for more in (0, 1)})
    assert len(looked_up) > 20
    for wanted in looked_up:
        found = log.offset_for_timestamp(wanted)
        first = next(((timestamp, offset) for timestamp, offset in times if timestamp >= wanted), (-1, -1))
        assert (found.timestamp_ms, found.offset) == first


def test_going_on_where_kafka_stopped(start: Callable[[], Logs]) -> None:
    log = start().get("txn", 0)
    open_entry = next(entry for entry in log.producers.entries.values() if entry.txn_first_offset >= 0)
    data = {"pid": open_entry.producer_id, "epoch": open_entry.epoch, "txn": True}
    put(log, b"more", seq=open_entry.last_sequence + 1, **data)
    end(log, open_entry.producer_id, open_entry.epoch, commit=True, coordinator=open_entry.coordinator_epoch)
    end_offset = log.log_end_offset
    plain = start().get("plain", 0)
    (producer,) = plain.producers.entries.values()
    assert put(plain, b"x", pid=producer.producer_id, epoch=producer.epoch, seq=6000).base_offset == 6000
    log = start().get("txn", 0)
    assert (log.last_stable_offset, log.log_end_offset) == (end_offset, end_offset)
    assert records(log, end_offset - 3, isolation=1) == [(end_offset - 3, b"open"), (end_offset - 2, b"more")]


def test_dump_prints_what_kafkas_tool_prints(kafka: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kafka / "data")
    dump = Dump(Options(deep=True))
    lines = [line for path in (kafka / "files.txt").read_text().splitlines() for line in dump.lines(path)]
    assert lines == (kafka / "dump.txt").read_text().splitlines()


def test_recovered_files_are_byte_for_byte_what_a_clean_stop_of_kafka_leaves(tmp_path: Path) -> None:
    """The crashed copy is of the same life, a moment before its clean stop."""
    clean = unpack("kafka_clean", tmp_path / "clean") / "data"
    crashed = unpack("kafka_crashed", tmp_path / "crashed") / "data"
    config = BrokerConfig(log_dirs=(str(crashed),))
    logs = Logs(config, VirtualClock(1_795_274_300_000), Faults())
    logs.open_dirs()
    logs.start(
        lambda name, number: (
            urlsafe_b64decode((read_topic_id(f"{crashed}/{name}-{number}") or "") + "=="),
            TopicConfig(config),
            0,
        )
    )
    recovered: list[PartitionLog] = list(logs.all())
    logs.stop()
    for log in recovered:
        folder = Path(log.directory).name
        theirs = {path.name: path.read_bytes() for path in (clean / folder).iterdir() if path.suffix != ".snapshot"}
        ours = {path.name: path.read_bytes() for path in (crashed / folder).iterdir() if path.suffix != ".snapshot"}
        if log.log_end_offset:
            assert ours == theirs
        snapshots = {path.name for path in (clean / folder).glob("*.snapshot")}
        assert snapshots <= {path.name for path in (crashed / folder).glob("*.snapshot")}
