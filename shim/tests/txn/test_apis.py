"""The transaction APIs over a socket: codes by version (B2, B8-B11, B19, B25), as raw requests see them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim import Broker
from kafka_shim.cext.records import build
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_shim.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kafka_shim.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_shim.protocol.messages.end_txn_request import EndTxnRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.list_transactions_request import ListTransactionsRequest
from kafka_shim.protocol.messages.produce_request import ProduceRequest
from kafka_shim.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_shim.storage.validation import ZSTD
from kafka_shim.targets.requests import create_topic, finalise, make, produce
from kafka_shim.targets.waiting import last_answer
from kafka_shim.tests.txn.raw import Client
from kafka_shim.wire_client import Connection, WireClientError

NONE = ErrorCode.NONE


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # On a slow machine a transaction that a test leaves open would be over its timeout in the middle of a later one.
    with Broker(
        transaction_state_log_num_partitions=2,
        offsets_topic_num_partitions=2,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=86_400_000,
    ) as started:
        with Connection(started.bootstrap_servers) as setup:
            setup.request(
                CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)]), 5
            )
            for key_type in (0, 1):
                setup.request(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"]), 4)
        yield started


@pytest.fixture
def client(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Client]:
    with Connection(broker.bootstrap_servers) as connection:
        yield Client(connection, request.node.name)


# --- InitProducerId


@pytest.mark.parametrize("version", range(6))
def test_init_in_every_version(client: Client, version: int) -> None:
    assert client.init(version) is NONE
    assert client.producer[1] == 0


@pytest.mark.parametrize(("version", "code"), [(3, "INVALID_PRODUCER_EPOCH"), (4, "PRODUCER_FENCED")])
def test_init_with_a_fenced_epoch(client: Client, version: int, code: str) -> None:
    client.init()
    first = client.producer
    client.init()
    client.init()
    assert client.init(version, first) is ErrorCode[code]
    assert client.init(version, (first[0] + 1, 0)) is ErrorCode[code]


@pytest.mark.parametrize("held", [(5, -1), (-1, 5)])
def test_init_with_half_of_id_and_epoch(client: Client, held: tuple[int, int]) -> None:
    assert client.init(4, held) is ErrorCode.INVALID_REQUEST


def test_init_with_a_bad_timeout(client: Client) -> None:
    assert client.init(4, timeout_ms=0) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert client.init(4, timeout_ms=900_001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_b25_version_6_closes_the_connection(client: Client) -> None:
    with pytest.raises(WireClientError):
        client.init(6)


def test_init_without_transactional_id_ignores_everything_else(client: Client) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1, producer_id=9, producer_epoch=9)
    answer = client.connection.request(request, 5)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != 9


# --- AddPartitionsToTxn, AddOffsetsToTxn


@pytest.mark.parametrize("version", range(4))
def test_add_in_every_client_version(client: Client, version: int) -> None:
    client.init()
    assert client.add(version) == [NONE]
    assert client.described().transaction_state == "Ongoing"


@pytest.mark.parametrize(
    ("version", "code"), [(0, "INVALID_PRODUCER_EPOCH"), (1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")]
)
def test_add_with_a_stale_epoch(client: Client, version: int, code: str) -> None:
    client.init()
    first = client.producer
    client.init()
    assert client.add(version, first) == [ErrorCode[code]]
    assert client.add_offsets(version, first) is ErrorCode[code]


def test_one_unknown_partition_fails_all(client: Client) -> None:
    client.init()
    codes = client.add(3, None, ("t", 0), ("t", 9), ("nowhere", 0))
    unknown, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert codes == [skipped, unknown, unknown]
    assert client.described().transaction_state == "Empty"


def test_brokers_verify_and_add(client: Client) -> None:
    client.init()
    assert client.verify(("t", 0)) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert client.verify(("t", 0), verify_only=False) == [NONE]
    assert client.verify(("t", 0), ("t", 1)) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert client.verify(("t", 0), version=4) == [NONE]


@pytest.mark.parametrize("verify_only", [True, False])
def test_codes_that_differ_by_partition_are_listed_in_the_order_of_kafkas_maps(
    client: Client, verify_only: bool
) -> None:
    """Each partition once, and no topic without partitions. What was added is listed as in the request. The orders are
    those of Apache Kafka 4.3.1 for these names."""
    rows = [{"name": name, "num_partitions": 20, "replication_factor": 1} for name in ("b", "a", "cc")]
    client.connection.request(make("CreateTopics", topics=rows), 5)
    client.init()

    def listed(verify_only: bool, *topics: tuple[str, list[int]]) -> list[tuple[str, list[tuple[int, int]]]]:
        transaction = {
            "transactional_id": client.name,
            "producer_id": client.producer[0],
            "producer_epoch": client.producer[1],
            "verify_only": verify_only,
            "topics": [{"name": name, "partitions": partitions} for name, partitions in topics],
        }
        answer = client.connection.request(make("AddPartitionsToTxn", transactions=[transaction]), 5)
        return [
            (topic.name, [(part.partition_index, part.partition_error_code) for part in topic.results_by_partition])
            for topic in answer.results_by_transaction[0].topic_results
        ]

    asked = [("cc", []), ("b", [5, 3, 1, 5]), ("a", [1]), ("b", [2, 3])]
    added = [("cc", []), ("b", [(5, 0), (3, 0), (1, 0), (5, 0)]), ("a", [(1, 0)]), ("b", [(2, 0), (3, 0)])]
    told = added
    if verify_only:
        aborts = ErrorCode.TRANSACTION_ABORTABLE
        told = [("a", [(1, aborts)]), ("b", [(number, aborts) for number in (3, 2, 1, 5)])]
    assert listed(verify_only, *asked) == told
    skipped, unknown = ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert listed(verify_only, *asked, ("none", [0, 0])) == [
        ("a", [(1, skipped)]),
        ("b", [(number, skipped) for number in (3, 2, 1, 5)]),
        ("none", [(0, unknown)]),
    ]


def test_of_a_transactional_id_that_comes_twice_the_last_partitions_count(client: Client) -> None:
    """A code for all is listed as in the first, as in Kafka; codes that differ, as in the map of the last."""
    client.init()

    def told(*asked: tuple[bool, int]) -> list[list[tuple[int, int]]]:
        transactions = [
            {
                "transactional_id": client.name,
                "producer_id": client.producer[0],
                "producer_epoch": client.producer[1],
                "verify_only": verify_only,
                "topics": [{"name": "t", "partitions": [partition]}],
            }
            for verify_only, partition in asked
        ]
        answer = client.connection.request(make("AddPartitionsToTxn", transactions=transactions), 5)
        return [
            [(part.partition_index, part.partition_error_code) for part in result.topic_results[0].results_by_partition]
            for result in answer.results_by_transaction
        ]

    assert told((True, 0), (False, 1)) == [[(1, ErrorCode.TRANSACTION_ABORTABLE)], [(0, NONE)]]
    assert client.described().topics[0].partitions == [1]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told((False, 0), (False, 9)) == [[(9, unknown)], [(9, unknown)]]
    assert client.described().topics[0].partitions == [1]


def test_an_unknown_transactional_id(client: Client) -> None:
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert client.add(3, (1, 1)) == [unknown]
    assert client.add_offsets(3, (1, 1)) is unknown
    assert client.end(5, True, (1, 1)) is unknown


# --- EndTxn


@pytest.mark.parametrize(
    ("version", "code"),
    [(0, "INVALID_PRODUCER_EPOCH"), (1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED"), (4, "PRODUCER_FENCED")],
)
def test_end_with_a_stale_epoch(client: Client, version: int, code: str) -> None:
    client.init()
    first = client.producer
    client.init()
    client.add()
    assert client.end(version, True, first) is ErrorCode[code]


@pytest.mark.parametrize("version", range(6))
def test_end_in_every_version(client: Client, version: int) -> None:
    client.init()
    client.add()
    before = client.producer
    assert client.end(version) is NONE
    assert client.producer == (before if version < 5 else (before[0], before[1] + 1))
    assert client.described().transaction_state == "CompleteCommit"


def test_end_of_nothing(client: Client) -> None:
    client.init()
    assert client.end(4, True) is ErrorCode.INVALID_TXN_STATE
    assert client.end(4, False) is ErrorCode.INVALID_TXN_STATE
    assert client.end(5, True) is ErrorCode.INVALID_TXN_STATE
    assert client.end(5, False) is NONE
    assert client.described().transaction_state == "CompleteAbort"


def test_b10_what_comes_in_the_same_turn_finds_it_complete(client: Client) -> None:
    """The answer leaves before the markers; the request behind it, which has arrived already, is served after them."""
    client.init()
    for _ in range(20):
        assert client.produce(12) is NONE
        producer_id, epoch = client.producer
        end = EndTxnRequest(transactional_id=client.name, producer_id=producer_id, producer_epoch=epoch, committed=True)
        describe = DescribeTransactionsRequest(transactional_ids=[client.name])
        asked = encode_request_frame(describe, 0, 1, "all")
        client.connection.send_bytes(asked + encode_request_frame(end, 5, 2, "all") + asked)
        _, before = client.connection.receive(DescribeTransactionsRequest.API_KEY, 0)
        assert before.transaction_states[0].transaction_state == "Ongoing"
        _, ended = client.connection.receive(EndTxnRequest.API_KEY, 5)
        _, described = client.connection.receive(DescribeTransactionsRequest.API_KEY, 0)
        assert ended.error_code == 0
        client.producer = ended.producer_id, ended.producer_epoch
        assert described.transaction_states[0].transaction_state == "CompleteCommit"


def test_b10_a_client_that_is_gone_before_the_answer_has_committed(client: Client, broker: Broker) -> None:
    client.init()
    assert client.produce(12) is NONE
    producer_id, epoch = client.producer
    end = EndTxnRequest(transactional_id=client.name, producer_id=producer_id, producer_epoch=epoch, committed=True)
    with Connection(broker.bootstrap_servers) as leaving:
        leaving.send(end, 5)
    state = last_answer(lambda: client.described().transaction_state, lambda state: state == "CompleteCommit")
    assert state == "CompleteCommit"


def test_b10_an_end_that_was_held_is_complete_when_it_is_answered(client: Client, broker: Broker) -> None:
    """Held before it is handled, and let go by a disarmed broker: it has no steps to wait at then."""
    client.init()
    assert client.produce(12) is NONE
    producer_id, epoch = client.producer
    end = EndTxnRequest(transactional_id=client.name, producer_id=producer_id, producer_epoch=epoch, committed=True)
    broker.faults.arm("request.received", "hold", where={"api_key": EndTxnRequest.API_KEY})
    client.connection.send(end, 5)
    with Connection(broker.bootstrap_servers) as other:
        while not broker.faults.reached("request.received"):
            other.request(ListTransactionsRequest(), 0)
    broker.faults.disarm()
    _, ended = client.connection.receive(EndTxnRequest.API_KEY, 5)
    assert ended.error_code == 0
    assert client.described().transaction_state == "CompleteCommit"


@pytest.mark.parametrize("nth", [1, 2, 3], ids=["no-marker", "one-marker", "all-markers"])
def test_b12_what_fails_behind_the_answer_is_tried_again(client: Client, broker: Broker, nth: int) -> None:
    client.init()
    assert client.produce(12) is client.produce(12, partition=1) is NONE
    errors = broker.state.metrics.errors_unexpected
    broker.faults.arm("txn.answered", "error", nth=nth)
    assert client.end() is NONE
    broker.faults.disarm()
    state = last_answer(lambda: client.described().transaction_state, lambda state: state == "CompleteCommit")
    assert state == "CompleteCommit"
    assert broker.state.metrics.errors_unexpected == errors + 1
    assert client.produce(12) is NONE
    assert client.end() is NONE


# --- Produce, B9


@pytest.mark.parametrize("version", [3, 10, 11, 12])
def test_produce_to_a_partition_that_is_not_added(client: Client, version: int) -> None:
    client.init()
    expected = {3: "INVALID_TXN_STATE", 10: "INVALID_TXN_STATE", 11: "TRANSACTION_ABORTABLE", 12: "NONE"}
    assert client.produce(version) is ErrorCode[expected[version]]
    assert client.end(5, False) is NONE


def test_what_is_not_in_the_transaction_has_the_text_of_kafka(client: Client) -> None:
    client.init()
    client.send_produce(10)
    _, answer = client.connection.receive(ProduceRequest.API_KEY, 10)
    told = answer.responses[0].partition_responses[0]
    assert (told.error_code, told.error_message) == (
        ErrorCode.INVALID_TXN_STATE,
        "Partition was not added to the transaction",
    )


@pytest.mark.parametrize(
    ("version", "code"), [(10, "INVALID_TXN_STATE"), (11, "TRANSACTION_ABORTABLE"), (12, "INVALID_TOPIC_EXCEPTION")]
)
def test_the_coordinator_is_asked_before_an_internal_topic_is_refused(client: Client, version: int, code: str) -> None:
    client.init()
    client.topic = "__consumer_offsets"
    assert client.produce(version, (client.producer[0], 7)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.produce(version) is ErrorCode[code]
    assert (client.described().transaction_state == "Ongoing") == (version == 12)
    assert client.verify((client.topic, 0), verify_only=False) == [NONE]
    assert client.produce(version) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert client.end(5, commit=True) is NONE


@pytest.mark.parametrize("version", [3, 12])
def test_what_is_not_one_batch_is_refused_before_the_coordinator_is_asked(client: Client, version: int) -> None:
    client.init()
    who = {"producer_id": client.producer[0], "producer_epoch": 7, "base_sequence": 0, "transactional": True}
    one, two = (build([(b"k", b"v", 1, ())], codec=codec, **who) for codec in (0, ZSTD))
    codes = {bytes(one + one): ErrorCode.INVALID_RECORD}
    if version < 7:
        codes[bytes(two)] = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    for records, code in codes.items():
        for acks in (-1, 5):
            request = produce("t", 0, records, acks=acks, transactional_id=client.name)
            (topic,) = client.connection.request(request, version).responses
            assert topic.partition_responses[0].error_code == code
    assert client.described().transaction_state == "Empty"


def test_produce_of_an_unknown_producer_id(client: Client) -> None:
    client.init()
    assert client.produce(12, (client.producer[0] + 12345, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_log_s_own_refusals_are_explained(client: Client, broker: Broker) -> None:
    client.init()
    assert client.produce(12) is NONE
    stale = client.producer
    assert client.end() is NONE
    assert client.produce(12, stale) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.produce(12) is NONE
    assert client.produce(12, sequence=7) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    lines = broker.call(broker.state.transactions.explanations.lines, client.name)
    assert "Produce refused with INVALID_PRODUCER_EPOCH" in lines[4]
    assert "Produce refused with OUT_OF_ORDER_SEQUENCE_NUMBER" in lines[-1]
    assert client.end(5, False) is NONE


def test_b9_a_marker_between_verification_and_append_refuses_the_batch(client: Client, broker: Broker) -> None:
    client.init()
    client.add()
    first = client.producer
    broker.faults.arm("produce.verified", "hold")
    try:
        with Connection(broker.bootstrap_servers) as other:
            late = Client(other, client.name)
            late.producer = first
            late.send_produce(9)
            while broker.faults.reached("produce.verified") == 0:
                time.sleep(0.001)
            assert client.end(4, False) is NONE
            broker.faults.release("produce.verified")
            assert late.receive_produce(9) is ErrorCode.INVALID_TXN_STATE
    finally:
        broker.faults.disarm()


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_transactional_batch_without_producer_id_belongs_to_no_transaction(client: Client, version: int) -> None:
    client.init()
    assert client.produce(version, (-1, -1), sequence=-1) is NONE
    assert client.described().transaction_state == "Empty"


def explained(client: Client, broker: Broker) -> list[str]:
    """The history of the client's id without times and transitions."""
    lines = broker.call(broker.state.transactions.explanations.lines, client.name)
    return [line.split(" ", 1)[1] for line in lines if "refused" in line]


