"""One JVM for the session, and unique names: tests share the session's broker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from kafka_shim.targets import Target
from kafka_shim.targets.java_transactions import JavaTransactions


@pytest.fixture(scope="session")
def java_clients(target: Target) -> Iterator[JavaTransactions]:
    with JavaTransactions(target.bootstrap) as driver:
        yield driver


@pytest.fixture(scope="session")
def new_name() -> Callable[[str], str]:
    """Names that nobody else has."""
    numbers = itertools.count(1)
    return lambda kind: f"{kind}-{next(numbers)}"
