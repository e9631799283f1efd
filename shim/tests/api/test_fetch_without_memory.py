"""Memory ends while a fetch session is served: its consumer is refused or disconnected at most, and misses nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from kafka_shim.api.fetch_sessions import CachedPartition, FetchSession
from kafka_shim.protocol.messages.fetch_request import FetchPartition
from kafka_shim.storage.log import PartitionLog
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce

# One allocation fails, then the next one, of an incremental Fetch that moves half of the partitions to their ends. The
# hooks are the whole process's, so this one is a child.
EACH_ALLOCATION = """
import sys
import _testcapi
from kafka_shim.api import TABLE
from kafka_shim.cext.messages import decode
from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.fetch_response import FetchResponse
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce
from kafka_shim.wire_client import Connection

COUNT, VERSION, AT_BODY = 8, 12, 9
TABLE[1].load()
if sys.argv[1] == "handler":
    TABLE[1].plain = None

def handled(dispatcher, session, frame, failing):
    if failing is not None:
        _testcapi.set_nomemory(failing, failing + 1)
    try:
        reply = dispatcher.handle(session, frame)
    except MemoryError:
        return None         # the connection is closed
    finally:
        _testcapi.remove_mem_hooks()
    return decode(FetchResponse, VERSION, b"".join(map(bytes, reply.parts)), AT_BODY)

with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers, timeout_s=60) as client:
    make_topic(client, "t", COUNT)
    dispatcher = broker._server._dispatcher
    (connection,) = broker._server._registry.connections
    end, outcomes = 0, set()

    def fetch(wanted, failing=None, **how):
        request = fetch_request({("t", index): offset for index, offset in wanted.items()}, **how)
        frame = memoryview(encode_request_frame(request, VERSION, 7, "c")[4:])
        return broker.call(handled, dispatcher, connection.session, frame, failing)

    for failing in map(int, sys.argv[2:]):
        for index in range(COUNT):
            produce(client, "t", index, batch(b"a"))
        end += 1
        session_id = fetch(dict.fromkeys(range(COUNT), end - 1), session_epoch=0).session_id
        told = fetch(dict.fromkeys(range(0, COUNT, 2), end), failing, session_id=session_id, session_epoch=1)
        outcomes.add("closed" if told is None else told.error_code)
        if told is not None and not told.error_code:
            for index in range(COUNT):
                produce(client, "t", index, batch(b"a"))
            end += 1
            told = fetch({}, session_id=session_id, session_epoch=2)
            shown = sorted(one.partition_index for topic in told.responses for one in topic.partitions)
            assert (told.error_code, shown) == (0, list(range(COUNT))), (failing, told)
    print(*sorted(map(str, outcomes)))
"""


@pytest.mark.parametrize(
    ("way", "failing", "outcomes"),
    # The handler, which has met the end of memory itself, says -1.
    [("plain", range(60), "0 closed"), ("handler", range(0, 400, 3), "-1 0 closed")],
)
def test_no_allocation_that_fails_costs_a_session_its_epoch_or_news_of_a_log(way, failing, outcomes):
    pytest.importorskip("_testcapi")  # some Pythons come without it
    ran = subprocess.run(
        [sys.executable, "-c", EACH_ALLOCATION, way, *map(str, failing)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"{outcomes}\n"), ran.stderr


def test_a_session_that_finds_no_memory_to_follow_a_log_reads_it_again(broker, client, monkeypatch):
    make_topic(client, "t", 1)
    opened = client.request(fetch_request({("t", 0): 0}, session_epoch=0, max_wait_ms=0), 12)
    (session,) = broker.state.fetch_sessions.sessions.values()
    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, "subscribe", no_memory_left)
        for cached in session.partitions.values():
            broker.call(cached.leave)
            cached.session = session
            with pytest.raises(MemoryError):
                broker.call(cached.follow, broker.state.logs.get("t", 0))
            assert cached.log is None
    broker.call(lambda: session.changed.update(dict.fromkeys(session.partitions.values())))
    fetched = fetch_request({}, session_id=opened.session_id, session_epoch=1)
    assert client.request(fetched, 12).responses == []
    produce(client, "t", 0, batch(b"a"))
    fetched.session_epoch = 2
    (told,) = client.request(fetched, 12).responses
    assert told.partitions[0].high_watermark == 1


class Unmarked(CachedPartition):
    """There is no memory for its mark."""

    __slots__ = ()

    def __hash__(self) -> Any:
        raise MemoryError


def test_a_session_that_finds_no_memory_for_the_mark_of_a_change_reads_all_of_its_partitions():
    session, reader = FetchSession(1, False, 0), (12, 0, -1, -1, None)
    session.join({("t", 0): CachedPartition("t", FetchPartition())})
    session.read_by(reader)
    session.changed.clear()
    unmarked = Unmarked("t", FetchPartition(partition=1))
    unmarked.session = session
    unmarked.mark_changed()
    session.read_by(reader)
    assert [one.partition for one in session.in_order()] == [0]
