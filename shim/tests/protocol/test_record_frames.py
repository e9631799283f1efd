from __future__ import annotations

import pytest

from kafka_shim.cext.messages import WireError
from kafka_shim.protocol import record_frames as frames
from kafka_shim.protocol.message import Message
from kafka_shim.protocol.record_frames import ControlType, UnknownRecordError
from kafka_shim.protocol.record_types import GROUP_KEYS, METADATA_RECORDS, SHARE_KEYS, TRANSACTION_KEYS
from kafka_shim.protocol.records.end_txn_marker import EndTxnMarker
from kafka_shim.protocol.records.offset_commit_key import OffsetCommitKey
from kafka_shim.protocol.records.offset_commit_value import OffsetCommitValue
from kafka_shim.protocol.records.topic_record import TopicRecord
from kafka_shim.protocol.records.transaction_log_key import TransactionLogKey
from kafka_shim.protocol.records.transaction_log_value import TransactionLogValue
from kafka_shim.tests.protocol.values import Highest, make


@pytest.mark.parametrize(
    ("registry", "types"),
    [(frames.GROUP, GROUP_KEYS), (frames.TRANSACTION, TRANSACTION_KEYS), (frames.SHARE, SHARE_KEYS)],
)
def test_every_record_of_a_coordinator_comes_back(registry: frames.CoordinatorRecords, types: dict[int, str]) -> None:
    for record_type in types:
        key_class, value_class = registry.classes(record_type)
        assert key_class.API_KEY == value_class.API_KEY == record_type
        key = make(key_class, 0, Highest())
        for version in range(value_class.MIN_VERSION, value_class.MAX_VERSION + 1):
            value = make(value_class, version, Highest())
            read = registry.decode(frames.encode_key(key), frames.encode_value(value, version))
            assert read == (key, value)
        assert registry.decode(frames.encode_key(key), None) == (key, None)


def test_the_bytes_of_an_offset_commit() -> None:
    key = frames.encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
    assert key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"
    value = frames.encode_value(OffsetCommitValue(offset=5, leader_epoch=-1, metadata="", commit_timestamp=9), 3)
    assert value == b"\x00\x03" + (5).to_bytes(8, "big") + b"\xff\xff\xff\xff\x00\x00" + (9).to_bytes(8, "big")


def test_a_transactional_id_is_a_key_of_type_zero() -> None:
    assert frames.encode_key(TransactionLogKey(transactional_id="tx")) == b"\x00\x00\x00\x02tx"
    assert frames.encode_value(TransactionLogValue(producer_id=1), 1)[:2] == b"\x00\x01"


def test_unknown_types_and_versions_of_records_are_told_from_damage() -> None:
    with pytest.raises(UnknownRecordError):
        frames.GROUP.decode_key(b"\x7f\x00")
    with pytest.raises(UnknownRecordError):
        frames.GROUP.decode_value(1, b"\x7f\x00")
    with pytest.raises(WireError):
        frames.GROUP.decode_key(b"\x00\x01\x00\x05ab")
    with pytest.raises(WireError):
        frames.GROUP.decode_key(b"")


@pytest.mark.parametrize("record_type", METADATA_RECORDS)
def test_every_metadata_record_comes_back(record_type: int) -> None:
    cls = frames.record_class(METADATA_RECORDS[record_type])
    assert record_type == cls.API_KEY
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        record: Message = make(cls, version, Highest())
        assert frames.decode_metadata(frames.encode_metadata(record, version)) == (record, version)


def test_the_bytes_of_a_topic_record() -> None:
    assert frames.encode_metadata(TopicRecord(name="t"), 0) == b"\x01\x02\x00\x02t" + bytes(16) + b"\x00"


@pytest.mark.parametrize("value", [b"\x00\x02\x00", b"\x02\x02\x00", b"\x01\x7f\x00", b"\x01\x02\x63"])
def test_metadata_records_from_another_build_are_unknown(value: bytes) -> None:
    with pytest.raises(UnknownRecordError):
        frames.decode_metadata(value)


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x01\x02\x00", frames.encode_metadata(TopicRecord(), 0) + b"\0"])
def test_damaged_metadata_records_are_refused(value: bytes) -> None:
    with pytest.raises(WireError):
        frames.decode_metadata(value)


def test_a_transaction_marker_has_its_version_before_it() -> None:
    key, value = frames.encode_control(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=7))
    assert (key, value) == (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x07")
    assert frames.decode_control(key, value) == (ControlType.COMMIT, EndTxnMarker(coordinator_epoch=7))
    # A later marker is read as far as it is known.
    assert frames.decode_control(key, b"\x00\x09" + value[2:] + b"more")[1] == EndTxnMarker(coordinator_epoch=7)


@pytest.mark.parametrize("control_type", [control for control in frames.CONTROL_RECORDS if control > 1])
def test_control_records_of_the_quorum_come_back(control_type: int) -> None:
    message = make(frames.record_class(frames.CONTROL_RECORDS[control_type]), 0, Highest())
    assert frames.decode_control(*frames.encode_control(control_type, message)) == (control_type, message)


def test_unknown_and_damaged_control_records() -> None:
    assert frames.decode_control(b"\x00\x00\x00\x63", b"") == (99, None)
    with pytest.raises(WireError):
        frames.decode_control(b"\x00", b"")
    with pytest.raises(WireError):
        frames.decode_control(b"\xff\xff\x00\x01", b"")
    with pytest.raises(WireError):
        frames.decode_control(b"\x00\x00\x00\x01", b"\xff\xff")
