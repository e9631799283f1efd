"""Stepwise mode with a real client: at each step of EndTxn the machine is held, its answer dropped, or an error
injected, and librdkafka ends where it should (D10, D11)."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

from kafka_shim import Broker
from kafka_shim.targets.waiting import wait_until
from kafka_shim.txn.transaction import STATE_NAMES

STEPS = ("txn.before_prepare", "txn.after_prepare", "txn.after_marker", "txn.before_complete", "txn.after_complete")
TOPIC = "t"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(transaction_state_log_num_partitions=2, offsets_topic_num_partitions=2, num_partitions=2) as started:
        yield started


@pytest.fixture
def producer(broker: Broker, request: pytest.FixtureRequest) -> confluent_kafka.Producer:
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": request.node.name,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 20,
            "log_level": 0,
        }
    )
    made.init_transactions(60)
    made.begin_transaction()
    for partition in range(2):
        made.produce(TOPIC, b"v", partition=partition)
    made.flush(60)
    return made


def state_of(broker: Broker, name: str) -> str:
    return STATE_NAMES[broker.call(broker.state.transactions.describe, name).state]


def wait_for(broker: Broker, point: str) -> None:
    wait_until(lambda: broker.faults.reached(point), f"{point} is reached")


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("point", STEPS)
def test_a_dropped_answer_is_asked_for_again(
    broker: Broker, producer: confluent_kafka.Producer, point: str, commit: bool, request: pytest.FixtureRequest
) -> None:
    broker.faults.arm(point, "drop", nth=1)
    try:
        (producer.commit_transaction if commit else producer.abort_transaction)(60)
    finally:
        broker.faults.disarm()
    assert state_of(broker, request.node.name) == ("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize("point", STEPS)
def test_a_held_step_holds_the_client_and_nobody_else(
    broker: Broker, producer: confluent_kafka.Producer, point: str, request: pytest.FixtureRequest
) -> None:
    broker.faults.arm(point, "hold")
    try:
        with pytest.raises(confluent_kafka.KafkaException) as caught:
            producer.commit_transaction(0.3)
        assert caught.value.args[0].retriable()
        wait_for(broker, point)
        expected = {"txn.before_prepare": "Ongoing", "txn.after_complete": "CompleteCommit"}
        assert state_of(broker, request.node.name) == expected.get(point, "PrepareCommit")
        other = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        other.produce(TOPIC, b"others go on")
        assert other.flush(60) == 0
    finally:
        broker.faults.disarm()
    producer.commit_transaction(60)
    assert state_of(broker, request.node.name) == "CompleteCommit"


def test_d11_an_unknown_server_error_after_the_decision(
    broker: Broker, producer: confluent_kafka.Producer, request: pytest.FixtureRequest
) -> None:
    """The commit stands, whatever the client makes of the error: a new instance must not find it undone."""
    broker.faults.arm("txn.after_complete", "error", "UNKNOWN_SERVER_ERROR", nth=1)
    try:
        with pytest.raises(confluent_kafka.KafkaException):
            producer.commit_transaction(60)
    finally:
        broker.faults.disarm()
    assert state_of(broker, request.node.name) == "CompleteCommit"
