"""An incremental fetch reads only the partitions that may have news, and gives what a fetch of all of them gives."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.api import TABLE, fetch_reads
from kafka_shim.api.fetch_evictions import EVICTABLE_AFTER_MS
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.fetch_request import ForgottenTopic
from kafka_shim.security.acl_spec import parse_acl
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce, size_of
from kafka_shim.wire_client import Connection

MANY = 200


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that the handler has read, one number each. It has all requests."""
    if not TABLE[1].is_loaded:
        TABLE[1].load()
    monkeypatch.setattr(TABLE[1], "plain", None)
    seen: list[int] = []
    read_entry = fetch_reads._read_entry

    def counting(context: Any, request: Any, entry: Any, *rest: Any) -> None:
        seen.append(entry.asked.partition)
        read_entry(context, request, entry, *rest)

    monkeypatch.setattr(fetch_reads, "_read_entry", counting)
    return seen


class Reader:
    """A fetch session of one client."""

    def __init__(self, client: Connection, wanted: dict[tuple[str | bytes, int], int], **how: Any) -> None:
        self._client = client
        self._how = how
        self._epoch = 1
        self.full = client.request(fetch_request(wanted, session_id=0, session_epoch=0, **how), 12)
        assert self.full.session_id > 0

    def request(self, moved: dict[tuple[str | bytes, int], int], **how: Any) -> Any:
        session_id = self.full.session_id
        request = fetch_request(moved, session_id=session_id, session_epoch=self._epoch, **self._how | how)
        self._epoch += 1
        return request

    def fetch(self, moved: dict[tuple[str | bytes, int], int] | None = None, **how: Any) -> Any:
        return self._client.request(self.request(moved or {}, **how), 12)


def sizes(response: Any) -> list[tuple[int, int]]:
    return [(one.partition_index, size_of(one.records)) for topic in response.responses for one in topic.partitions]


def test_a_fetch_reads_what_changed_and_not_what_the_consumer_has(client, visits):
    make_topic(client, "t", MANY)
    reader = Reader(client, {("t", partition): 0 for partition in range(MANY)})
    assert len(visits) == MANY
    visits.clear()
    assert sizes(reader.fetch()) == []
    assert visits == []
    produce(client, "t", 7, batch(b"a"))
    assert sizes(reader.fetch()) == [(7, len(batch(b"a")))]
    assert visits == [7]
    # The reader moves on, and is told no more of this partition until it has news again.
    assert sizes(reader.fetch({("t", 7): 1})) == []
    assert sizes(reader.fetch()) == []
    assert visits == [7, 7]


def test_a_negative_limit_is_of_the_first_partition_of_the_session_changed_or_not(client):
    """As Apache Kafka 4.3.1 answers: of a negative `max_bytes` 0 is left for the second that it reads."""
    make_topic(client, "t", 2)
    reader = Reader(client, {("t", 0): 0, ("t", 1): 0})
    produce(client, "t", 1, batch(b"a"))
    # The first one is not read again: it has not changed.
    assert sizes(reader.fetch(max_bytes=-1)) == [(1, len(batch(b"a")))]
    # It has data, and with that the last turn, from now on.
    (topic,) = reader.fetch(max_bytes=-1).responses
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(1, 0)]
    produce(client, "t", 0, batch(b"a"))
    (topic,) = reader.fetch(max_bytes=-1).responses
    assert [(one.partition_index, one.error_code, size_of(one.records)) for one in topic.partitions] == [
        (0, ErrorCode.UNKNOWN_SERVER_ERROR, 0),
        (1, 0, len(batch(b"a"))),
    ]


def test_the_partitions_that_a_full_fetch_has_read_leave_nothing_to_walk_through(broker, client):
    make_topic(client, "t", MANY)
    reader = Reader(client, {("t", partition): 0 for partition in range(MANY)})
    session = broker.state.fetch_sessions.sessions[reader.full.session_id]
    assert broker.call(lambda: (len(session.changed), sys.getsizeof(session.changed))) == (0, sys.getsizeof({}))


