"""Records of `__transaction_state`: key version 0, value version 0 (TV0) or 1 (TV1 and up).

A commit writes three of them, so they are encoded by hand. A test checks the result against the generated classes,
which are used for decoding.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from struct import Struct, pack

from kafka_shim.cext import transaction_records
from kafka_shim.txn.transaction import EMPTY, NO_PARTITIONS, NO_PRODUCER_EPOCH, State, Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.txn.transaction import TopicPartition

    Buffer = bytes | bytearray | memoryview

# A thousand larger partition sets would use more memory than the saved time is worth. The last few are kept: who adds
# thousands of partitions makes their form in steps before it decides, and the end of the transaction needs it again.
CACHED_PARTITIONS = 64
CACHED_LARGE = 4

KEY_VERSION = 0
VALUE_VERSIONS = (0, 1)

_SHORT = Struct(">h")
_INT = Struct(">i")
_KEY = Struct(">hh")


class UnknownVersion(ValueError):
    """A key or value of a version that this broker does not know. Replay skips it with a warning (B7)."""


def encode_key(transactional_id: str) -> bytes:
    """Returns the record key."""
    text = transactional_id.encode()
    return _KEY.pack(KEY_VERSION, len(text)) + text


def form_of(txn: Transaction, version: int) -> bytes:
    """Returns the partitions of the record value."""
    partitions = txn.partitions
    if version == 0:
        return _NULL_ARRAY if txn.state is EMPTY else _encode_partitions(partitions)
    if not partitions or txn.state is EMPTY:
        return b"\0" if txn.state is EMPTY else b"\1"
    return encode_large(partitions) if len(partitions) > CACHED_PARTITIONS else _encode_compact_partitions(partitions)


def encode_value(txn: Transaction, version: int) -> bytes:
    """Returns the record value. `version` is 0 if transaction.version is finalised at 0, else 1."""
    return transaction_records.encode_value(txn, version, form_of(txn, version))


# encode_batch(key, txn, version): the batch of one record, this key and the value of `encode_value`.
BATCHES = transaction_records.Batches(form_of, CACHED_PARTITIONS)
encode_batch = BATCHES.encode


_NULL_ARRAY = _INT.pack(-1)


@lru_cache(maxsize=CACHED_LARGE)
def _by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """The partitions of each topic, in order: faster than to sort tens of thousands of tuples."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        if topic not in topics:
            topics[topic] = []
        topics[topic].append(partition)
    return {topic: sorted(topics[topic]) for topic in sorted(topics)}


def unmarked_of(partitions: frozenset[TopicPartition]) -> dict[TopicPartition, None]:
    """Returns the partitions as the keys of a new dict, sorted."""
    if len(partitions) <= CACHED_PARTITIONS:
        return _cached_unmarked(partitions).copy()
    return {(topic, partition): None for topic, indexes in _by_topic(partitions).items() for partition in indexes}


def first_in_order(partitions: frozenset[TopicPartition], most: int) -> Iterator[TopicPartition]:
    """Yields the first of the partitions sorted, without sorting all if the record of them was just made."""
    every = ((topic, partition) for topic, indexes in _by_topic(partitions).items() for partition in indexes)
    return islice(every, most)


def _encode_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    topics = _by_topic(partitions)
    parts = [_INT.pack(len(topics))]
    for topic, indexes in topics.items():
        name = topic.encode()
        parts += (_SHORT.pack(len(name)), name, _INT.pack(len(indexes)), pack(f">{len(indexes)}i", *indexes))
    return b"".join(parts)


def _encode_compact_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    topics = _by_topic(partitions)
    parts = [_uvarint(len(topics) + 1)]
    for topic, indexes in topics.items():
        name = topic.encode()
        numbers = pack(f">{len(indexes)}i", *indexes)
        parts += (_uvarint(len(name) + 1), name, _uvarint(len(indexes) + 1), numbers, b"\0")
    return b"".join(parts)


# A steady producer writes the same few partition sets repeatedly. A frozenset caches its hash, and a copy of a dict
# asks no key for its own. The dicts here are never changed.
_cached_unmarked: Callable[[frozenset[TopicPartition]], dict[TopicPartition, None]] = lru_cache(maxsize=1024)(
    lambda partitions: dict.fromkeys(sorted(partitions))
)
encode_large = lru_cache(maxsize=CACHED_LARGE)(_encode_compact_partitions)


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_key(key: Buffer) -> str:
    """Returns the transactional id. Raises UnknownVersion."""
    from kafka_shim.cext.messages import decode
    from kafka_shim.protocol.records.transaction_log_key import TransactionLogKey

    (version,) = _SHORT.unpack_from(key)
    if version != KEY_VERSION:
        raise UnknownVersion(f"key version {version} is unknown")
    message: TransactionLogKey = decode(TransactionLogKey, 0, key, _SHORT.size)
    return message.transactional_id


def decode_value(transactional_id: str, value: Buffer) -> Transaction:
    """Returns the state as written. It does not contain the epoch before the last bump (B3). Raises UnknownVersion."""
    from kafka_shim.cext.messages import decode
    from kafka_shim.protocol.records.transaction_log_value import TransactionLogValue

    (version,) = _SHORT.unpack_from(value)
    if version not in VALUE_VERSIONS:
        raise UnknownVersion(f"value version {version} is unknown")
    message: TransactionLogValue = decode(TransactionLogValue, version, value, _SHORT.size)
    state = State(message.transaction_status)
    partitions = NO_PARTITIONS
    if state is not EMPTY and message.transaction_partitions:
        partitions = frozenset(
            (topic.topic, partition) for topic in message.transaction_partitions for partition in topic.partition_ids
        )
    return Transaction(
        transactional_id,
        message.producer_id,
        message.previous_producer_id,
        message.next_producer_id,
        message.producer_epoch,
        NO_PRODUCER_EPOCH,
        message.transaction_timeout_ms,
        state,
        partitions,
        message.transaction_start_timestamp_ms,
        message.transaction_last_update_timestamp_ms,
        message.client_transaction_version,
    )
