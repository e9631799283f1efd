"""Most OffsetFetches are answered from frame to frame in `cext.plain_offset_fetch`. The answers must be those of the
handler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, k09_offset_fetch
from kafka_shim.cext.plain_offset_fetch import MOST_OFFSETS
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.group.offset_rules import PARTITIONS_AT_ONCE
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.targets.requests import make
from kafka_shim.tests.frames import FrameClient, counted
from kafka_shim.tests.odd_requests import OddRequests
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

PARTITIONS = 3
REQUESTS = 600
VERSIONS = range(1, 11)
UNKNOWN_ID = bytes(15) + b"\7"
ALL_TOPICS, STABLE, GROUPS, MEMBERS, IDS = 2, 7, 8, 9, 10


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    if not TABLE[9].is_loaded:
        TABLE[9].load()
    yield
    TABLE[9].plain, TABLE[9].handle = k09_offset_fetch.PLAIN, k09_offset_fetch.handle


def commit(client: Connection, group: str, topic: str, *partitions: int, metadata: str = "m") -> None:
    rows = [{"partition_index": each, "committed_offset": 5, "committed_metadata": metadata} for each in partitions]
    who = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    answer = client.request(make("OffsetCommit", **who, topics=[{"name": topic, "partitions": rows}]), 8)
    assert {row.error_code for row in answer.topics[0].partitions} == {0}


def fill(client: Connection) -> dict[str, bytes]:
    """Groups with offsets, one with pending ones of a transaction, and a consumer group. Returns the topics' ids."""
    for key_type in (0, 1):
        client.request(make("FindCoordinator", key_type=key_type, coordinator_keys=["g"]), 4)
    ids = {name: make_topic(client, name, PARTITIONS) for name in ("t", "u", "again")}
    for group in ("one", "two", "é", "open"):
        commit(client, group, "t", 0, 2)
        commit(client, group, "u", 1, metadata="é")
    commit(client, "two", "again", 0)
    given = client.request(make("InitProducerId", transactional_id="g", transaction_timeout_ms=60_000), 5)
    who = {"transactional_id": "g", "producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    rows = [{"partition_index": 0, "committed_offset": 9, "committed_metadata": ""}]
    pending = make("TxnOffsetCommit", **who, group_id="open", topics=[{"name": "t", "partitions": rows}])
    assert client.request(pending, 5).topics[0].partitions[0].error_code == 0
    first = {"member_epoch": 0, "rebalance_timeout_ms": 30_000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
    joined = client.request(make("ConsumerGroupHeartbeat", group_id="modern", member_id="m", **first), 1)
    who = {"group_id": "modern", "generation_id_or_member_epoch": joined.member_epoch, "member_id": "m"}
    rows = [{"partition_index": 1, "committed_offset": 7, "committed_metadata": "m"}]
    answer = client.request(make("OffsetCommit", **who, topics=[{"name": "t", "partitions": rows}]), 9)
    assert answer.topics[0].partitions[0].error_code == 0
    return ids


class Traffic(OddRequests):
    """What clients ask: mostly what is right, and wrong in everything now and then."""

    PART = 0.02

    def __init__(self, ids: dict[str, bytes], seed: int) -> None:
        super().__init__(seed)
        self.ids = ids

    def _topics(self, version: int) -> Any:
        if version >= ALL_TOPICS and self.chance.random() < 0.4:
            return None
        topics = []
        for _ in range(self.chance.choice([0, 1, 1, 2])):
            name = self._rarely(self.chance.choice(["none", "é", ""]), self.chance.choice(["t", "u", "again"]))
            known = {"topic_id": self.ids.get(name, UNKNOWN_ID)} if version >= IDS else {"name": name}
            if version >= IDS and self.chance.random() < 0.02:
                known["topic_id"] = ZERO_UUID
            indexes = [self.chance.randrange(-1, PARTITIONS + 1) for _ in range(self.chance.choice([0, 1, 2, 4]))]
            topics.append({**known, "partition_indexes": indexes})
        return topics

    def _group(self, version: int) -> dict[str, Any]:
        names = ["one", "two", "open", "nobody", "modern"]
        group_id = self._rarely(self.chance.choice(["", "é"]), self.chance.choice(names), 0.04)
        group = {"group_id": group_id, "topics": self._topics(version)}
        if version >= MEMBERS:
            group["member_id"] = self.chance.choice([None, "", "m"])
            group["member_epoch"] = self.chance.choice([-1, 0, 1, 2, 7])
        return group

    def frame(self, version: int) -> bytes:
        if version >= GROUPS:
            fields: dict[str, Any] = {"groups": [self._group(version) for _ in range(self.chance.choice([0, 1, 1, 3]))]}
        else:
            fields = self._group(version)
        if version >= STABLE:
            fields["require_stable"] = self.chance.choice([False, False, True])
        frame = encode_request_frame(make("OffsetFetch", **fields), version, 7, self._rarely("é", "client"))
        return self._bent(frame)


@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_the_handler(broker: Broker, client: Connection, seed: int) -> None:
    ids = fill(client)
    found = []
    for is_short in (True, False):
        traffic, frames = Traffic(ids, seed), FrameClient(broker)
        with counted(k09_offset_fetch, is_short) as ways:
            for number in range(REQUESTS):
                frames.send(traffic.frame(VERSIONS[number % len(VERSIONS)]))
        frames.close()
        found.append(frames.answers)
        if is_short:
            assert REQUESTS - ways["handler"] > 300, ways
    assert found[0] == found[1]


def all_of(group: str, version: int, **fields: Any) -> Any:
    if version < GROUPS:
        return make("OffsetFetch", group_id=group, topics=None, **fields)
    return make("OffsetFetch", groups=[{"group_id": group, "topics": None}], **fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_served(client: Connection, version: int) -> None:
    ids = fill(client)
    known = {"topic_id": ids["t"]} if version >= IDS else {"name": "t"}
    group = {"group_id": "one", "topics": [{**known, "partition_indexes": [0, 1]}]}
    with counted(k09_offset_fetch, is_short=True) as ways:
        answer = client.request(make("OffsetFetch", **({"groups": [group]} if version >= GROUPS else group)), version)
    assert not ways
    told = answer.groups[0] if version >= GROUPS else answer
    rows = [(row.partition_index, row.committed_offset, row.metadata) for row in told.topics[0].partitions]
    assert rows == [(0, 5, "m"), (1, -1, "")]


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        ("m", 0, ErrorCode.NONE),
        (None, None, ErrorCode.NONE),
        ("m", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("m", None, ErrorCode.STALE_MEMBER_EPOCH),
        ("other", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 0, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 0, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_members_of_consumer_groups_read_in_their_epoch(
    broker: Broker, client: Connection, member_id: str | None, epoch: int | None, error: ErrorCode
) -> None:
    """The epoch is that of the member and what is added here; None is that of nobody, -1."""
    ids = fill(client)
    member = broker.state.groups._runtime.groups_of("modern").by_id["modern"].members["m"]
    asked_in = -1 if epoch is None else member.member_epoch + epoch
    named = {"topic_id": ids["t"], "partition_indexes": [0, 1]}
    group = {"group_id": "modern", "member_id": member_id, "member_epoch": asked_in, "topics": [named]}
    with counted(k09_offset_fetch, is_short=True) as ways:
        told = client.request(make("OffsetFetch", groups=[group]), 10).groups[0]
    assert ways == ({"handler": 1} if error else {})
    assert told.error_code == error
    assert [row.committed_offset for topic in told.topics for row in topic.partitions] == ([] if error else [-1, 7])


@pytest.mark.parametrize("version", [10, 9])
def test_offsets_of_another_topic_of_the_name_are_not_those_of_an_id(
    broker: Broker, client: Connection, version: int
) -> None:
    """A topic is made again, and what is stored of the one before was not removed yet."""
    fill(client)
    groups = broker.state.groups._runtime.groups_of("one")
    committed = groups.offsets.of_group("one")["t"][0]
    new_id = UNKNOWN_ID
    topics = broker.state.metadata.image.topics_by_id
    broker.call(topics.__setitem__, new_id, topics[committed.topic_id])
    named = {"topic_id": new_id} if version >= IDS else {"name": "t"}
    ask = make("OffsetFetch", groups=[{"group_id": "one", "topics": [{**named, "partition_indexes": [0]}]}])
    found = []
    for is_short in (True, False):
        with counted(k09_offset_fetch, is_short) as ways:
            found.append(client.request(ask, version).groups[0].topics[0].partitions[0].committed_offset)
        assert bool(ways) is not is_short
    assert found == [5, 5] if version < IDS else [-1, -1]


@pytest.mark.parametrize("requires_stable", [False, True])
def test_pending_offsets_are_the_handlers_where_stable_ones_are_required(
    client: Connection, requires_stable: bool
) -> None:
    fill(client)
    named = [{"name": "t", "partition_indexes": [0]}]
    ask = make("OffsetFetch", groups=[{"group_id": "open", "topics": named}], require_stable=requires_stable)
    with counted(k09_offset_fetch, is_short=True) as ways:
        row = client.request(ask, 9).groups[0].topics[0].partitions[0]
    assert row.error_code == (ErrorCode.UNSTABLE_OFFSET_COMMIT if requires_stable else ErrorCode.NONE)
    assert ways == ({"handler": 1} if requires_stable else {})


@pytest.mark.parametrize("count", [MOST_OFFSETS, MOST_OFFSETS + 1])
def test_as_many_offsets_as_the_rules_return_at_once(client: Connection, count: int) -> None:
    assert MOST_OFFSETS == PARTITIONS_AT_ONCE
    fill(client)
    named = [{"name": "t", "partition_indexes": list(range(count))}]
    with counted(k09_offset_fetch, is_short=True) as ways:
        answer = client.request(make("OffsetFetch", groups=[{"group_id": "one", "topics": named}]), 9)
    assert len(answer.groups[0].topics[0].partitions) == count
    assert ways == ({} if count <= MOST_OFFSETS else {"handler": 1})


def test_groups_that_are_to_be_read_again_and_what_is_left_of_deleted_topics_are_the_handlers(
    broker: Broker, client: Connection
) -> None:
    fill(client)
    groups = broker.state.groups
    with counted(k09_offset_fetch, is_short=True) as ways:
        broker.call(setattr, groups._runtime.groups_of("one"), "is_current", False)
        assert len(client.request(all_of("one", 9), 9).groups[0].topics) == 2
        assert ways == {"handler": 1}
        broker.call(groups.offsets.deleted._topics.__setitem__, UNKNOWN_ID, ("gone", {0}))
        assert len(client.request(all_of("one", 9), 9).groups[0].topics) == 2
        assert ways == {"handler": 2}
        broker.call(groups.offsets.deleted._topics.clear)
        assert len(client.request(all_of("one", 9), 9).groups[0].topics) == 2
    assert ways == {"handler": 2}


def test_a_broker_with_metrics_counts_its_answers() -> None:
    counts = []
    for is_short in (True, False):
        with (
            Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as client,
        ):
            fill(client)
            with counted(k09_offset_fetch, is_short) as ways:
                for version in (7, 9):
                    client.request(all_of("two", version), version)
            assert bool(ways) is not is_short
            times = broker.call(lambda served=broker: served._server._dispatcher.times[9])
            counts.append((times.errors, times.total.count))
    assert counts[0] == counts[1]
    assert counts[0][1] == 2
