"""Listeners added and removed while the broker runs (KIP-226): both take and refuse the same, in the same words."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from kafka_shim.targets import make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.base import answers, free_ports
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.targets import Target

MAP = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTRA:PLAINTEXT,OTHER:PLAINTEXT,TLS:SSL,LOGINS:SASL_PLAINTEXT"
LISTENERS, PROTOCOLS = "listeners", "listener.security.protocol.map"
SET, DELETE, APPEND = 0, 1, 2
# FIRST stands for the listeners of the start, BROKER for the first of them, A and B for free addresses.
ASKED = (
    [(LISTENERS, SET, "FIRST,UNKNOWN://A")],
    [(LISTENERS, SET, "FIRST,nonsense")],
    [(LISTENERS, SET, "FIRST,EXTRA://A,EXTRA://B")],
    [(LISTENERS, SET, "FIRST,EXTRA://A,OTHER://A")],
    [(LISTENERS, SET, "")],
    [(LISTENERS, SET, "FIRST")],
    [(LISTENERS, SET, "BROKER")],
    [(LISTENERS, SET, "EXTRA://A,CONTROLLER://B")],
    [(LISTENERS, APPEND, "EXTRA://A")],
    [(LISTENERS, SET, "FIRST,EXTRA://A")],
    [(LISTENERS, SET, "FIRST,TLS://A")],
    [(LISTENERS, SET, "FIRST,EXTRA://A"), ("listener.name.plaintext.connections.max.reauth.ms", SET, "5")],
    [(LISTENERS, SET, "FIRST,EXTRA://A"), ("listener.name.plaintext.max.connections", SET, "5")],
    [(PROTOCOLS, SET, MAP.replace("CONTROLLER:PLAINTEXT", "CONTROLLER:SSL"))],
    [(PROTOCOLS, SET, "PLAINTEXT:PLAINTEXT")],
    [(PROTOCOLS, SET, f"{MAP},A:NOPE")],
    [(PROTOCOLS, SET, "nonsense")],
    [(PROTOCOLS, SET, "")],
    [("advertised.listeners", SET, "FIRST")],
)


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Target, Target]]:
    """(shim, Kafka)"""
    settings = {PROTOCOLS: MAP}
    ours, theirs = make("shim"), make("kafka-native")
    ours.bootstrap = f"127.0.0.1:{free_ports(1)[0]}"
    ours.settings |= {
        **settings,
        "controller.listener.names": "CONTROLLER",
        "advertised.listeners": f"PLAINTEXT://{ours.bootstrap}",
    }
    theirs.settings |= settings
    with ours, theirs:
        yield ours, theirs


class Changes:
    """Of the listeners of one broker."""

    def __init__(self, target: Target) -> None:
        self._target = target
        first, second = free_ports(2)
        self.port = first
        broker = f"PLAINTEXT://{target.bootstrap}"
        self._words = {
            "FIRST": f"{broker},CONTROLLER://{target.controller}",
            "BROKER": broker,
            "://A": f"://127.0.0.1:{first}",
            "://B": f"://127.0.0.1:{second}",
        }

    def ask(self, changes: list[tuple[str, int, str | None]], *, validate_only: bool = False) -> tuple[int, str]:
        configs = [{"name": name, "config_operation": how, "value": self._text(value)} for name, how, value in changes]
        resource = {"resource_type": 4, "resource_name": "1", "configs": configs}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=validate_only)
        with Connection(self._target.bootstrap) as connection:
            (answer,) = connection.request(request, 1).responses
        return answer.error_code, re.sub(r"(127\.0\.0\.1:|port: )\d+", r"\1PORT", answer.error_message or "")

    def _text(self, value: str | None) -> str | None:
        for word, text in self._words.items():
            value = value and value.replace(word, text)
        return value

    def is_open(self) -> bool:
        with suppress(OSError):
            return answers("127.0.0.1", self.port)
        return False

    def await_open(self, is_open: bool) -> None:
        """Kafka's listener is open or closed some time after its answer."""
        wait_until(lambda: self.is_open() == is_open, f"port {self.port} is {'open' if is_open else 'closed'}")


@pytest.mark.parametrize("changes", ASKED, ids=range(len(ASKED)))
def test_both_take_and_refuse_the_same(brokers, changes) -> None:
    ours, theirs = (Changes(target).ask(changes, validate_only=True) for target in brokers)
    assert ours == theirs


def test_a_listener_is_served_until_it_is_removed(brokers) -> None:
    for target in brokers:
        changes = Changes(target)
        for change, is_open in (([(LISTENERS, SET, "FIRST,EXTRA://A")], True), ([(LISTENERS, DELETE, None)], False)):
            assert changes.ask(change) == (0, "")
            if target.kind == "shim":
                assert changes.is_open() == is_open
            changes.await_open(is_open)


def test_stored_options_of_sasl_pin_the_listeners_until_they_go(brokers) -> None:
    """Also those of a listener that was opened with them: a change is compared with the options of the start."""
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="a";'
    users, mechanisms = (
        f"listener.name.logins.{name}" for name in ("plain.sasl.jaas.config", "sasl.enabled.mechanisms")
    )
    with_logins = (LISTENERS, SET, "FIRST,LOGINS://A")
    asked = (
        [(LISTENERS, SET, "FIRST,LOGINS://A,EXTRA://B")],
        [(PROTOCOLS, SET, f"{MAP},MORE:PLAINTEXT")],
        [("max.connections", SET, "1000")],
        [("listener.name.extra.max.connections", SET, "1000")],
        [("background.threads", SET, "9")],
        [(users, SET, module.replace("user_a", "user_b"))],
        [with_logins],
        [(LISTENERS, SET, "FIRST,EXTRA://B")],
        [(users, DELETE, None), (LISTENERS, SET, "FIRST,LOGINS://A,EXTRA://B")],
    )
    answers_of = []
    for target in brokers:
        changes = Changes(target)
        assert changes.ask([(users, SET, module), (mechanisms, SET, "PLAIN"), with_logins]) == (0, "")
        changes.await_open(True)
        answers_of.append([changes.ask(one, validate_only=True) for one in asked])
        assert changes.ask([(users, DELETE, None), (mechanisms, DELETE, None), (LISTENERS, DELETE, None)]) == (0, "")
    ours, theirs = answers_of
    assert ours == theirs
    refused = "Configs cannot be updated dynamically for existing listener ListenerName(LOGINS)"
    assert [refused in text for _, text in theirs] == [True, True, True, False, False, False, False, False, True]
