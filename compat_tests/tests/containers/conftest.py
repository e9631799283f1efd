"""Images and containers; where this machine runs none, the tests that need them are skipped with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_shim.targets import engine, make
from kafka_shim.targets.container import ContainerTarget


@pytest.fixture(scope="session")
def containers() -> None:
    reason = engine.unavailable()
    if reason:
        pytest.skip(f"no containers: {reason}")


def started(kind: str, **settings: str) -> ContainerTarget:
    target = make(kind, settings={name.replace("_", "."): value for name, value in settings.items()})
    assert isinstance(target, ContainerTarget)
    return target


@pytest.fixture(scope="session")
def shim(containers: None) -> Iterator[ContainerTarget]:
    """The shim's image, running."""
    with started("shim-container", num_partitions="3") as target:
        yield target


@pytest.fixture(scope="session")
def kafka(containers: None) -> Iterator[ContainerTarget]:
    """Apache Kafka's image, running."""
    with started("kafka-container", num_partitions="3") as target:
        yield target


@pytest.fixture(params=["shim", "kafka"])
def broker(request: pytest.FixtureRequest) -> ContainerTarget:
    """Each of both."""
    found: ContainerTarget = request.getfixturevalue(request.param)
    return found
