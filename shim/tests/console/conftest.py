"""A console of the test's broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_shim.console.app import Console
from kafka_shim.embedded import Broker
from kafka_shim.tests.console.asking import console_of


@pytest.fixture
def console(broker: Broker) -> Iterator[Console]:
    made = console_of(broker)
    yield made
    made.close()
