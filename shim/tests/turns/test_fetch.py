"""Fetch in turns."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafka_shim.api import (
    k01_fetch,
)
from kafka_shim.api.fetch_reads import PartitionRead
from kafka_shim.api.fetch_sessions import CachedPartition
from kafka_shim.api.fetch_size import FetchSize
from kafka_shim.cext.messages import encode_response_frame
from kafka_shim.embedded import Broker
from kafka_shim.network_send import NetworkSend
from kafka_shim.protocol.messages.fetch_request import FetchPartition
from kafka_shim.protocol.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    PartitionData,
)
from kafka_shim.response_sender import CALL_BYTES, TURN_BYTES, ResponseSender
from kafka_shim.targets.requests import make
from kafka_shim.tests.appends import append_as_client
from kafka_shim.tests.produced import batch, fetch_request, produce
from kafka_shim.tests.turns.harness import begun, context_of, steps_of, topics
from kafka_shim.tests.waiting import until
from kafka_shim.turns import at_once
from kafka_shim.wire_client import Connection

MANY = k01_fetch.MANY + 100


def fetch_of(count: int, topic: str = "t", **how: Any) -> Any:
    return fetch_request({(topic, number): 0 for number in range(count)}, **how)


def test_a_large_fetch_is_that_of_a_small_one_and_opens_a_session_that_knows_of_later_news(broker: Broker) -> None:
    topics(broker, t=MANY)
    records = batch(b"a")
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for number in (3, MANY - 1):
            produce(client, "t", number, records)

        def run(state: Any) -> tuple[Any, int]:
            steps = begun(state, fetch_of(MANY, session_epoch=0), 11, MANY + 200)
            # It has read this partition, and has not said so yet.
            append_as_client(state.logs.get("t", 5), records, now_ms=state.clock.now_ms(), version=9)
            return steps_of(steps)

        answer, count = broker.call(run, broker.state)
        (topic,) = answer.responses
        assert [part.partition_index for part in topic.partitions] == list(range(MANY))
        assert [part.partition_index for part in topic.partitions if part.records] == [3, MANY - 1]
        assert count >= MANY // k01_fetch.PARTITIONS_PER_STEP
        following = fetch_request({}, session_id=answer.session_id, session_epoch=1)
        news = client.request(following, 11)
        assert news.error_code == 0
        assert sorted(part.partition_index for part in news.responses[0].partitions) == [3, 5, MANY - 1]


def test_a_topic_that_is_deleted_while_a_large_fetch_reads_is_unknown_for_the_rest(broker: Broker) -> None:
    topics(broker, t=MANY, u=1)

    def run(state: Any) -> Any:
        request = fetch_of(MANY, session_epoch=-1)
        request.topics += fetch_of(1, "u").topics
        steps = begun(state, request, 11, 2 * MANY - 100)
        state.metadata.delete_topic("t")
        return steps_of(steps)[0]

    answer = broker.call(run, broker.state)
    codes = {part.error_code for topic in answer.responses if topic.topic == "t" for part in topic.partitions}
    assert codes == {0, 3}
    assert sum(len(topic.partitions) for topic in answer.responses) == MANY + 1
    # Kafka lists unknown partitions last.
    assert [topic.partitions[0].error_code for topic in answer.responses][-1] == 3
    assert broker.call(lambda: broker.state.metrics.errors_unexpected) == 0


def test_a_request_of_a_session_that_comes_while_another_is_answered_makes_that_one_a_duplicate(broker: Broker) -> None:
    topics(broker, t=MANY)
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        opened = client.request(fetch_of(MANY, session_epoch=0), 11)
        assert opened.session_id

        def run(state: Any) -> tuple[Any, Any]:
            moved = fetch_of(MANY, session_id=opened.session_id, session_epoch=1)
            steps = begun(state, moved, 11, 2 * MANY)
            later = fetch_request({}, session_id=opened.session_id, session_epoch=2)
            context = context_of(state, later, 11)
            context.is_large = True
            second = at_once(k01_fetch._in_steps(context, later))  # type: ignore[arg-type]
            return steps_of(steps)[0], second

        first, second = broker.call(run, broker.state)
        assert first.error_code == 71  # INVALID_FETCH_SESSION_EPOCH
        assert second.error_code == 0


def test_a_session_that_is_gone_before_its_partitions_joined_follows_no_log(broker: Broker) -> None:
    topics(broker, t=MANY)

    def run(state: Any) -> tuple[Any, int, int]:
        sessions = state.fetch_sessions
        steps = begun(state, fetch_of(MANY, session_epoch=0), 11, 0)
        while not len(sessions):
            next(steps)
        next(steps)
        for session_id in list(sessions.sessions):
            sessions.sessions.pop(session_id).close()
        answer = steps_of(steps)[0]
        followed = sum(len(log._readers or ()) for log in state.logs.loaded())
        return answer, followed, len(sessions)

    answer, followed, count = broker.call(run, broker.state)
    assert (answer.error_code, followed, count) == (0, 0, 0)


def test_a_large_fetch_waits_for_records_as_a_small_one_does(broker: Broker) -> None:
    topics(broker, t=MANY)
    with (
        Connection(broker.bootstrap_servers, timeout_s=60) as reader,
        Connection(broker.bootstrap_servers, timeout_s=60) as writer,
    ):
        reader.send(fetch_of(MANY, session_epoch=0, max_wait_ms=60_000), 11)
        until(broker, lambda: len(broker.state.parked))
        produce(writer, "t", MANY - 1, batch(b"a"))
        answer = reader.receive(1, 11)[1]
        parts = [part for topic in answer.responses for part in topic.partitions]
        assert len(parts) == MANY
        assert [part.partition_index for part in parts if part.records] == [MANY - 1]
        assert answer.session_id


def test_a_response_of_many_small_parts_is_sent_on_many_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two megabytes of small parts are tens of thousands of calls of the system."""
    calls: list[int] = []
    send_more = ResponseSender._send_more

    def counted(self: ResponseSender) -> None:
        before = sent[0]
        send_more(self)
        calls.append(sent[0] - before)

    sent = [0]
    send_file = NetworkSend.send_file

    def noted(self: Any, socket_fd: int, limit_bytes: int) -> int:
        sent[0] += 1
        return send_file(self, socket_fd, limit_bytes)

    monkeypatch.setattr(ResponseSender, "_send_more", counted)
    monkeypatch.setattr(NetworkSend, "send_file", noted)
    topics(broker, t=1000)
    records = batch(b"x" * 1000)  # beyond 64 kB in all they are sent from their files
    data = [{"index": number, "records": records} for number in range(1000)]
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        client.request(make("Produce", acks=1, topic_data=[{"name": "t", "partition_data": data}]), 9)
        answer = client.request(fetch_of(1000, session_epoch=-1), 11)
    assert sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions) == 1000 * len(
        records
    )
    assert sum(calls) > 800
    assert max(calls) <= TURN_BYTES // CALL_BYTES + 1


