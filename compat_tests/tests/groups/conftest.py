"""The shim and Apache Kafka side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_shim.targets import Target, make
from kafka_shim.targets.requests import make as make_request
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import Connection


@pytest.fixture(scope="session")
def shim() -> Iterator[Target]:
    with make("shim") as started:
        wait_for_coordinator(started)
        yield started


@pytest.fixture(scope="session")
def kafka() -> Iterator[Target]:
    with make("kafka-native") as started:
        wait_for_coordinator(started)
        yield started


def wait_for_coordinator(target: Target) -> None:
    """Until each partition of the coordinator's topic is loaded: the first look-up makes it."""
    groups = [{"group_id": f"probe-{number}", "topics": None} for number in range(300)]
    with Connection(target.bootstrap) as connection:

        def is_loaded() -> bool:
            connection.request(make_request("FindCoordinator", key_type=0, coordinator_keys=["any"]), 4)
            answer: Any = connection.request(make_request("OffsetFetch", groups=groups), 9)
            return not any(group.error_code for group in answer.groups)

        wait_until(is_loaded, "the coordinator is loaded")
