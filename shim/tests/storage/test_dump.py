"""The lines of `dump-log`; what they are for real files of Kafka is held in test_kafka_directory and
test_against_kafka."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_shim.cext.records import build, iterate
from kafka_shim.commands.dump_log import group
from kafka_shim.protocol import record_frames
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.leader_change_message import LeaderChangeMessage, Voter
from kafka_shim.protocol.records.offset_commit_key import OffsetCommitKey
from kafka_shim.protocol.records.offset_commit_value import OffsetCommitValue
from kafka_shim.protocol.records.transaction_log_key import TransactionLogKey
from kafka_shim.protocol.records.transaction_log_value import PartitionsSchema, TransactionLogValue
from kafka_shim.storage import dump_records
from kafka_shim.storage.dump import Dump, Options
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, end, put


def one(key: bytes | None, value: bytes | None, **fields: Any) -> Any:
    return next(iterate(build([(key, value, 0, ())], **fields)))


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(group, list(words))
    return done.exit_code, done.stdout, done.stderr


def test_command_prints_batches_records_and_contents(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"hello", key=b"k", pid=4, seq=0, txn=True)
    end(log, 4, 0, commit=True, coordinator=7)
    disk.stop()
    path = str(disk.partition / f"{0:020d}.log")
    status, text, errors = run("--files", path)
    assert (status, errors) == (0, "")
    assert text.splitlines()[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert len(text.splitlines()) == 4
    text = run("--files", path, "--print-data-log")[1]
    assert (
        f"| offset: 0 CreateTime: {NOW_MS} keySize: 1 valueSize: 5 sequence: 0 headerKeys: [] key: k payload: hello"
        in text
    )
    assert "headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 7" in text
    assert (
        run("--files", path, "--print-data-log", "--skip-record-metadata")[1].splitlines()[3]
        == "| key: k payload: hello"
    )
    assert len(run("--files", path, "--max-bytes", "80")[1].splitlines()) == 3


def test_torn_tail_and_unknown_files_are_told(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    put(log, b"hello")
    disk.stop()
    path = disk.partition / f"{0:020d}.log"
    with path.open("ab") as file:
        file.write(b"torn")
    assert f"Found 4 invalid bytes at the end of {path.name}" in run("--files", str(path))[1]
    assert "Ignoring unknown file" in run("--files", str(disk.partition / "partition.metadata"))[2]
    assert run("--files", str(disk.partition / "missing.log"))[0] == 1


def test_batches_behind_one_that_cannot_be_read_are_shown(make_disk: Callable[..., Disk]) -> None:
    """The command ended with a traceback where somebody looked for what is wrong with a log."""
    disk = make_disk()
    log = disk.open()
    for value in (b"first", b"second", b"third"):
        put(log, value)
    disk.stop()
    path = disk.partition / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[data.index(b"second") - 1] ^= 0x7F  # the length of the value
    path.write_bytes(data)
    status, text, errors = run("--files", str(path), "--print-data-log")
    assert status == 0
    assert [line.rpartition(" ")[2] for line in text.splitlines()[2:]] == ["true", "first", "false", "true", "third"]
    at = next(line for line in text.splitlines() if "isvalid: false" in line).partition("position: ")[2].split()[0]
    assert errors.startswith(f"Batches that cannot be read in {path}\n  record 0 of the batch at {at}: ")


def test_wrong_index_entries_are_complaints(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"index.interval.bytes": "0"})
    log = disk.open()
    for number in range(5):
        put(log, b"v", timestamp=NOW_MS + number)
    disk.stop()
    index, times = (disk.partition / f"{0:020d}{suffix}" for suffix in (".index", ".timeindex"))
    content = bytearray(index.read_bytes())
    content[3] += 1
    index.write_bytes(content)
    content = bytearray(times.read_bytes())
    content[7] ^= 1
    times.write_bytes(content)
    errors = run("--files", f"{index},{times}", "--verify-index-only")[2]
    assert f"Mismatches in :{index}" in errors
    assert f"Found timestamp mismatch in :{times}" in errors
    os.truncate(index, len(index.read_bytes()) - 3)
    assert run("--files", str(index), "--index-sanity-check")[0] == 1


def test_corrupt_snapshot_is_a_complaint(tmp_path: Path) -> None:
    path = tmp_path / f"{5:020d}.snapshot"
    path.write_bytes(b"\0\1garbage bytes")
    assert "is corrupt" in run("--files", str(path))[2]


def test_decoders_write_kafkas_json() -> None:
    key = record_frames.encode_key(TransactionLogKey(transactional_id="t0"))
    value = TransactionLogValue(
        producer_id=1,
        previous_producer_id=1,
        transaction_timeout_ms=60000,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema(topic="txn", partition_ids=[0])],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=4,
    )
    assert dump_records.transactions(one(key, record_frames.encode_value(value, 1))) == (
        '{"type":"0","data":{"transactionalId":"t0"}}',
        '{"version":"1","data":{"producerId":1,"previousProducerId":1,"producerEpoch":0,"transactionTimeoutMs":60000,'
        '"transactionStatus":1,"transactionPartitions":[{"topic":"txn","partitionIds":[0]}],'
        '"transactionLastUpdateTimestampMs":5,"transactionStartTimestampMs":4}}',
    )
    assert dump_records.transactions(one(key, None))[1] == "<DELETE>"
    feature = record_frames.encode_metadata(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
    assert dump_records.metadata(one(None, feature)) == (
        None,
        '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":30}}',
    )
    key = record_frames.encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
    text = dump_records.offsets(one(key, record_frames.encode_value(OffsetCommitValue(offset=9), 3)))
    assert text[0] == '{"type":"1","data":{"group":"g","topic":"t","partition":3}}'
    assert text[1] is not None
    assert text[1].startswith('{"version":"3","data":{"offset":9,"leaderEpoch":-1,')


def test_records_that_are_not_what_was_said_are_skipped_by_name() -> None:
    assert dump_records.offsets(one(b"\0\x63", b"")) == ("Unknown record type 99 at offset 0, skipping.", None)
    assert "Error at offset 0, skipping." in str(dump_records.transactions(one(b"\0\0\0", b"\0\1")))
    assert "Error at 0, skipping." in str(dump_records.metadata(one(None, b"\1")))
    with pytest.raises(ValueError, match="no key"):
        dump_records.offsets(one(None, b"x"))


def test_control_records_of_the_metadata_log_are_decoded() -> None:
    from kafka_shim.cext.messages import encode

    value = encode(LeaderChangeMessage(leader_id=1, voters=[Voter(voter_id=1)], granting_voters=[Voter(voter_id=1)]), 0)
    record = one(b"\0\0\0\2", value, control=True)
    expected = ' LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[{"voterId":1}]}'
    assert dump_records.control(record) == expected
    assert dump_records.control(one(b"\0\0\0\x63", b"", control=True)) == " controlType: UNKNOWN(99)"


def test_checkpoint_names_are_read(tmp_path: Path) -> None:
    for name, title in (
        ("bootstrap.checkpoint", "KRaft bootstrap snapshot"),
        (f"{12:020d}-{3:010d}.checkpoint", "Snapshot end offset: 12, epoch: 3"),
    ):
        (tmp_path / name).write_bytes(build([(None, b"x", 0, ())]))
        assert list(Dump(Options()).lines(str(tmp_path / name)))[1] == title
