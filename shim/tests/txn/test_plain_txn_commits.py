"""Most TxnOffsetCommits are served from frame to frame in `cext.plain_txn_commits`. `test_plain_end_txn.py` compares
them with the handler; here is what fails, and what is left to the handler."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.api import TABLE, k28_txn_offset_commit
from kafka_shim.cext import segment as cext_segment
from kafka_shim.cext.plain_commits import MOST_OFFSETS
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.group.groups import Groups
from kafka_shim.targets.requests import make
from kafka_shim.tests.frames import counted
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

COMMIT = TABLE[28]


@pytest.fixture(autouse=True)
def _loaded() -> Iterator[None]:
    if not COMMIT.is_loaded:
        COMMIT.load()
    yield
    COMMIT.plain, COMMIT.handle = k28_txn_offset_commit.PLAIN, k28_txn_offset_commit.handle


def begin(client: Connection) -> tuple[int, int]:
    given = client.request(make("InitProducerId", transactional_id="app", transaction_timeout_ms=60_000), 5)
    assert given.error_code == 0
    return given.producer_id, given.producer_epoch


def commit(
    client: Connection,
    producer: tuple[int, int],
    *,
    partitions: int = 1,
    version: int = 5,
    offset: int = 5,
    **fields: Any,
) -> set[int]:
    """Returns the error codes."""
    rows = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}] * partitions
    who = {"transactional_id": "app", "producer_id": producer[0], "producer_epoch": producer[1]}
    told = {"group_id": "g", "topics": [{"name": "t", "partitions": rows}]}
    if version >= 3:
        told |= {"generation_id": -1, "member_id": ""}
    answer = client.request(make("TxnOffsetCommit", **{**who, **told, **fields}), version)
    return {row.error_code for topic in answer.topics for row in topic.partitions}


def end(client: Connection, producer: tuple[int, int]) -> None:
    who = {"transactional_id": "app", "producer_id": producer[0], "producer_epoch": producer[1], "committed": True}
    assert client.request(make("EndTxn", **who), 5).error_code == 0


def committed(client: Connection) -> int:
    fetched = client.request(make("OffsetFetch", groups=[{"group_id": "g", "topics": None}]), 8)
    return max((row.committed_offset for topic in fetched.groups[0].topics for row in topic.partitions), default=-1)


@pytest.fixture
def producer(client: Connection) -> tuple[int, int]:
    """One whose id the logs know, at the epoch after that."""
    make_topic(client, "t", 1)
    for kind, name in ((0, "g"), (1, "app")):
        client.request(make("FindCoordinator", key_type=kind, coordinator_keys=[name]), 4)
    first = begin(client)
    assert commit(client, first, offset=1) == {0}
    end(client, first)
    return first[0], first[1] + 1


@pytest.mark.parametrize("count", [1, MOST_OFFSETS, MOST_OFFSETS + 1])
def test_it_is_served_and_pending_until_the_end(client, producer, count):
    with counted(k28_txn_offset_commit, is_short=True) as ways:
        assert commit(client, producer, partitions=count) == {0}
    assert ways == ({} if count <= MOST_OFFSETS else {"handler": 1})
    assert committed(client) == 1
    end(client, producer)
    assert committed(client) == 5


def test_what_decides_something_is_the_handlers(broker, client, producer):
    with counted(k28_txn_offset_commit, is_short=True) as ways:
        assert commit(client, producer, version=4) == {ErrorCode.TRANSACTION_ABORTABLE}
        assert commit(client, producer, generation_id=3) == {ErrorCode.UNKNOWN_MEMBER_ID}
        assert commit(client, producer, group_id="") == {ErrorCode.INVALID_GROUP_ID}
        assert commit(client, (producer[0], producer[1] + 1)) == {ErrorCode.INVALID_PRODUCER_EPOCH}
        assert commit(client, producer, topics=[]) == set()
        assert ways == {"handler": 5}
        broker.faults.arm("request.received", "hold", where={"api_key": 99}, nth=1)
        assert commit(client, producer) == {0}
        broker.faults.disarm("request.received")
        assert ways == {"handler": 6}
        assert commit(client, producer) == {0}
    assert ways == {"handler": 6}


@pytest.mark.parametrize(
    ("nth", "error", "code"),
    [
        (0, OSError(errno.ENOSPC, "full"), ErrorCode.NOT_COORDINATOR),
        (0, MemoryError(), ErrorCode.NOT_COORDINATOR),
        (1, OSError(errno.ENOSPC, "full"), ErrorCode.NOT_COORDINATOR),
        (1, MemoryError(), ErrorCode.NOT_COORDINATOR),
        (1, ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("is_short", [True, False])
def test_a_write_that_fails_is_answered_as_by_the_handler(
    broker: Broker, client, producer, monkeypatch, nth, error, code, is_short
):
    """The first write adds the partition of the group to the transaction, the second has the offsets."""
    append, count = cext_segment.append, iter(range(1 << 30))

    def put(fd: int, buffers: Any) -> int:
        if next(count) == nth:
            raise error
        return append(fd, buffers)

    with counted(k28_txn_offset_commit, is_short) as ways, monkeypatch.context() as patch:
        patch.setattr(cext_segment, "append", put)
        assert commit(client, producer) == {code}
    assert ways == {"rest" if is_short else "handler": 1}
    lines = broker.call(broker.state.transactions.explanations.lines, "app")
    assert sum("TxnOffsetCommit refused" in line for line in lines) == (code is ErrorCode.NOT_COORDINATOR)
    broker.call(broker.state.logs.reopen_offline)
    assert commit(client, producer, offset=7) == {0}
    end(client, producer)
    assert committed(client) == 7


@pytest.mark.parametrize("is_short", [True, False])
def test_offsets_that_find_no_memory_are_read_again(client, producer, monkeypatch, is_short):
    def fail(*_: Any) -> None:
        raise MemoryError

    with counted(k28_txn_offset_commit, is_short) as ways, monkeypatch.context() as patch:
        patch.setattr(Groups, "commit", fail)
        assert commit(client, producer) == {ErrorCode.NOT_COORDINATOR}
    assert ways == {"rest" if is_short else "handler": 1}
    assert commit(client, producer, offset=7) == {0}
    end(client, producer)
    assert committed(client) == 7


def test_a_broker_with_metrics_counts_its_answers():
    counts = []
    for is_short in (True, False):
        with (
            Broker(kafka_shim_http_listener="127.0.0.1:0") as broker,
            Connection(broker.bootstrap_servers, timeout_s=60) as client,
        ):
            make_topic(client, "t", 1)
            for kind, name in ((0, "g"), (1, "app")):
                client.request(make("FindCoordinator", key_type=kind, coordinator_keys=[name]), 4)
            first = begin(client)
            assert commit(client, first) == {0}
            with counted(k28_txn_offset_commit, is_short) as ways:
                assert commit(client, first, partitions=3) == {0}
            assert bool(ways) is not is_short
            times = broker.call(lambda served=broker: served._server._dispatcher.times[28])
            counts.append((times.errors, times.total.count, broker.call(lambda b=broker: b.state.metrics.requests[28])))
    assert counts[0] == counts[1] == ({0: 4}, 2, 2)
