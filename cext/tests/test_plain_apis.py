"""What is served from frame to frame reads no byte beyond its frame, whatever is in it. What it answers is compared
with the handlers in shim/tests/api/test_plain_produce.py, test_plain_fetch.py, test_plain_list_offsets.py and
test_plain_versions.py, and in shim/tests/group/test_plain_heartbeats.py, test_plain_joins.py, test_plain_waits.py,
test_plain_commit_frames.py and test_plain_offset_fetch.py; transactions in
shim/tests/txn/test_plain_end_txn.py."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.cext.classic_members import ClassicGroupBase
from kafka_shim.cext.classic_requests import ClassicRequestsBase, GroupsBase, Joining, PartitionCountBase, Syncing
from kafka_shim.cext.dispatcher_base import ApiBase, DispatcherBase, RequestCounts
from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.log_base import EpochsBase, LogBase, ProducersBase
from kafka_shim.cext.offset_records import Committed
from kafka_shim.cext.plain_commits import PlainCommit
from kafka_shim.cext.plain_end_txn import PlainEndTxn
from kafka_shim.cext.plain_fetch import PlainFetch
from kafka_shim.cext.plain_heartbeats import PlainConsumerHeartbeat, PlainHeartbeat
from kafka_shim.cext.plain_joins import PlainJoin
from kafka_shim.cext.plain_list_offsets import PlainListOffsets
from kafka_shim.cext.plain_offset_fetch import PlainOffsetFetch
from kafka_shim.cext.plain_produce import PlainProduce
from kafka_shim.cext.plain_syncs import PlainSync
from kafka_shim.cext.plain_txn_commits import PlainTxnCommit
from kafka_shim.cext.plain_versions import PlainVersions
from kafka_shim.cext.replies import DelayedBase
from kafka_shim.cext.segment import IndexBase, SegmentBase
from kafka_shim.cext.session_base import CachedBase, SessionBase
from kafka_shim.cext.tests import oracle
from kafka_shim.cext.tests.exact import exact
from kafka_shim.cext.transaction_log import SlotBase, TransactionLogBase
from kafka_shim.cext.transaction_records import Batches, TransactionBase
from kafka_shim.protocol.headers import encode_request_frame, request_class
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchTopic
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequestProtocol
from kafka_shim.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kafka_shim.protocol.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_shim.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

BATCH = oracle.write_batch(oracle.write_record(0, 0, b"key", b"value"), 1)
FIRST_FLEXIBLE = {0: 9, 1: 12, 2: 6, 8: 8, 9: 6, 11: 6, 12: 4, 14: 4, 18: 3, 26: 3, 28: 3, 68: 0}
# What is stored of the topic, in each of its partitions.
STORED = b"".join(offset.to_bytes(8) + BATCH[8:] for offset in range(3))
TOPIC_ID = bytes(range(16))
SESSION_ID = 7
FIRST_WITH_SESSIONS, FIRST_WITH_IDS = 7, 13
HEADER_BYTES = 8


class NotServedError(Exception):
    """It was left to the handler, or cannot be read."""


class Dispatcher(DispatcherBase):
    def _no_header(self, error: ValueError) -> Exception:
        return NotServedError(str(error))

    def _cannot_read(self, api: Any, version: int, error: ValueError) -> Exception:
        return NotServedError(str(error))

    def _begin_large(self, *arguments: Any) -> None:
        raise NotServedError

    def _refuse(self, context: Any, api: Any, request: Any, error: Exception) -> None:
        raise error


class Groups(GroupsBase):
    offsets: Any


def loaded() -> Groups:
    """One group, with offsets."""
    groups, group = Groups(), ClassicGroupBase()
    groups.by_id, groups.is_current = {"group": group}, True
    offsets = {"topic": {index: Committed(5, 0, "m", 1, topic_id=TOPIC_ID) for index in range(3)}}
    groups.offsets = SimpleNamespace(has_any_pending=lambda group_id: False, of_group=lambda group_id: offsets)
    return groups


class Requests(ClassicRequestsBase):
    """A group in which everybody waits."""

    def __init__(self, seen: Counter[str]) -> None:
        partitions = PartitionCountBase()
        partitions.known = 1
        config = SimpleNamespace(group_min_session_timeout_ms=0, group_max_session_timeout_ms=1)
        runtime = SimpleNamespace(clock=None, config=config, partitions=partitions, timers=None, purgatory={})
        runtime.loader = SimpleNamespace(by_partition={0: loaded()})
        super().__init__(runtime, ("join", "session", "sync"), SimpleNamespace())
        self._seen = seen

    def new_id(self, client_id: str | None, joining: Joining) -> str:
        return "id"

    def expect(self, joining: Joining, member_id: str) -> None:
        self._seen["stays"] += 1

    def wait_to_join(self, joining: Joining, client_id: str, client_host: str, delayed: DelayedBase) -> bool:
        self._seen["stays"] += 1
        assert all(type(metadata) is bytes for _, metadata in joining.protocols)
        return True

    def wait_to_sync(self, syncing: Syncing, delayed: DelayedBase) -> bool:
        self._seen["stays"] += 1
        return True

    def assigned(self, syncing: Syncing) -> bool:
        return False

    def keep(self, *who: Any) -> bool:
        return False


class Segment(SegmentBase):
    txn_index = SimpleNamespace(last_offsets=[])

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._offset_index = IndexBase()
        self.store(STORED, [(1, len(BATCH))])

    def store(self, stored: bytes, entries: list[tuple[int, int]]) -> None:
        """Have these bytes in the file, and these offsets and positions in the index."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, stored, 0)
        self.size_bytes = len(stored)
        self._offset_index.tail = bytearray(b"".join(at.to_bytes(4) + to.to_bytes(4) for at, to in entries))


