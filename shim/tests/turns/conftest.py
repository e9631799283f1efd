"""A broker that makes no topic on its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_shim.embedded import Broker

OPTIONS = {"auto_create_topics_enable": False}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**OPTIONS) as running:  # type: ignore[arg-type]
        yield running
