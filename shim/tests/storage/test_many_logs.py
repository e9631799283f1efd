"""The passes over the logs of a request do for each what is done for one, and what one log refuses is its own."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.cext.many_logs import PartitionBatch, Produced, are_plain, of_one_producer, refused, verify_each
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.produce_request import PartitionProduceData
from kafka_shim.protocol.messages.produce_response import PartitionProduceResponse
from kafka_shim.storage.log import PartitionLog
from kafka_shim.storage.plain_log import append_each
from kafka_shim.tests.appends import start_verification
from kafka_shim.tests.storage.conftest import NOW_MS, Disk, batch, end, put, records

MADE = Produced(PartitionProduceData, PartitionProduceResponse)


@pytest.fixture
def logs(make_disk: Callable[..., Disk]) -> list[PartitionLog]:
    """Three, of which each has a first batch, so that nothing is to decide about the next."""
    made = [make_disk().open() for _ in range(3)]
    for log in made:
        put(log, b"first", pid=1, seq=0)
    return made


def part_of(log: PartitionLog, data: bytearray | memoryview) -> PartitionBatch:
    part = PartitionBatch(PartitionProduceResponse(index=log.partition, base_offset=-7), data)
    part.log = log
    return part


def of_each(logs: list[PartitionLog], **fields: Any) -> list[PartitionBatch]:
    return [part_of(log, batch(b"second", pid=1, seq=1, **fields)) for log in logs]


def stored(logs: list[PartitionLog]) -> list[list[bytes | None]]:
    return [[value for _, value in records(log)] for log in logs]


def test_every_plain_batch_is_appended_and_answered(logs: list[PartitionLog]) -> None:
    parts = of_each(logs)
    left, size_bytes = append_each(MADE, parts, NOW_MS)
    assert left == []
    assert size_bytes == sum(len(part.records) for part in parts)
    assert [(part.answer.base_offset, part.answer.log_start_offset) for part in parts] == [(1, 0)] * 3
    assert stored(logs) == [[b"first", b"second"]] * 3


def test_what_is_to_be_decided_is_left_to_the_caller_untouched(logs: list[PartitionLog]) -> None:
    parts = of_each(logs)
    parts[0].records = batch(b"out of order", pid=1, seq=5)
    parts[1].error = KafkaError(ErrorCode.INVALID_TXN_STATE)
    left, _ = append_each(MADE, parts, NOW_MS)
    assert left == parts[:2]
    assert parts[0].error is None
    assert stored(logs) == [[b"first"], [b"first"], [b"first", b"second"]]
    parts[0].log = parts[2].log = None
    assert append_each(MADE, parts[::2], NOW_MS) == (parts[::2], 0)


def test_a_batch_that_a_thread_has_checked_is_left(logs: list[PartitionLog]) -> None:
    parts = of_each(logs)
    parts[1].checked = object()
    assert append_each(MADE, parts, NOW_MS)[0] == [parts[1]]


@pytest.mark.parametrize("failing", range(3))
def test_a_disk_that_refuses_one_batch_has_the_others(
    logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    from kafka_shim.cext.segment import append

    writes: list[int] = []

    def no_space(fd: int, buffers: Any) -> int:
        writes.append(fd)
        if len(writes) == failing + 1:
            raise OSError(errno.ENOSPC, "no space")
        return append(fd, buffers)

    monkeypatch.setattr("kafka_shim.cext.segment.append", no_space)
    parts = of_each(logs)
    left, _ = append_each(MADE, parts, NOW_MS)
    assert left == [parts[failing]] == refused(parts)
    assert isinstance(left[0].error, KafkaError)
    assert left[0].error.code is ErrorCode.KAFKA_STORAGE_ERROR
    expected = [[b"first", b"second"]] * 3
    expected[failing] = [b"first"]
    assert stored(logs) == expected
    assert logs[failing].producers.entries[1].last_sequence == 0


@pytest.mark.parametrize("failing", range(3))
def test_memory_that_ends_between_write_and_answer_takes_one_partition_offline(
    logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    from kafka_shim.cext.segment import append

    writes: list[int] = []

    def no_memory(fd: int, buffers: Any) -> int:
        writes.append(append(fd, buffers))
        if len(writes) == failing + 1:
            raise MemoryError
        return writes[-1]

    monkeypatch.setattr("kafka_shim.cext.segment.append", no_memory)
    parts = of_each(logs)
    left, _ = append_each(MADE, parts, NOW_MS)
    assert left == [parts[failing]]
    assert isinstance(left[0].error, KafkaError)
    assert left[0].error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [log.is_offline for log in logs] == [at == failing for at in range(3)]
    assert [log.log_end_offset for log in logs] == [1 if at == failing else 2 for at in range(3)]


def test_a_bug_in_one_log_is_noted_there(logs: list[PartitionLog]) -> None:
    def fail() -> None:
        logs[1].unsubscribe(fail)
        raise RuntimeError("a bug")

    logs[1].subscribe(fail)
    parts = of_each(logs)
    left, _ = append_each(MADE, parts, NOW_MS)
    assert left == [parts[1]]
    assert isinstance(left[0].error, RuntimeError)


def test_each_log_gives_a_guard_or_says_why_not(logs: list[PartitionLog]) -> None:
    put(logs[0], b"open", pid=2, epoch=4, seq=0, txn=True)
    put(logs[1], b"newer", pid=2, epoch=5, seq=0, txn=True)
    end(logs[1], 2, 5, commit=True)
    outcomes, unknown, refusals = verify_each([(log, 0) for log in logs], 2, 4, True, NOW_MS)
    assert outcomes[0] is None
    assert refusals == [outcomes[1]]
    assert isinstance(outcomes[1], KafkaError)
    assert outcomes[1].code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert unknown == [("t", 0)]
    assert outcomes[2] is start_verification(logs[2], 2, 0, 4, True)


def test_batches_of_two_producers_are_of_none(logs: list[PartitionLog]) -> None:
    mine = of_each(logs, txn=True)
    assert of_one_producer(mine) == mine
    without = part_of(logs[0], batch(b"", txn=True))
    assert of_one_producer([without, *mine]) == mine
    other = part_of(logs[0], batch(b"", pid=1, epoch=1, seq=0, txn=True))
    assert of_one_producer([*mine, other]) is None
    other.error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert of_one_producer([*mine, other]) == mine


def test_batches_that_may_take_long_are_not_plain(make_disk: Callable[..., Disk], logs: list[PartitionLog]) -> None:
    parts = of_each(logs)
    assert are_plain(parts)
    assert not are_plain([part_of(logs[0], batch(b"x" * 1000, codec=1))])
    gzip = make_disk({"compression.type": "gzip"}).open()
    put(gzip, b"first")
    assert not are_plain([*parts, part_of(gzip, batch(b"second"))])
    parts[0].log = None
    assert are_plain(parts)


def test_the_last_of_two_rows_of_one_partition_counts(logs: list[PartitionLog]) -> None:
    rows = [
        PartitionProduceData(index=index, records=data)
        for index, data in ((0, batch(b"a")), (1, batch(b"b")), (0, batch(b"c")), (2, None), (9, batch(b"d")))
    ]
    found: dict[tuple[Any, int], PartitionBatch] = {}
    logs[1].is_offline = True
    at = {("t", number): log for number, log in enumerate(logs)}
    left = MADE.locate(rows, "t", at, "t", found)
    assert list(found) == [("t", 1), ("t", 0), ("t", 2), ("t", 9)]
    assert [(part.answer.index, part.log is None, is_null) for part, is_null in left] == [
        (1, True, False),
        (2, False, True),
        (9, True, False),
    ]
    assert found["t", 0].records is rows[2].records
    assert found["t", 0].log is logs[0]
    by_id: dict[tuple[Any, int], PartitionBatch] = {}
    assert len(MADE.locate(rows[:1], bytes(16), at, None, by_id)) == 1
    MADE.locate(rows[:1], bytes(16), at, "t", by_id)
    assert by_id[bytes(16), 0].log is logs[0]
    with pytest.raises(TypeError):
        MADE.locate([PartitionProduceResponse()], "t", at, "t", found)