def test_every_refused_request_has_its_reason(client: Client, broker: Broker) -> None:
    client.init()
    pid = client.producer[0]
    client.init(4, (5, -1))
    client.init(4, timeout_ms=0)
    client.add(3, None, ("t", 0), ("nowhere", 3))
    client.verify(("t", 0))
    client.produce(9)
    client.produce(11)
    assert client.produce(12) is NONE
    client.produce(12, sequence=7)
    client.produce(12, partition=9)
    client.commit_offsets(3)
    client.commit_offsets(5, generation=7)
    client.commit_offsets(5, topic="nowhere")
    client.end(5, True, (pid, 7))
    client.add(3, (pid, 7))
    client.add_offsets(3, (pid + 1, 0))
    assert client.end(5, False) is NONE
    wanted = [
        ("InitProducerId", "INVALID_REQUEST", "only one of producer id and epoch is set"),
        ("InitProducerId", "INVALID_TRANSACTION_TIMEOUT", "timeout 0 ms"),
        ("AddPartitionsToTxn", "UNKNOWN_TOPIC_OR_PARTITION", "1 of 2 partitions do not exist, the first is nowhere-3"),
        ("AddPartitionsToTxn", "TRANSACTION_ABORTABLE", "t-0 not in the transaction, state Empty"),
        ("Produce", "TRANSACTION_ABORTABLE", "t-0 not in the transaction"),
        ("Produce", "TRANSACTION_ABORTABLE", "t-0 not in the transaction"),
        ("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", f"t-0: producer {pid}: epoch 0, sequence 7, expected 1"),
        ("Produce", "UNKNOWN_TOPIC_OR_PARTITION", ""),
        ("TxnOffsetCommit", "TRANSACTION_ABORTABLE", "not in the transaction"),
        ("TxnOffsetCommit", "ILLEGAL_GENERATION", "generation 7; the first refused is t-0"),
        ("TxnOffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", "the first refused is nowhere-0"),
        ("EndTxn", "PRODUCER_FENCED", "epoch 7, current is 0"),
        ("AddPartitionsToTxn", "PRODUCER_FENCED", "epoch 7, current is 0"),
        ("AddOffsetsToTxn", "INVALID_PRODUCER_ID_MAPPING", f"current is {pid}"),
    ]
    found = explained(client, broker)
    assert len(found) == len(wanted)
    for line, (api, code, reason) in zip(found, wanted, strict=True):
        assert line.startswith(f"{api} refused with {code}: ")
        assert reason in line


