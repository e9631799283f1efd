"""The shim and Apache Kafka side by side, new in each file, and questions to both."""

from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.targets import Target, make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.waiting import PATIENCE_S, right_answer
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

# All logins at the shim have so long, on a busy machine too, and one test waits for its end.
LOGIN_MS = 5000
# How long Kafka is waited for where it never answers.
UNANSWERED_S = 6


class Asked(Connection):
    """A connection to one of the two."""

    # For the one request of a question that Kafka does not answer: how long the answer is waited for.
    answer_s = PATIENCE_S


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Target, Target]]:
    """(shim, Kafka), of which nobody has asked anything."""
    ours, theirs = make("shim"), make("kafka-native")
    ours.settings |= {"controller.listener.names": "CONTROLLER", "kafka.shim.login.timeout.ms": str(LOGIN_MS)}
    for target in (ours, theirs):
        target.settings.pop("group.initial.rebalance.delay.ms")  # the defaults of the brokers, not of these tests
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def each(brokers: tuple[Target, Target]) -> Callable[[Callable[[Connection], Any]], list[Any]]:
    """Asks both, and returns (shim's, Kafka's)."""
    return lambda question: _ask_each((target.bootstrap for target in brokers), question)


@pytest.fixture
def each_controller(brokers: tuple[Target, Target]) -> Callable[[Callable[[Connection], Any]], list[Any]]:
    """Like `each`, by the listener of the controller."""
    return lambda question: _ask_each((target.controller for target in brokers), question)


def _ask_each(addresses: Iterable[str], question: Callable[[Connection], Any]) -> list[Any]:
    found = []
    for address, answer_s in zip(addresses, (PATIENCE_S, UNANSWERED_S), strict=True):
        with Asked(address, timeout_s=PATIENCE_S) as connection:
            connection.answer_s = answer_s
            found.append(question(connection))
    return found


def await_coordinator(connection: Connection, group: str) -> None:
    """Returns once the group's coordinator answers."""
    look_up = ask.make("FindCoordinator", key=group, key_type=0)
    until(lambda: connection.request(look_up, 3).error_code == 0 or None)
    # Found, it may still be loading its groups.
    beat = ask.make("Heartbeat", group_id=group, generation_id=1, member_id="nobody")
    until(lambda: connection.request(beat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID or None)


def until(question: Callable[[], Any]) -> Any:
    """Asks until there is an answer, and returns it."""
    return right_answer(question, lambda found: found is not None, "an answer")


def option(connection: Connection, name: str) -> Any:
    """Returns what DescribeConfigs says of an option of the broker."""
    resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": [name]}
    request = ask.make("DescribeConfigs", resources=[resource], include_documentation=True)
    return connection.request(request, 4).results[0].configs[0]
