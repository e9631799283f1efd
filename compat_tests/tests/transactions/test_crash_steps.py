"""The broker is killed at each step of its transactions and at each write: output and offsets stay exactly once."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kafka_shim.compat.transactions.crash import CrashHarness, every, every_pair, sample

SAMPLE = 30


@pytest.fixture(scope="module")
def harness() -> Iterator[CrashHarness]:
    with CrashHarness() as made:
        yield made


@pytest.mark.timeout(900)
def test_a_sample_of_the_points(harness: CrashHarness) -> None:
    counts = harness.counts()
    chosen = sample(counts, SAMPLE, seed=20)
    assert [harness.run(kill) for kill in chosen] == [1] * SAMPLE
    print(f"killed at {SAMPLE} of {sum(counts.values())} points ({counts})")


@pytest.mark.timeout(300)
def test_a_sample_of_deaths_while_resuming(harness: CrashHarness) -> None:
    pairs = random.Random(21).sample(list(every_pair(harness.counts())), 6)
    deaths = [harness.run(*pair) for pair in pairs]
    assert all(deaths)
    assert 2 in deaths, "no second death met a resumed transaction"
    print(f"{sum(deaths)} deaths in {len(pairs)} runs of {pairs}")


STOCK_KILLS = (
    ("txn.before_prepare", 2),
    ("txn.after_prepare", 3),
    ("txn.after_marker", 2),
    ("txn.before_complete", 1),
    ("txn.after_complete", 2),
    ("log.after_write", 30),
)


@pytest.mark.timeout(300)
def test_a_stock_client_at_the_steps(harness: CrashHarness) -> None:
    """B21 on librdkafka."""
    assert [harness.run(kill, stock_client=True) for kill in STOCK_KILLS] == [1] * len(STOCK_KILLS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_point(harness: CrashHarness) -> None:
    counts = harness.counts()
    killed = sum(harness.run(kill) for kill in every(counts))
    print(f"killed at {killed} of {sum(counts.values())} points ({counts})")
    assert killed == sum(counts.values())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_death_while_resuming(harness: CrashHarness) -> None:
    pairs = list(every_pair(harness.counts()))
    deaths = [harness.run(*pair) for pair in pairs]
    print(f"{sum(deaths)} deaths in {len(pairs)} runs, {deaths.count(2)} of them with two")
    assert all(deaths)