# --- TxnOffsetCommit, B8


def test_offsets_of_nothing_do_not_touch_the_transaction(client: Client) -> None:
    client.init()
    for topic in ("t", "nowhere"):
        request = TxnOffsetCommitRequest(
            transactional_id=client.name,
            group_id=client.name,
            producer_id=client.producer[0],
            producer_epoch=client.producer[1],
            topics=[TxnOffsetCommitRequestTopic(name=topic)],
        )
        answered = client.connection.request(request, 5).topics
        assert [(found.name, found.partitions) for found in answered] == ([] if topic == "t" else [("nowhere", [])])
    assert client.described().transaction_state == "Empty"


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, "INVALID_TXN_STATE"),
        (2, "INVALID_TXN_STATE"),
        (3, "INVALID_TXN_STATE"),
        (4, "TRANSACTION_ABORTABLE"),
        (5, "NONE"),
    ],
)
def test_offsets_of_a_group_that_is_not_added(client: Client, version: int, code: str) -> None:
    client.init()
    assert client.commit_offsets(version) is ErrorCode[code]
    if version < 5:
        client.add_offsets()
        assert client.commit_offsets(version) is NONE
    assert client.end(5, False) is NONE


def test_a_refused_group_leaves_the_transaction_open(client: Client) -> None:
    client.init()
    assert client.commit_offsets(5, generation=7) is ErrorCode.ILLEGAL_GENERATION
    assert client.described().transaction_state == "Ongoing"
    assert client.end(5, False) is NONE


