"""What keeps a Fetch from being served from frame to frame: each rule that the fast path must leave to the handler."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from kafka_shim.api import TABLE, k01_fetch
from kafka_shim.api.fetch_reads import COPY_BYTES
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.frames import counted
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce, size_of
from kafka_shim.wire_client import Connection

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LEADER_EPOCH = 3


@pytest.fixture(autouse=True)
def _loaded() -> None:
    if not TABLE[1].is_loaded:
        TABLE[1].load()


def test_an_authorizer_is_asked():
    with (
        Broker(authorizer_class_name=AUTHORIZER, super_users="User:admin") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        authorizer = broker.state.authorizer
        broker.call(lambda: setattr(broker.state, "authorizer", None))
        make_topic(client, "t", 1)
        produce(client, "t", 0, batch(b"a"))
        broker.call(lambda: setattr(broker.state, "authorizer", authorizer))
        with counted(k01_fetch, is_short=True) as ways:
            assert fetch(client, "t", 0, 0).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert ways == {"handler": 1}


def test_a_session_without_partitions_ends(client):
    """Kafka removes it with its next request."""
    session_id = client.request(fetch_request({}, session_epoch=0), 12).session_id
    assert session_id
    told = [
        client.request(fetch_request({}, session_id=session_id, session_epoch=epoch, min_bytes=0), 12)
        for epoch in (1, 2)
    ]
    assert [(one.error_code, one.session_id) for one in told] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
    ]


def _goes_offline(log: Any) -> None:
    log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))


def _cannot_be_synced(log: Any) -> None:
    log._sync_failed(OSError(errno.EIO, os.strerror(errno.EIO)))


@pytest.mark.parametrize("break_log", [_goes_offline, _cannot_be_synced])
def test_a_broken_log_is_an_error_where_there_is_nothing_to_read(broker, client, break_log: Callable[[Any], None]):
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a"))
    assert fetch(client, "t", 0, 1).error_code == ErrorCode.NONE
    broker.call(lambda: break_log(broker.state.logs.get("t", 0)))
    assert fetch(client, "t", 0, 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def epochs(broker, client) -> None:
    """A log whose first record is of epoch 0, and whose second is of a later one."""
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a"))
    broker.call(lambda: setattr(broker.state.logs.get("t", 0), "leader_epoch", LEADER_EPOCH))
    produce(client, "t", 0, batch(b"b"))


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (LEADER_EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (LEADER_EPOCH, ErrorCode.NONE),
        (LEADER_EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
@pytest.mark.usefixtures("epochs")
def test_the_epoch_of_the_leader_is_checked(client, epoch, error):
    request = fetch_request({("t", 0): 1})
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert client.request(request, 12).responses[0].partitions[0].error_code == error


@pytest.mark.usefixtures("epochs")
def test_a_reader_whose_epoch_ended_before_is_told_so(client):
    request = fetch_request({("t", 0): 2})
    request.topics[0].partitions[0].last_fetched_epoch = 0
    told = client.request(request, 12).responses[0].partitions[0]
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (0, 1)


def test_the_broker_limits_what_one_fetch_gets():
    records = batch(bytes(700))
    with (
        Broker(fetch_max_bytes=1024) as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t", 2)
        for index in (0, 1):
            produce(client, "t", index, records)
        with counted(k01_fetch, is_short=True) as ways:
            first, second = client.request(fetch_request({("t", 0): 0, ("t", 1): 0}), 12).responses[0].partitions
        assert not ways
        assert (size_of(first.records), size_of(second.records)) == (len(records), 0)


def test_a_partition_for_which_nothing_is_left_has_no_aborted_transactions(client):
    """As of Kafka: it forgets them with a first batch that does not fit."""
    records = batch(bytes(700))
    make_topic(client, "t", 2)
    for index in (0, 1):
        produce(client, "t", index, records)
    request = fetch_request({("t", 0): 0, ("t", 1): 0}, isolation_level=1, max_bytes=len(records) + 1)
    first, second = client.request(request, 12).responses[0].partitions
    assert (size_of(first.records), first.aborted_transactions) == (len(records), [])
    assert (size_of(second.records), second.aborted_transactions) == (0, None)


def test_what_lies_before_an_open_transaction_is_served(client):
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a"))
    Producer(client, "x").write(b"in a transaction", 0)
    with counted(k01_fetch, is_short=True) as ways:
        told = fetch(client, "t", 0, 0, isolation_level=1)
    assert not ways
    assert (size_of(told.records), told.last_stable_offset, told.high_watermark) == (len(batch(b"a")), 1, 2)


def test_all_partitions_together_are_copied_up_to_the_limit(client):
    records = batch(bytes(COPY_BYTES * 5 // 8))
    make_topic(client, "t", 2)
    for index in (0, 1):
        produce(client, "t", index, records)
    with counted(k01_fetch, is_short=True) as ways:
        partitions = client.request(fetch_request({("t", 0): 0, ("t", 1): 0}), 12).responses[0].partitions
    assert [size_of(one.records) for one in partitions] == [len(records)] * 2
    assert ways == {"handler": 1}


def test_a_partition_that_a_request_moves_back_is_read_again(client):
    """It had been read to its end; what the next request does not name again has not been taken by the consumer."""
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"a"))
    session_id = client.request(fetch_request({("t", 0): 1}, session_epoch=0), 12).session_id
    for epoch, moved in ((1, {("t", 0): 0}), (2, {})):
        with counted(k01_fetch, is_short=True) as ways:
            response = client.request(fetch_request(moved, session_id=session_id, session_epoch=epoch), 12)
        assert not ways
        assert size_of(response.responses[0].partitions[0].records) == len(batch(b"a"))
