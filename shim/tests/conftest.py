"""Brokers for tests: real ones, on both event loops, in memory, on free ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
import uvloop
from hypothesis import settings

from kafka_shim.embedded import Broker
from kafka_shim.wire_client import Connection

# A slow example is not a wrong one: timings never decide a unit test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def debugging_loop() -> asyncio.AbstractEventLoop:
    """asyncio's loop, watching for calls from wrong threads and coroutines that nobody awaits."""
    loop = asyncio.new_event_loop()
    loop.set_debug(True)
    return loop


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "debug": debugging_loop,
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@pytest.fixture(params=list(LOOPS))
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """Each of the event loops that the broker runs on."""
    return LOOPS[request.param]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker on uvloop whose clock stands still, with topics of two partitions."""
    with Broker(num_partitions=2, clock="virtual") as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Connection]:
    """A connection to `broker`."""
    with Connection(broker.bootstrap_servers, timeout_s=60) as connection:
        yield connection
