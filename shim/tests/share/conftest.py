from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_shim.tests.share.harness import Node


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Makes a node with these options."""
    made: list[Node] = []

    def make(**options: object) -> Node:
        made.append(Node(tmp_path / str(len(made)), **options))
        return made[-1]

    yield make
    for node in made:
        node.faults.disarm()
        node.stop()


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    return make_node()
