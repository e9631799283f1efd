"""Brokers for tests: real ones, on both event loops, in memory, on free ports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest
import uvloop
from hypothesis import settings

from kafka_shim.embedded import Broker
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.wire_client import Connection

# A slow example is not a wrong one: timings never decide a unit test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def debugging_loop() -> asyncio.AbstractEventLoop:
    """asyncio's loop, watching for calls from wrong threads and coroutines that nobody awaits."""
    loop = asyncio.new_event_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 1e9  # a slow callback is no fault, and its warning would be one where none may come
    return loop


# `scripts/options.py prove` runs tests without the option whose effect they show.
if os.environ.get("KAFKA_SHIM_WITHOUT_OPTION"):
    from kafka_shim.tests.config.option_registry import take_away

    take_away(os.environ["KAFKA_SHIM_WITHOUT_OPTION"])


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


@pytest.fixture
def looked_up(client: Connection) -> None:
    """A client asked for the coordinator of a group, as all do first: before that groups are NOT_COORDINATOR."""
    client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
