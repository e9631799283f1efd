"""With `flush.messages` the answer to the end of a transaction waits for the disk, for all that the end consists of."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FuturesTimeout

import pytest

from kafka_shim import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.produce_request import ProduceRequest
from kafka_shim.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.txn.raw import Client
from kafka_shim.wire_client import Connection

# As slow as a disk under load, or answers would outrun it by chance only.
FSYNC_S = 0.02


@pytest.fixture
def broker() -> Iterator[Broker]:
    options = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1, "num_partitions": 1}
    with Broker(log_flush_interval_messages=1, **options) as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    broker.call(broker.state.metadata.create_topic, "t", 1, 1)
    for topic in ("__transaction_state", "__consumer_offsets"):
        broker.call(broker.state.metadata.ensure_internal_topic, topic)
    with Connection(broker.bootstrap_servers) as connection:
        yield Client(connection, "app")


def unflushed(broker: Broker) -> list[str]:
    logs = [log for log in broker.state.logs.loaded() if log.topic != "__cluster_metadata"]
    return [log.name for log in logs if log.recovery_point < log.log_end_offset]


@pytest.mark.parametrize("commit", [True, False])
def test_an_answered_end_is_on_the_disk(broker: Broker, client: Client, commit: bool) -> None:
    broker.faults.arm("log.before_fsync", lambda **_: time.sleep(FSYNC_S))
    assert client.init() == ErrorCode.NONE
    assert unflushed(broker) == []
    assert client.produce(12) == client.commit_offsets(5) == ErrorCode.NONE
    assert unflushed(broker) == []
    assert client.end(5, commit) == ErrorCode.NONE
    assert unflushed(broker) == []


def test_a_block_of_producer_ids_is_on_the_disk_before_its_first_id_is_told() -> None:
    """Without `flush.messages` too: a block that a power cut takes back would be handed out a second time."""
    with Broker(transaction_state_log_num_partitions=1) as broker, Connection(broker.bootstrap_servers) as connection:
        log = broker.state.logs.metadata_log
        assert log is not None
        fsyncs: list[str] = []
        broker.faults.arm("log.before_fsync", lambda path: (time.sleep(FSYNC_S), fsyncs.append(path)))
        for number in range(1001):
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
            answer = connection.request(request, 5)
            assert (answer.error_code, answer.producer_id) == (0, number)
            if number % 1000 == 0:
                assert log.recovery_point == log.log_end_offset
        assert len([path for path in fsyncs if path.endswith(".log")]) == 2


def test_a_producer_without_transactional_id_whose_id_cannot_be_flushed_is_to_ask_again() -> None:
    """It has no coordinator, so that NOT_COORDINATOR would send it to look for one without a key."""
    with Broker(transaction_state_log_num_partitions=1) as broker, Connection(broker.bootstrap_servers) as connection:
        where = {"path": f"{broker.state.logs.metadata_log.directory}/00000000000000000000.log"}
        broker.faults.arm("log.before_fsync", "oserror", "EIO", where=where)
        answer = connection.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 5)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)


def test_a_producer_id_that_is_told_again_waits_for_the_fsync_of_its_block_too() -> None:
    """The second InitProducerId of a transactional id gets the same producer id with the next epoch."""
    with (
        Broker(transaction_state_log_num_partitions=1) as broker,
        Connection(broker.bootstrap_servers) as connection,
        Connection(broker.bootstrap_servers) as other,
        ThreadPoolExecutor(2) as threads,
    ):
        broker.call(broker.state.metadata.ensure_internal_topic, "__transaction_state")
        fsync = threading.Event()
        begun: list[str] = []
        where = {"path": f"{broker.state.logs.metadata_log.directory}/00000000000000000000.log"}
        broker.faults.arm("log.before_fsync", lambda path: (begun.append(path), fsync.wait(30)), where=where)
        clients = [Client(connection, "app"), Client(other, "app")]
        try:
            first = threads.submit(clients[0].init)
            wait_until(lambda: bool(begun), "the block waits for its fsync")
            again = threads.submit(clients[1].init)
            with pytest.raises(FuturesTimeout):
                again.result(5 * FSYNC_S)
        finally:
            fsync.set()
        assert first.result() == again.result() == ErrorCode.NONE
        assert [client.producer for client in clients] == [(0, 0), (0, 1)]


def test_an_end_that_cannot_be_flushed_is_not_answered_as_done(broker: Broker, client: Client) -> None:
    assert client.init() == client.produce(12) == ErrorCode.NONE
    broker.faults.arm("log.before_fsync", "oserror", "EIO")
    assert client.end(5) == ErrorCode.NOT_COORDINATOR


def test_a_batch_whose_transaction_may_not_be_on_the_disk_is_not_appended(broker: Broker, client: Client) -> None:
    assert client.init() == ErrorCode.NONE
    directory = broker.state.logs.get("__transaction_state", 0).directory
    broker.faults.arm("log.before_fsync", "oserror", "EIO", where={"path": f"{directory}/00000000000000000000.log"})
    assert client.produce(12) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert broker.state.logs.get("t", 0).log_end_offset == 0
    last = broker.call(broker.state.transactions.explanations.lines, "app")[-1]
    assert "Produce refused with NOT_COORDINATOR: producer id 0 epoch 0: the records may not be on the disk" in last


JOINS: dict[str, Callable[[Client], ErrorCode]] = {
    "Produce": lambda client: client.produce(12),
    "TxnOffsetCommit": lambda client: client.commit_offsets(5),
    "AddPartitionsToTxn": lambda client: client.add()[0],
    "AddOffsetsToTxn": lambda client: client.add_offsets(),
}


@pytest.mark.parametrize("api", JOINS)
def test_a_request_made_again_waits_for_the_record_that_the_first_one_wrote(
    broker: Broker, client: Client, api: str
) -> None:
    """A client that gave up and connected again: the record is in the log, and its fsync goes on."""
    assert client.init() == ErrorCode.NONE
    path = f"{broker.state.logs.get('__transaction_state', 0).directory}/00000000000000000000.log"
    logs = [broker.state.logs.get(topic, 0) for topic in ("t", "__consumer_offsets")]
    fsync = threading.Event()
    begun: list[str] = []
    broker.faults.arm("log.before_fsync", lambda path: (begun.append(path), fsync.wait(30)), where={"path": path})
    with Connection(broker.bootstrap_servers) as connection, ThreadPoolExecutor(2) as threads:
        other = Client(connection, "app")
        other.producer = client.producer
        try:
            first = threads.submit(JOINS[api], other)
            wait_until(lambda: bool(begun), "the record waits for its fsync")
            again = threads.submit(JOINS[api], client)
            with pytest.raises(FuturesTimeout):
                again.result(5 * FSYNC_S)
            assert [log.log_end_offset for log in logs] == [0, 0]
        finally:
            fsync.set()
        assert first.result() == again.result() == ErrorCode.NONE
    assert unflushed(broker) == []


@pytest.mark.parametrize("api", JOINS)
def test_a_request_made_again_is_refused_while_the_record_may_be_lost(broker: Broker, client: Client, api: str) -> None:
    assert client.init() == ErrorCode.NONE
    path = f"{broker.state.logs.get('__transaction_state', 0).directory}/00000000000000000000.log"
    broker.faults.arm("log.before_fsync", "oserror", "EIO", where={"path": path})
    refused = JOINS[api](client)
    assert refused != ErrorCode.NONE
    assert [JOINS[api](client), JOINS[api](client)] == [refused, refused]
    assert broker.state.logs.get("t", 0).log_end_offset == 0
    broker.faults.disarm()
    # The broker opens the partition again by itself.
    wait_until(lambda: JOINS[api](client) == ErrorCode.NONE, "the record is on the disk")
    assert unflushed(broker) == []


def test_log_append_time_of_a_batch_that_waited_is_that_of_its_append() -> None:
    with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers) as connection:
        metadata = broker.state.metadata
        broker.call(metadata.create_topic, "t", 1, 1, {"message.timestamp.type": "LogAppendTime"})
        broker.call(metadata.ensure_internal_topic, "__transaction_state")
        client = Client(connection, "app")
        assert client.init() == ErrorCode.NONE
        broker.faults.arm("produce.verified", "hold")
        try:
            client.send_produce(12)
            wait_until(lambda: broker.faults.reached("produce.verified"), "the batch waits")
            broker.clock.advance("5s")
        finally:
            broker.faults.disarm()
        _, answer = connection.receive(ProduceRequest.API_KEY, 12)
        (told,) = answer.responses[0].partition_responses
        assert (told.error_code, told.log_append_time_ms) == (0, broker.call(broker.state.clock.now_ms))


def test_markers_that_cannot_be_flushed_fail_their_own_partition(broker: Broker, client: Client) -> None:
    """Kafka answers WriteTxnMarkers by partition."""
    broker.call(broker.state.metadata.create_topic, "u", 1, 1)
    path = f"{broker.state.logs.get('u', 0).directory}/00000000000000000000.log"
    topics = [WritableTxnMarkerTopic(name=name, partition_indexes=[0]) for name in ("t", "u")]
    marker = WritableTxnMarker(producer_id=7, producer_epoch=0, transaction_result=False, topics=topics)
    broker.faults.arm("log.before_fsync", "oserror", "EIO", where={"path": path})
    answer = client.connection.request(WriteTxnMarkersRequest(markers=[marker]), 1)
    broker.faults.disarm()
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.markers[0].topics}
    assert codes == {"t": ErrorCode.NONE, "u": ErrorCode.KAFKA_STORAGE_ERROR}
    assert "t-0" not in unflushed(broker)


def test_answers_that_meet_wait_each_for_its_own_fsync(broker: Broker, client: Client) -> None:
    """Requests of several connections that come in one turn of the loop: none may take what another waits for."""
    with contextlib.ExitStack() as stack:
        clients = [
            Client(stack.enter_context(Connection(broker.bootstrap_servers)), f"app-{number}") for number in range(4)
        ]
        for each in clients:
            broker.call(broker.state.metadata.create_topic, each.name, 1, 1)
            each.topic = each.name
            assert each.init() == ErrorCode.NONE
        broker.faults.arm("log.before_fsync", lambda **_: time.sleep(FSYNC_S))
        busy = threading.Thread(target=broker.call, args=(time.sleep, 5 * FSYNC_S))
        busy.start()
        for each in clients:
            request = InitProducerIdRequest(transactional_id=each.name, transaction_timeout_ms=60_000)
            each.connection.send(request, 4)
        busy.join()
        for each in reversed(clients):
            _, answer = each.connection.receive(InitProducerIdRequest.API_KEY, 4)
            assert answer.error_code == 0
            assert unflushed(broker) == []
