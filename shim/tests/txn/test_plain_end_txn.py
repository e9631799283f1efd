"""Most EndTxns are served from frame to frame in `cext.plain_end_txn`, and what a Produce adds to a transaction is
recorded in `cext.transaction_log`. They must do what the handlers do."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.api import TABLE, k00_produce, k26_end_txn, k28_txn_offset_commit
from kafka_shim.cext import segment as cext_segment
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.targets.requests import make
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.frames import FrameClient, counted
from kafka_shim.tests.odd_requests import OddRequests
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic
from kafka_shim.txn.marking import MOST_MARKERS_AT_ONCE
from kafka_shim.txn.transaction import COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT
from kafka_shim.wire_client import Connection

END = TABLE[26]
NOW_MS = 1_700_000_000_000
PARTITIONS = 4
TOPICS: dict[str, dict[str, str]] = {
    "a": {},
    "b": {"index_interval_bytes": "300", "segment_index_bytes": "60"},
    "appended": {"message_timestamp_type": "LogAppendTime"},
}
MARK = "fails?"
IDS = ("fails-1", "fails-2", "x", "é")
ROUNDS = 250
CONTROL_FLAG, AT_ATTRIBUTES = 0x20, 22
SLOT_FIELDS = ("partition", "pending", "is_ending", "stuck", "refused", "unmarked", "pause_ms", "said")
# A partition that went offline is opened again, and a transaction in trouble tried again, by then.
LATER_MS = 20_000


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    for api in (TABLE[0], TABLE[28], END):
        if not api.is_loaded:
            api.load()
    yield
    END.plain, END.handle = k26_end_txn.PLAIN, k26_end_txn.handle


class Traffic(OddRequests):
    """What transactional producers send: mostly what is right, and wrong in everything now and then."""

    def __init__(self, broker: Broker, admin: Connection, seed: int) -> None:
        self._broker = broker
        super().__init__(seed)
        for name, configs in TOPICS.items():
            make_topic(admin, name, PARTITIONS, **configs)
        for kind in (0, 1):
            admin.request(make("FindCoordinator", key_type=kind, coordinator_keys=["any"]), 4)
        for name in IDS:
            self._initialise(admin, name)
        self._admin = admin

    @staticmethod
    def _initialise(admin: Connection, name: str) -> None:
        admin.request(make("InitProducerId", transactional_id=name, transaction_timeout_ms=900_000), 5)

    def slot(self, name: str) -> Any:
        return self._broker.state.transactions._log.slots[name]

    def round(self, version: int) -> list[bytes]:
        """A part of a transaction, and its end."""
        name = self.chance.choice(IDS)
        slot = self.slot(name)
        if self.chance.random() < 0.03 and not slot.pending:
            self._initialise(self._admin, name)
        frames = []
        if not slot.pending:
            frames += [self._produce(name) for _ in range(self.chance.choice([0, 1, 1, 1, 1, 2]))]
            if self.chance.random() < 0.4:
                frames.append(self._commit_offset(name))
        frames += [self._end(name, version) for _ in range(self.chance.choice([0, 1, 1, 1, 1, 2]))]
        return frames

    def _produce(self, name: str) -> bytes:
        txn = self.slot(name).transaction
        rows = []
        topic = self.chance.choice(["a", "a", "a", "b", "b", "appended"])
        for index in self.chance.sample(range(PARTITIONS), self.chance.choice([1, 1, 3])):
            log = self._broker.state.logs.partitions.loaded.get((topic, index))
            entry = None if log is None else log.producers.entries.get(txn.producer_id)
            known = entry is not None and entry.epoch == txn.producer_epoch
            how = {"producer_id": txn.producer_id, "producer_epoch": txn.producer_epoch, "transactional": True}
            records = batch(b"v", base_sequence=entry.last_sequence + 1 if known else 0, **how)  # type: ignore[union-attr]
            rows.append({"index": index, "records": records})
        topics = [{"name": topic, "partition_data": rows}]
        ask = make("Produce", transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics)
        return encode_request_frame(ask, 12, 7, "client")

    def _commit_offset(self, name: str) -> bytes:
        txn = self.slot(name).transaction
        who = {"transactional_id": name, "producer_id": txn.producer_id, "producer_epoch": txn.producer_epoch}
        who["producer_epoch"] += self._rarely(self.chance.choice([1, -1]), 0)
        rows = [
            {
                "partition_index": self._rarely(PARTITIONS, self.chance.randrange(PARTITIONS)),
                "committed_offset": self.chance.randrange(99),
                "committed_metadata": self._rarely("x" * 5000, self.chance.choice([None, "", "m", MARK, MARK])),
            }
            for _ in range(self.chance.choice([1, 1, 3]))
        ]
        topics = [{"name": self._rarely("nowhere", "a"), "partitions": self._rarely([], rows)}]
        group_id, generation_id = self._rarely("", self.chance.choice(["g", "h"])), self._rarely(3, -1)
        ask = make(
            "TxnOffsetCommit", group_id=group_id, generation_id=generation_id, member_id="", topics=topics, **who
        )
        return self._bent(encode_request_frame(ask, 5, 7, "client"))

    def _end(self, name: str, version: int) -> bytes:
        txn = self.slot(name).transaction
        ask = make(
            "EndTxn",
            transactional_id=self._rarely(self.chance.choice(["", "nobody", "x"]), name),
            producer_id=txn.producer_id + self._rarely(1, 0),
            producer_epoch=txn.producer_epoch + self._rarely(self.chance.choice([1, -1]), 0, 0.03),
            committed=self._rarely(False, True, 0.15),
        )
        return self._bent(encode_request_frame(ask, version, 7, self._rarely("é", "client")))


def state_of(broker: Broker) -> dict[str, Any]:
    coordinator = broker.state.transactions
    found: dict[str, Any] = {
        name: (
            repr(slot.transaction),
            coordinator.explanations.lines(name),
            *(getattr(slot, field) for field in SLOT_FIELDS),
        )
        for name, slot in coordinator._log.slots.items()
    }
    names = ("offset", "leader_epoch", "metadata", "commit_ms", "expire_ms", "topic_id", "record_offset")
    for partition, groups in broker.state.groups._runtime.loader.by_partition.items():
        offsets = groups.offsets
        found[f"groups {partition}"] = (
            groups.is_current,
            list(groups.by_id),
            [
                (group_id, topic, index, *(getattr(committed, name) for name in names))
                for group_id in offsets.group_ids()
                for topic, rows in offsets.of_group(group_id).items()
                for index, committed in rows.items()
            ],
            [(*where, *(getattr(committed, name) for name in names)) for *where, committed in offsets.pending_topics()],
        )
    found["retries"] = sorted(coordinator.completion.retries._timers)
    for key, log in broker.state.logs.partitions.loaded.items():
        entries = [
            (one.producer_id, one.epoch, one.coordinator_epoch, one.batches, one.txn_first_offset)
            for one in log.producers.entries.values()
        ]
        sizes = [(one.base_offset, one.size_bytes, one.max_timestamp()) for one in log.segments]
        counts = log.appended_records, log.appended_bytes, log.log_end_offset, log.last_stable_offset, log.is_offline
        found["-".join(map(str, key))] = entries, sizes, counts, sorted(log.producers._open.items())
    metrics = broker.state.metrics
    found["metrics"] = metrics.appended_bytes, metrics.errors_unexpected, dict(metrics.requests)
    return found


def files_of(data_dir: Path) -> dict[str, bytes]:
    suffixes = {".log", ".index", ".timeindex", ".txnindex"}
    topics = {*TOPICS, TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC}
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in data_dir.rglob("*")
        if path.suffix in suffixes and path.parent.name.rpartition("-")[0] in topics
    }


def failing_now_and_then(append: Any, seed: int) -> Any:
    """Of the writes of transitions and markers, by what they write: the same ones whatever else is written."""
    chance = random.Random(seed)

    def put(fd: int, buffers: Any) -> int:
        data = b"".join(bytes(one) for one in buffers)
        is_marker = len(data) > AT_ATTRIBUTES and data[AT_ATTRIBUTES] & CONTROL_FLAG
        if chance.random() < (0.04 if b"fails" in data else 0.02 if is_marker else 0):
            # A bug in what a Produce adds to a transaction is met twice: the fast path leaves it to the handler.
            bugs = [ValueError()] if is_marker else []
            raise chance.choice([OSError(errno.EIO, "no"), OSError(errno.ENOSPC, "full"), MemoryError(), *bugs])
        return append(fd, buffers)  # type: ignore[no-any-return]

    return put


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("seed", range(4))
def test_answers_states_and_files_are_those_of_the_handler(tmp_path, monkeypatch, seed):
    """Producers of both levels, in all versions, whose writes fail now and then."""
    left: list[Any] = []
    for is_short in (True, False):
        data_dir = tmp_path / str(is_short)
        with (
            Broker(clock=VirtualClock(NOW_MS, seed), data_dir=data_dir) as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as admin,
        ):
            traffic, client = Traffic(broker, admin, seed), FrameClient(broker)
            ends = commits = 0
            with (
                counted(k00_produce, is_short),
                counted(k28_txn_offset_commit, is_short) as offset_ways,
                counted(k26_end_txn, is_short) as ways,
                monkeypatch.context() as patch,
            ):
                patch.setattr(cext_segment, "append", failing_now_and_then(cext_segment.append, seed))
                for number in range(ROUNDS):
                    for frame in traffic.round(number % 6):
                        client.send(frame)
                        ends += int.from_bytes(frame[4:6]) == END.key
                        commits += int.from_bytes(frame[4:6]) == k28_txn_offset_commit.KEY
                    if number % 10 == 9:
                        broker.call(broker.state.logs.reopen_offline)
                        broker.clock.advance(LATER_MS)
            client.close()
            left.append((client.answers, broker.call(state_of, broker)))
        left[-1] += (files_of(data_dir),)
        if is_short:
            assert commits - offset_ways["handler"] - offset_ways["rest"] > 20, (commits, offset_ways)
            assert ends - ways["handler"] - ways["rest"] > 50, (ends, ways)
    (answers, state, files), (other_answers, other_state, other_files) = left
    assert answers == other_answers
    assert state == other_state
    assert files == other_files
    assert any(files.values())


def begin(client: Connection, *partitions: tuple[str, int], name: str = "app") -> tuple[int, int]:
    """An open transaction with a record in each partition. Returns its producer."""
    ask = make("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
    given = client.request(ask, 5)
    assert given.error_code == 0
    producer = given.producer_id, given.producer_epoch
    if partitions:
        produce_to(client, producer, *partitions, name=name)
    return producer


def produce_to(client: Connection, producer: tuple[int, int], *partitions: tuple[str, int], name: str = "app") -> None:
    records = batch(b"v", producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, transactional=True)
    topics = [{"name": topic, "partition_data": [{"index": index, "records": records}]} for topic, index in partitions]
    ask = make("Produce", transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics)
    answer = client.request(ask, 12)
    assert {row.error_code for topic in answer.responses for row in topic.partition_responses} == {0}


def end(client: Connection, producer: tuple[int, int], version: int = 5, name: str = "app", **fields: Any) -> Any:
    who = {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1], "committed": True}
    return client.request(make("EndTxn", **{**who, **fields}), version)


def end_one(client: Connection, *partitions: tuple[str, int]) -> None:
    """A transaction, of which the logs and what the broker keeps of an id are then there."""
    assert end(client, begin(client, *partitions)).error_code == 0


def slot_of(broker: Broker, name: str = "app") -> Any:
    return broker.call(lambda: broker.state.transactions._log.slots[name])


@pytest.fixture
def ready(client: Connection) -> Connection:
    make_topic(client, "t", 2)
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
    end_one(client, ("t", 0), ("t", 1))
    return client


@pytest.mark.parametrize("version", range(6))
def test_each_version_is_served(broker, ready, version):
    producer = begin(ready, ("t", 0))
    with counted(k26_end_txn, is_short=True) as ways:
        ended = end(ready, producer, version)
    assert not ways
    now = producer[0], producer[1] + 1
    assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (0, *(now if version >= 5 else (-1, -1)))
    slot = slot_of(broker)
    txn = slot.transaction
    assert (txn.state, txn.producer_id, txn.producer_epoch) == (COMPLETE_COMMIT, *(now if version >= 5 else producer))
    assert not (slot.pending or slot.is_ending or slot.unmarked)
    assert fetch(ready, "t", 0, 0, isolation_level=1).last_stable_offset == 4


@pytest.mark.parametrize("count", [MOST_MARKERS_AT_ONCE, MOST_MARKERS_AT_ONCE + 1])
def test_a_transaction_of_many_partitions(broker, ready, count):
    make_topic(ready, "many", count)
    producer = begin(ready, *(("many", index) for index in range(count)))
    with counted(k26_end_txn, is_short=True) as ways:
        assert end(ready, producer).error_code == 0
    assert ways == ({} if count <= MOST_MARKERS_AT_ONCE else {"handler": 1})
    broker.clock.advance(1)
    assert slot_of(broker).transaction.state is COMPLETE_COMMIT


def test_what_decides_something_is_the_handlers(ready):
    producer = begin(ready, ("t", 0))
    with counted(k26_end_txn, is_short=True) as ways:
        assert end(ready, (producer[0], producer[1] + 1)).error_code == ErrorCode.PRODUCER_FENCED
        assert end(ready, (producer[0] + 1, producer[1])).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert end(ready, producer, name="nobody").error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert ways == {"handler": 3}
        assert end(ready, producer).error_code == 0
        assert ways == {"handler": 3}
        assert end(ready, producer).error_code == 0  # a retry
        assert end(ready, begin(ready, ("t", 0)), committed=False).error_code == 0
    assert ways == {"handler": 5}


@pytest.mark.parametrize("epoch", [0x7FFD, 0x7FFE])
def test_the_last_epoch_is_the_handlers(broker, ready, epoch):
    producer = begin(ready)
    broker.call(lambda: setattr(slot_of_now(broker).transaction, "producer_epoch", epoch))
    produce_to(ready, (producer[0], epoch), ("t", 0))
    with counted(k26_end_txn, is_short=True) as ways:
        ended = end(ready, (producer[0], epoch))
    assert ended.error_code == 0
    if epoch == 0x7FFD:
        assert ways == {}
        assert (ended.producer_id, ended.producer_epoch) == (producer[0], epoch + 1)
    else:
        assert ways == {"handler": 1}
        assert (ended.producer_id != producer[0], ended.producer_epoch) == (True, 0)


def slot_of_now(broker: Broker) -> Any:
    return broker.state.transactions._log.slots["app"]


def test_it_is_left_to_the_handler_with_a_fault_or_a_level_below_1(broker, ready):
    with counted(k26_end_txn, is_short=True) as ways:
        producer = begin(ready, ("t", 0))
        broker.faults.arm("request.received", "hold", where={"api_key": 99}, nth=1)
        assert end(ready, producer).error_code == 0
        broker.faults.disarm("request.received")
        assert ways == {"handler": 1}
        producer = begin(ready, ("t", 0))
        features = broker.state.metadata.image.features
        level = features["transaction.version"]
        features["transaction.version"] = 0
        assert end(ready, producer, 4).error_code == 0
        features["transaction.version"] = level
        assert ways == {"handler": 2}


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, nth: int) -> None:
    """Let the nth write from now on fail: of a commit to one partition PREPARE, the marker, and COMPLETE."""
    append, count = cext_segment.append, iter(range(1 << 30))

    def put(fd: int, buffers: Any) -> int:
        if next(count) == nth:
            raise error
        return append(fd, buffers)

    monkeypatch.setattr(cext_segment, "append", put)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "full"), ErrorCode.NOT_COORDINATOR),
        (MemoryError(), ErrorCode.NOT_COORDINATOR),
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("is_short", [True, False])
def test_a_decision_that_is_not_written_is_none(broker, ready, monkeypatch, error, code, is_short):
    producer = begin(ready, ("t", 0))
    with counted(k26_end_txn, is_short) as ways:
        with monkeypatch.context() as patch:
            failing(patch, error, 0)
            assert end(ready, producer).error_code == code
        assert ways == {"rest" if is_short else "handler": 1}
        slot = slot_of(broker)
        assert not (slot.pending or slot.is_ending or slot.unmarked)
        assert slot.transaction.state is ONGOING
        broker.call(broker.state.logs.reopen_offline)
        assert end(ready, producer).error_code == 0
    assert slot_of(broker).transaction.state is COMPLETE_COMMIT
    lines = broker.call(broker.state.transactions.explanations.lines, "app")
    assert sum("EndTxn refused" in line for line in lines) == (code is ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), MemoryError(), ValueError("a bug")])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("is_short", [True, False])
def test_what_is_decided_ends_later_if_a_write_fails(broker, ready, monkeypatch, error, nth, is_short):
    producer = begin(ready, ("t", 0))
    with counted(k26_end_txn, is_short) as ways:
        with monkeypatch.context() as patch:
            failing(patch, error, nth)
            assert end(ready, producer).error_code == 0
            slot = slot_of(broker)  # the handler writes the markers after its response
        assert ways == ({} if is_short else {"handler": 1})
    assert slot.transaction.state is PREPARE_COMMIT
    assert (slot.pending, slot.is_ending, list(slot.unmarked)) == (True, False, [("t", 0)] if nth == 1 else [])
    errors = broker.call(lambda: broker.state.metrics.errors_unexpected)
    assert errors == isinstance(error, ValueError)
    broker.clock.advance(LATER_MS)
    assert slot.transaction.state is COMPLETE_COMMIT
    assert not (slot.pending or slot.is_ending or slot.unmarked or slot.said or slot.pause_ms)


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), MemoryError()])
def test_a_hook_that_fails_is_told_again(broker, ready, error):
    producer = begin(ready, ("t", 0), ("t", 1))
    heard = []

    def hear(log: Any, *_: Any) -> None:
        heard.append(log.partition)
        if len(heard) == 2:
            raise error

    broker.call(broker.state.logs.on_marker.append, (None, hear))
    assert end(ready, producer).error_code == 0
    assert slot_of(broker).transaction.state is PREPARE_COMMIT
    broker.clock.advance(LATER_MS)
    assert slot_of(broker).transaction.state is COMPLETE_COMMIT
    assert heard == [0, 1, 1]


def test_a_partition_that_waits_for_the_disk_gets_its_marker_and_complete_waits(broker, ready):
    make_topic(ready, "flushed", 1, flush_messages="1")
    producer = begin(ready, ("t", 0), ("flushed", 0))
    with counted(k26_end_txn, is_short=True) as ways:
        assert end(ready, producer).error_code == 0
    assert not ways
    wait_until(lambda: slot_of(broker).transaction.state is COMPLETE_COMMIT, "the end of the transaction")
    for topic in ("t", "flushed"):
        assert fetch(ready, topic, 0, 0, isolation_level=1).last_stable_offset == (4 if topic == "t" else 2)


def test_a_reader_that_waits_for_the_end_of_the_transaction_is_woken(broker, ready):
    producer = begin(ready, ("t", 0))
    stable = fetch(ready, "t", 0, 0, isolation_level=1).last_stable_offset
    with Connection(broker.bootstrap_servers, timeout_s=60) as reader:
        reader.send(fetch_request({("t", 0): stable}, isolation_level=1, max_wait_ms=600_000), 12)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)), "a reader that waits")
        with counted(k26_end_txn, is_short=True) as ways:
            assert end(ready, producer).error_code == 0
        assert not ways
        _, answer = reader.receive(1, 12)
    assert answer.responses[0].partitions[0].last_stable_offset == stable + 2


def test_a_broker_with_metrics_counts_its_answers():
    counts = []
    for is_short in (True, False):
        with (
            Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as client,
        ):
            make_topic(client, "t", 1)
            client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
            end_one(client, ("t", 0))
            with counted(k26_end_txn, is_short) as ways:
                end_one(client, ("t", 0))
            assert bool(ways) is not is_short
            times = broker.call(lambda served=broker: served._server._dispatcher.times[26])
            counts.append((times.errors, times.total.count, broker.call(lambda b=broker: b.state.metrics.requests[26])))
    assert counts[0] == counts[1] == ({0: 2}, 2, 2)
