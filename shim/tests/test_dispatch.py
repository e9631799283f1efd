"""What happens around a handler: held requests, errors before and after it. Wrong bytes are in test_connection."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from kafka_shim.api import TABLE
from kafka_shim.api.controller import CONTROLLER_TABLE, k58_envelope
from kafka_shim.errors import ErrorCode
from kafka_shim.large_requests import LargeRequests
from kafka_shim.metrics import Metrics
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kafka_shim.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kafka_shim.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kafka_shim.protocol.messages.list_groups_request import ListGroupsRequest
from kafka_shim.tests import descriptors
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, metadata, produce, produce_request
from kafka_shim.wire_client import Connection, WireClientError

PRODUCE, LIST_GROUPS = 0, 16


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


def test_an_error_is_the_answer_when_no_descriptor_is_left(broker, client, monkeypatch):
    """What makes the answers to failures is not read from a file only then."""
    broker.faults.arm("request.received", "error", "REQUEST_TIMED_OUT", where={"api_key": LIST_GROUPS})
    request = ListGroupsRequest()
    client.request(request, 4)
    monkeypatch.delitem(sys.modules, "kafka_shim.api.failures")
    with descriptors.none_left():
        assert client.request(request, 4).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_handler_that_finds_no_descriptor_says_so_in_one_line(broker, client, caplog, monkeypatch):
    api = TABLE[LIST_GROUPS]
    assert client.request(ListGroupsRequest(), 4).error_code == 0

    def handle(context, request):
        with open("/dev/null"):  # noqa: PTH123
            raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(api, "handle", handle)
        with descriptors.none_left():
            assert client.request(ListGroupsRequest(), 4).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    (line,) = [one for one in caplog.records if one.levelname in ("WARNING", "ERROR")]
    assert line.getMessage() == (
        "list_groups version 4 failed: Too many open files: raise the broker's limit of open files (ulimit -n)"
    )
    assert line.exc_info is None
    assert client.request(ListGroupsRequest(), 4).error_code == 0


def test_a_handler_that_finds_no_memory_is_not_told_of_descriptors(broker, client, caplog, monkeypatch):
    def handle(context, request):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    assert client.request(ListGroupsRequest(), 4).error_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(TABLE[LIST_GROUPS], "handle", handle)
        assert client.request(ListGroupsRequest(), 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "limit of open files" not in caplog.text


def test_an_api_that_cannot_be_loaded_closes_the_connection_with_one_line(broker, client, caplog, monkeypatch):
    api = TABLE[LIST_GROUPS]
    assert client.request(ListGroupsRequest(), 4).error_code == 0
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, api.module_name)
        patch.setattr(api, "is_loaded", False)
        with descriptors.none_left(), pytest.raises(WireClientError):
            client.request(ListGroupsRequest(), 4)
    assert "cannot load list_groups: Too many open files; raise the limit of open files" in caplog.text
    with monkeypatch.context() as patch, Connection(broker.bootstrap_servers, timeout_s=60) as other:
        patch.setattr(api, "is_loaded", False)
        patch.setattr("kafka_shim.api.import_module", no_memory_left)
        with pytest.raises(WireClientError):
            other.request(ListGroupsRequest(), 4)
    assert "cannot load list_groups: no memory is left" in caplog.text
    assert "Traceback" not in caplog.text
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        assert other.request(ListGroupsRequest(), 4).error_code == 0


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
    client.request(ApiVersionsRequest(), 0)  # on the fast path
    counts = broker.state.metrics.requests
    assert (counts[3], counts[18], counts[255], dict(counts), list(counts)) == (3, 1, 0, {3: 3, 18: 1}, [3, 18])
    for key in (-1, 256):
        with pytest.raises(KeyError):
            counts[key]


def lost() -> Future[None]:
    """An fsync that failed."""
    flush: Future[None] = Future()
    flush.set_exception(OSError(5, "the disk is gone"))
    return flush


@pytest.mark.parametrize("flushes", [(), (lost(),)], ids=["at once", "a lost fsync"])
def test_work_after_a_large_request_is_done_once_before_others_are_served(broker, client, monkeypatch, flushes):
    """A large response is encoded in a thread, and the loop serves other requests meanwhile."""
    done = []
    response = DescribeGroupsResponse()
    outcome = Outcome(response, flushes, lambda: done.append("work"))
    api, encode = TABLE[DescribeGroupsRequest.API_KEY], LargeRequests.encode

    async def encode_noted(self, *args):
        done.append("encoding")
        return await encode(self, *args)

    api.load()
    monkeypatch.setattr(api, "handle", lambda context, request: outcome)
    monkeypatch.setattr(LargeRequests, "encode", encode_noted)
    answer = client.request(DescribeGroupsRequest(groups=[f"g{number}" for number in range(20_000)]), 5)
    assert done == ["work", "encoding"]
    assert {group.error_code for group in answer.groups} == ({ErrorCode.NOT_COORDINATOR} if flushes else set())


def test_work_after_a_request_in_an_envelope_is_done_before_its_fsyncs(caplog):
    """As outside an envelope: others are served during the wait, and a lost fsync does not undo the change."""
    done = []

    def work() -> None:
        done.append("work")
        raise RuntimeError("a bug")

    api = CONTROLLER_TABLE[AlterUserScramCredentialsRequest.API_KEY]
    api.load()
    outcome = Outcome(AlterUserScramCredentialsResponse(), (lost(),), work)
    stub = SimpleNamespace(**{name: getattr(api, name) for name in ("key", "name", "module_name", "response")})
    stub.cluster_operations, stub.handle = (), lambda context, request: outcome
    context = SimpleNamespace(broker=SimpleNamespace(metrics=Metrics()), api_version=0)
    request = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="alice")])
    response = asyncio.run(k58_envelope._serve(context, stub, request))
    assert done == ["work"]
    assert [result.error_code for result in response.results] == [ErrorCode.NOT_COORDINATOR]
    assert caplog.text.count("the work after a response failed") == 1
