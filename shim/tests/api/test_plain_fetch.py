"""Most Fetch requests are served from frame to frame in `cext.plain_fetch`. It must do what the handler does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, k01_fetch
from kafka_shim.api.fetch_reads import COPY_BYTES
from kafka_shim.cext.messages import decode
from kafka_shim.cext.plain_fetch import MOST_PARTITIONS
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.fetch_request import FetchRequest, ForgottenTopic
from kafka_shim.protocol.messages.fetch_response import FetchResponse
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.frames import FrameClient, counted
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce, size_of
from kafka_shim.wire_client import Connection

FETCH = TABLE[1]
NOW_MS = 1_700_000_000_000
TOPICS = ("t", "u")
PARTITIONS = 4
FIRST_WITH_SESSIONS, FIRST_FLEXIBLE, FIRST_WITH_IDS, LAST = 7, 12, 13, 18


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    if not FETCH.is_loaded:
        FETCH.load()
    yield
    FETCH.plain, FETCH.handle = k01_fetch.PLAIN, k01_fetch.handle


class Consumer:
    """What one consumer fetches, mostly right: its session, and where it is in each partition."""

    def __init__(self, traffic: Traffic, version: int) -> None:
        self.version = version
        self._chance, self._start_of, ids = traffic.chance, traffic.start_of, traffic.ids
        self._names = dict(zip(TOPICS, TOPICS, strict=True)) if version < FIRST_WITH_IDS else ids
        self._has_session = version >= FIRST_WITH_SESSIONS and self._chance.random() < 0.8
        self._isolation_level = self._chance.randrange(2)
        self._begin()

    def _begin(self) -> None:
        self._session_id = self._epoch = 0
        self._positions = {(name, index): 0 for name in self._names.values() for index in range(PARTITIONS)}
        self._moved = dict(self._positions)

    def _rarely(self, wrong: Any, right: Any, part: float = 0.01) -> Any:
        return wrong if self._chance.random() < part else right

    def request(self) -> FetchRequest:
        wanted = self._moved
        if not self._has_session:
            wanted = dict(self._chance.sample(list(self._positions.items()), self._chance.choice([1, 1, 2, 5])))
        if self._chance.random() < 0.02:
            wanted = wanted | {(self._chance.choice(list(self._names.values())), 0): self._chance.randrange(-1, 40)}
        if self._chance.random() < 0.01:
            wanted = wanted | {(self._chance.choice([self._names["t"], bytes(15) + b"\7", "gone"]), 9): 0}
        if self.version < FIRST_WITH_IDS:
            wanted = {key: offset for key, offset in wanted.items() if isinstance(key[0], str)}
        else:
            wanted = {key: offset for key, offset in wanted.items() if isinstance(key[0], bytes)}
        request = fetch_request(
            wanted,
            max_bytes=self._rarely(self._chance.choice([0, -1]), self._chance.choice([1, 300, 1 << 20])),
            partition_max_bytes=self._rarely(self._chance.choice([0, -1]), self._chance.choice([100, 1 << 20])),
            min_bytes=self._chance.choice([0, 1, 1, 500]),
            isolation_level=self._rarely(self._chance.choice([2, -1]), self._isolation_level),
            rack_id=self._rarely(self._chance.choice(["é", "rack"]), ""),
            replica_id=self._rarely(self._chance.choice([5, -2]), -1) if self.version < 15 else -1,
        )
        for topic in request.topics:
            for asked in topic.partitions:
                asked.current_leader_epoch = self._rarely(1, self._chance.choice([0, -1, -2]), 0.003)
                if self.version >= FIRST_FLEXIBLE:
                    asked.last_fetched_epoch = self._rarely(self._chance.choice([0, 3]), -1, 0.003)
        if self._chance.random() < 0.01 and request.topics:
            request.topics.append(request.topics[0])
        if self._has_session:
            request.session_id = self._rarely(99, self._session_id)
            request.session_epoch = self._rarely(self._chance.choice([7, -1]), self._epoch)
            if self._chance.random() < 0.01:
                (name, index), _ = self._chance.choice(list(self._positions.items()))
                request.forgotten_topics_data = [
                    ForgottenTopic(**{"topic" if isinstance(name, str) else "topic_id": name}, partitions=[index])
                ]
        return request

    def frame(self) -> bytes:
        frame = bytearray(encode_request_frame(self.request(), self.version, 7, self._rarely("é", "client")))
        if self._chance.random() < 0.02:
            frame[self._chance.randrange(30, len(frame))] ^= 1 << self._chance.randrange(8)
        if self._chance.random() < 0.01:
            frame = bytearray(len(frame[4:-3]).to_bytes(4) + frame[4:-3])
        return bytes(frame)

    def take(self, answer: bytes) -> None:
        self._moved = {}
        if answer == b"closed":
            self._epoch = 0
            self._moved = dict(self._positions)
            return
        start = 5 if self.version >= FIRST_FLEXIBLE else 4
        response = decode(FetchResponse, self.version, answer, start)
        if response.error_code:
            self._session_id = self._epoch = 0
            self._moved = dict(self._positions)
            return
        self._session_id, self._epoch = response.session_id, self._epoch + 1
        if not response.session_id:
            self._epoch, self._moved = 0, dict(self._positions)
        for topic in response.responses:
            name = topic.topic if self.version < FIRST_WITH_IDS else topic.topic_id
            for one in topic.partitions:
                key = (name, one.partition_index)
                if key not in self._positions:
                    continue
                if one.error_code != ErrorCode.OFFSET_OUT_OF_RANGE and one.error_code:
                    self._begin()
                    return
                if one.error_code:
                    self._positions[key] = self._moved[key] = self._start_of(*key)
                elif size_of(one.records):
                    # As many records as it has time for.
                    self._positions[key] = min(
                        self._positions[key] + self._chance.choice([1, 2, 9]), one.high_watermark
                    )
                    self._moved[key] = self._positions[key]


class Traffic:
    """Everything that changes what is fetched."""

    def __init__(self, broker: Broker, client: Connection, seed: int) -> None:
        self._broker, self._client = broker, client
        self.chance = random.Random(seed)
        options = {"index_interval_bytes": "200"}
        self.ids = {name: make_topic(client, name, PARTITIONS, **options) for name in TOPICS}
        self._writers = [Producer(client, f"x{number}") for number in range(2)]

    def start_of(self, topic: str | bytes, partition: int) -> int:
        name = next(name for name in TOPICS if topic in (name, self.ids[name]))
        return self._broker.state.logs.get(name, partition).log_start_offset

    def go_on(self) -> None:
        what, partition = self.chance.randrange(26), self.chance.randrange(PARTITIONS)
        if what < 8:
            size = self.chance.choice([10, 10, 100, 3000]) if self.chance.random() < 0.98 else COPY_BYTES
            produce(self._client, self.chance.choice(TOPICS), partition, batch(bytes(size), b"b"))
        elif what < 12:
            number = self.chance.randrange(2)
            self._writers[number].write(b"in a transaction", number)
        elif what < 14:
            writer = self.chance.choice(self._writers)
            if writer._sequence:
                writer.end(commit=self.chance.random() < 0.7)
        elif what == 14 and self.chance.random() < 0.5:
            at = DeleteRecordsPartition(partition_index=partition, offset=self.chance.randrange(20))
            asked = DeleteRecordsTopic(name=self.chance.choice(TOPICS), partitions=[at])
            self._client.request(DeleteRecordsRequest(topics=[asked], timeout_ms=1000), 2)
        elif what == 15 and self.chance.random() < 0.15:
            log = self._broker.state.logs.get(self.chance.choice(TOPICS), partition)
            self._broker.call(lambda: log.roll(NOW_MS))
        elif what == 16 and self.chance.random() < 0.1:
            self._client.request(DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 4)
            self.ids["u"] = make_topic(self._client, "u", PARTITIONS)
        elif what == 17:
            log = self._broker.state.logs.get(self.chance.choice(TOPICS), partition)
            self._broker.call(lambda: [segment.make_room() for segment in log.segments])


def sessions_of(broker: Broker) -> list[Any]:
    def partition(one: Any) -> tuple[Any, ...]:
        position = one.fetch_offset, one.max_bytes, one.current_leader_epoch, one.last_fetched_epoch
        told = one.high_watermark, one.log_start_offset, one.segment_base
        follows = None if one.log is None else (one.log.name, one.mark_changed in (one.log._readers or ()))
        return one.topic, one.name, one.partition, one.turn, position, told, follows

    return [
        (
            session.session_id,
            session.epoch,
            session.used_ms,
            session.next_turn,
            session.reader,
            [partition(one) for one in session.partitions.values()],
            [(one.topic, one.partition) for one in session.changed],
        )
        for session in broker.state.fetch_sessions.sessions.values()
    ]


def state_of(broker: Broker) -> dict[str, Any]:
    found: dict[str, Any] = {
        log.name: (log.fetched_bytes, log.log_end_offset, len(log.segments))
        for log in broker.state.logs.partitions.loaded.values()
    }
    metrics = broker.state.metrics
    return found | {
        "sessions": sessions_of(broker),
        "metrics": (metrics.fetched_bytes, dict(metrics.requests), metrics.errors_unexpected),
    }


@pytest.mark.parametrize("seed", range(4))
def test_answers_sessions_and_metrics_are_those_of_the_handler(seed):
    """Consumers in all versions, with and without a session, of both isolation levels, while records, transactions,
    segments and topics come and go."""
    left = []
    for is_short in (True, False):
        with (
            Broker(clock=VirtualClock(NOW_MS, seed)) as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as admin,
        ):
            traffic, client = Traffic(broker, admin, seed), FrameClient(broker)
            consumers = [Consumer(traffic, version) for version in range(4, LAST + 1)]
            states = []
            with counted(k01_fetch, is_short) as ways:
                for step in range(600):
                    traffic.go_on()
                    consumer = consumers[traffic.chance.randrange(len(consumers))]
                    before = len(client.answers)
                    client.send(consumer.frame())
                    if len(client.answers) > before:
                        consumer.take(client.answers[-1])
                    if step % 100 == 0:
                        broker.clock.advance(1000)
                        states.append(broker.call(state_of, broker))
            client.close()
            states.append(broker.call(state_of, broker))
            left.append(([one.hex() for one in client.answers], states))
        if is_short:
            assert 50 < ways["handler"] < 500
    for number, (short, handler) in enumerate(zip(left[0][0], left[1][0], strict=True)):
        assert short == handler, f"answer {number}"
    for short, handler in zip(left[0][1], left[1][1], strict=True):
        assert {what: (one, handler[what]) for what, one in short.items() if one != handler[what]} == {}


@pytest.mark.parametrize("count", [1, MOST_PARTITIONS, MOST_PARTITIONS + 1])
@pytest.mark.parametrize("has_session", [False, True])
def test_a_request_of_many_partitions(client, count, has_session):
    make_topic(client, "t", count)
    wanted: dict[tuple[str | bytes, int], int] = {("t", index): 0 for index in range(count)}
    how = {}
    if has_session:
        how = {"session_id": client.request(fetch_request(wanted, session_epoch=0), 12).session_id, "session_epoch": 1}
    for index in range(count):
        produce(client, "t", index, batch(b"a"))
    with counted(k01_fetch, is_short=True) as ways:
        response = client.request(fetch_request({} if has_session else wanted, **how), 12)
    (topic,) = response.responses
    assert sorted(one.partition_index for one in topic.partitions) == list(range(count))
    assert {size_of(one.records) for one in topic.partitions} == {len(batch(b"a"))}
    assert ways == ({} if count <= MOST_PARTITIONS else {"handler": 1})


@pytest.mark.parametrize("version", range(4, LAST + 1))
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_each_version_is_served(client, version, isolation_level):
    topic_id = make_topic(client, "t", 1)
    topic = topic_id if version >= FIRST_WITH_IDS else "t"
    produce(client, "t", 0, batch(b"a"))
    with counted(k01_fetch, is_short=True) as ways:
        told = fetch(client, topic, 0, 0, version, isolation_level=isolation_level)
    aborted = [] if isolation_level else None
    assert (told.error_code, told.high_watermark, size_of(told.records), told.aborted_transactions, ways) == (
        ErrorCode.NONE,
        1,
        len(batch(b"a")),
        aborted,
        {},
    )


@pytest.mark.parametrize("version", [FIRST_WITH_SESSIONS, FIRST_FLEXIBLE, FIRST_WITH_IDS])
def test_a_topic_without_partitions_is_left_to_the_handler(broker, client, version):
    """Null in their place cannot be read, and closes the connection; of none a frame may have millions."""
    topic_id = make_topic(client, "t", 1)
    topic, name = (topic_id, topic_id) if version >= FIRST_WITH_IDS else ("t", b"\0\1t")
    none, null, rest = b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\0"
    if version >= FIRST_FLEXIBLE:
        none, null, rest = b"\1", b"\0", b"\1\1\0"
        name = name if version >= FIRST_WITH_IDS else b"\2t"
    session_id = client.request(fetch_request({(topic, 0): 0}, session_epoch=0), version).session_id
    empty = fetch_request({(topic, 0): 0}, session_id=session_id, session_epoch=1)
    empty.topics[0].partitions = []
    frame = encode_request_frame(empty, version, 7, "client")
    tags = b"\0" if version >= FIRST_FLEXIBLE else b""
    assert frame.endswith(name + none + tags + rest)
    with_null = frame.removesuffix(none + tags + rest) + null + tags + rest
    produce(client, "t", 0, batch(b"a"))
    sender = FrameClient(broker)
    with counted(k01_fetch, is_short=True) as ways:
        sender.send(with_null)
        sender.send(frame)
    sender.close()
    refused, answer = sender.answers
    assert (refused, ways) == (b"closed", {"handler": 1})
    response = decode(FetchResponse, version, answer, 5 if version >= FIRST_FLEXIBLE else 4)
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, session_id)
    assert size_of(response.responses[0].partitions[0].records) == len(batch(b"a"))


def test_what_is_sent_from_its_file_is_left_to_the_handler(client):
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(bytes(COPY_BYTES)))
    produce(client, "t", 0, batch(b"b"))
    with counted(k01_fetch, is_short=True) as ways:
        assert size_of(fetch(client, "t", 0, 0).records) > COPY_BYTES
        assert ways == {"handler": 1}
        assert size_of(fetch(client, "t", 0, 1).records) == len(batch(b"b"))
        assert ways == {"handler": 1}


def test_an_offset_behind_entries_of_the_index_is_found(broker, client):
    """In those that are in memory and in those that are in the file."""
    make_topic(client, "t", 1, index_interval_bytes="100")
    for number in range(60):
        produce(client, "t", 0, batch(b"%d" % number * 30))
    log = broker.state.logs.get("t", 0)
    with counted(k01_fetch, is_short=True) as ways:
        for is_stored in (False, True):
            assert bool(log.segments[0]._offset_index.stored_bytes) == is_stored
            for number in range(60):
                assert b"%d" % number * 30 in bytes(fetch(client, "t", 0, number, max_bytes=1).records)
            broker.call(log.segments[0].offset_index.store)
    assert not ways


def test_a_read_that_fails_takes_the_partition_offline(broker, client, tmp_path):
    """As the handler's does, which meets it again."""
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a"))
    log = broker.state.logs.get("t", 0)

    def hide() -> None:
        log.segments[-1].make_room()
        log.segments[-1].directory = str(tmp_path / "nowhere")

    broker.call(hide)
    with counted(k01_fetch, is_short=True) as ways:
        assert fetch(client, "t", 0, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert ways == {"handler": 1}
    assert broker.call(lambda: log.is_offline or log.is_closed)


def test_a_broker_with_metrics_counts_its_answers():
    with (
        Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t", 2)
        with counted(k01_fetch, is_short=True) as ways:
            for _ in range(3):
                client.request(fetch_request({("t", 0): 0, ("t", 1): 0}), 12)
        assert not ways
        times = broker.call(lambda: broker._server._dispatcher.times[1])
        # One code at the top, and one of each partition.
        assert times.errors == {0: 9}
        assert times.total.count == 3
        assert broker.call(lambda: broker.state.metrics.requests[1]) == 3