class Sessions:
    """The session of whoever asks, which has three partitions and has read nothing."""

    def __init__(self, log: LogBase) -> None:
        self._log = log

        self.sessions: dict[int, SessionBase] = {}

    def begin(self, version: int) -> None:
        """Start it over, and with it the next epoch."""
        session = self.sessions[SESSION_ID] = SessionBase()
        session.by_id = version >= FIRST_WITH_IDS
        session.epoch, session.reader = 1, (version, 0, -1, -1, None)
        session.partitions, session.changed = {}, {}
        for index in range(3):
            cached = CachedBase()
            cached.topic = TOPIC_ID if session.by_id else "topic"
            cached.partition, cached.session, cached.log, cached.max_bytes = index, session, self._log, 1
            session.partitions[cached.topic, index] = cached
            session.changed[cached] = None


def left(context: Any, request: Any) -> None:
    raise NotServedError


@pytest.fixture
def segment(tmp_path: Path) -> Iterator[Segment]:
    fd = os.open(tmp_path / "0.log", os.O_RDWR | os.O_CREAT)
    yield Segment(fd)
    os.close(fd)


def transaction_log() -> TransactionLogBase:
    """One id, whose transaction is open. Its partition has no segment."""
    log, slot = LogBase(), SlotBase()
    log.segments, log.producers = [], ProducersBase()
    partitions = frozenset({("topic", 0)})
    slot.transaction = TransactionBase("t", 7, -1, -1, 3, -1, 1, 1, partitions, 1, 1, 2)
    slot.key, slot.partition, slot.stuck, slot.refused, slot.said = b"key", 0, "", frozenset(), {}
    metadata = SimpleNamespace(image=SimpleNamespace(features={"feature": 2}))
    batches = Batches(lambda txn, version: b"\1", 64)
    made = TransactionLogBase(
        {("transactions", 0): log},
        metadata,
        SimpleNamespace(events={}),
        batches,
        "transactions",
        "feature",
        tuple(range(8)),
        100,
        lambda *arguments, **more: partitions,
        frozenset.union,
    )
    made.slots["t"] = slot
    return made