# --- the size of a response


def read_of(topic: str | bytes, number: int, size_bytes: int, **fields: Any) -> PartitionRead:
    read = PartitionRead(CachedPartition(topic, FetchPartition(partition=number)))
    read.size_bytes = size_bytes
    read.answer = PartitionData(partition_index=number, records=b"x" * size_bytes, **fields)
    return read


@pytest.mark.parametrize("version", range(k01_fetch.MIN, k01_fetch.MAX + 1))
def test_the_size_of_a_response_is_counted_as_it_is_encoded(version: int) -> None:
    names: list[Any] = ["t", "t\u00e9" * 70] if version < 13 else [b"a" * 16, b"b" * 16]
    aborted = [AbortedTransaction(producer_id=number, first_offset=number) for number in range(200)]
    reads = [read_of(names[0], number, size) for number, size in enumerate((0, 126, 127, 128, 16383, 16384, 70_000))]
    reads.append(read_of(names[0], 9, 5, aborted_transactions=aborted))
    reads.append(read_of(names[0], 10, 5, aborted_transactions=None))
    reads += [read_of(names[1], number, 0) for number in range(300)]
    if version >= 12:
        reads.append(read_of(names[0], 11, 0, diverging_epoch=EpochEndOffset(epoch=3, end_offset=4)))
        reads.append(read_of(names[0], 12, 0, current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2)))
    for some in ([], reads[:1], reads):
        size = FetchSize(version)
        for one in some:
            size.add(one)
        response = k01_fetch._response(7 if version >= 7 else 0, some)
        (length,) = struct.unpack_from(">i", encode_response_frame(1, response, version)[0])
        assert size.frame_bytes() == length


def test_a_large_fetch_over_its_quota_is_counted_in_steps_and_answered_with_nothing(broker: Broker) -> None:
    topics(broker, t=MANY)
    charged: list[int] = []

    class Throttle:
        def charge_fetch(self, size_bytes: int) -> int:
            charged.append(size_bytes)
            return 100

        def most_fetched_bytes(self) -> None:
            return None

    def run(state: Any) -> tuple[Any, int, int]:
        request = fetch_of(MANY, session_epoch=-1)
        context = context_of(state, request, 11)
        context.is_large = True
        plain, _ = steps_of(k01_fetch.handle(context, request))
        context.throttle = Throttle()  # type: ignore[assignment]
        steps = k01_fetch.handle(context, request)
        for _ in range(MANY + MANY // k01_fetch.PARTITIONS_PER_STEP):  # asked for, and read
            next(steps)  # type: ignore[arg-type]
        refused, count = steps_of(steps)
        (length,) = struct.unpack_from(">i", encode_response_frame(1, plain, 11)[0])
        return refused, length, count

    refused, length, more = broker.call(run, broker.state)
    assert refused.responses == []
    assert charged == [length]
    assert more >= MANY // k01_fetch.PARTITIONS_PER_STEP
