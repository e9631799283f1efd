"""Batches that take long to decompress are checked in threads: what others notice, what keeps its order, and that the
answers are those of the event loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import pytest

from kafka_shim.cext.crc32c import crc32c
from kafka_shim.cext.records import decompressed_bytes
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, TopicConfig
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.memory_pool import ReceiveMemory
from kafka_shim.protocol.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.storage import validation
from kafka_shim.storage.batch_checks import MOST_THREADS, BatchChecks
from kafka_shim.tests.produced import batch, fetch, make_topic, metadata, produce, produce_request
from kafka_shim.tests.test_connection import until
from kafka_shim.wire_client import Connection, WireClientError

GZIP, SNAPPY, LZ4, ZSTD = CODECS = range(1, 5)
VALUES = [b"line %d of a text that compresses" % number * 30 for number in range(2400)]
VERSION = 9


@contextmanager
def held_threads(broker: Broker) -> Iterator[Callable[[], None]]:
    """All threads that check batches are busy until the function that this gives is called, or the end."""
    may_end = threading.Event()

    def hold() -> None:
        for _ in range(MOST_THREADS):
            broker.state.batch_checks._workers.begin(may_end.wait, 60)

    broker.call(hold)
    try:
        yield may_end.set
    finally:
        may_end.set()


@contextmanager
def two_clients(broker: Broker) -> Iterator[tuple[Connection, Connection]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=60)) for _ in range(2))
        yield first, second


def answer_of(client: Connection) -> Any:
    return client.receive(ProduceRequest.API_KEY, VERSION)[1].responses[0].partition_responses[0]


def is_waiting(broker: Broker) -> Callable[[], bool]:
    """Whether a request of the broker waits."""
    return lambda: any(connection.is_waiting for connection in connections(broker))


def connections(broker: Broker) -> Any:
    return broker._server._registry.connections


@pytest.mark.parametrize("codec", CODECS)
def test_others_are_served_while_a_batch_is_decompressed(broker: Broker, codec: int) -> None:
    with two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 1)
        client.send(produce_request("t", 0, batch(*VALUES, codec=codec)), VERSION)
        until(broker, is_waiting(broker))
        assert produce(other, "t", 0, batch(b"small")).base_offset == 0
        release()
        told = answer_of(client)
        assert (told.error_code, told.base_offset) == (0, 1)
        assert fetch(client, "t", 0, 1).high_watermark == 1 + len(VALUES)


@pytest.mark.parametrize("codec", CODECS)
def test_the_loop_does_not_check_again_what_a_thread_has_checked(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch, codec: int
) -> None:
    threads: list[str] = []
    check = validation.check

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return check(*args)

    monkeypatch.setattr(validation, "check", noted)
    make_topic(client, "t", 1)
    assert produce(client, "t", 0, batch(*VALUES, codec=codec)).error_code == 0
    assert threads == ["kafka-shim-batches"]


def test_a_small_compressed_batch_needs_no_thread(broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 1)
    with held_threads(broker):
        for codec in CODECS:
            assert produce(client, "t", 0, batch(b"small", codec=codec)).error_code == 0


def test_requests_of_one_connection_keep_their_order(broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 1)
    who = {"producer_id": 7, "producer_epoch": 0}
    with held_threads(broker) as release:
        client.send(produce_request("t", 0, batch(*VALUES, codec=GZIP, base_sequence=0, **who)), VERSION)
        client.send(produce_request("t", 0, batch(b"next", base_sequence=len(VALUES), **who)), VERSION)
        until(broker, is_waiting(broker))
        release()
        told = [answer_of(client) for _ in range(2)]
    assert [(one.error_code, one.base_offset) for one in told] == [(0, 0), (0, len(VALUES))]


def test_large_and_small_batches_of_one_request_are_appended_together(broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 2)
    data = [
        PartitionProduceData(index=index, records=records)
        for index, records in enumerate((batch(*VALUES, codec=ZSTD), batch(b"small"), b"x"))
    ]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    (topic,) = client.request(request, VERSION).responses
    told = [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses]
    assert told == [(0, 0, 0), (1, 0, 0), (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert fetch(client, "t", 1, 0).high_watermark == 1


def request_of(data: list[PartitionProduceData], *, unknown: int = 0) -> ProduceRequest:
    """A Produce to topic t, and so many partitions that do not exist."""
    topics = [TopicProduceData(name="t", partition_data=data)]
    if unknown:
        nowhere = [PartitionProduceData(index=index, records=b"") for index in range(unknown)]
        topics.append(TopicProduceData(name="none", partition_data=nowhere))
    return ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics)


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_request_of_thousands_of_partitions_leaves_its_large_batches_to_threads_too(
    broker: Broker, is_transactional: bool
) -> None:
    with two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 2)
        header: dict[str, Any] = {"transactional": True} if is_transactional else {}
        records = batch(*VALUES, codec=GZIP, **header)
        request = request_of([PartitionProduceData(index=1, records=records)], unknown=20_000)
        request.transactional_id = "x" if is_transactional else None
        client.send(request, VERSION)
        until(broker, lambda: len(broker.state.batch_checks._workers._given) > MOST_THREADS)
        assert produce(other, "t", 1, batch(b"small")).base_offset == 0
        release()
        first, second = client.receive(ProduceRequest.API_KEY, VERSION)[1].responses
        told = [(one.index, one.error_code, one.base_offset) for one in first.partition_responses]
        assert told == [(1, 0, 1)]
        assert {one.error_code for one in second.partition_responses} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_one_request_keeps_few_batches_in_the_queue_of_the_threads(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    begin = type(broker.state.batch_checks).begin

    def count(self: Any, *args: Any) -> Any:
        begun.append(args)
        return begin(self, *args)

    monkeypatch.setattr(type(broker.state.batch_checks), "begin", count)
    with two_clients(broker) as (client, _), held_threads(broker) as release:
        make_topic(client, "t", 9)
        records = batch(*VALUES, codec=GZIP)
        client.send(request_of([PartitionProduceData(index=index, records=records) for index in range(9)]), VERSION)
        until(broker, lambda: bool(begun))
        assert len(begun) == MOST_THREADS
        release()
        (topic,) = client.receive(ProduceRequest.API_KEY, VERSION)[1].responses
        assert [(one.error_code, one.base_offset) for one in topic.partition_responses] == [(0, 0)] * 9
    assert len(begun) == 9


def test_what_is_compressed_anew_is_kept_up_to_the_size_of_the_largest_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bool] = []
    compress_anew = validation.compress_anew

    def noted(*args: Any) -> Any:
        made.append(threading.current_thread().name.startswith("kafka-shim-batches"))
        return compress_anew(*args)

    monkeypatch.setattr(validation, "compress_anew", noted)
    size_bytes = sum(map(len, VALUES))
    limit = size_bytes * 5 // 2
    with (
        Broker(socket_request_max_bytes=limit) as running,
        Connection(running.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t", 4, compression_type="uncompressed", max_message_bytes=str(size_bytes * 2))
        records = batch(*VALUES, codec=GZIP)
        data = [PartitionProduceData(index=index, records=records) for index in range(4)]
        (topic,) = client.request(request_of(data), VERSION).responses
        assert [(one.error_code, one.base_offset) for one in topic.partition_responses] == [(0, 0)] * 4
        assert [running.state.logs.get("t", index).log_end_offset for index in range(4)] == [len(VALUES)] * 4
    # Two are kept, the others are made again by the append.
    assert made == [True] * 4 + [False] * 2


def broken(codec: int) -> bytes:
    """A batch whose records do not decompress, with a CRC that is right."""
    noise = Random(1).randbytes(200)
    kept = [noise * 5_000] if codec in (SNAPPY, LZ4) else VALUES
    whole = bytearray(batch(*kept, codec=codec))
    for at in range(len(whole) // 2, len(whole) // 2 + 64):
        whole[at] ^= 0xFF
    whole[17:21] = crc32c(memoryview(whole)[21:]).to_bytes(4)
    return bytes(whole)


CASES: dict[str, tuple[dict[str, str], Callable[[int], bytes]]] = {
    "good": ({}, lambda codec: batch(*VALUES, codec=codec)),
    "wrong CRC": ({}, lambda codec: batch(*VALUES, codec=codec)[:-1] + b"?"),
    "does not decompress": ({}, broken),
    "null keys": ({"cleanup_policy": "compact"}, lambda codec: batch(*VALUES, codec=codec)),
    "old": ({"message_timestamp_before_max_ms": "1"}, lambda codec: batch(*VALUES, codec=codec)),
    "too large": ({"max_message_bytes": "300"}, lambda codec: batch(*VALUES, codec=codec)),
    "two batches": ({}, lambda codec: batch(*VALUES, codec=codec) * 2),
    "recompressed": (
        {"compression_type": "uncompressed", "max_message_bytes": "4000000"},
        lambda codec: batch(*VALUES, codec=codec),
    ),
    "too large then": (
        {"compression_type": "uncompressed", "max_message_bytes": "500000"},
        lambda codec: batch(*VALUES, codec=codec),
    ),
}


@pytest.mark.parametrize("codec", CODECS)
def test_the_answer_is_that_of_the_loop(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch, codec: int
) -> None:
    counted: list[int] = []
    begin = broker.state.batch_checks.begin

    def count(self: Any, *args: Any) -> Any:
        counted.append(1)
        return begin(*args)

    monkeypatch.setattr(type(broker.state.batch_checks), "begin", count)
    told: list[list[Any]] = []
    in_threads = {}
    for way in ("thread", "loop"):
        if way == "loop":
            monkeypatch.setattr(validation, "LEAST_DECOMPRESSED_APART_BYTES", dict.fromkeys(CODECS, 1 << 40))
            monkeypatch.setattr(validation, "LEAST_COMPRESSED_APART_BYTES", 1 << 40)
        answers = []
        for number, (options, make) in enumerate(CASES.values()):
            name = f"{way}-{number}"
            make_topic(client, name, 1, **options)
            one = produce(client, name, 0, make(codec))
            stored = fetch(client, name, 0, 0)
            message = (one.error_message or "").replace(name, "t")
            rows = [(row.batch_index, row.batch_index_error_message.replace(name, "t")) for row in one.record_errors]
            answers.append(
                (one.error_code, one.base_offset, one.log_start_offset, message, rows, bytes(stored.records or b""))
            )
        told.append(answers)
        in_threads[way] = len(counted)
        counted.clear()
    assert in_threads["thread"] >= len(CASES) - 2  # what is no framing of its codec is refused at once
    assert in_threads["loop"] == 0
    assert told[0] == told[1]
    codes = dict(zip(CASES, (answer[0] for answer in told[0]), strict=True))
    assert [name for name, code in codes.items() if code == 0] == ["good", "recompressed"]
    assert len(told[0][-2][-1]) > sum(map(len, VALUES))


def test_what_the_topic_compresses_anew_is_done_by_a_thread(broker: Broker) -> None:
    """Gzip takes 30 ms for 1 MB, whatever the producer sends."""
    with two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 1, compression_type="gzip")
        client.send(produce_request("t", 0, batch(*VALUES[:500])), VERSION)
        until(broker, is_waiting(broker))
        assert produce(other, "t", 0, batch(b"small")).base_offset == 0
        release()
        assert answer_of(client).base_offset == 1
        assert len(fetch(client, "t", 0, 0).records) < 100_000


def test_options_that_change_meanwhile_hold(broker: Broker) -> None:
    with two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 1)
        client.send(produce_request("t", 0, batch(*VALUES, codec=GZIP)), VERSION)
        until(broker, is_waiting(broker))
        changed = [AlterableConfig(name="max.message.bytes", value="300")]
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=changed)
        assert other.request(AlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
        release()
        assert answer_of(client).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_log_append_times_ascend_with_the_offsets() -> None:
    with Broker() as broker, two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 1, message_timestamp_type="LogAppendTime")
        client.send(produce_request("t", 0, batch(*VALUES, codec=GZIP)), VERSION)
        until(broker, is_waiting(broker))
        sent_ms = broker.call(broker.state.clock.now_ms)
        until(broker, lambda: broker.state.clock.now_ms() > sent_ms)
        meanwhile = produce(other, "t", 0, batch(b"small"))
        assert meanwhile.log_append_time_ms > sent_ms
        release()
        told = answer_of(client)
        assert told.base_offset == meanwhile.base_offset + 1
        assert told.log_append_time_ms >= meanwhile.log_append_time_ms


def test_a_topic_that_is_deleted_meanwhile_is_unknown(broker: Broker) -> None:
    with two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 1)
        client.send(produce_request("t", 0, batch(*VALUES, codec=GZIP)), VERSION)
        until(broker, is_waiting(broker))
        other.request(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
        release()
        assert answer_of(client).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_batch_of_a_client_that_is_gone_is_appended_and_its_memory_given_back(broker: Broker) -> None:
    memory = broker.state.receive_memory
    with two_clients(broker) as (client, other), held_threads(broker) as release:
        make_topic(client, "t", 1)
        client.send(produce_request("t", 0, batch(*VALUES, codec=GZIP)), VERSION)
        until(broker, is_waiting(broker))
        assert broker.call(lambda: memory.used_bytes) >= len(batch(*VALUES, codec=GZIP))
        client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # with a reset: after a FIN the broker waits with its answer
        until(broker, lambda: len(connections(broker)) == 1)
        assert metadata(other, "t").topics[0].error_code == 0
        release()
        until(broker, lambda: broker.state.logs.get("t", 0).log_end_offset == len(VALUES))
        until(broker, lambda: memory.used_bytes == 0)


def test_a_stop_answers_what_is_being_checked() -> None:
    with Broker() as running, Connection(running.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t", 1)
        with held_threads(running) as release:
            client.send(produce_request("t", 0, batch(*VALUES, codec=GZIP)), VERSION)
            until(running, is_waiting(running))
            stopping = threading.Thread(target=running.stop)
            stopping.start()
            release()
            assert answer_of(client).error_code == 0
            stopping.join(60)


def test_without_a_thread_the_loop_checks(broker: Broker, client: Connection) -> None:
    """A pool that starts no thread raises RuntimeError, as one that is shut down."""
    make_topic(client, "t", 1)
    assert produce(client, "t", 0, batch(*VALUES, codec=GZIP)).base_offset == 0
    broker.call(broker.state.batch_checks.stop)
    assert produce(client, "t", 0, batch(*VALUES, codec=GZIP)).base_offset == len(VALUES)


def test_what_fails_in_a_thread_is_the_answer_of_its_batch_alone(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(client, "t", 1)

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(validation, "check", fail)
        assert produce(client, "t", 0, batch(*VALUES, codec=GZIP)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert produce(client, "t", 0, batch(*VALUES, codec=GZIP)).base_offset == 0


def check_given_back(broker: Broker, client: Connection, request: ProduceRequest, refused: Any) -> None:
    """Both partitions were refused, nothing stays counted, and the same request is then stored."""
    told = [one.error_code for one in refused.partition_responses]
    assert told == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    until(broker, lambda: broker.state.receive_memory.used_bytes == 0)
    (topic,) = client.request(request, VERSION).responses
    assert [one.base_offset for one in topic.partition_responses] == [0, 0]


def test_copies_are_given_back_if_memory_is_short_for_one_of_them(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(client, "t", 2)
    first, second = (batch(*VALUES[:count], codec=GZIP) for count in (2400, 2300))
    data = [PartitionProduceData(index=index, records=records) for index, records in enumerate((first, second))]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    take = ReceiveMemory.take

    def take_all_but_one(memory: ReceiveMemory, size_bytes: int) -> memoryview:
        if size_bytes == len(second):
            raise MemoryError
        return take(memory, size_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(ReceiveMemory, "take", take_all_but_one)
        (refused,) = client.request(request, VERSION).responses
    check_given_back(broker, client, request, refused)


@pytest.mark.parametrize("begun", [0, 1])
def test_copies_are_given_back_if_memory_is_short_for_a_check(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch, begun: int
) -> None:
    make_topic(client, "t", 2)
    data = [PartitionProduceData(index=index, records=batch(*VALUES, codec=GZIP)) for index in range(2)]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    begin = BatchChecks.begin
    calls = itertools.count()

    def begin_some(*arguments: Any) -> Any:
        if next(calls) == begun:
            raise MemoryError
        return begin(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(BatchChecks, "begin", begin_some)
        (refused,) = client.request(request, VERSION).responses
    check_given_back(broker, client, request, refused)


@pytest.mark.parametrize("acks", [0, 1])
def test_without_acks_large_batches_keep_their_place(broker: Broker, client: Connection, acks: int) -> None:
    make_topic(client, "t", 1)
    client.send(produce_request("t", 0, batch(*VALUES, codec=LZ4), acks=0), VERSION)
    if acks:
        assert produce(client, "t", 0, batch(b"a"), acks=acks).base_offset == len(VALUES)
        return
    client.send(produce_request("t", 0, CASES["wrong CRC"][1](LZ4), acks=0), VERSION)
    with pytest.raises(WireClientError):
        metadata(client, "t")
    assert broker.call(lambda: broker.state.logs.get("t", 0).log_end_offset) == len(VALUES)


def test_a_transaction_of_large_batches_is_committed(broker: Broker, client: Connection) -> None:
    make_topic(client, "t", 1)
    for kind in (0, 1):
        found = client.request(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), 4)
        assert found.coordinators[0].error_code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    given = client.request(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 5)
    assert given.error_code == 0
    who = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    for sequence in (0, len(VALUES)):
        data = batch(*VALUES, codec=ZSTD, base_sequence=sequence, transactional=True, **who)
        assert produce(client, "t", 0, data, 12, transactional_id="x").base_offset == sequence
    assert fetch(client, "t", 0, 0, isolation_level=1).last_stable_offset == 0
    ended = client.request(EndTxnRequest(transactional_id="x", committed=True, **who), 5)
    assert ended.error_code == 0
    assert fetch(client, "t", 0, 0, isolation_level=1).last_stable_offset == 2 * len(VALUES) + 1


def test_the_expected_size_is_no_less_than_the_true_one() -> None:
    size_bytes = sum(map(len, VALUES))
    for codec in CODECS:
        assert decompressed_bytes(batch(*VALUES, codec=codec)) >= size_bytes, codec
    assert decompressed_bytes(batch(*VALUES)) == 0
    assert decompressed_bytes(b"") == 0
    assert decompressed_bytes(batch(b"")[:40]) == 0


def test_work_for_which_no_thread_could_be_started_reads_no_records_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its buffer has the next request by then."""
    checked = []
    monkeypatch.setattr("kafka_shim.storage.batch_checks.check_apart", lambda *arguments: checked.append(arguments))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        checks = BatchChecks(VirtualClock())
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            assert await checks.begin(b"records", "t-0", VERSION, 0, TopicConfig(BrokerConfig())) is None
        await checks._workers.begin(int)  # a thread is there now, and would take what was kept before
        checks.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert checked == []
