"""Memory ends while an EndTxn is served from frame to frame: the transaction ends."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from kafka_shim.api import TABLE
from kafka_shim.cext import segment as cext_segment
from kafka_shim.dispatch import Dispatcher
from kafka_shim.targets.requests import make
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.tests.produced import make_topic
from kafka_shim.tests.txn.test_plain_end_txn import LATER_MS, begin, end, end_one, slot_of
from kafka_shim.txn.quick_completion import QuickCompletion
from kafka_shim.txn.transaction import COMPLETE_COMMIT, PREPARE_COMMIT


def lose(dispatcher: Dispatcher, follow_up: object) -> None:
    """There is no memory for the call. The traceback does not keep what was to be called."""
    del follow_up
    raise MemoryError


@pytest.mark.parametrize("place", ["run", "finish_marked"])
def test_a_decision_ends_later_if_there_is_no_memory_for_what_follows_it(broker, client, monkeypatch, place):
    make_topic(client, "t", 1)
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
    end_one(client, ("t", 0))
    producer = begin(client, ("t", 0))
    with monkeypatch.context() as patch:
        if place == "run":
            patch.setattr(Dispatcher, "run", lose)
        else:
            append, count = cext_segment.append, iter(range(1 << 30))

            def put(fd: int, buffers: object) -> int:
                if next(count) == 1:
                    raise OSError(errno.ENOSPC, "full")
                return append(fd, buffers)

            patch.setattr(cext_segment, "append", put)
            patch.setattr(QuickCompletion, "finish_marked", no_memory_left)
        assert end(client, producer).error_code == 0
        slot = slot_of(broker)
        assert (slot.transaction.state, slot.pending) == (PREPARE_COMMIT, True)
    broker.clock.advance(LATER_MS)
    assert slot.transaction.state is COMPLETE_COMMIT
    assert not (slot.pending or slot.is_ending or slot.unmarked)


def test_a_commit_of_the_handler_ends_later_if_there_is_no_memory_to_say_what_interrupted_it(
    broker, client, monkeypatch
):
    make_topic(client, "t", 1)
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
    end_one(client, ("t", 0))
    monkeypatch.setattr(TABLE[26], "plain", None)
    producer = begin(client, ("t", 0))
    with monkeypatch.context() as patch:
        patch.setattr(QuickCompletion, "_mark_plain", no_memory_left)
        patch.setattr(QuickCompletion, "_interrupted", no_memory_left)
        assert end(client, producer).error_code == 0
        slot = slot_of(broker)
        assert (slot.transaction.state, slot.is_ending) == (PREPARE_COMMIT, False)
    broker.clock.advance(LATER_MS)
    assert slot.transaction.state is COMPLETE_COMMIT
    assert not (slot.pending or slot.is_ending or slot.unmarked)


# The hooks are the whole process's: each attempt is a child, forked where the request has come. One that is not done
# after 20 s of its own CPU is killed. Nothing is logged: the standard library's functions for a line go round, too.
FOR_EVER = """
import logging, os, resource, sys, threading
import _testcapi
from kafka_shim.api import TABLE
from kafka_shim.connection import Connection as ServedConnection
from kafka_shim.embedded import Broker
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import make_topic
from kafka_shim.tests.txn.test_plain_end_txn import begin, end, end_one
from kafka_shim.wire_client import Connection

logging.disable()
way, commits, attempts = sys.argv[1], sys.argv[2] == "commit", range(0, int(sys.argv[3]), int(sys.argv[4]))
tried, is_next, is_done = [], [], threading.Event()
updated = ServedConnection.buffer_updated

def update(connection, size_bytes):
    while is_next and len(tried) < len(attempts):
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
            _testcapi.set_nomemory(attempts[len(tried)], 0)
            try:
                updated(connection, size_bytes)
            finally:
                os._exit(0)
        tried.append(os.waitpid(child, 0)[1])
        if tried[-1]:
            break
    if is_next:
        is_done.set()
    return updated(connection, size_bytes)

ServedConnection.buffer_updated = update
with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers, timeout_s=600) as client:
    make_topic(client, "t", 1)
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=["app"]), 4)
    end_one(client, ("t", 0))
    if way == "handler":
        TABLE[26].plain = None
    producer = begin(client, ("t", 0))
    is_next.append(True)
    end(client, producer, committed=commits)  # perhaps the answer of a child
    is_done.wait()
    print(tried.count(0) == len(attempts), tried[-1], flush=True)
    os._exit(0)  # the children have written to the connections
"""


@pytest.mark.parametrize(
    ("way", "how", "allocations", "step"),
    [("handler", "commit", 80, 1), ("short", "commit", 80, 1), ("handler", "abort", 240, 3)],
)
def test_an_end_to_which_memory_never_comes_back_is_left(way, how, allocations, step):
    """CPython went round in a circle: the number of an instruction far from the beginning of a function, which it notes
    as it leaves a handler of exceptions, is an object for which there was no memory either."""
    pytest.importorskip("_testcapi")  # some Pythons come without it
    command = [sys.executable, "-W", "ignore", "-c", FOR_EVER, way, how, str(allocations), str(step)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "True 0\n"), ran.stderr[-3000:]
