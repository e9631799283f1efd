"""The broker is killed at each step of its transactions and at each write: output and offsets stay exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.transactions.crash import CrashHarness, every, sample

SAMPLE = 30


@pytest.fixture(scope="module")
def harness() -> Iterator[CrashHarness]:
    with CrashHarness() as made:
        yield made


@pytest.mark.timeout(300)
def test_a_sample_of_the_points(harness: CrashHarness) -> None:
    counts = harness.counts()
    chosen = sample(counts, SAMPLE, seed=20)
    assert all(harness.run(point, nth) for point, nth in chosen)
    print(f"killed at {len(chosen)} of {sum(counts.values())} points ({counts})")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_point(harness: CrashHarness) -> None:
    counts = harness.counts()
    killed = sum(harness.run(point, nth) for point, nth in every(counts))
    print(f"killed at {killed} of {sum(counts.values())} points ({counts})")
    assert killed == sum(counts.values())