def test_a_waiting_fetch_reads_what_changed_while_it_waits(broker, client, visits):
    make_topic(client, "t", MANY)
    reader = Reader(client, {("t", partition): 0 for partition in range(MANY)})
    visits.clear()
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        # One partition is read before the wait, all others are not.
        other.send(reader.request({("t", 3): 0}, max_wait_ms=60_000, min_bytes=2 * len(batch(b"a"))), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        # Each log tells of a change once: to the session, which wakes the fetch.
        readers = broker.call(
            lambda: {len(broker.state.logs.get("t", number)._readers or ()) for number in range(MANY)}
        )
        assert readers == {1}
        for partition in (9, 3):
            produce(client, "t", partition, batch(b"a"))
        _, response = other.receive(1, 12)
    assert sorted(sizes(response)) == [(3, len(batch(b"a"))), (9, len(batch(b"a")))]
    assert set(visits) == {3, 9}


def test_a_waiting_fetch_survives_the_end_of_its_session(broker, client):
    make_topic(client, "t", 2)
    reader = Reader(client, {("t", 0): 0, ("t", 1): 0})
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        other.send(reader.request({}, max_wait_ms=60_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        client.request(fetch_request({}, session_id=reader.full.session_id, session_epoch=-1), 12)
        produce(client, "t", 1, batch(b"a"))
        _, response = other.receive(1, 12)
    assert sizes(response) == [(1, len(batch(b"a")))]
    assert broker.call(lambda: [broker.state.logs.get("t", number)._readers for number in (0, 1)]) == [None, None]


def test_a_log_tells_nobody_of_a_session_that_ended_or_forgot_it(broker, client):
    make_topic(client, "t", 2)
    reader = Reader(client, {("t", 0): 0, ("t", 1): 0})

    def listeners() -> list[int]:
        return [len(broker.state.logs.get("t", number)._readers or ()) for number in (0, 1)]

    assert broker.call(listeners) == [1, 1]
    request = reader.request({})
    request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0])]
    client.request(request, 12)
    assert broker.call(listeners) == [0, 1]
    client.request(fetch_request({}, session_id=reader.full.session_id, session_epoch=-1), 12)
    assert broker.call(listeners) == [0, 0]


def test_a_log_tells_nobody_of_a_session_that_gave_way_to_another():
    options = {"max_incremental_fetch_session_cache_slots": 8}
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 2)
        for _ in range(8):
            Reader(client, {("t", 0): 0})
        broker.clock.advance(EVICTABLE_AFTER_MS + 1)
        Reader(client, {("t", 1): 0})
        readers = broker.call(lambda: [len(broker.state.logs.get("t", number)._readers or ()) for number in (0, 1)])
        assert readers == [7, 1]