def test_offsets_of_a_fenced_producer_are_an_invalid_epoch_in_every_version(client: Client) -> None:
    client.init()
    first = client.producer
    client.init()
    for version in (3, 4, 5):
        assert client.commit_offsets(version, first) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_offsets_of_an_unknown_partition_do_not_touch_the_transaction(client: Client) -> None:
    client.init()
    assert client.commit_offsets(5, topic="nowhere") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.described().transaction_state == "Empty"


@pytest.mark.parametrize("generation", [-1, 7])
def test_offsets_of_a_topic_that_is_named_twice(client: Client, generation: int) -> None:
    """Topics are only merged where something is refused (TxnOffsetCommitResponse.Builder)."""
    client.init()
    code = NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def answers(*topics: tuple[str, int]) -> list[tuple[str, list[tuple[int, int]]]]:
        request = TxnOffsetCommitRequest(
            transactional_id=client.name,
            group_id=client.name,
            producer_id=client.producer[0],
            producer_epoch=client.producer[1],
            generation_id=generation,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=[TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1)],
                )
                for name, index in topics
            ],
        )
        return [
            (topic.name, [(part.partition_index, part.error_code) for part in topic.partitions])
            for topic in client.connection.request(request, 5).topics
        ]

    assert answers(("t", 0), ("t", 1)) == [("t", [(0, code)]), ("t", [(1, code)])]
    assert answers(("no", 0), ("no", 1)) == [("no", [(0, unknown), (1, unknown)])]
    assert answers(("t", 0), ("no", 0), ("t", 1), ("no", 1)) == [
        ("no", [(0, unknown), (1, unknown)]),
        ("t", [(0, code), (1, code)]),
    ]
    assert answers(("t", 0), ("t", 7)) == [("t", [(7, unknown), (0, code)])]


