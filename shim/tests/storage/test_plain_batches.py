"""Nearly every batch is checked and appended by a fast path in `cext`. It must do what the slow path does."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.cext.batch import scan
from kafka_shim.cext.log_base import Appended
from kafka_shim.cext.many_logs import PartitionBatch
from kafka_shim.cext.records import build, scan_plain
from kafka_shim.cext.tests import oracle
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.errors import KafkaError
from kafka_shim.storage import validation
from kafka_shim.storage.index import OFFSET_ENTRY, WRITE_CHUNK_BYTES
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.plain_log import PlainLog
from kafka_shim.storage.producers import ProducerEntry
from kafka_shim.storage.segments import Segment
from kafka_shim.tests import appends
from kafka_shim.tests.appends import append_as_client, start_verification
from kafka_shim.tests.storage.conftest import NOW_MS, PRODUCE, Disk, batch, put

LIMIT_MS = 1000
TOPICS = [
    TopicConfig(
        BrokerConfig(),
        {
            "message.timestamp.before.max.ms": str(LIMIT_MS),
            "message.timestamp.after.max.ms": str(LIMIT_MS),
            "max.message.bytes": "175",
            **more,
        },
    )
    for more in ({}, {"cleanup.policy": "compact"}, {"message.timestamp.type": "LogAppendTime"})
]
KEYS, VALUES = (b"k", None), (b"", b"value", None, b"x" * 100)
DELTAS_MS = (0, 1, -1, LIMIT_MS, LIMIT_MS + 1, -LIMIT_MS, -LIMIT_MS - 1)
# What a header may have in place of what a plain batch has.
FIELDS: dict[str, tuple[int, ...]] = {
    "attributes": (0x10, 0x40, 1, 8, 0x20, 7),
    "base_offset": (1, -1),
    "leader_epoch": (5,),
    "last_offset_delta": (-1, 0, 1, 2, 3),
    "base_timestamp": (-1, 0, NOW_MS - LIMIT_MS, NOW_MS + LIMIT_MS),
    "producer_id": (7,),
    "base_sequence": (0, 5),
    "record_count": (-1, 0, 1, 2, 4),
    "magic": (1, 3),
    "max_timestamp": (-1, NOW_MS + 1),
}
PLAIN = (b"k", b"value", 0)
RECORD = st.tuples(*(st.sampled_from(choices) for choices in (KEYS, VALUES, DELTAS_MS)))
HEADER = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()})
# (position, value, whether length and CRC are made right again)
CHANGE = st.none() | st.tuples(st.integers(0, 150), st.integers(0, 255), st.booleans())


def made(records: list[Any], header: dict[str, Any], change: tuple[int, int, bool] | None, end: bytes) -> bytearray:
    count = header.get("record_count", len(records))
    fields = {"base_timestamp": NOW_MS, **{name: value for name, value in header.items() if name != "record_count"}}
    times = [fields["base_timestamp"] + delta for _, _, delta in records]
    fields = {"max_timestamp": max(times, default=-1), "last_offset_delta": max(count - 1, 0), **fields}
    payload = b"".join(oracle.write_record(at, delta, key, value) for at, (key, value, delta) in enumerate(records))
    data = bytearray(oracle.write_batch(payload, count, **fields))
    if change is not None:
        at, byte, is_sealed = change
        data[at % len(data)] = byte
        if is_sealed:
            data = oracle.seal(data)
    return data + end


def told(check: Callable[[], tuple[Any, int]]) -> tuple[Any, ...]:
    try:
        batch, max_timestamp = check()
    except KafkaError as error:
        return type(error), error.code, error.message, getattr(error, "record_errors", None)
    return repr(batch), max_timestamp


def by_the_long_way(data: bytearray, config: TopicConfig) -> tuple[Any, int]:
    batch = validation.read_header(data, "t-0", PRODUCE, config)
    return batch, validation.check_records(data, batch, "t-0", NOW_MS, config).max_timestamp


def compare(data: bytearray, config: TopicConfig) -> bool:
    """Returns whether the batch is a plain one."""
    assert told(lambda: validation.check(data, "t-0", PRODUCE, NOW_MS, config)) == told(
        lambda: by_the_long_way(data, config)
    )
    limits = config.max_message_bytes, config.compact, NOW_MS, LIMIT_MS, LIMIT_MS
    return scan_plain(data, *limits) is not None


def test_each_deviation_from_a_plain_batch_is_judged_as_by_the_long_way():
    records = list(product(KEYS, VALUES, DELTAS_MS))
    batches = [
        ([PLAIN] * count, {name: value}) for name, values in FIELDS.items() for value in values for count in (1, 3)
    ]
    batches += [(some, {}) for one in records for some in ([one], [PLAIN, one], [one, PLAIN])]
    ways = Counter(compare(made(*each, None, b""), config) for each in batches for config in TOPICS)
    assert ways[True] > 100
    assert ways[False] > 100


@given(st.lists(RECORD, max_size=3), HEADER, CHANGE, st.sampled_from([b"", b"", b"\0"]), st.sampled_from(TOPICS))
def test_a_batch_is_judged_as_by_the_long_way(
    records: list[Any], header: dict[str, Any], change: tuple[int, int, bool] | None, end: bytes, config: TopicConfig
):
    compare(made(records, header, change, end), config)


@given(HEADER)
def test_the_producer_of_a_transaction_is_that_of_the_header(header: dict[str, Any]):
    data = made([PLAIN], {**header, "record_count": 1, "last_offset_delta": 0, "magic": 2}, None, b"")
    data[22] &= ~7  # no codec: `scan` refuses an unknown one
    batch = scan(oracle.seal(data))
    of_it = PartitionBatch(None, data)
    assert of_it.is_transactional == batch.is_transactional
    if batch.is_transactional:
        found = of_it.producer_id, of_it.producer_epoch, of_it.base_sequence
        assert found == (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    else:
        assert of_it.producer_id == -1


@pytest.mark.parametrize("seed", range(3))
def test_the_files_of_a_partition_are_those_of_the_long_way(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, seed: int
):
    """Segments, indexes and snapshots, with segments that are full by size, by age and by their indexes, and a stop in
    the middle, after which the facts about the last segment are in the files alone."""
    config = {
        "segment.bytes": "4000",
        "segment.ms": "5000",
        "segment.index.bytes": "60",
        "index.interval.bytes": "500",
        "message.timestamp.after.max.ms": "1000000",
    }
    ways: Counter[tuple[str, bool]] = Counter()
    left = []
    for is_short in (True, False):
        choose_way(monkeypatch, is_short, ways)
        disk, chance = make_disk(config), random.Random(seed)
        answers = []
        for _ in range(2):
            log = disk.open()
            for number in range(150):
                time_ms = NOW_MS + 40 * number + chance.choice([0, 0, -90, 3000])
                answer = put(log, b"v" * chance.randrange(150), timestamp=time_ms, now_ms=NOW_MS + 40 * number)
                answers.append((answer.base_offset, answer.last_offset, answer.append_time_ms))
            answers.append([(each.base_offset, each.size_bytes, each.max_timestamp()) for each in log.segments])
            disk.stop()
        left.append((answers, {path.name: path.read_bytes() for path in disk.partition.iterdir()}))
    assert left[0] == left[1]
    assert sum(name.endswith(".log") for name in left[0][1]) > 5
    assert ways["append_plain", True] > 100
    assert ways["append_plain", False] > 10


def test_entries_of_indexes_are_stored_in_the_chunks_of_the_long_way(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch
):
    left = []
    for is_short in (True, False):
        choose_way(monkeypatch, is_short, Counter())
        log, chance = make_disk({"index.interval.bytes": "0"}).open(), random.Random(1)
        for number in range(WRITE_CHUNK_BYTES // OFFSET_ENTRY.size + 10):
            put(log, b"v", timestamp=NOW_MS + chance.randrange(number + 1), now_ms=NOW_MS + number)
        (segment,) = log.segments
        indexes = segment.offset_index, segment.time_index
        left.append([(bytes(index.stored()), bytes(index.tail)) for index in indexes])
    assert left[0] == left[1]
    (stored, tail), (_, times) = left[0]
    assert len(stored) == WRITE_CHUNK_BYTES
    assert tail
    assert times


WAYS: dict[str, object] = {"append_plain": appends, "append_own": PlainLog, "mark_plain": PlainLog}
# Of `Appended`.
RESULT = ("base_offset", "last_offset", "append_time_ms", "log_start_offset", "duplicate")


def choose_way(monkeypatch: pytest.MonkeyPatch, is_short: bool, ways: Counter[tuple[str, bool]]) -> None:
    """Have logs take the fast path and count in `ways` where they could, or take the slow path always."""
    monkeypatch.undo()

    def counted(owner: object, name: str) -> Callable[..., Appended | None]:
        right = getattr(owner, name)

        def way(log: PlainLog, *arguments: Any) -> Appended | None:
            appended: Appended | None = right(log, *arguments)
            ways[name, appended is not None] += 1
            return appended

        return way

    for name, owner in WAYS.items():
        monkeypatch.setattr(owner, name, counted(owner, name) if is_short else lambda *arguments: None)
    if not is_short:
        monkeypatch.setattr(Segment, "append_plain", lambda *arguments: False)


def outcome(append: Callable[[], Appended]) -> tuple[Any, ...]:
    try:
        appended = append()
    except KafkaError as error:
        return error.code, getattr(error, "reason", error.message), getattr(error, "record_errors", None)
    if appended.flushed is not None:
        appended.flushed.result()
    fields = (getattr(appended, name) for name in RESULT)
    return (*fields, appended.flushed is not None)


def something(log: PartitionLog, chance: random.Random, now_ms: int) -> tuple[Any, ...]:
    """What a producer or a coordinator may send next: mostly right, and wrong in every field now and then."""

    def nearly(right: int) -> int:
        return right + chance.choice([0] * 12 + [1, -1, 2])

    producer_id = chance.choice([-1, 1, 1, 2, 3])
    entry = log.producers.entries.get(producer_id, ProducerEntry(producer_id, 0, 0))
    if producer_id > 0 and chance.random() < 0.3:
        version = chance.choice([0, 2, 2])
        epoch = nearly(max(entry.epoch, 0) + (version == 2))
        return outcome(
            lambda: log.append_marker(
                producer_id, epoch, nearly(max(entry.coordinator_epoch, 0)), chance.random() < 0.8, version, now_ms
            )
        )
    epoch, sequence = -1, -1
    is_transactional = chance.random() < 0.7
    if producer_id > 0:
        epoch = max(nearly(max(entry.epoch, 0)), 0)
        sequence = max(nearly(entry.last_sequence + 1 if epoch == entry.epoch else 0), 0)
        if chance.random() < 0.9:
            is_transactional = (is_transactional and chance.random() < 0.5) or entry.txn_first_offset >= 0
    guard = None
    if is_transactional and producer_id > 0 and chance.random() < 0.9:
        try:
            guard = start_verification(log, producer_id, nearly(sequence), epoch, chance.random() < 0.7)
        except KafkaError as error:
            return error.code, str(error)
        if chance.random() < 0.05:
            return ("verified",)
    values = [b"v" * chance.randrange(40) for _ in range(chance.choice([1, 1, 3]))]
    if chance.random() < 0.3:
        entries = [(chance.choice([b"k", None]), value, now_ms + chance.choice([0, -1, 9]), ()) for value in values]
        own = build(
            entries,
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional=is_transactional,
            codec=chance.choice([0] * 9 + [1]),
            timestamp_type=chance.choice([0] * 9 + [1]),
        )
        is_limited = chance.random() < 0.8
        return outcome(lambda: log.append_batch(own, now_ms=now_ms, verification=guard, is_limited=is_limited))
    data = batch(
        *values,
        key=chance.choice([b"k"] * 9 + [None]),
        timestamp=now_ms + chance.choice([0] * 20 + [-1, 10**9, -2 * now_ms]),
        pid=producer_id,
        epoch=epoch,
        seq=sequence,
        txn=is_transactional,
        codec=chance.choice([0] * 9 + [1]),
    )
    records = chance.choice([memoryview(data), memoryview(data), bytes(data), data + b"\0"])
    return outcome(lambda: append_as_client(log, records, now_ms=now_ms, version=PRODUCE, verification=guard))


def state(log: PartitionLog) -> tuple[Any, ...]:
    entries = {
        producer_id: [*(getattr(entry, name) for name in ENTRY), list(entry.batches)]
        for producer_id, entry in log.producers.entries.items()
    }
    guards = {
        producer_id: (guard.lowest_sequence, guard.producer_epoch)
        for producer_id, guard in log.producers._verifications.items()
    }
    return entries, guards, log.producers.open_transactions(), tuple(getattr(log, name) for name in LOG)


ENTRY = ("producer_id", "epoch", "coordinator_epoch", "last_timestamp_ms", "txn_first_offset")
LOG = ("log_end_offset", "last_stable_offset", "appended_bytes", "appended_records", "is_offline", "unflushed_since_ms")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"segment.bytes": "3000"},
        {"cleanup.policy": "compact"},
        {"message.timestamp.type": "LogAppendTime"},
        {"compression.type": "gzip"},
        {"flush.messages": "3"},
        {"max.message.bytes": "120"},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_answers_states_and_files_of_producers_are_those_of_the_long_way(
    make_disk: Callable[..., Disk], monkeypatch: pytest.MonkeyPatch, config: dict[str, str], seed: int
):
    """Any order of batches and markers of several producers, with fields that are right or not, readers that wait,
    and writes that fail."""
    ways: Counter[tuple[str, bool]] = Counter()
    left = []
    for is_short in (True, False):
        choose_way(monkeypatch, is_short, ways)
        disk, chance = make_disk(config), random.Random(seed)
        log = disk.open()
        woken: list[int] = []
        log.subscribe(lambda log=log, woken=woken: woken.append(log.log_end_offset))
        answers = []
        for number in range(600):
            with monkeypatch.context() as patch:
                if chance.random() < 0.03:
                    patch.setattr("kafka_shim.cext.segment.append", no_space)
                answers.append(something(log, chance, NOW_MS + number))
            answers.append(state(log))
        answers.append(woken)
        disk.stop()
        files = {path.name: path.read_bytes() for path in disk.partition.iterdir()}
        left.append((answers, files))
    assert left[0] == left[1]
    taken = {name for name, is_taken in ways if is_taken and ways[name, is_taken] > 5}
    # What the broker builds is stored as it is, with the times that it has; a marker says whose time its topic has.
    own = list(WAYS)[1:]
    others = {"message.timestamp.type": own[:1], "compression.type": own, "flush.messages": ()}
    assert taken == set(next((others[name] for name in config if name in others), WAYS))
    assert min(ways[name, False] for name in WAYS) > 5


def no_space(fd: int, buffers: Any) -> int:
    raise OSError(errno.ENOSPC, "no space")