def test_a_deleted_topic_is_news_and_so_is_one_made_again(client):
    make_topic(client, "t", 1)
    reader = Reader(client, {("t", 0): 0})
    client.request(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    (answer,) = reader.fetch().responses[0].partitions
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    make_topic(client, "t", 1)
    (answer,) = reader.fetch().responses[0].partitions
    assert (answer.error_code, answer.high_watermark) == (0, 0)
    assert sizes(reader.fetch()) == []
    produce(client, "t", 0, batch(b"a"))
    assert sizes(reader.fetch()) == [(0, len(batch(b"a")))]


def test_a_session_by_ids_remembers_the_name_of_a_deleted_topic(client):
    topic_id = make_topic(client, "t", 2)
    wanted = {(topic_id, partition): 0 for partition in (0, 1)}
    session_id = client.request(fetch_request(wanted, session_id=0, session_epoch=0), 13).session_id

    def codes(epoch: int) -> list[int]:
        response = client.request(fetch_request({}, session_id=session_id, session_epoch=epoch), 13)
        return [one.error_code for topic in response.responses for one in topic.partitions]

    client.request(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    assert codes(1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    make_topic(client, "t", 1)
    assert sorted(codes(2)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID]
    response = client.request(fetch_request(wanted), 13)
    assert [one.error_code for one in response.responses[0].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2


def test_a_change_of_the_acls_is_news():
    everything = {"principal": "User:ANONYMOUS", "cluster": True}
    reading = {"principal": "User:ANONYMOUS", "topic": "t"}
    with Broker(clock="virtual", acls=[everything, reading]) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        reader = Reader(client, {("t", 0): 0})
        assert sizes(reader.fetch()) == []
        authorizer = broker.state.authorizer
        denying = parse_acl({**reading, "operation": "Read", "permission": "deny"})
        broker.call(lambda: authorizer.change_acls([denying], []))
        (answer,) = reader.fetch().responses[0].partitions
        assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        broker.call(lambda: authorizer.change_acls([], [denying]))
        (answer,) = reader.fetch().responses[0].partitions
        assert answer.error_code == 0


class Guarded:
    """A broker with ACLs, whose reader may lose and get back the right to read a topic."""

    def __init__(self, stack: ExitStack) -> None:
        allowed: list[Any] = [{"principal": "User:ANONYMOUS", one: name} for one, name in (("cluster", True), *TOPICS)]
        self.broker = stack.enter_context(Broker(clock="virtual", acls=allowed))
        self.client = stack.enter_context(Connection(self.broker.bootstrap_servers, timeout_s=60))
        self.waiting = stack.enter_context(Connection(self.broker.bootstrap_servers, timeout_s=60))
        self._denials = {
            topic: parse_acl({"principal": "User:ANONYMOUS", "topic": topic, "operation": "Read", "permission": "deny"})
            for _, topic in TOPICS
        }

    def deny(self, topic: str) -> None:
        authorizer = self.broker.state.authorizer
        self.broker.call(lambda: authorizer.change_acls([self._denials[topic]], []))

    def allow(self, topic: str) -> None:
        authorizer = self.broker.state.authorizer
        self.broker.call(lambda: authorizer.change_acls([], [self._denials[topic]]))

    def begin(self, request: Any) -> None:
        """Send a fetch that waits, and return when it does."""
        self.waiting.send(request, 12)
        wait_until(lambda: self.broker.call(lambda: len(self.broker.state.parked)), "the fetch waits")

    def answer(self) -> Any:
        return self.waiting.receive(1, 12)[1]


TOPICS = (("topic", "t"), ("topic", "u"))
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with ExitStack() as stack:
        yield Guarded(stack)


def codes(response: Any) -> set[tuple[str, int]]:
    return {(topic.topic, one.error_code) for topic in response.responses for one in topic.partitions}


# The second has so many partitions that they are read in steps.
@pytest.mark.parametrize("partitions", [1, fetch_reads.MANY + 1])
@pytest.mark.parametrize("has_session", [False, True])
def test_a_fetch_that_waits_keeps_the_rights_that_it_came_with(guarded, partitions, has_session):
    """As in Kafka; the next one has those of its own time."""
    client = guarded.client
    make_topic(client, "t", partitions)
    wanted: dict[tuple[str | bytes, int], int] = {("t", partition): 0 for partition in range(partitions)}
    reader = Reader(client, wanted)
    guarded.begin(reader.request({}, max_wait_ms=60_000) if has_session else fetch_request(wanted, max_wait_ms=60_000))
    guarded.deny("t")
    produce(client, "t", 0, batch(b"a"))
    answer = guarded.answer()
    assert codes(answer) == {("t", 0)}
    assert (0, len(batch(b"a"))) in sizes(answer)
    assert codes(reader.fetch() if has_session else client.request(fetch_request(wanted), 12)) == {("t", DENIED)}
    guarded.allow("t")
    assert codes(reader.fetch() if has_session else client.request(fetch_request(wanted), 12)) == {("t", 0)}


@pytest.mark.parametrize("partitions", [1, fetch_reads.MANY + 1])
def test_a_topic_that_is_allowed_while_a_fetch_waits_is_for_the_next_one(guarded, partitions):
    client = guarded.client
    for topic in ("t", "u"):
        make_topic(client, topic, partitions)
        produce(client, topic, 0, batch(b"a"))
    guarded.deny("u")
    reader = Reader(client, {(topic, partition): 0 for topic in ("t", "u") for partition in range(partitions)})
    guarded.begin(reader.request({("t", 0): 0}, max_wait_ms=60_000, min_bytes=2 * len(batch(b"a"))))
    guarded.allow("u")
    produce(client, "t", 0, batch(b"b"))
    assert codes(guarded.answer()) == {("t", 0), ("u", DENIED)}
    assert codes(reader.fetch({("t", 0): 2})) == {("u", 0)}


@pytest.mark.parametrize("partitions", [1, fetch_reads.MANY + 1])
def test_a_session_is_told_of_rights_that_were_taken_while_the_fetch_that_opened_it_waited(guarded, partitions):
    """It was not, as long as the partitions had no other news: its consumer waited for ever."""
    client = guarded.client
    make_topic(client, "t", partitions)
    wanted: dict[tuple[str | bytes, int], int] = {("t", partition): 0 for partition in range(partitions)}
    guarded.begin(fetch_request(wanted, session_id=0, session_epoch=0, max_wait_ms=500))
    guarded.deny("t")
    guarded.broker.clock.advance(500)
    answer = guarded.answer()
    assert codes(answer) == {("t", 0)}
    following = fetch_request({}, session_id=answer.session_id, session_epoch=1)
    assert codes(client.request(following, 12)) == {("t", DENIED)}


def told(response: Any) -> list[tuple[str, dict[str, Any]]]:
    """Everything that a response says of partitions, with the bytes of the records."""
    return [
        (topic.topic, {row[0]: getattr(one, row[0]) for row in one.FIELDS} | {"records": bytes(one.records or b"")})
        for topic in response.responses
        for one in topic.partitions
    ]


@pytest.fixture
def readers(client: Connection) -> Iterator[tuple[Reader, Reader]]:
    make_topic(client, "t", 6)
    how = {"max_bytes": 400, "partition_max_bytes": 150}
    wanted: dict[tuple[str | bytes, int], int] = {("t", partition): 0 for partition in range(6)}
    yield Reader(client, wanted, **how), Reader(client, wanted, **how)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_nothing_is_missed(broker, client, readers, seed):
    """Two sessions get the same requests. Of the one everything is read each time."""
    chance = random.Random(seed)
    writers = [Producer(client, f"x{number}") for number in range(2)]
    positions = [0] * 6
    sessions = broker.state.fetch_sessions.sessions
    every = sessions[readers[1].full.session_id]

    def mark_all() -> None:
        every.changed.update(dict.fromkeys(every.partitions.values()))

    for step in range(150):
        partition = chance.randrange(6)
        what = chance.randrange(10)
        if what < 3:
            produce(client, "t", partition, batch(bytes(chance.randrange(100))))
        elif what < 5:
            number = chance.randrange(2)
            writers[number].write(b"in a transaction", number)  # the helper counts the sequence of one partition
        elif what == 5:
            writer = chance.choice(writers)
            if writer._sequence:
                writer.end(commit=chance.random() < 0.5)
        elif what == 6:
            offset = chance.randrange(positions[partition] + 1)
            asked = DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
            )
            client.request(DeleteRecordsRequest(topics=[asked], timeout_ms=1000), 2)
        moved: dict[tuple[str | bytes, int], int] = {}
        if chance.random() < 0.3:
            moved["t", partition] = positions[partition]
        how = {"isolation_level": 1 if step % 40 > 20 else 0}
        broker.call(mark_all)
        answers = [reader.fetch(moved, **how) for reader in readers]
        assert told(answers[0]) == told(answers[1]), f"step {step}"
        for _, answer in told(answers[0]):
            # The reader consumes one batch of it, or goes to the log's start.
            here = positions[answer["partition_index"]]
            there = max(here, answer["log_start_offset"], 0)
            positions[answer["partition_index"]] = max(there, here + bool(answer["records"]))
