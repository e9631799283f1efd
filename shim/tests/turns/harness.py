"""The steps of a request, taken one by one, and what tests of them share."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from kafka_shim.api import (
    APIS,
)
from kafka_shim.context import Context
from kafka_shim.embedded import Broker
from kafka_shim.session import Session
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.tests.waiting import PATIENCE_S
from kafka_shim.wire_client import Connection


def answer_when(client: Connection, request: Any, version: int, is_ready: Callable[[Any], object]) -> Any:
    """The first response that is ready: a coordinator loads its log in the background."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_ready(answer := client.request(request, version)):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return answer


def producer(client: Connection, transactional_id: str) -> dict[str, Any]:
    """The fields by which requests name the producer of a transactional id."""
    client.request(make("FindCoordinator", key_type=1, coordinator_keys=[transactional_id]), 4)
    begin = make("InitProducerId", transactional_id=transactional_id, transaction_timeout_ms=60_000)
    made = answer_when(client, begin, 4, lambda answer: not answer.error_code)
    return {
        "transactional_id": transactional_id,
        "producer_id": made.producer_id,
        "producer_epoch": made.producer_epoch,
    }


def context_of(state: Any, request: Any, version: int) -> Context:
    session = Session(state.listeners[0], ("127.0.0.1", 1), ("127.0.0.1", 2))
    return Context(state, session, request.API_KEY, version, 1, "c", state.clock.now_ms())


def begun(state: Any, request: Any, version: int, steps: int) -> Any:
    """The steps of the request's handler, so many of them taken."""
    api = next(api for api in APIS if api.key == request.API_KEY)
    if not api.is_loaded:
        api.load()
    context = context_of(state, request, version)
    context.is_large = True
    taken = api.handle(context, request)
    for _ in range(steps):
        next(taken)
    return taken


def steps_of(taken: Any) -> tuple[Any, int]:
    """The result of all further steps, and their number."""
    count = 0
    while True:
        try:
            next(taken)
        except StopIteration as end:
            return end.value, count
        count += 1


def topics(broker: Broker, **counts: int) -> None:
    with Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for name, count in counts.items():
            create_topic(client, name, count)


def altered(names: list[str], value: str) -> Any:
    rows = [
        {
            "resource_type": 2,
            "resource_name": name,
            "configs": [{"name": "retention.ms", "config_operation": 0, "value": value}],
        }
        for name in names
    ]
    return make("IncrementalAlterConfigs", resources=rows)


def entry(name: str) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": "user", "entity_name": name}],
        "ops": [{"key": "producer_byte_rate", "value": 5.0, "remove": False}],
    }


def finish(broker: Broker, steps: Any) -> Any:
    """The response of steps that end in a wait for the disk."""

    async def wait(result: Any) -> Any:
        return await result if isinstance(result, CoroutineType) else result

    return broker.call(wait, steps_of(steps)[0])