def test_a_broker_s_add_to_a_coordinator_without_tv2_fails_as_a_whole() -> None:
    """Where the records of transactions cannot hold it (transaction.version 0)."""
    with Broker(transaction_state_log_num_partitions=2) as broker, Connection(broker.bootstrap_servers) as connection:
        finalise(connection, "transaction.version", 0)
        create_topic(connection, "t")
        connection.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 4)
        client = Client(connection, "x")
        assert client.init() is NONE
        producer_id, producer_epoch = client.producer
        topics = [{"name": "t", "partitions": [0]}]
        one = {"transactional_id": "x", "producer_id": producer_id, "producer_epoch": producer_epoch, "topics": topics}
        answer = connection.request(make("AddPartitionsToTxn", transactions=[one]), 4)
        assert (answer.error_code, answer.results_by_transaction) == (ErrorCode.UNSUPPORTED_VERSION, [])
        assert client.add(3) == [NONE]
        assert (
            connection.request(make("AddPartitionsToTxn", transactions=[{**one, "verify_only": True}]), 4).error_code
            == 0
        )


# --- WriteTxnMarkers, DescribeProducers, B11


def mark(client: Client, version: int = 2, coordinator_epoch: int = 0, topic: str = "t", **fields: Any) -> ErrorCode:
    marker = WritableTxnMarker(
        producer_id=fields.pop("producer_id", client.producer[0]),
        producer_epoch=fields.pop("epoch", client.producer[1]),
        transaction_result=False,
        coordinator_epoch=coordinator_epoch,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        **fields,
    )
    answer = client.connection.request(WriteTxnMarkersRequest(markers=[marker]), version)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


