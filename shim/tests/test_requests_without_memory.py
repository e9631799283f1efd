"""Requests to which memory never comes back: they are left. `test_near_handlers` has the reason, and which modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The hooks are the whole process's, so this one is a child. Nothing is logged: the standard library's functions for a
# line go round, too.
NEVER_AGAIN = """
import logging, sys
import _testcapi
from kafka_shim.api import TABLE, k00_produce
from kafka_shim.context import Context
from kafka_shim.dispatch import Dispatcher
from kafka_shim.embedded import Broker
from kafka_shim.large_requests import LargeRequests
from kafka_shim.session import Session
from kafka_shim.tests.produced import batch, produce_request

logging.disable()
request = produce_request("t", 0, batch(b"a"))

def end_memory(*_):
    _testcapi.set_nomemory(0, 0)
    raise MemoryError

async def decoded(*_):
    return request

def look_for_a_log(context, dispatcher):
    k00_produce._find = end_memory
    k00_produce.handle(context, request)

def begin_a_large_request(context, dispatcher):
    Dispatcher._begin, LargeRequests.decode = end_memory, decoded
    dispatcher._large_now(context, TABLE[0], memoryview(b""), 0).send(None)

def is_left(state, dispatcher):
    session = Session(state.listeners[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
    context = Context(state, session, 0, 12, 1, "c", state.clock.now_ms())
    try:
        globals()[sys.argv[1]](context, dispatcher)
    except MemoryError:
        return True
    finally:
        _testcapi.remove_mem_hooks()

TABLE[0].load()
with Broker(clock="virtual") as broker:
    print(broker.call(is_left, broker.state, broker._server._dispatcher))
"""


@pytest.mark.parametrize("what", ["look_for_a_log", "begin_a_large_request"])
def test_a_request_to_which_memory_never_comes_back_is_left(what):
    """CPython tried for ever to leave the handlers of exceptions, with the GIL."""
    pytest.importorskip("_testcapi")  # some Pythons come without it
    command = [sys.executable, "-c", NEVER_AGAIN, what]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr[-3000:]
