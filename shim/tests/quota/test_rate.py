"""The measures of quotas: their rules one by one, and step by step beside Kafka's own classes."""

from __future__ import annotations

import random
import subprocess
from math import inf, nan
from pathlib import Path

import pytest

from kafka_shim.quota.rate import Rate, TokenBucket
from kafka_shim.targets.kafka_jars import classpath

ROOT = Path(__file__).resolve().parents[3]
START_MS = 1_700_000_000_000


def test_first_values_are_spread_over_all_windows_but_one():
    rate = Rate(100.0, 11, 1000)
    rate.record(1000, START_MS)
    assert rate.per_second(START_MS) == 100
    assert rate.throttle_time_ms(START_MS) == 0


def test_throttle_time_is_the_excess_over_the_bound():
    rate = Rate(100.0, 11, 1000)
    rate.record(2000, START_MS)
    assert rate.throttle_time_ms(START_MS) == 10_000
    rate.record(1000, START_MS + 5000)
    assert rate.per_second(START_MS + 5000) == 300
    assert rate.throttle_time_ms(START_MS + 5000) == 20_000


@pytest.mark.parametrize(
    ("bound", "throttle_ms"),
    [(nan, 0), (inf, 0), (5e-324, 0x7FFFFFFF), (1e-9, 0x7FFFFFFF), (0.0, 0x7FFFFFFF)],
)
def test_every_bound_gives_a_throttle_time_that_a_response_can_hold(bound: float, throttle_ms: int):
    rate = Rate(bound, 11, 1000)
    rate.record(1e6, START_MS)
    assert rate.throttle_time_ms(START_MS) == throttle_ms
    bucket = TokenBucket(bound, 11, 1000)
    bucket.record(1e6, START_MS)
    assert bucket.throttle_time_ms(START_MS) == throttle_ms


def test_value_leaves_the_rate_when_its_window_is_over():
    rate = Rate(100.0, 3, 1000)
    rate.record(600, START_MS)
    assert rate.per_second(START_MS + 2999) > 0
    assert rate.per_second(START_MS + 3000) == 0


def test_value_taken_back_was_never_there():
    rate = Rate(100.0, 11, 1000)
    rate.record(5000, START_MS)
    rate.record(-5000, START_MS)
    assert rate.per_second(START_MS) == 0


def test_bucket_is_full_at_first_and_may_go_below_zero():
    bucket = TokenBucket(2.0, 5, 1000)
    assert bucket.tokens(START_MS) == 10
    bucket.record(14, START_MS)
    assert bucket.tokens(START_MS) == -4
    assert bucket.throttle_time_ms(START_MS) == 2000
    assert bucket.throttle_time_ms(START_MS + 2000) == 0


def test_bucket_is_never_fuller_than_its_burst():
    bucket = TokenBucket(2.0, 5, 1000)
    bucket.record(10, START_MS)
    assert bucket.tokens(START_MS + 3_600_000) == 10


@pytest.mark.java
def test_steps_agree_with_kafkas_own_classes():
    """20,000 random steps, with pauses from none to longer than all windows."""
    chance = random.Random(20)
    lines, ours = [], []
    for number in range(40):
        kind = ("rate", "bucket")[number % 2]
        bound, samples, window_s = chance.choice([0.5, 3.0, 1000.0, 1e6]), chance.randint(1, 15), chance.randint(1, 4)
        measure = (Rate if kind == "rate" else TokenBucket)(bound, samples, window_s * 1000)
        lines.append(f"NEW {kind} {bound} {samples} {window_s}")
        now_ms = START_MS
        for _ in range(500):
            now_ms += chance.choice([0, 1, chance.randint(0, 900), chance.randint(0, 5000), chance.randint(0, 90_000)])
            value = bound * chance.choice([-0.3, 0.1, 1.0, chance.random() * 20])
            lines.append(f"RECORD {value!r} {now_ms}")
            measure.record(value, now_ms)
            ours.append(measure.throttle_time_ms(now_ms))
    done = subprocess.run(
        ["java", "-Xmx128m", "-cp", classpath(), str(ROOT / "compat_tests" / "java" / "QuotaDriver.java")],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = [int(line) for line in done.stdout.split()]
    assert len(theirs) == len(ours) == 20_000
    # Sums are added in another order, so a half may be rounded to the other side.
    assert max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) <= 1
    assert sum(one > 0 for one in ours) > 2000