def test_markers_by_level(client: Client) -> None:
    client.init()
    client.produce(12)
    assert mark(client, topic="nowhere") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert mark(client, transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert mark(client, epoch=client.producer[1] + 1, transaction_version=2) is NONE
    assert mark(client, epoch=client.producer[1] + 1, transaction_version=2) is NONE
    assert mark(client, 1, epoch=client.producer[1] + 1) is NONE
    assert mark(client, 1, epoch=client.producer[1]) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert mark(client, 1, 99, epoch=client.producer[1] + 1) is NONE
    assert mark(client, 1, 98, epoch=client.producer[1] + 1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert mark(client, producer_id=987654321) is NONE


def test_no_markers_at_all(client: Client) -> None:
    assert client.connection.request(WriteTxnMarkersRequest(markers=[]), 1).markers == []
    for topics in ([], [WritableTxnMarkerTopic(name="t")]):
        markers = [WritableTxnMarker(producer_id=1, producer_epoch=0, coordinator_epoch=0, topics=topics)]
        assert client.connection.request(WriteTxnMarkersRequest(markers=markers), 1).markers == []


@pytest.mark.parametrize("who", [{"producer_id": -1}, {"epoch": -1}])
def test_a_marker_of_nobody_fails_the_whole_request(client: Client, who: dict[str, int]) -> None:
    client.init()
    assert client.produce(12) is NONE
    before = client.connection.request(DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])]))
    assert mark(client, **who) is ErrorCode.UNKNOWN_SERVER_ERROR
    after = client.connection.request(DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])]))
    assert repr(after) == repr(before)
    assert mark(client, producer_id=987654322, epoch=-2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.end(5, False) is NONE


def test_markers_before_that_of_nobody_are_written_and_each_partition_has_one(client: Client, broker: Broker) -> None:
    def marker(producer_id: int, *partitions: int) -> WritableTxnMarker:
        topics = [WritableTxnMarkerTopic(name="t", partition_indexes=list(partitions))]
        return WritableTxnMarker(producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, topics=topics)

    def ends() -> list[int]:
        # On the loop: the marker of the EndTxn that the test before ends with may follow its answer.
        return broker.call(lambda: [broker.state.logs.get("t", number).log_end_offset for number in range(3)])

    first = ends()
    answer = client.connection.request(WriteTxnMarkersRequest(markers=[marker(987654401, 0, 0, 1)]), 1)
    (topic,) = answer.markers[0].topics
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [(0, 0), (1, 0)]
    assert ends() == [first[0] + 1, first[1] + 1, first[2]]
    markers = [marker(987654402, 0), marker(-1, 1), marker(987654403, 2)]
    answer = client.connection.request(WriteTxnMarkersRequest(markers=markers), 1)
    codes = {part.error_code for one in answer.markers for topic in one.topics for part in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert ends() == [first[0] + 2, first[1] + 1, first[2]]
    answer = client.connection.request(WriteTxnMarkersRequest(markers=[marker(-1, 0, 1), marker(-1, 2)]), 1)
    (one,) = answer.markers
    assert [part.partition_index for topic in one.topics for part in topic.partitions] == [2]
    assert mark(client, producer_id=-1, topic="__consumer_offsets") is ErrorCode.UNKNOWN_SERVER_ERROR
    assert mark(client, producer_id=-1, topic="no") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_marker_without_a_transaction_version_is_not_written(client: Client, broker: Broker) -> None:
    log = broker.state.logs.get("t", 0)
    before = log.log_end_offset
    assert mark(client, producer_id=987654404, epoch=0, transaction_version=-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert mark(client, producer_id=987654404, epoch=0, transaction_version=-1, topic="no") is (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert log.log_end_offset == before
    assert mark(client, producer_id=987654404, epoch=1, transaction_version=-2) is NONE
    stale = mark(client, producer_id=987654404, epoch=0, transaction_version=-1)
    assert stale is ErrorCode.INVALID_PRODUCER_EPOCH
    assert mark(client, producer_id=-2, epoch=0, transaction_version=-1) is NONE


def test_a_marker_of_a_negative_id_is_written_and_forgotten(client: Client, broker: Broker) -> None:
    log = broker.state.logs.get("t", 0)
    before = log.log_end_offset, [one.producer_id for one in log.producer_statuses()]
    assert mark(client, producer_id=-2, epoch=7, coordinator_epoch=5, transaction_version=2) is NONE
    assert mark(client, producer_id=-2, epoch=3, coordinator_epoch=4, transaction_version=2) is NONE
    assert (log.log_end_offset - 2, [one.producer_id for one in log.producer_statuses()]) == before


def test_describe_producers_shows_the_open_transaction(client: Client) -> None:
    client.init()
    client.produce(12, partition=2)
    names = {"t": [2, 9], "nowhere": [0], "bad name": [0]}
    topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in names.items()]
    known, unknown, invalid = client.connection.request(DescribeProducersRequest(topics=topics), 0).topics
    assert invalid.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    found = {producer.producer_id: producer for producer in known.partitions[0].active_producers}
    mine = found[client.producer[0]]
    assert (mine.producer_epoch, mine.last_sequence) == (client.producer[1], 0)
    assert mine.current_txn_start_offset >= 0
    assert mine.coordinator_epoch == -1
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    told = [(one.error_code, one.error_message) for one in (known.partitions[1], unknown.partitions[0])]
    assert told == [(missing, None), (missing, "This server does not host this topic-partition.")], "as 4.3.1"
    client.end(5, False)


# --- DescribeTransactions, ListTransactions, B19


def test_describe_unknown_and_empty_ids(client: Client) -> None:
    assert client.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    client.name = ""
    assert client.described().error_code == ErrorCode.INVALID_REQUEST


def listed(client: Client, version: int = 2, **filters: Any) -> tuple[set[str], list[str]]:
    answer = client.connection.request(ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    return {txn.transactional_id for txn in answer.transaction_states}, answer.unknown_state_filters


def test_list_filters(client: Client) -> None:
    client.init()
    client.add()
    everything, _ = listed(client, 0)
    assert client.name in everything
    assert client.name in listed(client, 0, state_filters=["Ongoing"])[0]
    assert listed(client, 0, state_filters=["PrepareCommit", "Nonsense"]) == (set(), ["Nonsense"])
    assert listed(client, 0, state_filters=["Nonsense"] * 2) == (set(), ["Nonsense"])
    assert listed(client, 0, producer_id_filters=[client.producer[0]])[0] == {client.name}
    assert client.name not in listed(client, 1, duration_filter=60_000)[0]
    assert listed(client, transactional_id_pattern="test_list_f.*")[0] == {client.name}
    assert listed(client, transactional_id_pattern="test_list")[0] == set()
    assert listed(client, transactional_id_pattern="")[0] == everything


def test_a_duration_also_matches_what_is_at_rest(client: Client) -> None:
    client.init()
    assert client.name in listed(client, 1, duration_filter=60_000)[0]


def test_a_bad_pattern(client: Client) -> None:
    answer = client.connection.request(ListTransactionsRequest(transactional_id_pattern="(ab"), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == []
