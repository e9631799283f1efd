"""Records of __transaction_state: our encoder against the generated classes, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.messages import encode
from kafka_shim.cext.records import build
from kafka_shim.protocol.records.transaction_log_key import TransactionLogKey
from kafka_shim.protocol.records.transaction_log_value import PartitionsSchema, TransactionLogValue
from kafka_shim.txn import records
from kafka_shim.txn.transaction import EMPTY, State, Transaction

EPOCHS = st.integers(-1, 32767)
LONGS = st.integers(-1, 2**63 - 1)
TOPICS = st.text("abz.-_", min_size=1, max_size=300)
PARTITIONS = st.frozensets(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), max_size=5)
LOGGED_STATES = [state for state in State if state.name not in ("DEAD", "PREPARE_EPOCH_FENCE")]


@st.composite
def transactions(draw: st.DrawFn) -> Transaction:
    state = draw(st.sampled_from(LOGGED_STATES))
    return Transaction(
        draw(st.text(max_size=20).filter(lambda text: not any(0xD800 <= ord(char) <= 0xDFFF for char in text))),
        draw(LONGS),
        draw(LONGS),
        draw(LONGS),
        draw(EPOCHS),
        -1,
        draw(st.integers(1, 2**31 - 1)),
        state,
        frozenset() if state is EMPTY else draw(PARTITIONS),
        draw(LONGS),
        draw(LONGS),
        draw(st.sampled_from([0, 2])),
    )


def generated(txn: Transaction, version: int) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(txn.partitions):
        topics.setdefault(topic, []).append(partition)
    value = TransactionLogValue(
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_status=txn.state,
        transaction_partitions=None
        if txn.state is EMPTY
        else [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()],
        transaction_last_update_timestamp_ms=txn.last_update_ms,
        transaction_start_timestamp_ms=txn.start_ms,
    )
    if version >= 1:
        value.previous_producer_id = txn.previous_producer_id
        value.next_producer_id = txn.next_producer_id
        value.client_transaction_version = txn.client_version
    return version.to_bytes(2, "big") + encode(value, version)


@given(transactions(), st.sampled_from([0, 1]))
def test_value_is_what_the_generated_class_writes(txn: Transaction, version: int) -> None:
    assert records.encode_value(txn, version) == generated(txn, version)


@given(transactions(), st.sampled_from([0, 1]), st.sampled_from(["", "app", "t" * 300, "ü"]))
def test_batch_is_that_of_any_other_record(txn: Transaction, version: int, name: str) -> None:
    key = records.encode_key(name)
    expected = build([(key, records.encode_value(txn, version), txn.last_update_ms, ())])
    # The second finds the form of the partitions that the first has made.
    for _ in range(2):
        assert records.encode_batch(key, txn, version) == expected


def test_batches_of_more_partition_sets_than_are_kept_are_right() -> None:
    key = records.encode_key("app")
    for number in [*range(1100), 0, 1]:
        partitions = frozenset({("t", number), ("u", 0)})
        txn = Transaction("app", 1, 1, -1, 0, -1, 1000, State.ONGOING, partitions, 5, 6, 2)
        assert records.encode_batch(key, txn, 1) == build([(key, generated(txn, 1), 6, ())])
        assert list(records.unmarked_of(partitions)) == [("t", number), ("u", 0)]


@pytest.mark.parametrize("count", [1, records.CACHED_PARTITIONS, records.CACHED_PARTITIONS + 1])
def test_partitions_without_a_marker_are_sorted_and_a_new_dict_each_time(count: int) -> None:
    partitions = frozenset((f"t{number % 3}", number) for number in range(count))
    first = records.unmarked_of(partitions)
    assert list(first) == sorted(partitions)
    first.clear()
    assert list(records.unmarked_of(partitions)) == sorted(partitions)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("count", [records.CACHED_PARTITIONS, records.CACHED_PARTITIONS + 1, 1000])
def test_a_large_transaction_is_encoded_like_a_small_one(count: int, version: int) -> None:
    partitions = frozenset((f"t{number % 3}", number) for number in range(count))
    txn = Transaction("app", 1, 1, -1, 0, -1, 1000, State.ONGOING, partitions, 5, 6, 2)
    assert records.encode_value(txn, version) == generated(txn, version)


@pytest.mark.parametrize(
    ("epoch", "version", "state", "error"),
    [(32768, 2, 1, "epoch 32768"), (1, 32768, 1, "client version 32768"), (1, 2, 128, "status 128")],
)
def test_what_no_record_holds_is_refused(epoch: int, version: int, state: Any, error: str) -> None:
    txn = Transaction("app", 1, 1, -1, epoch, -1, 1000, state, frozenset(), 5, 6, version)
    with pytest.raises(ValueError, match=error):
        records.encode_value(txn, 1)


def test_a_number_beyond_its_field_is_no_transaction() -> None:
    with pytest.raises(OverflowError):
        Transaction("app", 1 << 63, 1, -1, 0, -1, 1000, State.ONGOING, frozenset(), 5, 6, 2)
    with pytest.raises(OverflowError):
        Transaction("app", 1, 1, -1, 0, -1, 1 << 31, State.ONGOING, frozenset(), 5, 6, 2)


@given(transactions())
def test_version_1_brings_everything_back_that_is_not_memory_only(txn: Transaction) -> None:
    assert records.decode_value(txn.transactional_id, records.encode_value(txn, 1)) == txn


@given(transactions())
def test_version_0_forgets_the_tagged_fields(txn: Transaction) -> None:
    back = records.decode_value(txn.transactional_id, records.encode_value(txn, 0))
    assert (back.previous_producer_id, back.next_producer_id, back.client_version) == (-1, -1, 0)
    assert (back.producer_id, back.producer_epoch, back.state) == (txn.producer_id, txn.producer_epoch, txn.state)
    assert (back.partitions, back.start_ms, back.last_update_ms) == (txn.partitions, txn.start_ms, txn.last_update_ms)


@given(st.text(max_size=100).filter(lambda text: not any(0xD800 <= ord(char) <= 0xDFFF for char in text)))
def test_key_is_what_the_generated_class_writes(transactional_id: str) -> None:
    key = records.encode_key(transactional_id)
    assert key == b"\0\0" + encode(TransactionLogKey(transactional_id=transactional_id), 0)
    assert records.decode_key(key) == transactional_id


def test_unknown_versions_are_told_apart() -> None:
    with pytest.raises(records.UnknownVersion, match="key version 9"):
        records.decode_key(b"\0\x09rest")
    with pytest.raises(records.UnknownVersion, match="value version 2"):
        records.decode_value("app", b"\0\x02rest")
