"""What is written, stored, damaged and dumped."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan
from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.records import build, build_marker
from kafka_shim.compat.tests.admin.test_data_directory import await_topic
from kafka_shim.compat.tests.compat.differences.conftest import Asked, until
from kafka_shim.errors import ErrorCode
from kafka_shim.storage.compaction import empty_batch
from kafka_shim.targets import Target, TargetError, jvm, make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _write(connection: Connection, topic: str, *values: bytes) -> int:
    """Sends one batch to partition 0. Returns the error code of the answer."""
    answer = connection.request(ask.produce(topic, 0, [(None, value) for value in values]), 9)
    return answer.responses[0].partition_responses[0].error_code


def test_produce_of_null_records(each) -> None:
    message = ask.make(
        "Produce",
        acks=-1,
        timeout_ms=1000,
        topic_data=[{"name": "null", "partition_data": [{"index": 0, "records": None}]}],
    )

    def why(connection: Asked) -> str:
        ask.create_topic(connection, "null")
        await_topic(connection, "null", is_there=True)
        with pytest.raises(WireClientError) as caught:
            connection.request(message, 9, connection.answer_s)
        return str(caught.value)

    ours, theirs = each(why)
    assert "no answer from" not in ours
    assert "no answer from" in theirs


def test_files_of_an_idle_partition(each, brokers: tuple[Target, Target]) -> None:
    def create(connection: Connection) -> None:
        ask.create_topic(connection, "idle")
        await_topic(connection, "idle", is_there=True)
        wanted = [{"name": "idle", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        end = ask.make("ListOffsets", replica_id=-1, topics=wanted)
        until(lambda: connection.request(end, 5).topics[0].partitions[0].error_code == 0 or None)

    each(create)
    ours, theirs = (
        {path.suffix for path in (target.data_dir / "idle-0").iterdir() if path.stem.isdecimal()} for target in brokers
    )
    assert ours == set()
    assert theirs == {".log", ".index", ".timeindex"}


def test_the_smallest_indexes(each, brokers: tuple[Target, Target]) -> None:
    topics = {size_bytes: f"indexes-of-{size_bytes}" for size_bytes in (4, 11, 12)}

    def write(connection: Connection) -> list[int]:
        for size_bytes, topic in topics.items():
            ask.create_topic(connection, topic, config={"segment.index.bytes": str(size_bytes)})
            await_topic(connection, topic, is_there=True)
        # The last one can be written to: what Kafka has to do for the others is done.
        until(lambda: _write(connection, topics[12], b"a") == ErrorCode.NONE or None)
        return [_write(connection, topic, b"b") for topic in (topics[4], topics[4], topics[11], topics[11], topics[12])]

    ours, theirs = each(write)
    assert ours == [ErrorCode.NONE] * 5
    assert theirs == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 4 + [ErrorCode.NONE]
    for topic in topics.values():
        assert len(list((brokers[0].data_dir / f"{topic}-0").glob("*.log"))) == 2, "a segment for each batch"


def test_a_damaged_batch_header_in_an_old_segment(each, brokers) -> None:
    topic, large = "damaged", bytes(700_000)

    def fill(connection: Connection) -> None:
        ask.create_topic(connection, topic, config={"segment.bytes": "1048576"})
        await_topic(connection, topic, is_there=True)
        for value in (b"a", b"b", b"c", large, large):
            until(lambda value=value: _write(connection, topic, value) == ErrorCode.NONE or None)

    def damage(folder: Path) -> None:
        """Makes the second batch claim to be longer than its segment."""
        first = folder / f"{0:020}.log"
        assert (folder / f"{4:020}.log").exists()
        with first.open("r+b") as file:
            file.seek(8)
            file.seek(12 + int.from_bytes(file.read(4)) + 8)
            file.write((1 << 30).to_bytes(4))

    def read(connection: Connection) -> tuple[int, int]:
        part = connection.request(ask.fetch(topic, 0, 2), 11).responses[0].partitions[0]
        return part.error_code, int.from_bytes(bytes(part.records or b"")[:8])

    each(fill)
    for target in brokers:
        damage(target.data_dir / f"{topic}-0")
    ours, theirs = each(read)
    assert ours == (ErrorCode.CORRUPT_MESSAGE, 0)
    assert theirs == (ErrorCode.NONE, 4)


def test_a_damaged_small_file_of_a_partition(tmp_path) -> None:
    folder = tmp_path / "data" / "scratched-0"

    def damage(name: str) -> None:
        with (folder / name).open("ab") as file:
            file.write(b"nonsense\n")

    with make("shim", data_dir=tmp_path / "data") as ours, Connection(ours.bootstrap) as connection:
        ask.create_topic(connection, "scratched")
        assert _write(connection, "scratched", b"value") == ErrorCode.NONE
    damage("leader-epoch-checkpoint")
    theirs = make("kafka-native", data_dir=tmp_path / "data")
    try:
        with pytest.raises(TargetError, match="ended with status 1"):
            theirs.start()
        assert f"Malformed line in checkpoint file [{folder}/leader-epoch-checkpoint]: nonsense" in theirs.log()
    finally:
        theirs.close()
    damage("partition.metadata")
    with make("shim", data_dir=tmp_path / "data") as ours, Connection(ours.bootstrap) as connection:
        part = connection.request(ask.fetch("scratched", 0, 0), 11).responses[0].partitions[0]
        assert (part.error_code, b"value" in bytes(part.records)) == (ErrorCode.NONE, True)
        assert "scratched-0: leader epochs are read from the batches" in ours.log()
        assert _write(connection, "scratched", b"value") == ErrorCode.NONE


@pytest.mark.parametrize(("kind", "start"), [("shim", 2), ("kafka-native", 0)])
def test_the_start_of_a_log_after_a_kill(kind: str, start: int) -> None:
    partitions = [{"partition_index": 0, "offset": 2}]
    delete = ask.make("DeleteRecords", topics=[{"name": "begun", "partitions": partitions}], timeout_ms=10_000)
    partitions = [{"partition_index": 0, "timestamp": -2}]
    look = ask.make("ListOffsets", replica_id=-1, topics=[{"name": "begun", "partitions": partitions}])

    def first(connection: Connection) -> tuple[int, int]:
        part = connection.request(look, 5).topics[0].partitions[0]
        return part.error_code, part.offset

    with make(kind) as target:
        with Connection(target.bootstrap) as connection:
            ask.create_topic(connection, "begun")
            until(lambda: _write(connection, "begun", *[b"value"] * 3) == ErrorCode.NONE or None)
            deleted = connection.request(delete, 2).topics[0].partitions[0]
            assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.NONE, 2)
            assert first(connection) == (ErrorCode.NONE, 2)
        target.restart(kill=True)
        with Connection(target.bootstrap) as connection:
            assert until(lambda: found if (found := first(connection))[0] == ErrorCode.NONE else None)[1] == start


@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
def test_a_log_that_was_cut_short_after_a_clean_stop(tmp_path, kind: str) -> None:
    folder = tmp_path / "data" / "cut-0"

    with make("shim", data_dir=tmp_path / "data") as ours, Connection(ours.bootstrap) as connection:
        ask.create_topic(connection, "cut")
        assert [_write(connection, "cut", value) for value in (b"first", b"second")] == [ErrorCode.NONE] * 2
    with (folder / f"{0:020}.log").open("r+b") as file:
        file.truncate(file.seek(-3, 2))
    with make(kind, data_dir=tmp_path / "data") as target, Connection(target.bootstrap) as connection:
        until(lambda: _write(connection, "cut", b"third") == ErrorCode.NONE or None)
        part = connection.request(ask.fetch("cut", 0, 0), 11).responses[0].partitions[0]
    assert part.high_watermark == 2
    assert list(_batches(bytes(part.records)))[:2] == (
        [(0, True), (1, True)] if kind == "shim" else [(0, True), (1, False)]
    )


def _batches(records: bytes) -> Iterator[tuple[int, bool]]:
    """(base offset, whether its CRC is right) of each batch."""
    at = 0
    while at < len(records):
        end = at + 12 + int.from_bytes(records[at + 8 : at + 12])
        is_valid = crc32c(records[at + 21 : end]) == int.from_bytes(records[at + 17 : at + 21])
        yield int.from_bytes(records[at : at + 8]), is_valid
        at = end


def test_passwords_in_dumps_of_the_metadata_log(each, brokers) -> None:
    def store(connection: Connection) -> None:
        change = {"name": "listener.name.any.ssl.keystore.password", "config_operation": 0, "value": "not-told"}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource])
        assert connection.request(request, 1).responses[0].error_code == 0

    each(store)
    folders = [str(one) for target in brokers for one in (target.data_dir / "__cluster_metadata-0").glob("*.log")]
    command = [sys.executable, "-m", "kafka_shim", "dump-log", "--cluster-metadata-decoder", "--files", folders[0]]
    ours = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", folders[1])
    assert "listener.name.any.ssl.keystore.password" in ours
    assert "not-told" not in ours
    assert "not-told" in theirs


@pytest.mark.parametrize("kind", ["shim", "kafka-native"])
def test_the_expiration_of_producers_at_a_restart(kind: str) -> None:
    minute_ago = time.time_ns() // 1_000_000 - 60_000
    records = build([(None, b"value", minute_ago, ())], producer_id=7, producer_epoch=0, base_sequence=0)
    change = {"name": "producer.id.expiration.ms", "config_operation": 0, "value": "86400000"}
    resource = {"resource_type": 4, "resource_name": "", "configs": [change]}
    known = ask.make("DescribeProducers", topics=[{"name": "kept", "partition_indexes": [0]}])
    with make(kind, settings={"producer.id.expiration.ms": "30000"}) as target:
        with Connection(target.bootstrap) as connection:
            ask.create_topic(connection, "kept")
            await_topic(connection, "kept", is_there=True)
            write = ask.produce("kept", 0, bytes(records))
            until(lambda: connection.request(write, 9).responses[0].partition_responses[0].error_code == 0 or None)
            altered = connection.request(ask.make("IncrementalAlterConfigs", resources=[resource]), 1)
            assert altered.responses[0].error_code == 0
        target.restart()
        with Connection(target.bootstrap) as connection:
            part = until(lambda: _without_error(connection.request(known, 0).topics[0].partitions[0]))
    assert [one.producer_id for one in part.active_producers] == ([7] if kind == "shim" else [])


@pytest.mark.parametrize(
    ("kind", "epoch", "answer"), [("shim", 1, "INVALID_PRODUCER_EPOCH"), ("kafka-native", 0, "NONE")]
)
def test_the_epoch_of_a_marker_that_compaction_emptied(tmp_path: Path, kind: str, epoch: int, answer: str) -> None:
    now_ms = time.time_ns() // 1_000_000

    def write(connection: Connection, sequence: int) -> int:
        records = build([(None, b"value", now_ms, ())], producer_id=7, producer_epoch=0, base_sequence=sequence)
        told = connection.request(ask.produce("fenced", 0, bytes(records)), 9)
        return told.responses[0].partition_responses[0].error_code

    with make("shim", data_dir=tmp_path / "data") as ours:
        with Connection(ours.bootstrap) as connection:
            ask.create_topic(connection, "fenced")
            assert write(connection, 0) == ErrorCode.NONE
        ours.kill()
    marker = build_marker(7, 1, 0, commit=True, timestamp_ms=now_ms, base_offset=1, leader_epoch=0)
    with (tmp_path / "data" / "fenced-0" / f"{0:020}.log").open("ab") as file:
        file.write(empty_batch(scan(marker)))
    known = ask.make("DescribeProducers", topics=[{"name": "fenced", "partition_indexes": [0]}])
    with make(kind, data_dir=tmp_path / "data") as target, Connection(target.bootstrap) as connection:
        part = until(lambda: _without_error(connection.request(known, 0).topics[0].partitions[0]))
        assert [(one.producer_id, one.producer_epoch) for one in part.active_producers] == [(7, epoch)]
        assert ErrorCode(write(connection, 1)).name == answer


def _open_transaction(connection: Connection, topic: str) -> dict[str, int]:
    """Makes the topic and appends three records of a transaction to it. Returns whose it is."""
    ask.create_topic(connection, topic)
    await_topic(connection, topic, is_there=True)
    until(lambda: connection.request(ask.make("FindCoordinator", key=topic, key_type=1), 3).error_code == 0 or None)
    begin = ask.make("InitProducerId", transactional_id=topic, transaction_timeout_ms=60_000)
    told = until(lambda: _without_error(connection.request(begin, 4)))
    owner = {"producer_id": told.producer_id, "producer_epoch": told.producer_epoch}
    records = [(None, value) for value in (b"a", b"b", b"c")]
    write = ask.produce(topic, 0, records, transactional_id=topic, transactional=True, base_sequence=0, **owner)
    until(lambda: _without_error(connection.request(write, 12).responses[0].partition_responses[0]))
    return owner


def test_a_last_stable_offset_inside_a_batch(each) -> None:
    topic = "middle"

    def stable_offset(connection: Connection) -> int:
        _open_transaction(connection, topic)
        rows = [{"name": topic, "partitions": [{"partition_index": 0, "offset": 2}]}]
        deleted = connection.request(ask.make("DeleteRecords", topics=rows, timeout_ms=6000), 2)
        assert deleted.topics[0].partitions[0].low_watermark == 2
        part = connection.request(ask.fetch(topic, 0, 2, isolation_level=1), 12).responses[0].partitions[0]
        assert (part.error_code, part.log_start_offset) == (0, 2)
        return part.last_stable_offset

    ours, theirs = each(stable_offset)
    assert (ours, theirs) == (2, 0)


def test_a_read_committed_reader_beyond_the_last_stable_offset(brokers: tuple[Target, Target]) -> None:
    topic = "beyond"
    read = ask.fetch(topic, 0, 3, isolation_level=1, max_wait_ms=2 * 1000 * int(PATIENCE_S))
    told = []
    for target in brokers:
        with Connection(target.bootstrap) as connection, Connection(target.bootstrap, timeout_s=PATIENCE_S) as reader:
            end = ask.make("EndTxn", transactional_id=topic, committed=True, **_open_transaction(connection, topic))
            reader.send(read, 12)
            if target is brokers[0]:
                assert connection.request(end, 4).error_code == 0
            part = reader.receive(read.API_KEY, 12)[1].responses[0].partitions[0]
            told.append((part.error_code, part.last_stable_offset, part.high_watermark, len(part.records) > 0))
    assert told == [(0, 4, 4, True), (0, 0, 3, False)]


def _without_error(answer: Any) -> Any:
    return answer if answer.error_code == ErrorCode.NONE else None
