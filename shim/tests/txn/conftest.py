"""What the tests of transactions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_shim import memory_dir
from kafka_shim.tests.txn.harness import Node


@pytest.fixture
def node() -> Iterator[Node]:
    directory = memory_dir.make()
    made = Node(directory)
    made.topic("orders")
    yield made
    made.faults.disarm()
    made.stop()
    memory_dir.remove(directory)
