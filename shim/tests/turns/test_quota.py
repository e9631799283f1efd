"""The time of all turns of a request counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import KafkaError
from kafka_shim.quota import request_throttle
from kafka_shim.quota.request_throttle import RequestThrottle
from kafka_shim.turns import STEPS_BETWEEN_LOOKS, Turns


def test_the_quota_counts_the_time_of_all_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of large requests paid for the first turn of each alone."""
    now_ns = [0]
    monkeypatch.setattr(request_throttle, "perf_counter_ns", lambda: now_ns[0])
    count, step_ns = 10_000, 1000

    def busy() -> Iterator[None]:
        for _ in range(count):
            now_ns[0] += step_ns
            yield

    async def run(state: Any) -> tuple[int | None, int]:
        from kafka_shim.quota.quotas import Quotas

        throttle = RequestThrottle(Quotas(state.config, state.clock), "User:u", "c", 0)
        waiting: Any = Turns(VirtualClock()).finish(busy(), throttle)  # type: ignore[arg-type]
        throttle.wait()
        assert throttle._spent_ns is not None
        assert throttle._spent_ns < count * step_ns
        task = asyncio.ensure_future(waiting)
        while not task.done():
            await asyncio.sleep(0)
            now_ns[0] += 7_000_000  # others work between two turns
        return throttle._spent_ns, count * step_ns

    spent_ns, worked_ns = broker.call(run, broker.state)
    assert spent_ns == worked_ns


def test_steps_that_are_run_in_a_task_are_counted_too(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = [0]
    monkeypatch.setattr(request_throttle, "perf_counter_ns", lambda: now_ns[0])

    async def last() -> str:
        now_ns[0] += 5_000_000  # a wait
        return "done"

    def busy() -> Iterator[None]:
        for _ in range(STEPS_BETWEEN_LOOKS):
            now_ns[0] += 1000
            yield
        return last()  # type: ignore[return-value]

    async def run(state: Any) -> tuple[str, int | None]:
        from kafka_shim.quota.quotas import Quotas

        throttle = RequestThrottle(Quotas(state.config, state.clock), "User:u", "c", 0)
        throttle.wait()
        return await Turns(VirtualClock()).run(busy(), throttle), throttle._spent_ns  # type: ignore[arg-type]

    assert broker.call(run, broker.state) == ("done", 1000 * STEPS_BETWEEN_LOOKS)


def test_an_error_of_a_later_turn_leaves_the_throttle_stopped(broker: Broker) -> None:
    def failing() -> Iterator[None]:
        for _ in range(10_000):
            yield
        raise KafkaError(3)  # type: ignore[arg-type]

    async def run(state: Any) -> int | None:
        from kafka_shim.quota.quotas import Quotas

        throttle = RequestThrottle(Quotas(state.config, state.clock), "User:u", "c", 0)
        with pytest.raises(KafkaError):
            await Turns(VirtualClock()).run(failing(), throttle)  # type: ignore[arg-type]
        return throttle._spent_ns

    assert broker.call(run, broker.state) is not None
