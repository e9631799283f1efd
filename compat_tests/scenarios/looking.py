"""Rows B17-B19, B22: topics that go and grow, compaction, the look-ups, the states of stock producers."""

from __future__ import annotations

import time

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, Producer, ScenarioClient, name_of, records_of, visible
from kafka_shim.compat.scenarios.transactions import state_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import fetch
from kafka_shim.targets.waiting import PATIENCE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How far ahead of the clock the records of a compacted topic are: more than a slow run takes, less than the hour of
# `log.message.timestamp.after.max.ms`.
AHEAD_MS = 600_000
# For a cleaner that looks often.
OFTEN = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}


def ahead_ms() -> int:
    """Returns the time of the first record of a compacted topic. Markers have the clock's time: one that is later than
    a record keeps the next record in its segment.
    """
    return time.time_ns() // 1_000_000 + AHEAD_MS


@scenario("B17")
def a_topic_is_deleted_in_a_transaction(t: ScenarioClient) -> None:
    """Its partition is dropped and the rest completes."""
    gone, kept = t.topic("gone"), t.topic("kept")
    p = Producer(t, "x")
    p.send(gone, b"gone")
    p.send(kept, b"kept")
    answer = t.quietly("DeleteTopics", 5, topic_names=[gone], timeout_ms=10_000)
    t.error(answer.responses[0], NONE)
    t.wait(lambda: not t.serves(gone, 0), "the topic is gone")
    p.end(commit=True)
    t.same(t.values(kept, committed=True), [b"kept"], "the rest")
    t.same(state_of(t, p.transactional_id), "CompleteCommit", "state")


@scenario("B17")
def partitions_are_added_in_a_transaction(t: ScenarioClient) -> None:
    """A partition that the topic gets while the transaction is open can be written in it."""
    topic = t.topic()
    p = Producer(t, "x")
    p.send(topic, b"old")
    rows = [{"name": topic, "count": 2, "assignments": None}]
    t.error(t.quietly("CreatePartitions", 2, topics=rows, timeout_ms=10_000).results[0], NONE)
    t.wait(lambda: t.serves(topic, 1), "the new partition")
    p.send(topic, b"new", partition=1)
    p.end(commit=True)
    t.same([t.values(topic, partition=index, committed=True) for index in range(2)], [[b"old"], [b"new"]], "values")


def whole(t: ScenarioClient, topic: str, *, committed: bool = False) -> list[bytes]:
    """The values of all segments: a fetch ends where its segment does."""
    values: list[bytes] = []
    offset = 0
    while True:
        part = t.send(fetch(topic, 0, offset, isolation_level=int(committed)), 12).responses[0].partitions[0]
        found = records_of(part.records or b"")
        if not found:
            return values
        values += visible(part, committed=committed)
        offset = found[-1][1].next_offset


@scenario("B18", settings=OFTEN, needs=Power.SETTINGS)
def compaction_of_transactions(t: ScenarioClient) -> None:
    """Aborted data goes, the newest value of a key stays, nothing at or above the LSO is touched, and the last batch of
    an active id keeps its sequence and epoch."""
    options = {
        "cleanup_policy": "compact",
        "segment_ms": "200",
        "min_cleanable_dirty_ratio": "0.01",
        "delete_retention_ms": "0",
    }
    now_ms = ahead_ms()
    topic = t.topic("compact", 1, **options)
    p = Producer(t, "x")
    idempotent = Producer(t)

    def keyed(producer: Producer, key: bytes, value: bytes, age: int, **more: Any) -> None:
        producer.send(topic, value, key=key, timestamp_ms=now_ms + age, **more)

    keyed(idempotent, b"a", b"old", 0)
    keyed(p, b"b", b"aborted", 500)
    p.end(commit=False)
    keyed(p, b"c", b"committed", 800)
    p.end(commit=True)
    keyed(idempotent, b"a", b"new", 1000)
    keyed(p, b"open", b"open", 2000)
    keyed(idempotent, b"a", b"newest", 4000)
    t.produce(topic, [b"roll"], key=b"roll", timestamp_ms=now_ms + 8000)

    def gone() -> bool:
        return not {b"old", b"aborted"} & set(whole(t, topic))

    t.wait(gone, "the cleaner has been there")
    values = whole(t, topic)
    for value in (b"committed", b"new", b"open", b"newest", b"roll"):
        t.same(value in values, True, f"{value!r} is there")
    t.same(whole(t, topic, committed=True), [b"committed", b"new"], "read_committed")
    row = {"name": topic, "partition_indexes": [0]}
    answer = t.ask("DescribeProducers", 0, topics=[row])
    sequences = {each.producer_id: each.last_sequence for each in answer.topics[0].partitions[0].active_producers}
    t.same(sequences[idempotent.id], 2, "the last sequence of the idempotent producer")
    keyed(idempotent, b"a", b"after", 8100)
    p.end(commit=True)


@scenario("B19")
def describe_transactions(t: ScenarioClient) -> None:
    """DescribeTransactions v0: what there is, TRANSACTIONAL_ID_NOT_FOUND, and INVALID_REQUEST for an empty id."""
    topic = t.topic(partitions=2)
    p = Producer(t, "x")
    p.send(topic, b"a")
    p.send(topic, b"b", partition=1)
    answer = t.ask("DescribeTransactions", 0, transactional_ids=[p.transactional_id, t.name("nobody"), ""])
    errors = {row.transactional_id: name_of(row.error_code) for row in answer.transaction_states}
    wanted = {p.transactional_id: NONE, t.name("nobody"): "TRANSACTIONAL_ID_NOT_FOUND", "": "INVALID_REQUEST"}
    t.same(errors, wanted, "errors")
    p.end(commit=True)
    t.ask("DescribeTransactions", 0, transactional_ids=[p.transactional_id])
    t.ask("DescribeTransactions", 0, transactional_ids=[])


