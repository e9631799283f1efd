"""Recording real traffic through the proxy, and replaying it on another broker."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_shim import Broker
from kafka_shim.cext.records import build
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_response import ApiVersionsResponse
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
from kafka_shim.protocol.messages.heartbeat_response import HeartbeatResponse
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.tests.ipv6 import wants_ipv6
from kafka_shim.wire_client import Connection, WireClientError, parse_address, read_answer
from kafka_shim.wiretap.capture import CaptureWriter, Entry, Kind, read_capture
from kafka_shim.wiretap.frames import Request, build_request, build_response, parse_request
from kafka_shim.wiretap.order import FETCH
from kafka_shim.wiretap.recorder import OnRequest, Recorder, read_frame
from kafka_shim.wiretap.replay import Finding, Outcome, Replayer


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@contextmanager
def recording(broker: Broker, path: Path, on_request: OnRequest | None = None) -> Iterator[Recorder]:
    """A recorder in a loop of its own thread."""
    started = threading.Event()
    loop = asyncio.new_event_loop()
    writer = CaptureWriter(path)
    recorder = Recorder(parse_address(broker.bootstrap_servers), writer=writer, on_request=on_request)

    async def begin() -> None:
        await recorder.start()
        started.set()

    def run() -> None:
        loop.run_until_complete(begin())
        loop.run_forever()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    try:
        yield recorder
    finally:
        asyncio.run_coroutine_threadsafe(recorder.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
        writer.close()


def new_producer_id(client: Connection) -> int:
    """Asks until the broker has a block of ids."""
    while True:
        answer = client.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 5)
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            assert answer.producer_id >= 0
            return int(answer.producer_id)


def converse(bootstrap: str, topic: str = "told") -> None:
    """A producer's and a reader's few requests."""
    with Connection(bootstrap) as client:
        client.request(
            CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)]), 7
        )
        metadata = client.request(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
        ids = {"producer_id": new_producer_id(client), "producer_epoch": 0}
        for number in range(3):
            batch = build([(b"k", b"v%d" % number, 1_000_000_000_000, ())], base_sequence=number, **ids)
            data = PartitionProduceData(index=0, records=bytes(batch))
            rows = [TopicProduceData(topic_id=metadata.topics[0].topic_id, partition_data=[data])]
            client.request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=rows), 13)
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        rows = [FetchTopic(topic_id=metadata.topics[0].topic_id, partitions=[part])]
        client.request(FetchRequest(max_bytes=1 << 20, session_epoch=-1, topics=rows), 16)


def replayed(entries: list[Entry], broker: Broker) -> Outcome:
    return asyncio.run(Replayer(parse_address(broker.bootstrap_servers)).run(entries))


def test_a_recording_replays_on_another_broker_without_a_difference(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    with recording(broker, path) as recorder:
        converse(recorder.bootstrap)
    entries = list(read_capture(path))
    requests = [entry.kind for entry in entries].count(Kind.REQUEST)
    with Broker() as other, Connection(other.bootstrap_servers) as client:
        new_producer_id(client)  # its ids are others now
        outcome = replayed(entries, other)
    assert not outcome.findings, "\n".join(map(str, outcome.findings))
    assert (outcome.requests, outcome.records) == (requests, 3)


def test_members_join_in_the_order_of_the_recording() -> None:
    """The first leads the group. Both wait for the response, each on its connection."""
    entries: list[Entry] = []
    for connection in (1, 2):
        join = JoinGroupRequest(group_id="g", member_id=str(connection), protocol_type="consumer")
        frame = build_request(Request(JoinGroupRequest.API_KEY, 9, 1, "c", join))
        entries += [Entry(Kind.OPENED, connection, 0, b""), Entry(Kind.REQUEST, connection, 0, frame)]
    joined: list[str] = []

    async def main() -> None:
        is_busy, are_both = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while (frame := await read_frame(reader)) is not None:
                request = parse_request(frame)
                if request.api_key == JoinGroupRequest.API_KEY:
                    if request.message.member_id == "1":
                        await is_busy.wait()  # it was received, and is handled when something else comes
                    joined.append(request.message.member_id)
                    if len(joined) == 2:
                        are_both.set()
                else:
                    answer = build_response(request, ApiVersionsResponse())
                    writer.write(len(answer).to_bytes(4) + answer)
                is_busy.set()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            await Replayer(server.sockets[0].getsockname()).run(entries)
            await are_both.wait()

    asyncio.run(main())
    assert joined == ["1", "2"]


def test_a_response_that_comes_too_late_is_not_taken_for_the_next() -> None:
    """A group's members may join in another time than in the recording."""
    beat = HeartbeatResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS))
    entries = [Entry(Kind.OPENED, 1, 0, b"")]
    for number, message, version, answer in (
        (1, JoinGroupRequest(group_id="g", protocol_type="consumer"), 9, JoinGroupResponse(generation_id=1)),
        (2, HeartbeatRequest(group_id="g"), 3, beat),
    ):
        request = Request(message.API_KEY, version, number, "c", message)
        entries.append(Entry(Kind.REQUEST, 1, 0, build_request(request)))
        entries.append(Entry(Kind.RESPONSE, 1, 0, build_response(request, answer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        late = b""
        while (frame := await read_frame(reader)) is not None:
            request = parse_request(frame)
            if request.api_key == JoinGroupRequest.API_KEY:
                joined = build_response(request, JoinGroupResponse(generation_id=1))
                late = len(joined).to_bytes(4) + joined
                continue
            answer = ApiVersionsResponse() if request.api_key == ApiVersionsResponse.API_KEY else beat
            told = build_response(request, answer)
            writer.write(late + len(told).to_bytes(4) + told)
            late = b""
        writer.close()

    async def main() -> list[Finding]:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return (await Replayer(server.sockets[0].getsockname(), patience_s=2).run(entries)).findings

    (finding,) = asyncio.run(main())
    assert finding.request == "JoinGroup v9"


def test_records_of_a_topic_that_is_deleted_are_fetched_before(broker: Broker, tmp_path: Path) -> None:
    """How many a single fetch returns is a matter of timing: here fewer than in the recording."""
    path = tmp_path / "capture"
    with recording(broker, path) as recorder:
        converse(recorder.bootstrap)
        with Connection(recorder.bootstrap) as client:
            client.request(DeleteTopicsRequest(topic_names=["told"], timeout_ms=1000), 4)
        converse(recorder.bootstrap)
    entries = list(read_capture(path))
    for at, entry in enumerate(entries):
        if entry.kind == Kind.REQUEST and (request := parse_request(entry.frame)).api_key == FETCH:
            request.message.max_bytes = 1
            entries[at] = entry._replace(frame=build_request(request))
    with Broker() as other:
        outcome = replayed(entries, other)
    assert not outcome.findings, "\n".join(map(str, outcome.findings))
    assert outcome.records == 6


def test_a_connection_that_breaks_is_closed_on_both_sides_and_is_no_failure_of_the_relay(broker: Broker) -> None:
    """Nothing is told to the loop, which would print it."""
    kinds: list[Kind] = []
    failures: list[object] = []

    async def breaks(request: Request, frame: bytes) -> list[bytes]:
        raise ConnectionResetError

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
        recorder = Recorder(
            parse_address(broker.bootstrap_servers), on_request=breaks, on_entry=lambda entry: kinds.append(entry.kind)
        )
        await recorder.start()
        reader, writer = await asyncio.open_connection(*parse_address(recorder.bootstrap))
        writer.write(encode_request_frame(MetadataRequest(topics=[]), 12, 1, "c"))
        assert await reader.read() == b""
        writer.close()
        await recorder.stop()

    asyncio.run(main())
    assert (kinds, failures) == ([Kind.OPENED, Kind.REQUEST, Kind.CLOSED], [])


def test_a_client_whose_host_vanishes_is_no_failure_of_the_relay(broker: Broker) -> None:
    failures: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
        closed = asyncio.Event()

        async def vanishes(request: Request, frame: bytes) -> list[bytes]:
            ((_, to_client),) = recorder._tasks.items()
            to_client.transport._force_close(OSError(errno.EHOSTUNREACH, "No route to host"))  # type: ignore[attr-defined]
            return [frame]

        recorder = Recorder(
            parse_address(broker.bootstrap_servers),
            on_request=vanishes,
            on_entry=lambda entry: closed.set() if entry.kind == Kind.CLOSED else None,
        )
        await recorder.start()
        _, writer = await asyncio.open_connection(*parse_address(recorder.bootstrap))
        writer.write(encode_request_frame(MetadataRequest(topics=[]), 12, 1, "c"))
        await closed.wait()
        await asyncio.gather(*recorder._tasks, return_exceptions=True)
        writer.close()
        await recorder.stop()

    asyncio.run(main())
    assert failures == []


def test_a_broker_that_answers_otherwise_is_found(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    with recording(broker, path) as recorder:
        converse(recorder.bootstrap)
    with Broker() as other, Connection(other.bootstrap_servers) as client:
        topic = CreatableTopic(name="told", num_partitions=2, replication_factor=1)
        client.request(CreateTopicsRequest(topics=[topic]), 7)  # it exists here, and is larger
        outcome = replayed(list(read_capture(path)), other)
    assert "TOPIC_ALREADY_EXISTS" in str(outcome.findings[0])
    assert any("partitions: 1 entries recorded, 2 now" in str(finding) for finding in outcome.findings)


@pytest.mark.parametrize("everywhere", ["0.0.0.0", pytest.param("::", marks=wants_ipv6)])
def test_clients_of_a_recorder_on_every_address_are_told_the_one_they_dialled(broker: Broker, everywhere: str) -> None:
    dialled = "127.0.0.2" if everywhere == "0.0.0.0" else "::1"

    async def told() -> tuple[str, int, str]:
        recorder = Recorder(parse_address(broker.bootstrap_servers), listen=(everywhere, 0))
        await recorder.start()
        host, port = recorder._servers[parse_address(broker.bootstrap_servers)][1]
        reader, writer = await asyncio.open_connection(dialled, port)
        frame = encode_request_frame(MetadataRequest(topics=[]), 12, 1, "c")
        writer.write(frame)
        answer = await read_frame(reader)
        assert answer is not None
        (found,) = read_answer(MetadataRequest.API_KEY, 12, answer)[1].brokers
        writer.close()
        await recorder.stop()
        return host, found.port - port, found.host

    assert asyncio.run(told()) == (everywhere, 0, dialled)


def test_clients_are_told_the_recorders_address(broker: Broker, tmp_path: Path) -> None:
    with recording(broker, tmp_path / "capture") as recorder, Connection(recorder.bootstrap) as client:
        metadata = client.request(MetadataRequest(topics=[]), 12)
        assert [(node.host, node.port) for node in metadata.brokers] == [parse_address(recorder.bootstrap)]


def test_a_request_can_be_dropped_and_repeated(broker: Broker, tmp_path: Path) -> None:
    async def act(request: Request, frame: bytes) -> list[bytes]:
        return [frame, frame] if request.name.startswith("InitProducerId") else [frame]

    path = tmp_path / "capture"
    with recording(broker, path, act) as recorder, Connection(recorder.bootstrap) as client:
        first = new_producer_id(client)
        second = new_producer_id(client)
    assert second == first + 2
    requests = [parse_request(entry.frame) for entry in read_capture(path) if entry.kind == Kind.REQUEST]
    assert {request.name for request in requests} == {"InitProducerId v5"}


def test_a_frame_that_is_no_request_ends_the_connection(broker: Broker, tmp_path: Path) -> None:
    with recording(broker, tmp_path / "capture") as recorder, Connection(recorder.bootstrap) as client:
        client.send_bytes(b"\x00\x00\x00\x0a\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff")
        with pytest.raises(WireClientError):
            client.receive_frame()
