"""The records of offsets: how they are written, which are refused, what a log with others says."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_shim.cext import messages, offset_records
from kafka_shim.cext import records as cext_records
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import records
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC as TOPIC
from kafka_shim.protocol.records.offset_commit_key import OffsetCommitKey
from kafka_shim.protocol.records.offset_commit_value import OffsetCommitValue
from kafka_shim.tests.group.harness import Node


@given(
    st.text(min_size=1, max_size=20),
    st.text(min_size=1, max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=300),
    st.integers(0, 2**62),
    st.sampled_from((-1, 5, 2**62)),
    st.binary(min_size=16, max_size=16),
)
def test_offsets_are_encoded_as_the_generated_classes_do(
    group, topic, partition, offset, epoch, metadata, commit_ms, expire_ms, topic_id
) -> None:
    key = offset_records.encode_offset_key(group, topic, partition)
    generated = OffsetCommitKey(group=group, topic=topic, partition=partition)
    assert key == b"\0\1" + messages.encode(generated, 0)
    assert records.decode_offset_key(key) == (group, topic, partition)
    version = 4 if expire_ms == -1 else 1
    committed = offset_records.Committed(offset, epoch, metadata, commit_ms, expire_ms, topic_id)
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=commit_ms,
        expire_timestamp=expire_ms,
        topic_id=topic_id,
    )
    encoded = offset_records.encode_offset(committed)
    assert encoded == version.to_bytes(2, "big") + messages.encode(value, version)
    back = records.decode_offset(encoded, 7)
    assert (back.offset, back.metadata, back.commit_ms, back.record_offset) == (offset, metadata, commit_ms, 7)
    if version == 4:
        assert (back.leader_epoch, back.topic_id) == (epoch, topic_id)


@pytest.mark.parametrize(
    ("group", "topic", "metadata", "expire_ms"),
    [
        ("g" * 0x8000, "t", "", -1),
        ("g", "t" * 0x8000, "", -1),
        ("g", "t", "m" * 0x8000, -1),
        ("g", "t", "\u00e9" * 0x4000, 5),
        ("\ud800", "t", "", -1),
    ],
    ids=["group", "topic", "metadata", "UTF-8", "surrogate"],
)
def test_an_offset_that_no_record_can_hold_is_refused(group: str, topic: str, metadata: str, expire_ms: int) -> None:
    committed = offset_records.Committed(1, 0, metadata, 0, expire_ms)
    with pytest.raises(KafkaError) as caught:
        records.offset_entries(group, [(topic, 0, committed)], 1)
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(ValueError, match="topic id of 15 bytes"):
        offset_records.Committed(1, 0, "", 0, -1, bytes(15))
    # Whoever could leave these out would have bytes of other objects written.
    with pytest.raises(TypeError):
        offset_records.Committed.__new__(offset_records.Committed)
    with pytest.raises(AttributeError):
        committed.topic_id = b""


KEY, VALUE = b"\0\1\0\1g\0\1t\0\0\0\2", b"\0\0" + (5).to_bytes(8, "big") + b"\0\1m" + bytes(8)


def test_record_that_parses_is_taken() -> None:
    found = records.decode_offset(VALUE, 0)
    assert (found.offset, found.metadata) == (5, "m")
    assert records.record_type_of(KEY) == records.OFFSET_COMMIT
    assert tuple(records.decode_offset_key(KEY)) == ("g", "t", 2)


@given(st.binary(max_size=60), st.binary(max_size=60))
@example(KEY[:-1], VALUE)
@example(KEY, VALUE[:-1])
@example(b"\0\2\0\1g", b"\0\4\xff")
def test_records_that_do_not_parse_are_refused(key: bytes, value: bytes) -> None:
    is_cut = (key, value) in {(KEY[:-1], VALUE), (KEY, VALUE[:-1]), (b"\0\2\0\1g", b"\0\4\xff")}
    try:
        kind = records.record_type_of(key)
        if 0 <= kind <= records.OFFSET_COMMIT:
            records.decode_offset_key(key)
            records.decode_offset(value, 0)
        else:
            records.decode(key, value)
    except records.RecordError:
        return
    assert not is_cut


def test_a_log_with_foreign_records_is_read_around_them(node: Node) -> None:
    node.commit("g", "t", 5)
    log = node.logs.get(TOPIC, node.groups.partition_for("g"))
    foreign = [(b"\0\x63what", b"\0\0", 1, ()), (b"\0\1\0\x7f", b"\0\4", 1, ()), (b"", b"", 1, ())]
    foreign += [(b"\0\x0b\0\1s", b"\0\0\0\0\0\1\0", 1, ())]
    log.append_batch(cext_records.build(foreign), now_ms=1)
    node.crash()
    assert node.committed("g", "t") == (5, 0)


@pytest.mark.parametrize("field", ["the length of a record", "its key"])
def test_a_corrupt_batch_costs_what_it_holds_and_nothing_else(node: Node, field: str) -> None:
    for offset in range(3):
        node.commit("g", "t", offset)
    node.commit("other", "t", 7)
    partition = node.groups.partition_for("g")
    batches = [(batch.position, batch.size_bytes) for _, batch in node.logs.get(TOPIC, partition).batches()]
    node.stop()
    (path,) = node.path.glob(f"{TOPIC}-{partition}/*.log")
    data = bytearray(path.read_bytes())
    position = batches[2][0] + (61 if field == "the length of a record" else 70)
    data[position] ^= 0xFF
    path.write_bytes(data)
    node.start()
    node.advance(1000)
    assert node.committed("g", "t") == (1, 0)
    assert node.committed("other", "t") == (7, 0)
    assert {group.group_id for group in node.all_groups()} == {"g", "other"}
    assert node.commit("g", "t", 3) == 0
