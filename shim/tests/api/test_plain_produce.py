"""Most Produce requests are served from frame to frame in `cext.plain_produce`. It must do what the handler does."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, k00_produce
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.batch import HEADER_SIZE
from kafka_shim.cext.plain_produce import MOST_PARTITIONS
from kafka_shim.cext.tests.oracle import seal
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.tests.frames import FrameClient, counted
from kafka_shim.tests.produced import batch, make_topic, produce, produce_request
from kafka_shim.wire_client import Connection

PRODUCE = TABLE[0]
NOW_MS = 1_700_000_000_000
TOPICS: dict[str, dict[str, str]] = {
    "a": {},
    "b": {"index_interval_bytes": "300", "segment_index_bytes": "60"},
    "appended": {"message_timestamp_type": "LogAppendTime"},
    "compact": {"cleanup_policy": "compact"},
}
PARTITIONS = 3
ATTRIBUTES_END = 23
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
QUOTA = AlterClientQuotasRequest(
    entries=[
        EntryData(
            entity=[EntityData(entity_type="client-id", entity_name="somebody")],
            ops=[OpData(key="producer_byte_rate", value=1e9)],
        )
    ]
)
UNKNOWN_ID = bytes(15) + b"\7"


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    if not PRODUCE.is_loaded:
        PRODUCE.load()
    yield
    PRODUCE.plain, PRODUCE.handle = k00_produce.PLAIN, k00_produce.handle


class Traffic:
    """What producers send: mostly what is right, and wrong in everything now and then."""

    def __init__(self, broker: Broker, client: Connection, seed: int) -> None:
        self._broker = broker
        self.chance = random.Random(seed)
        self.ids = {name: make_topic(client, name, PARTITIONS, **configs) for name, configs in TOPICS.items()}
        self.producers = []
        client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["x", "y"]), 4)
        for transactional_id in (None, None, "x", "y"):
            answer = client.request(
                InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 4
            )
            assert answer.error_code == 0
            self.producers.append([transactional_id, answer.producer_id, answer.producer_epoch])

    def _next_sequence(self, name: str, index: int, producer_id: int, epoch: int) -> int:
        log = self._broker.state.logs.partitions.loaded.get((name, index))
        entry = None if log is None else log.producers.entries.get(producer_id)
        return entry.last_sequence + 1 if entry is not None and entry.epoch == epoch else 0

    def _rarely(self, wrong: Any, right: Any, part: float = 0.015) -> Any:
        return wrong if self.chance.random() < part else right

    def _records(self, producer: list[Any] | None, name: str, index: int) -> bytes:
        count = self.chance.choice([1, 1, 1, 3])
        how: dict[str, Any] = {}
        if producer is not None:
            transactional_id, producer_id, epoch = producer
            following = self._next_sequence(name, index, producer_id, epoch)
            how = {
                "producer_id": producer_id,
                "producer_epoch": epoch + self._rarely(1, 0, 0.01),
                "base_sequence": max(following + self._rarely(self.chance.choice([1, -1, 5]), 0), 0),
                "transactional": self._rarely(transactional_id is None, transactional_id is not None),
            }
        values = [b"v" * self.chance.randrange(60) for _ in range(count)]
        how["codec"] = codec = self.chance.choice([0, 0, 0, 0, 1, 2, 3, 4])
        data = bytearray(batch(*values, timestamp_ms=NOW_MS + self._rarely(-1 - NOW_MS, 0), **how))
        if codec and self.chance.random() < 0.2:
            at = self.chance.choice([ATTRIBUTES_END - 1, self.chance.randrange(ATTRIBUTES_END, len(data))])
            data[at] ^= 8 << self.chance.randrange(3) if at < ATTRIBUTES_END else 1 << self.chance.randrange(8)
            data = seal(data)
        if self.chance.random() < 0.02:
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
        return bytes(self._rarely(self.chance.choice([data + b"\0", data[:-1], data[:40], b""]), data))

    def request(self, version: int) -> bytes:
        producer = self.chance.choice([None, *self.producers])
        topics = []
        for name in self._topics():
            indexes = self.chance.sample(range(PARTITIONS), self.chance.choice([1, 1, 2, PARTITIONS]))
            indexes += self._rarely([indexes[0]], [])
            partitions = [
                PartitionProduceData(
                    index=self._rarely(9, index), records=self._rarely(None, self._records(producer, name, index), 0.01)
                )
                for index in indexes
            ]
            topic = TopicProduceData(partition_data=self._rarely([], partitions, 0.01))
            if version >= 13:
                topic.topic_id = self.ids.get(name, UNKNOWN_ID)
            else:
                topic.name = name
            topics.append(topic)
        acks = self._rarely(self.chance.choice([0, 2]), self.chance.choice([1, -1]))
        transactional_id = None if producer is None else self._rarely(self.chance.choice(["x", None, "é"]), producer[0])
        request = ProduceRequest(
            acks=acks, timeout_ms=1000, transactional_id=transactional_id, topic_data=self._rarely([], topics, 0.01)
        )
        frame = encode_request_frame(request, version, 7, self._rarely("é", "client"))
        return self._bent(frame)

    def _topics(self) -> list[str]:
        wanted = self.chance.sample([*TOPICS, "a", "a", "b", "b", "b"], self.chance.choice([1, 1, 2]))
        name = self._rarely(self.chance.choice(["nowhere", GROUP_METADATA_TOPIC, "é", ""]), wanted[0])
        return [name, *wanted[1:]]

    def _bent(self, frame: bytes) -> bytes:
        """The same, or with a body that is too short, too long or changed before the records."""
        how = self._rarely(self.chance.choice(["short", "long", "changed"]), "right")
        body = bytearray(frame[4:])
        if how == "short":
            del body[self.chance.randrange(20, len(body)) :]
        elif how == "long":
            body += b"\1\2\3"
        elif how == "changed":
            body[self.chance.randrange(20, 40)] ^= 1 << self.chance.randrange(8)
        return len(body).to_bytes(4) + bytes(body)


def state_of(broker: Broker) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, log in broker.state.logs.partitions.loaded.items():
        entries = [
            (one.producer_id, one.epoch, one.batches, one.txn_first_offset, one.last_timestamp_ms)
            for one in log.producers.entries.values()
        ]
        sizes = [(segment.base_offset, segment.size_bytes, segment.max_timestamp()) for segment in log.segments]
        counts = log.appended_records, log.appended_bytes, log.log_end_offset, log.is_offline
        found["-".join(map(str, key))] = entries, sizes, counts, sorted(log.producers._open.items())
    metrics = broker.state.metrics
    found["metrics"] = metrics.appended_bytes, dict(metrics.requests)
    return found


def files_of(data_dir: Any) -> dict[str, bytes]:
    # Directories of topics with ids, and what differs between two brokers: when it was made.
    suffixes = {".log", ".index", ".timeindex", ".txnindex"}
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in data_dir.rglob("*")
        if path.suffix in suffixes and path.parent.name.rpartition("-")[0] in TOPICS
    }


@pytest.mark.parametrize("seed", range(4))
def test_answers_states_and_files_are_those_of_the_handler(tmp_path, monkeypatch, seed):
    """Producers of all kinds, in all versions, with single and several partitions, whose writes fail now and then."""
    left = []
    for is_short in (True, False):
        data_dir = tmp_path / str(is_short)
        with (
            Broker(clock=VirtualClock(NOW_MS, seed), data_dir=data_dir) as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as admin,
        ):
            traffic, client = Traffic(broker, admin, seed), FrameClient(broker)
            with counted(k00_produce, is_short) as ways, monkeypatch.context() as patch:
                patch.setattr(cext_segment, "append", failing_now_and_then(cext_segment.append, seed))
                for number in range(600):
                    client.send(traffic.request(3 + number % 11))
            client.close()
            answers = [one.hex() for one in client.answers]
            left.append((answers, broker.call(state_of, broker)))
        left[-1] += (files_of(data_dir),)
        if is_short:
            served = 600 - ways["handler"] - ways["rest"]
            assert served > 100
            assert ways["rest"] > 5
    assert left[0] == left[1]
    assert any(left[0][2].values())


def failing_now_and_then(append: Any, seed: int) -> Any:
    """Of the writes to the topics above, by what they write: the same ones whatever else is written."""
    chance = random.Random(seed)
    seen = 0

    def put(fd: int, buffers: Any) -> int:
        nonlocal seen
        if not any(b"v" * 50 in bytes(one) for one in buffers):
            return append(fd, buffers)  # type: ignore[no-any-return]
        seen += 1
        if chance.random() < 0.004:
            raise OSError(errno.EIO, "no")
        return append(fd, buffers)  # type: ignore[no-any-return]

    return put


@pytest.mark.parametrize("count", [1, MOST_PARTITIONS, MOST_PARTITIONS + 1])
def test_a_request_of_many_partitions(client, count):
    make_topic(client, "t", count)
    rows = [PartitionProduceData(index=index, records=batch(b"a")) for index in range(count)]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=rows)])
    client.request(request, 9)  # opens the segments
    with counted(k00_produce, is_short=True) as ways:
        (topic,) = client.request(request, 9).responses
    assert [one.base_offset for one in topic.partition_responses] == [1] * count
    assert ways == ({} if count <= MOST_PARTITIONS else {"handler": 1})


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), MemoryError(), ValueError("a bug")])
def test_a_failed_append_is_that_partitions_answer_alone(client, monkeypatch, error):
    make_topic(client, "t", 3)
    append = cext_segment.append
    writes = 0

    def put(fd, buffers):
        nonlocal writes
        writes += any(b"mine" in bytes(one) for one in buffers)
        if writes == 2 and any(b"mine" in bytes(one) for one in buffers):
            raise error
        return append(fd, buffers)

    for index in range(3):
        produce(client, "t", index, batch(b"first"))  # opens the segments
    rows = [PartitionProduceData(index=index, records=batch(b"mine")) for index in range(3)]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=rows)])
    with counted(k00_produce, is_short=True) as ways, monkeypatch.context() as patch:
        patch.setattr(cext_segment, "append", put)
        (topic,) = client.request(request, 9).responses
    told = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    code = ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(error, ValueError) else ErrorCode.KAFKA_STORAGE_ERROR
    assert told == [(0, 0, 1), (1, code, -1), (2, 0, 1)]
    assert ways == {"rest": 1}


def test_a_broker_with_metrics_counts_its_answers(tmp_path):
    with (
        Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t", 2)
        produce(client, "t", 0, batch(b"opens"))
        with counted(k00_produce, is_short=True) as ways:
            for _ in range(3):
                assert produce(client, "t", 0, batch(b"a")).error_code == 0
        assert not ways
        times = broker.call(lambda: broker._server._dispatcher.times[0])
        assert times.errors == {0: 4}
        assert times.total.count == 4
        assert broker.call(lambda: broker.state.metrics.requests[0]) == 4


def test_it_is_left_to_the_handler_with_an_authorizer_a_quota_or_a_fault(broker, client):
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"opens"))
    with counted(k00_produce, is_short=True) as ways:
        produce(client, "t", 0, batch(b"a"))
        assert not ways
        broker.faults.arm("request.received", "hold", where={"api_key": 99}, nth=1)
        produce(client, "t", 0, batch(b"a"))
        assert ways == {"handler": 1}
        broker.faults.disarm("request.received")
        produce(client, "t", 0, batch(b"a"))
        assert ways == {"handler": 1}
        (told,) = client.request(QUOTA, 1).entries
        assert told.error_code == 0
        produce(client, "t", 0, batch(b"a"))
        assert ways == {"handler": 2}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_compressed_batch_is_served_unless_it_is_long_work(client, codec):
    """What a thread should decompress, or what exceeds `max.message.bytes` by then, is left to the handler, with all
    of its request."""
    make_topic(client, "t", 2)
    make_topic(client, "narrow", 1, max_message_bytes="10000")
    for name, index in (("t", 0), ("t", 1), ("narrow", 0)):
        produce(client, name, index, batch(b"opens"))

    def send(*values, topic="t"):
        rows = [PartitionProduceData(index=index, records=batch(*each, codec=codec)) for index, each in values]
        request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name=topic, partition_data=rows)])
        return [
            (one.error_code, one.base_offset) for one in client.request(request, 9).responses[0].partition_responses
        ]

    with counted(k00_produce, is_short=True) as ways:
        assert send((0, [b"a", b"b"]), (1, [bytes(100_000)])) == [(0, 1), (0, 1)]
        assert not ways
        assert send((0, [b"c"]), (1, [bytes(2_000_000)])) == [(0, 3), (0, 2)]
        assert ways == {"handler": 1}
        assert send((0, [bytes(10_001)]), topic="narrow") == [(0, 1)]
        assert ways == {"handler": 2}
        broken = bytearray(batch(b"d", codec=codec))
        broken[HEADER_SIZE:] = bytes(len(broken) - HEADER_SIZE)
        assert produce(client, "t", 0, bytes(seal(broken))).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert ways == {"handler": 3}


@pytest.mark.parametrize("version", range(3, 14))
def test_zstd_has_a_version(client, version):
    topic = make_topic(client, "t", 1)
    topic = topic if version >= 13 else "t"
    produce(client, topic, 0, batch(b"opens"), version)
    with counted(k00_produce, is_short=True) as ways:
        told = produce(client, topic, 0, batch(b"a", codec=4), version)
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 7 else 0
    assert (told.error_code, ways) == (code, {"handler": 1} if code else {})


@pytest.mark.parametrize("version", range(3, 14))
def test_each_version_is_served(client, version):
    topic_id = make_topic(client, "t", 1)
    topic = topic_id if version >= 13 else "t"
    produce(client, topic, 0, batch(b"opens"), version)
    with counted(k00_produce, is_short=True) as ways:
        told = produce(client, topic, 0, batch(b"a"), version)
    assert (told.error_code, told.base_offset, ways) == (0, 1, {})


def test_the_first_batches_of_a_transaction_are_served(client):
    """Of all partitions at once, as those that follow them; the handler has what is refused, and new producers."""
    make_topic(client, "t", 2)
    client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 4)
    given = client.request(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    for index in range(2):
        produce(client, "t", index, batch(b"opens"))

    def send(version, sequence, epoch=given.producer_epoch):
        how = {"producer_id": given.producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        records = batch(b"a", transactional=True, **how)
        rows = [PartitionProduceData(index=index, records=records) for index in range(2)]
        topics = [TopicProduceData(name="t", partition_data=rows)]
        request = ProduceRequest(acks=-1, timeout_ms=1, transactional_id="x", topic_data=topics)
        return [one.error_code for one in client.request(request, version).responses[0].partition_responses]

    with counted(k00_produce, is_short=True) as ways:
        assert send(11, 0) == [ErrorCode.TRANSACTION_ABORTABLE] * 2
        assert send(12, 0) == [0, 0]  # of a producer that the partitions do not know
        assert ways == {"rest": 2}
        assert send(12, 1) == [0, 0]
        who = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        ended = client.request(EndTxnRequest(transactional_id="x", committed=True, **who), 5)
        assert send(12, 0, ended.producer_epoch) == [0, 0]
        assert ways == {"rest": 2}
        assert send(12, 5, ended.producer_epoch) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
        assert ways == {"rest": 3}


def test_without_acks_it_is_left_to_the_handler(client):
    make_topic(client, "t", 1)
    with counted(k00_produce, is_short=True) as ways:
        client.send(produce_request("t", 0, batch(b"a"), acks=0), 9)
        assert produce(client, "t", 0, batch(b"b")).base_offset == 1
    assert ways["handler"] == 1
