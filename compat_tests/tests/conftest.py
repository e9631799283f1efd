"""Brokers and clients that the tests of a session share."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kafka_shim.compat import clients
from kafka_shim.targets import Target, make


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """The limit of a test does not count the start of brokers in fixtures, which have limits of their own (`targets`):
    Apache Kafka takes a minute where other tests keep the disk busy."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(func_only=True))


@pytest.fixture(scope="session")
def target() -> Iterator[Target]:
    """The broker under test: the shim, or what KAFKA_SHIM_TARGET names (kafka-native, external=HOST:PORT ...)."""
    settings = {"message.max.bytes": "33554432", "socket.request.max.bytes": "104857600"}
    with make(os.environ.get("KAFKA_SHIM_TARGET", "shim"), settings=settings) as started:
        yield started


@pytest.fixture(scope="session")
def client_of() -> Iterator[Callable[[str], clients.Client]]:
    """Clients by name, each made once."""
    made: dict[str, clients.Client] = {}

    def get(name: str) -> clients.Client:
        if name not in made:
            made[name] = clients.make(name)
        return made[name]

    yield get
    for client in made.values():
        client.close()


@pytest.fixture(scope="session")
def new_topic(target: Target) -> Callable[..., str]:
    """Makes a topic with a name of its own and returns the name."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    numbers = itertools.count(1)
    run = os.urandom(3).hex()  # an external broker keeps the topics of earlier runs

    def create(partitions: int = 1, **config: str) -> str:
        name = f"topic-{run}-{next(numbers)}"
        options = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=options)])[name].result(30)
        return name

    return create
