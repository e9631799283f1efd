"""The clock and the faults of an embedded broker, which a test moves and arms."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafka_shim import Broker, embedded_control
from kafka_shim.clock import VirtualClock
from kafka_shim.embedded_control import milliseconds
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.produced import batch, fetch, make_topic, produce
from kafka_shim.wire_client import Connection


def test_its_clock_moves_when_the_test_moves_it():
    with Broker(clock="virtual") as broker:
        before = broker.clock.now_ms()
        broker.clock.advance("61s")
        broker.clock.advance(5)
        assert broker.clock.now_ms() - before == 61_005
        with pytest.raises(ValueError, match="'7x' is not a duration such as 250ms"):
            broker.clock.advance("7x")
        with pytest.raises(ValueError, match="cannot go back"):
            broker.clock.advance("-7s")
        assert broker.clock.now_ms() - before == 61_005
    with Broker() as broker, pytest.raises(TypeError):
        broker.clock.advance(1)


def test_its_clock_may_be_moved_for_longer_than_a_call_may_take(monkeypatch: pytest.MonkeyPatch):
    """Fourteen months took 30 s, and then failed."""
    with Broker(clock="virtual") as broker:
        clock, caller = broker.state.clock, threading.get_ident()
        assert isinstance(clock, VirtualClock)
        half_way, seen = threading.Event(), threading.Event()
        looks = 0

        def monotonic_ms() -> int:
            """The second look of the caller, after its patience has ended, is while the clock stands half-way."""
            nonlocal looks
            if threading.get_ident() == caller:
                looks += 1
                if looks == 2:
                    assert half_way.wait(60)
                    monkeypatch.setattr(embedded_control, "CALL_SECONDS", 60)
                    seen.set()
            return VirtualClock.monotonic_ms(clock)

        def stand() -> None:
            half_way.set()
            assert seen.wait(60)

        broker.call(lambda: clock.call_later(432_000_000, stand))
        before = broker.clock.now_ms()
        monkeypatch.setattr(embedded_control, "CALL_SECONDS", 0.02)
        monkeypatch.setattr(clock, "monotonic_ms", monotonic_ms)
        broker.clock.advance("10d")
        assert broker.clock.now_ms() - before == 864_000_000
        assert looks >= 2


def test_the_clock_of_a_stopped_broker_moves_too(tmp_path: Path):
    """It stood still, without a word."""
    broker = Broker(clock="virtual", data_dir=tmp_path, log_retention_check_interval_ms=1000)
    with broker:
        broker.create_topic("t", retention_ms=60_000, segment_ms=60_000)
        broker.produce("t", "old")
        before = broker.clock.now_ms()
    broker.clock.advance("7d")
    assert broker.clock.now_ms() - before == 604_800_000
    with broker:
        broker.produce("t", "new")
        broker.clock.advance("40s")  # the first check comes after 30 s
        assert [one.text for one in broker.consume("t")] == ["new"]


def test_consumers_do_not_hold_the_clock_up_at_each_end_of_their_waits(broker):
    """A consumer asks again at once, on the machine's time: the clock would go with it, from 500 ms to 500 ms."""
    asked, is_over = [], threading.Event()

    def poll():
        with Connection(broker.bootstrap_servers, timeout_s=60) as client:
            make_topic(client, "t")
            while not is_over.is_set():
                asked.append(fetch(client, "t", 0, 0, max_wait_ms=500))

    with ThreadPoolExecutor() as pool:
        polling = pool.submit(poll)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)) == 1, "the consumer waits")
        try:
            broker.clock.advance("10h")
            count = len(asked)
            broker.produce("t", "a")
            wait_until(lambda: asked[-1].records, "the consumer has the record")
        finally:
            is_over.set()
        polling.result()
    assert count <= 12


def test_faults_are_armed_from_the_test():
    with Broker(faults="txn.after_prepare=error") as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        broker.faults.arm("log.before_write", "error", "INVALID_RECORD", nth=1)
        assert produce(client, "t", 0, batch(b"a")).error_code == 87
        assert produce(client, "t", 0, batch(b"a")).error_code == 0
        assert broker.faults.reached("log.before_write") == 2


def test_a_function_at_a_fault_point_may_change_the_faults_and_may_not_wait_for_its_own_thread():
    """It was held up for 30 s, and the broker with it."""
    with Broker(clock="virtual") as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t")
        refused: list[str] = []

        def act(**_: object) -> None:
            broker.faults.disarm("log.before_write")
            with pytest.raises(RuntimeError) as told:
                broker.clock.advance("1s")
            refused.append(str(told.value))

        broker.faults.arm("log.before_write", act, where={"topic": "t"})
        assert [produce(client, "t", 0, batch(b"a")).error_code for _ in range(2)] == [0, 0]
        assert refused == ["the broker's own thread cannot wait for itself: call this on another one"]
        broker.clock.advance("1s")


@pytest.mark.parametrize("method", ["restart", "reset", "stop", "topics"])
def test_what_would_wait_for_the_brokers_own_thread_is_refused_there(method: str):
    """A broker that was told to end by its own thread ended, and was taken for running."""
    with Broker() as broker:
        with pytest.raises(RuntimeError, match="own thread cannot wait for itself"):
            broker.call(getattr(broker, method))
        assert broker.topics() == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("250ms", 250), ("61s", 61_000), ("1.5m", 90_000), ("2h", 7_200_000), ("7d", 604_800_000), (3, 3)],
)
def test_durations_are_read_with_their_units(text, wanted):
    assert milliseconds(text) == wanted


def test_a_duration_without_sense_is_refused():
    for text in ("5 weeks", "s", "1dm"):
        with pytest.raises(ValueError):
            milliseconds(text)


def test_faults_of_a_process_are_told_at_its_start():
    with pytest.raises(TypeError, match=r"Broker\(faults=\.\.\.\)"):
        _ = Broker(process=True).faults


@pytest.mark.parametrize("duration", ["nan", float("nan"), "inf", "1e400d", float("inf")])
def test_a_clock_is_not_moved_for_ever(duration: float | str):
    with Broker(clock="virtual") as broker, pytest.raises(ValueError, match="has no end"):
        broker.clock.advance(duration)
