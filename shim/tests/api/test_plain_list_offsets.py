"""Ends and starts of partitions are answered from frame to frame in `cext.plain_list_offsets`. The answers must be
those of the handler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, k02_list_offsets
from kafka_shim.api.k02_list_offsets import EARLIEST, EARLIEST_LOCAL, LATEST, MAX_TIMESTAMP
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets.requests import make
from kafka_shim.tests.frames import FrameClient, counted
from kafka_shim.tests.odd_requests import OddRequests
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection

PARTITIONS = 3
REQUESTS = 600
VERSIONS = range(1, 12)
START_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    if not TABLE[2].is_loaded:
        TABLE[2].load()
    yield
    TABLE[2].plain, TABLE[2].handle = k02_list_offsets.PLAIN, k02_list_offsets.handle


def open_transaction(client: Connection, topic: str, partition: int) -> None:
    """Leave a record of a transaction that is not decided."""
    given = client.request(make("InitProducerId", transactional_id="open", transaction_timeout_ms=60_000), 5)
    assert given.error_code == 0
    who = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    records = batch(b"x", **who, base_sequence=0, transactional=True)
    rows = [{"index": partition, "records": records}]
    topics = [{"name": topic, "partition_data": rows}]
    ask = make("Produce", transactional_id="open", acks=-1, timeout_ms=30_000, topic_data=topics)
    assert client.request(ask, 12).responses[0].partition_responses[0].error_code == 0


def fill(client: Connection) -> None:
    """Partitions with records, with an open transaction, without a start, and without anything."""
    for key_type in (0, 1):
        client.request(make("FindCoordinator", key_type=key_type, coordinator_keys=["open"]), 4)
    for name in ("t", "u"):
        make_topic(client, name, PARTITIONS)
        for partition in range(2):
            produce(client, name, partition, batch(b"a", b"b", timestamp_ms=START_MS))
    open_transaction(client, "t", 1)
    topics = [{"name": "u", "partitions": [{"partition_index": 0, "offset": 1}]}]
    client.request(make("DeleteRecords", topics=topics, timeout_ms=30_000), 2)


class Traffic(OddRequests):
    """What consumers ask: mostly for ends, and what is wrong now and then."""

    PART = 0.02

    def __init__(self, seed: int) -> None:
        super().__init__(seed)

    def _partition(self, index: int) -> dict[str, Any]:
        return {
            "partition_index": self._rarely(self.chance.choice([-1, PARTITIONS, 0]), index),
            "current_leader_epoch": self._rarely(self.chance.choice([-2, 1, 7]), self.chance.choice([-1, 0])),
            "timestamp": self._rarely(
                self.chance.choice([EARLIEST_LOCAL, MAX_TIMESTAMP, START_MS, -99]),
                self.chance.choice([LATEST, LATEST, EARLIEST]),
            ),
        }

    def frame(self, version: int) -> bytes:
        names = self.chance.choice([["t"], ["t", "u"], ["u"]])
        topics = []
        for name in names:
            indexes = self.chance.sample(range(PARTITIONS), self.chance.choice([1, 2, 3]))
            rows = self._rarely([], [self._partition(index) for index in indexes], 0.01)
            topics.append({"name": self._rarely(self.chance.choice(["é", "", "none", "t"]), name), "partitions": rows})
        fields: dict[str, Any] = {"replica_id": self._rarely(self.chance.choice([-2, 0, 1]), -1), "topics": topics}
        if version >= 2:
            fields["isolation_level"] = self._rarely(self.chance.choice([-1, 2]), self.chance.choice([0, 1]))
        if version < 4:
            for row in (row for topic in topics for row in topic["partitions"]):
                row["current_leader_epoch"] = -1
        frame = encode_request_frame(make("ListOffsets", **fields), version, 7, self._rarely("é", "client"))
        return self._bent(frame)


@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_the_handler(broker: Broker, client: Connection, seed: int) -> None:
    fill(client)
    found = []
    for is_short in (True, False):
        traffic, frames = Traffic(seed), FrameClient(broker)
        with counted(k02_list_offsets, is_short) as ways:
            for number in range(REQUESTS):
                frames.send(traffic.frame(VERSIONS[number % len(VERSIONS)]))
        frames.close()
        found.append(frames.answers)
        if is_short:
            assert REQUESTS - ways["handler"] > 300, ways
    assert found[0] == found[1]


def ask_of(*indexes: int, **fields: Any) -> Any:
    rows = [{"partition_index": index, "timestamp": LATEST} for index in indexes]
    return make("ListOffsets", **{"replica_id": -1, "topics": [{"name": "t", "partitions": rows}], **fields})


def told(answer: Any) -> list[tuple[int, int, int]]:
    return [(row.partition_index, row.error_code, row.offset) for topic in answer.topics for row in topic.partitions]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_served(client: Connection, version: int) -> None:
    fill(client)
    with counted(k02_list_offsets, is_short=True) as ways:
        assert told(client.request(ask_of(1, 0), version)) == [(1, 0, 3), (0, 0, 2)]
        if version >= 2:
            assert told(client.request(ask_of(1, isolation_level=1), version)) == [(1, 0, 2)]
    assert not ways


def test_it_is_left_to_the_handler_what_is_not_loaded_or_is_offline(broker: Broker, client: Connection) -> None:
    fill(client)
    log = broker.state.logs.get("t", 0)
    with counted(k02_list_offsets, is_short=True) as ways:
        broker.call(setattr, log, "is_offline", True)
        assert told(client.request(ask_of(0), 7)) == [(0, ErrorCode.KAFKA_STORAGE_ERROR, -1)]
        broker.call(setattr, log, "is_offline", False)
        assert ways == {"handler": 1}
        assert told(client.request(ask_of(PARTITIONS), 7)) == [(PARTITIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
        assert ways == {"handler": 2}


def test_a_broker_with_metrics_counts_its_answers() -> None:
    counts = []
    for is_short in (True, False):
        with (
            Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as client,
        ):
            fill(client)
            with counted(k02_list_offsets, is_short) as ways:
                client.request(ask_of(0), 7)
                client.request(ask_of(0, 1), 7)
            assert bool(ways) is not is_short
            times = broker.call(lambda served=broker: served._server._dispatcher.times[2])
            counts.append((times.errors, times.total.count))
    assert counts[0] == counts[1] == ({0: 3}, 2)
