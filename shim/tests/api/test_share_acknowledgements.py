"""Acknowledgements of very many records or partitions, in a ShareFetch or a ShareAcknowledge: on several turns, and all
of them, whatever the client does meanwhile."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import pytest

from kafka_shim import turns
from kafka_shim.api import share_acknowledgements
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.share.record_state import RecordState
from kafka_shim.share.share_partitions import SharePartitions
from kafka_shim.share.share_sessions import ShareSessions
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.tests.share.share_member import ACCEPT, RELEASE, ShareMember, open_share, ranges
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection

GROUP = "sharers"
COUNT = 24


def shared(broker: Broker, client: Connection, name: str = "t", count: int = COUNT) -> bytes:
    """A topic with a batch of two records in each of its partitions, which the group shares; its id."""
    topic_id = make_topic(client, name, count, retention_ms="-1")
    for number in range(count):
        open_share(broker, GROUP, topic_id, number)
        produce(client, name, number, batch(b"a", b"b"))
    return topic_id


def acknowledging(member: ShareMember, api: str, *topics: dict[int, int], **how: Any) -> Any:
    """A request that acknowledges the record at an offset of each partition, or none for -1."""

    def batches(offset: int) -> list[dict[str, Any]]:
        return [{"first_offset": offset, "last_offset": offset, "acknowledge_types": [ACCEPT]}] if offset >= 0 else []

    rows = [
        {
            "topic_id": member.topic_id,
            "partitions": [
                {"partition_index": number, "acknowledgement_batches": batches(offset)}
                for number, offset in offsets.items()
            ],
        }
        for offsets in topics
    ]
    limits = {"max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "min_bytes": 1, **how}
    who = {"group_id": GROUP, "member_id": member.member_id, "share_session_epoch": member.epoch}
    return make(api, **who, topics=rows, **(limits if api == "ShareFetch" else {}))


def acknowledged(broker: Broker, topic_id: bytes, count: int = COUNT) -> list[list[int]]:
    """The offsets of each share partition that are stored as acknowledged."""

    def read(number: int) -> list[int]:
        _, start_offset, _, batches = broker.state.share_state.read_state(GROUP, topic_id, number, 0)
        done = list(range(start_offset))
        for one in batches:
            if one.delivery_state == RecordState.ACKNOWLEDGED:
                done += range(one.first_offset, one.last_offset + 1)
        return done

    return broker.call(lambda: [read(number) for number in range(count)])  # type: ignore[no-any-return]


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
def test_acknowledgements_are_carried_out_on_several_turns_however_few_partitions_there_are(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    """A partition takes an append, and time for every record of a batch that was split."""
    topic_id = shared(broker, client, count=3)
    with ShareMember(broker, GROUP, "m", topic_id) as member:
        member.fetch(range(3))
        monkeypatch.setattr(turns, "STEPS_BETWEEN_LOOKS", 1)
        monkeypatch.setattr(turns, "MOST_LOOKS", 1)
        took, acknowledge = turns.Turns._take_share, SharePartitions.acknowledge
        in_turns: list[int] = []

        def take_share(self: Any, steps: Any) -> None:
            in_turns.append(0)
            took(self, steps)

        def counted(self: Any, *arguments: Any) -> Any:
            if in_turns:
                in_turns[-1] += 1
            return acknowledge(self, *arguments)

        monkeypatch.setattr(turns.Turns, "_take_share", take_share)
        monkeypatch.setattr(SharePartitions, "acknowledge", counted)
        answer = member.connection.request(acknowledging(member, api, dict.fromkeys(range(3), 0), max_wait_ms=0), 2)
        assert answer.error_code == 0
        assert sum(in_turns) == 3
        assert max(in_turns) <= 2
    assert acknowledged(broker, topic_id, 3) == [[0]] * 3


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
def test_a_request_is_carried_out_whole_although_its_client_goes_away_meanwhile(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    """As in Kafka, which handles a request that it has read. Only then the share session ends, and gives back what is
    left."""
    topic_id = shared(broker, client)
    begun, is_closed = threading.Event(), threading.Event()
    acknowledge = SharePartitions.acknowledge

    def wait_for_close(self: Any, *arguments: Any) -> Any:
        if not begun.is_set():
            begun.set()
            assert is_closed.wait(PATIENCE_S)
        return acknowledge(self, *arguments)

    with ShareMember(broker, GROUP, "m", topic_id) as member, ShareMember(broker, GROUP, "other", topic_id) as other:
        assert len(member.fetch(range(COUNT)).responses[0].partitions) == COUNT
        other.fetch(range(COUNT))
        monkeypatch.setattr(turns, "STEPS_BETWEEN_LOOKS", 1)
        monkeypatch.setattr(turns, "MOST_LOOKS", 1)
        monkeypatch.setattr(SharePartitions, "acknowledge", wait_for_close)
        member.connection.send(acknowledging(member, api, dict.fromkeys(range(COUNT), 0), max_wait_ms=60_000), 2)
        assert begun.wait(PATIENCE_S)
        reset(member.connection)
        is_closed.set()
        until(broker, lambda: len(broker.state.share_partitions.sessions) == 1)
        assert acknowledged(broker, topic_id) == [[0]] * COUNT
        answer = other.fetch(range(COUNT))
        found = {part.partition_index: ranges(part) for part in answer.responses[0].partitions}
        assert found == {number: [(1, 1, 2)] for number in range(COUNT)}


def reset(connection: Connection) -> None:
    """Close without a farewell: the broker learns of it also while it reads nothing."""
    connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_a_fetch_that_has_acknowledged_and_waits_ends_with_its_client(broker: Broker, client: Connection) -> None:
    topic_id = shared(broker, client, count=1)
    with ShareMember(broker, GROUP, "m", topic_id) as member:
        member.fetch()
        member.connection.send(acknowledging(member, "ShareFetch", {0: 0}, max_wait_ms=60_000), 2)
        until(broker, lambda: len(broker.state.parked) == 1)
        reset(member.connection)
        until(broker, lambda: not broker.state.parked)
        until(broker, lambda: not len(broker.state.share_partitions.sessions))
    assert acknowledged(broker, topic_id, 1) == [[0]]


def test_a_session_that_is_opened_for_a_client_that_has_gone_away_ends_too(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic_id = shared(broker, client, count=1)
    opened: list[Any] = []
    open_session = ShareSessions.open

    def noted(self: ShareSessions, key: Any, *arguments: Any) -> Any:
        opened.append(key)
        return open_session(self, key, *arguments)

    monkeypatch.setattr(ShareSessions, "open", noted)
    broker.faults.arm("request.received", "hold", where={"api_key": 78})
    with ShareMember(broker, GROUP, "m", topic_id) as member:
        closed = broker.state.metrics.connections_closed
        member.connection.send(member.fetch_request(), 2)
        until(broker, lambda: any(one.is_waiting for one in broker._server._registry.connections))
        reset(member.connection)
        until(broker, lambda: broker.state.metrics.connections_closed > closed)
    broker.faults.disarm()
    until(broker, lambda: opened and not len(broker.state.share_partitions.sessions))
    assert opened == [(GROUP, "m")]
    with ShareMember(broker, GROUP, "other", topic_id) as other:
        assert ranges(other.poll()) == [(0, 1, 2)], "what was acquired for nobody is given back"


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
def test_of_two_entries_of_a_partition_the_later_counts_also_if_its_topic_is_named_twice(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    monkeypatch.setattr(share_acknowledgements, "ENTRIES_PER_STEP", 1)
    topic_id = shared(broker, client, count=2)
    with ShareMember(broker, GROUP, "m", topic_id) as member:
        member.fetch(range(2))
        request = acknowledging(member, api, {0: 1, 1: 0}, {0: 0, 1: -1}, max_wait_ms=0)
        (topic,) = member.connection.request(request, 2).responses
        field = "acknowledge_error_code" if api == "ShareFetch" else "error_code"
        assert [getattr(part, field) for part in topic.partitions] == [ErrorCode.NONE] * 2
        assert acknowledged(broker, topic_id, 2) == [[0], []]
        member.epoch += 1
        assert member.outcome([(1, 1, [RELEASE])]) == 0, "the earlier entry was not carried out"
