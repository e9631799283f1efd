"""The shim and Apache Kafka side by side: the same request, the same tool, the same admin client on both."""

from __future__ import annotations

import pytest

from kafka_shim.targets import Target, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shim() -> Iterator[Target]:
    with make("shim") as started:
        yield started


@pytest.fixture(scope="session")
def kafka() -> Iterator[Target]:
    with make("kafka-native") as started:
        yield started
