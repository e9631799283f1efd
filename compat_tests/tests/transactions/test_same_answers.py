"""Random requests of three transactional producers are answered, and stored, as Apache Kafka does (A3-A7, B2-B4,
B8-B11, B14, B16, B20, B23, B24, D6)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafka_shim.compat.transactions.same_answers import compare
from kafka_shim.targets import Target, make

STEPS = 50

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Target]:
    with make("kafka-native") as started:
        yield started


@pytest.fixture(scope="module")
def shim() -> Iterator[Target]:
    with make("shim") as started:
        yield started


@pytest.mark.parametrize("markers", [False, True], ids=["producers", "producers-and-administrators"])
def test_random_requests(shim: Target, kafka: Target, markers: bool) -> None:
    run = os.urandom(3).hex()
    seeds = range(5)
    steps = sum(
        compare(shim.bootstrap, kafka.bootstrap, f"t-{run}-{seed}", seed, STEPS, markers=markers) for seed in seeds
    )
    print(f"{steps} requests of three producers, no difference")
    # A marker may strand a transaction, which ends its run.
    assert steps >= (30 if markers else len(seeds) * STEPS)