def dispatcher(seen: Counter[str], segment: Segment) -> Dispatcher:
    def stays(*arguments: Any) -> bool:
        seen["stays"] += 1
        return True

    def prepare(*arguments: Any) -> tuple[Any, LogBase, list[Any], int]:
        """A log that has no segment: everything is made but the append."""
        seen["stays"] += 1
        log = LogBase()
        log.segments, log.producers = [], ProducersBase()
        return SimpleNamespace(is_current=True), log, [], 4096

    def prepare_in_transaction(*arguments: Any) -> tuple[Any, LogBase, int]:
        """A log that may be appended to. The coordinator's may not: everything is made but the append."""
        seen["stays"] += 1
        log = LogBase()
        log.segments, log.producers, log.epochs, log.key = [segment], ProducersBase(), EpochsBase(), ("offsets", 0)
        log.epochs.latest, log.producers.entries, log.producers._verifications = log.leader_epoch, {}, {}
        return SimpleNamespace(is_current=True), log, 4096

    def unmarked_of(partitions: Any) -> dict[Any, None]:
        """Everything is made but the append: the log has no segment."""
        seen["stays"] += 1
        return dict.fromkeys(partitions)

    def frame_of(*arguments: Any) -> bytes:
        seen["stays"] += 1
        return bytes(12)

    shorts = {
        8: PlainCommit(SimpleNamespace(append=None), 5, prepare, left),
        0: PlainProduce(SimpleNamespace(append=None), frozenset(["__other"]), 5, left),
        1: PlainFetch(1000),
        2: PlainListOffsets(),
        9: PlainOffsetFetch(object(), object),
        11: PlainJoin(DelayedBase, left, left),
        12: PlainHeartbeat(stays),
        14: PlainSync(DelayedBase, left),
        18: PlainVersions(frame_of),
        28: PlainTxnCommit(SimpleNamespace(append=None), 5, prepare_in_transaction, left),
        26: PlainEndTxn(SimpleNamespace(append=None), 5, 64, unmarked_of),
        68: PlainConsumerHeartbeat(stays),
    }
    table = {}
    for key, plain in shorts.items():
        api = table[key] = ApiBase()
        api.key, api.first, api.last, api.is_loaded = key, 0, 18, True
        api.cluster_operations, api.handle, api.plain = (), left, plain
        api.request = request_class(key)
    log = LogBase()
    log.segments, log.producers, log.log_end_offset = [segment], ProducersBase(), 3
    topic = SimpleNamespace(name="topic", topic_id=TOPIC_ID, partitions=[None] * 3)
    topics = {"topic": topic, "__other": topic}
    broker = SimpleNamespace(
        authorizer=None,
        groups=SimpleNamespace(
            classic=Requests(seen),
            partitions=SimpleNamespace(known=3),
            offsets=SimpleNamespace(deleted=SimpleNamespace(are_left=False)),
        ),
        quotas=None,
        config=SimpleNamespace(fetch_max_bytes=1000),
        fetch_sessions=Sessions(log),
        clock=SimpleNamespace(now_ms=lambda: 1, monotonic_ms=lambda: 1, is_virtual=False),
        faults=SimpleNamespace(armed=False, holds=lambda name: False),
        metrics=SimpleNamespace(requests=RequestCounts(), appended_bytes=0, fetched_bytes=0),
        logs=SimpleNamespace(partitions=SimpleNamespace(loaded={("topic", index): log for index in range(3)})),
        metadata=SimpleNamespace(image=SimpleNamespace(topics_by_id={TOPIC_ID: topic}, topics=topics)),
        transactions=SimpleNamespace(_log=transaction_log(), completion=None),
    )
    broker.logs.services = SimpleNamespace(on_marker=[])
    return Dispatcher(broker, table, RequestHeaderParser(FIRST_FLEXIBLE), lambda level: False, {})


def requests() -> list[tuple[bytes, int]]:
    """(frame without its length, API key)."""
    found = []
    produce, commit, heartbeat, consumer = (request_class(key) for key in (0, 8, 12, 68))
    for version in range(3, 14):
        rows = [PartitionProduceData(index=index, records=BATCH) for index in range(3)]
        topic = TopicProduceData(name="topic", topic_id=TOPIC_ID, partition_data=rows)
        message = produce(transactional_id="t", acks=-1, timeout_ms=1, topic_data=[topic])
        found.append((encode_request_frame(message, version, 1, "c")[4:], 0))
    fetch = request_class(1)
    for version in range(4, 19):
        parts = [
            FetchPartition(partition=index, fetch_offset=index, partition_max_bytes=len(STORED)) for index in range(3)
        ]
        topic = FetchTopic(topic="topic", topic_id=TOPIC_ID, partitions=parts)
        for session_id in (0, SESSION_ID) if version >= FIRST_WITH_SESSIONS else (0,):
            message = fetch(max_bytes=900, rack_id="r" if version > 10 else "", topics=[topic], session_id=session_id)
            message.session_epoch = 1 if session_id else -1
            found.append((encode_request_frame(message, version, 1, "c")[4:], 1))
    for version in range(1, 12):
        rows = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(3)]
        message = request_class(2)(replica_id=-1, topics=[ListOffsetsTopic(name="topic", partitions=rows)])
        found.append((encode_request_frame(message, version, 1, "c")[4:], 2))
    for version in range(1, 11):
        asked = {"name": "topic", "partition_indexes": [0, 1, 2]}
        if version >= 8:
            asked |= {"topic_id": TOPIC_ID} if version >= 10 else {}
            named = OffsetFetchRequestTopics(**asked)
            message = request_class(9)(groups=[OffsetFetchRequestGroup(group_id="group", topics=[named])])
        else:
            message = request_class(9)(group_id="group", topics=[OffsetFetchRequestTopic(**asked)])
        found.append((encode_request_frame(message, version, 1, "c")[4:], 9))
    for version in range(2, 11):
        rows = [OffsetCommitRequestPartition(partition_index=index, committed_metadata="m") for index in range(3)]
        topic = OffsetCommitRequestTopic(name="topic", topic_id=TOPIC_ID, partitions=rows)
        message = commit(group_id="group", generation_id_or_member_epoch=3, member_id="member", topics=[topic])
        found.append((encode_request_frame(message, version, 1, "c")[4:], 8))
    join = request_class(11)
    for version in range(4, 10):
        protocols = [JoinGroupRequestProtocol(name=name, metadata=b"topics") for name in ("range", "sticky")]
        fields = {"group_id": "group", "session_timeout_ms": 1, "rebalance_timeout_ms": 1}
        for member_id in ("", "member"):
            message = join(**fields, member_id=member_id, protocol_type="consumer", protocols=protocols)
            found.append((encode_request_frame(message, version, 1, "c")[4:], 11))
    sync = request_class(14)
    for version in range(6):
        message = sync(group_id="group", generation_id=3, member_id="member", protocol_type="consumer")
        message.protocol_name = "range"
        found.append((encode_request_frame(message, version, 1, "c")[4:], 14))
    for version in range(5):
        message = heartbeat(group_id="group", generation_id=3, member_id="member")
        found.append((encode_request_frame(message, version, 1, "c")[4:], 12))
    for version in range(5):
        message = request_class(18)(client_software_name="a-b", client_software_version="4.3.1")
        found.append((encode_request_frame(message, version, 1, "c")[4:], 18))
    for version in range(6):
        message = request_class(26)(transactional_id="t", producer_id=7, producer_epoch=3, committed=True)
        found.append((encode_request_frame(message, version, 1, "c")[4:], 26))
    rows = [TxnOffsetCommitRequestPartition(partition_index=index, committed_metadata="m") for index in range(3)]
    message = request_class(28)(transactional_id="t", group_id="group", producer_id=7, producer_epoch=3)
    message.topics = [TxnOffsetCommitRequestTopic(name="topic", partitions=rows)]
    found.append((encode_request_frame(message, 5, 1, "c")[4:], 28))
    for version in range(2):
        message = consumer(group_id="group", member_id="member", member_epoch=3, topic_partitions=None)
        found.append((encode_request_frame(message, version, 1, "c")[4:], 68))
    return found


