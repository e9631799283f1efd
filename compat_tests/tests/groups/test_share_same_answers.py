"""Random requests of three share sessions are answered as Apache Kafka answers them (KIP-932)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kafka_shim.targets import Target
from kafka_shim.targets import make as start
from kafka_shim.targets.requests import create_topic, make, produce
from kafka_shim.targets.waiting import PATIENCE_S, right_answer
from kafka_shim.wire_client import Connection

SEEDS, STEPS = 3, 80
# No lock and no member's session ends meanwhile.
HOUR_MS = "3600000"
SETTINGS = {
    "group.share.max.record.lock.duration.ms": HOUR_MS,
    "group.share.record.lock.duration.ms": HOUR_MS,
    "group.share.max.session.timeout.ms": HOUR_MS,
    "group.share.session.timeout.ms": HOUR_MS,
    "group.share.delivery.count.limit": "2",
}
OPTIONS = {"share.auto.offset.reset": "earliest"}
ACCEPT, RELEASE, REJECT = 1, 2, 3
UNKNOWN_TYPE = 5
# How long a fetch waits that is to find nothing, and one that is to find what the shim's has found.
IN_VAIN_MS, FOUND_MS = 300, 60_000

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def shim() -> Iterator[Target]:
    with start("shim", SETTINGS) as started:
        yield started


@pytest.fixture(scope="module")
def kafka() -> Iterator[Target]:
    with start("kafka-native", SETTINGS) as started:
        yield started


class Sharer:
    """A share group's only partition on one broker. What it answers is without ids, so that two brokers' are equal."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._connection = Connection(bootstrap, timeout_s=3 * PATIENCE_S)
        self._name = name
        create_topic(self._connection, name)
        configs = [{"name": key, "config_operation": 0, "value": value} for key, value in OPTIONS.items()]
        group = {"resource_type": 32, "resource_name": name, "configs": configs}
        answer: Any = self._connection.request(make("IncrementalAlterConfigs", resources=[group]), 1)
        assert answer.responses[0].error_code == 0, answer.responses[0].error_message
        self._topic_id = self._join()

    def close(self) -> None:
        self._connection.close()

    def _join(self) -> bytes:
        """One member joins, so that the partition has a state. Returns the id of its topic."""
        epoch = 0

        def heartbeat() -> Any:
            nonlocal epoch
            self._connection.request(make("FindCoordinator", key_type=0, coordinator_keys=[self._name]), 4)
            names = None if epoch else [self._name]
            fields = {"group_id": self._name, "member_id": "m" * 22, "subscribed_topic_names": names}
            answer: Any = self._connection.request(make("ShareGroupHeartbeat", member_epoch=epoch, **fields), 1)
            if not answer.error_code:
                epoch = answer.member_epoch
            return answer

        joined = right_answer(heartbeat, lambda it: it.assignment and it.assignment.topic_partitions, "it is assigned")
        topic_id: bytes = joined.assignment.topic_partitions[0].topic_id
        return topic_id

    def ask(self, api: str, session: str, epoch: int, acks: list[Any], **fields: Any) -> tuple[Any, ...]:
        """Returns the error of the request, those of the partition, and what was acquired."""
        names = ("first_offset", "last_offset", "acknowledge_types")
        batches = [dict(zip(names, ack, strict=True)) for ack in acks]
        rows = [{"partition_index": 0, "acknowledgement_batches": batches}] if acks or epoch == 0 else []
        topics = [{"topic_id": self._topic_id, "partitions": rows}] if rows else []
        fields |= {"group_id": self._name, "member_id": session, "share_session_epoch": epoch, "topics": topics}
        answer: Any = self._connection.request(make(api, **fields), 2)
        told = [row for topic in answer.responses for row in topic.partitions]
        errors = [(row.error_code, getattr(row, "acknowledge_error_code", 0)) for row in told]
        acquired = [
            (batch.first_offset, batch.last_offset, batch.delivery_count)
            for row in told
            for batch in getattr(row, "acquired_records", ())
        ]
        return answer.error_code, errors, acquired

    def produce(self, count: int) -> int:
        answer: Any = self._connection.request(produce(self._name, 0, [(None, b"v")] * count), 9)
        offset: int = answer.responses[0].partition_responses[0].base_offset
        return offset


def test_random_requests_of_share_sessions(shim: Target, kafka: Target) -> None:
    run = os.urandom(3).hex()
    acquired = sum(_compare(shim, kafka, f"share-{run}-{seed}", Random(seed)) for seed in range(SEEDS))
    print(f"{acquired} batches acquired, no difference")
    assert acquired >= SEEDS * STEPS // 5


def _compare(shim: Target, kafka: Target, name: str, chance: Random) -> int:
    """Ask both the same. Returns how many batches of records were acquired."""
    ours = Sharer(shim.bootstrap, name)
    try:
        theirs = Sharer(kafka.bootstrap, name)
        try:
            return _converse(ours, theirs, chance)
        finally:
            theirs.close()
    finally:
        ours.close()


def _converse(ours: Sharer, theirs: Sharer, chance: Random) -> int:
    epochs = dict.fromkeys(("a" * 22, "b" * 22, "c" * 22), 0)
    held: dict[str, list[tuple[int, int]]] = {session: [] for session in epochs}
    total = 0
    for step in range(STEPS):
        session = chance.choice(list(epochs))
        what = chance.choices(["produce", "ShareFetch", "ShareAcknowledge", "wrong"], [2, 5, 5, 1])[0]
        if what == "produce":
            count = chance.randint(1, 12)
            assert theirs.produce(count) == ours.produce(count), step
            continue
        acks = _acks(held[session], chance, may_release=what == "ShareAcknowledge")
        epoch, fields = epochs[session], {}
        if what == "wrong":
            what = "ShareAcknowledge"
            first = chance.randrange(60)
            acks = [(first, first + chance.randrange(4), [chance.choice((ACCEPT, REJECT, UNKNOWN_TYPE))])]
            epoch = chance.choice((epoch, 0, 99))
        if what == "ShareFetch":
            fields = {"max_records": chance.choice((1, 3, 10, 100)), "batch_size": chance.choice((1, 2, 10))}
            fields |= {"share_acquire_mode": chance.randrange(2), "min_bytes": 1, "max_bytes": 1 << 20}
            fields["max_wait_ms"] = IN_VAIN_MS
        told = ours.ask(what, session, epoch, acks, **fields)
        if told[2]:
            fields["max_wait_ms"] = FOUND_MS
        assert theirs.ask(what, session, epoch, acks, **fields) == told, (step, what, session, epoch, acks, fields)
        if not told[0]:
            epochs[session] += 1
        held[session] += [(first, last) for first, last, _ in told[2]]
        total += len(told[2])
    return total


def _acks(held: list[tuple[int, int]], chance: Random, *, may_release: bool) -> list[Any]:
    """Take some of the ranges, or parts of them. A fetch releases nothing: Kafka writes that while it looks for records
    already, so whether it finds these is a matter of time."""
    acks = []
    for first, last in chance.sample(held, chance.randint(0, min(len(held), 3))):
        held.remove((first, last))
        start = chance.randint(first, last)
        end = chance.randint(start, last)
        held += [part for part in ((first, start - 1), (end + 1, last)) if part[0] <= part[1]]
        kinds = (ACCEPT, RELEASE, RELEASE, REJECT) if may_release else (ACCEPT, REJECT)
        count = 1 if chance.random() < 0.5 else end - start + 1
        acks.append((start, end, [chance.choice(kinds) for _ in range(count)]))
    return sorted(acks)
