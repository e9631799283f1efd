from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim.tests.group.harness import Node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    made.topic("t")
    yield made
    made.close()