def ask(asked: Dispatcher, frame: bytes) -> Any:
    asked.broker.fetch_sessions.begin(int.from_bytes(frame[2:4]))
    with exact(frame) as buffer:
        try:
            session = SimpleNamespace(authenticator=None, listener=None, peer_host="127.0.0.1")
            return asked.handle(session, memoryview(buffer))
        except NotServedError:
            return None


@pytest.mark.parametrize(("frame", "key"), requests())
def test_no_byte_beyond_the_frame_is_read(segment: Segment, frame: bytes, key: int) -> None:
    seen: Counter[str] = Counter()
    asked = dispatcher(seen, segment)
    answer = ask(asked, frame)
    if key in (1, 2, 9):
        assert answer.is_plain
        if key == 1:
            assert [answer.parts[0].count(STORED[len(BATCH) * at :]) for at in range(3)] == [1, 2, 3]
    elif key:
        assert (answer is not None) == (key not in (8, 26, 28))
        assert seen["stays"] == 1
    for end in range(HEADER_BYTES, len(frame)):
        assert ask(asked, frame[:end]) is None
    chance = random.Random(key)
    for _ in range(300):
        changed = bytearray(frame)
        for _ in range(chance.choice([1, 1, 2, 4])):
            changed[chance.randrange(HEADER_BYTES, len(changed))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        ask(asked, bytes(changed[: chance.randrange(HEADER_BYTES, len(changed) + 1)]))


@pytest.mark.parametrize(("frame", "key"), [row for row in requests() if row[1] == 1])
def test_no_byte_beyond_what_is_read_is_looked_at_whatever_is_stored(segment: Segment, frame: bytes, key: int) -> None:
    asked = dispatcher(Counter(), segment)
    chance, served = random.Random(key), 0
    for _ in range(200):
        changed = bytearray(STORED * chance.choice([1, 1, 40]))
        for _ in range(chance.choice([0, 1, 2])):
            changed[chance.randrange(len(changed))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        places = [0, len(BATCH), len(BATCH) - 1, 4 << 10, 1 << 31, (1 << 32) - 1]
        entries = [(number, chance.choice(places)) for number in range(chance.randrange(4))]
        segment.store(bytes(changed[: chance.randrange(len(changed) + 1)]), entries)
        # The file may end before what is known of it.
        segment.size_bytes += chance.choice([0, 0, 1, 1 << 32])
        served += ask(asked, frame) is not None
    assert 0 < served < 200
