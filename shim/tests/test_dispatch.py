"""What happens around a handler: held requests, errors before and after it. Wrong bytes are in test_connection."""

from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, metadata, produce, produce_request
from kafka_shim.wire_client import Connection, WireClientError

PRODUCE = 0


def test_a_request_can_be_held_while_others_pass(broker, client):
    make_topic(client, "t")
    broker.faults.arm("request.received", "hold", where={"api_key": PRODUCE, "client_id": "slow"}, nth=1)
    with Connection(broker.bootstrap_servers, client_id="slow", timeout_s=60) as slow:
        slow.send(produce_request("t", 0, batch(b"held")), 9)
        while not broker.faults.reached("request.received"):
            pass
        # Something else lands where the held request was received.
        assert produce(client, "t", 0, batch(b"first")).base_offset == 0
        assert broker.faults.release("request.received") == 1
        _, response = slow.receive(PRODUCE, 9)
        assert response.responses[0].partition_responses[0].base_offset == 1
    assert b"held" in bytes(fetch(client, "t", 0, 1).records)


def test_an_error_before_the_handler_is_the_answer(broker, client):
    broker.faults.arm("request.received", "error", "REQUEST_TIMED_OUT", where={"api_key": PRODUCE})
    make_topic(client, "t")
    assert produce(client, "t", 0, batch(b"a")).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_an_answer_that_cannot_be_made_closes_the_connection_alone(broker, client, caplog):
    make_topic(client, "t")
    broker.faults.arm("response.ready", "oserror", where={"api_key": PRODUCE})
    with Connection(broker.bootstrap_servers, timeout_s=60) as other, pytest.raises(WireClientError):
        produce(other, "t", 0, batch(b"a"))
    assert metadata(client, "t").topics[0].error_code == 0
    assert caplog.text.count("Traceback") == 1


def test_the_same_for_a_request_that_waited(broker, client, caplog):
    make_topic(client, "t")
    broker.faults.arm("response.ready", "oserror", where={"api_key": 1})
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        other.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
        while not broker.call(lambda: len(broker.state.parked)):
            pass
        produce(client, "t", 0, batch(b"a"))
        with pytest.raises(WireClientError):
            other.receive(1, 12)
    assert caplog.text.count("Traceback") == 1


def test_requests_are_counted_by_api(broker, client):
    for _ in range(3):
        metadata(client, "t")
    assert broker.state.metrics.requests[3] == 3
