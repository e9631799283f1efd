"""A workload to audit: transactional writers and a reader that log their operations, and planted anomalies."""

from __future__ import annotations

from typing import Any

from kafka_shim.history import anomalies as names
from kafka_shim.history import cycles
from kafka_shim.history.operations import FAIL, OK, POLL, SEND, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_shim.spark.audit.history import HistoryLog

WRITERS = 4
ABORT_EVERY = 9
TRANSACTION_RECORDS = 250
POLL_RECORDS = 1_000
# Process numbers of planted operations start here.
PLANTED_PROCESSES = 1_000_000


def write(bootstrap: str, topic: str, partitions: int, count: int, log: HistoryLog) -> int:
    """Writes ``count`` records in transactions over all partitions, in turn by several writers, some aborted; returns
    how many were committed."""
    from kafka_shim.spark.plain_clients import producer

    writers = [producer(bootstrap, f"{topic}-writer-{number}") for number in range(WRITERS)]
    committed = 0
    for turn, first in enumerate(range(0, count, TRANSACTION_RECORDS)):
        ops: list[list[Any]] = []
        writer = writers[turn % WRITERS]
        writer.begin_transaction()
        for number in range(first, min(first + TRANSACTION_RECORDS, count)):
            # Stretches of a partition, as keys that stick to one make them.
            partition = number // 50 % partitions
            op: list[Any] = [SEND, f"{topic}-{partition}", None, f"v{number}"]
            ops.append(op)
            writer.produce(topic, op[3], partition=partition, on_delivery=_offset_into(op))
        writer.flush(60)
        if turn % ABORT_EVERY == ABORT_EVERY - 1:
            writer.abort_transaction(60)
            log.add(Operation(0, turn % WRITERS, FAIL, ops))
        else:
            writer.commit_transaction(60)
            log.add(Operation(0, turn % WRITERS, OK, ops))
            committed += len(ops)
    return committed


def _offset_into(op: list[Any]) -> Callable[[Any, Any], None]:
    def delivered(error: Any, message: Any) -> None:
        if error is None:
            op[2] = message.offset()

    return delivered


def read(bootstrap: str, topic: str, expected: int, log: HistoryLog) -> int:
    """Reads every committed record with one process and logs the polls; returns how many."""
    from confluent_kafka import Consumer, TopicPartition

    from kafka_shim.spark.plain_clients import value_of

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "log_level": 2,
        }
    )
    found = 0
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        while found < expected:
            records: dict[str, list[list[Any]]] = {}
            messages = consumer.consume(POLL_RECORDS, timeout=30)
            if not messages:
                raise RuntimeError(f"nothing more came after {found:,} of {expected:,} records")
            for message in messages:
                if message.error():
                    raise RuntimeError(str(message.error()))
                where = f"{topic}-{message.partition()}"
                records.setdefault(where, []).append([message.offset(), value_of(message).decode()])
            found += len(messages)
            log.add(Operation(0, WRITERS, OK, [[POLL, records]]))
    finally:
        consumer.close()
    return found


def planted(times: int = 1) -> Iterator[Operation]:
    """Yields operations that show every class of the checker, each at least ``times`` times, on separate keys."""
    for turn in range(times):
        for number, (name, scene) in enumerate(SCENES.items()):
            processes = PLANTED_PROCESSES + 100 * (turn * len(SCENES) + number)
            key = f"planted-{name}-{turn}"
            for actor, outcome, ops in scene(key):
                yield Operation(0, processes + actor, outcome, ops)


Scene = list[tuple[int, str, list[list[Any]]]]


def _writes(key: str, *values: tuple[int, str]) -> list[list[Any]]:
    return [[SEND, key, offset, value] for offset, value in values]


def _reads(key: str, *values: tuple[int, str]) -> list[Any]:
    return [POLL, {key: [list(each) for each in values]}]


A, B, C = (0, "a"), (1, "b"), (2, "c")

# Class -> what three actors (0 and 2 write, 1 and 3 read) did.
SCENES: dict[str, Callable[[str], Scene]] = {
    names.LOST_WRITE: lambda k: [(0, OK, _writes(k, A, B)), (1, OK, [_reads(k, B)])],
    names.UNSEEN: lambda k: [(0, OK, _writes(k, A))],
    names.ABORTED_READ: lambda k: [(0, FAIL, [[SEND, k, None, "a"]]), (1, OK, [_reads(k, A)])],
    names.PRECOMMITTED_READ: lambda k: [(0, OK, [*_writes(k, A), _reads(k, A)])],
    names.INCONSISTENT_OFFSETS: lambda k: [
        (0, OK, _writes(k, A)),
        (1, OK, [_reads(k, A)]),
        (3, OK, [_reads(k, (0, "other"))]),
    ],
    names.DUPLICATE: lambda k: [(0, OK, _writes(k, A)), (1, OK, [_reads(k, A, (1, "a"))])],
    names.POLL_SKIP: lambda k: [
        (0, OK, _writes(k, A, B, C)),
        (1, OK, [_reads(k, A)]),
        (1, OK, [_reads(k, C)]),
        (3, OK, [_reads(k, A, B, C)]),
    ],
    names.INT_POLL_SKIP: lambda k: [
        (0, OK, _writes(k, A, B, C)),
        (1, OK, [_reads(k, A, C)]),
        (3, OK, [_reads(k, A, B, C)]),
    ],
    names.NONMONOTONIC_POLL: lambda k: [
        (0, OK, _writes(k, A, B)),
        (1, OK, [_reads(k, A, B)]),
        (1, OK, [_reads(k, A)]),
    ],
    names.INT_NONMONOTONIC_POLL: lambda k: [(0, OK, _writes(k, A, B)), (1, OK, [_reads(k, B, A)])],
    names.NONMONOTONIC_SEND: lambda k: [
        (0, OK, _writes(k, B)),
        (0, OK, _writes(k, A)),
        (1, OK, [_reads(k, A, B)]),
    ],
    names.INT_NONMONOTONIC_SEND: lambda k: [(0, OK, _writes(k, B, A)), (1, OK, [_reads(k, A, B)])],
    names.INT_SEND_SKIP: lambda k: [
        (0, OK, _writes(k, A, C)),
        (2, OK, _writes(k, B)),
        (1, OK, [_reads(k, A, B, C)]),
    ],
    cycles.G0: lambda k: [
        (0, OK, [*_writes(k, A), *_writes(f"{k}-2", (1, "d"))]),
        (2, OK, [*_writes(k, B), *_writes(f"{k}-2", (0, "e"))]),
        (1, OK, [_reads(k, A, B), _reads(f"{k}-2", (0, "e"), (1, "d"))]),
    ],
    cycles.G1C: lambda k: [
        (0, OK, [*_writes(k, A), _reads(f"{k}-2", (0, "d"))]),
        (2, OK, [*_writes(f"{k}-2", (0, "d")), _reads(k, A)]),
    ],
}
