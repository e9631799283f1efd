"""Random logs are read as from Apache Kafka: Fetch in all versions, ListOffsets, what describes producers (B14, H3)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafka_shim.compat.same_reads import compare
from kafka_shim.targets import Target, make

# Segments below the start of a log are there until the first run of retention, on whichever broker first.
SETTINGS = {"log.initial.task.delay.ms": "86400000"}
STEPS = 120

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Target, Target]]:
    """Brokers on which nobody else gets producer ids: they are in the stored bytes."""
    with make("shim", settings=SETTINGS) as shim, make("kafka-native", settings=SETTINGS) as kafka:
        yield shim, kafka


@pytest.mark.parametrize("seed", range(3))
def test_random_logs_are_read_as_from_kafka(brokers: tuple[Target, Target], seed: int) -> None:
    shim, kafka = brokers
    compared = compare(shim.bootstrap, kafka.bootstrap, f"reads-{os.urandom(3).hex()}", seed, STEPS)
    assert compared > STEPS


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_random_logs_are_read_as_from_kafka(brokers: tuple[Target, Target]) -> None:
    shim, kafka = brokers
    for seed in range(100, 140):
        compare(shim.bootstrap, kafka.bootstrap, f"reads-{os.urandom(3).hex()}", seed, 300)