@scenario("B19")
def describe_producers(t: ScenarioClient) -> None:
    """DescribeProducers v0: sequences, epochs, the start of an open transaction; unknown partitions."""
    topic = t.topic()
    idempotent, p = Producer(t), Producer(t, "x")
    idempotent.send(topic, b"1", b"2")
    p.send(topic, b"3")
    rows = [{"name": topic, "partition_indexes": [0, 7]}, {"name": t.name("absent"), "partition_indexes": [0]}]
    answer = t.ask("DescribeProducers", 0, topics=rows)
    parts = {
        (topic_row.name, part.partition_index): part for topic_row in answer.topics for part in topic_row.partitions
    }
    t.error(parts[(topic, 7)], "UNKNOWN_TOPIC_OR_PARTITION")
    found = {each.producer_id: each for each in parts[(topic, 0)].active_producers}
    t.same(found[idempotent.id].last_sequence, 1, "last sequence")
    t.same(found[p.id].current_txn_start_offset, 2, "start of the open transaction")
    p.end(commit=False)
    t.ask("DescribeProducers", 0, topics=[{"name": topic, "partition_indexes": [0]}])


@scenario("B19")
def list_transactions(t: ScenarioClient) -> None:
    """ListTransactions v0-2: filters by state, id, duration and pattern; unknown states are told back."""
    topic = t.topic()
    ongoing, empty, done = Producer(t, "ongoing"), Producer(t, "empty"), Producer(t, "done")
    ongoing.send(topic, b"a")
    done.send(topic, b"b")
    done.end(commit=True)
    mine = [ongoing.id, empty.id, done.id]

    def listed(version: int, **filters: Any) -> dict[str, str]:
        answer = t.ask("ListTransactions", version, producer_id_filters=mine, **filters)
        if answer.error_code:
            return {"error": name_of(answer.error_code)}
        return {row.transactional_id.split("-")[0]: row.transaction_state for row in answer.transaction_states}

    everything = {"ongoing": "Ongoing", "empty": "Empty", "done": "CompleteCommit"}
    for version in range(3):
        t.same(listed(version), everything, "all")
        t.same(listed(version, state_filters=["Ongoing"]), {"ongoing": "Ongoing"}, "ongoing")
        t.same(listed(version, state_filters=["Ongoing", "Nonsense"]), {"ongoing": "Ongoing"}, "an unknown state")
    for version in (1, 2):
        t.same(listed(version, duration_filter=0), everything, "a duration of 0")
        t.same("ongoing" in listed(version, duration_filter=3_600_000), False, "an hour")
    t.same(listed(2, transactional_id_pattern="on.*" + t.name("")), {"ongoing": "Ongoing"}, "a pattern")
    t.same(listed(2, transactional_id_pattern="on"), {}, "the whole string must match")
    t.same(listed(2, transactional_id_pattern="("), {"error": "INVALID_REGULAR_EXPRESSION"}, "a bad one")
    ongoing.end(commit=False)


@scenario("B22", client="confluent-kafka")
def a_stock_producer_through_its_states(t: ScenarioClient) -> None:
    """librdkafka: ready, in a transaction, committed, aborted; the older of two instances ends in a fatal error."""
    from confluent_kafka import KafkaException
    from confluent_kafka import Producer as Client

    from kafka_shim.compat.apps.confluent import QUIET

    topic, transactional_id = t.topic(), t.name("stock")
    options = {"bootstrap.servers": t.target.bootstrap, "transactional.id": transactional_id, "log_level": 0}
    told: list[str] = []

    def attempt(what: str, act: Any) -> None:
        try:
            act()
            told.append(f"{what}: done")
        except KafkaException as error:
            cause = error.args[0]
            kind = "fatal" if cause.fatal() else "abort" if cause.txn_requires_abort() else "retriable"
            told.append(f"{what}: {kind} {cause.name()}")

    first = Client(options, logger=QUIET)
    attempt("begin before init", first.begin_transaction)
    attempt("init", lambda: first.init_transactions(PATIENCE_S))
    attempt("commit before begin", lambda: first.commit_transaction(PATIENCE_S))
    for commit in (True, False):
        attempt("begin", first.begin_transaction)
        first.produce(topic, f"{commit}", partition=0)
        attempt("end", lambda: first.commit_transaction(PATIENCE_S) if commit else first.abort_transaction(PATIENCE_S))  # noqa: B023
    attempt("begin", first.begin_transaction)
    first.produce(topic, "fenced", partition=0)
    first.flush(PATIENCE_S)
    second = Client(options, logger=QUIET)
    attempt("the second's init", lambda: second.init_transactions(PATIENCE_S))
    attempt("the first's commit", lambda: first.commit_transaction(PATIENCE_S))
    attempt("the first's abort", lambda: first.abort_transaction(PATIENCE_S))
    attempt("the second's begin", second.begin_transaction)
    second.produce(topic, "second", partition=0)
    attempt("the second's commit", lambda: second.commit_transaction(PATIENCE_S))
    t.note("librdkafka", "states", told)
    t.settle(transactional_id)
    t.same(t.values(topic, committed=True), [b"True", b"second"], "committed")
    t.same(told[-4].split(": ")[1].split()[0], "fatal", "the first is fenced")
