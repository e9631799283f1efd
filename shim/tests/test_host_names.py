"""The addresses of hosts that limits name."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.host_names import HostNames
from kafka_shim.tests.api.admin import BROKER, SET, alter
from kafka_shim.tests.produced import metadata
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection, WireClientError

OVERRIDES = "max.connections.per.ip.overrides"
UNKNOWN = f"{'x' * 64}.invalid"
# No resolver and no `inet_pton` takes these.
STRANGE = ["a\0b", "127.0.0.1\0", "a:\0b", "a..b", "x" * 300, "\udc80"]


@pytest.mark.parametrize("name", STRANGE)
def test_a_name_that_cannot_be_looked_up_has_no_address(
    name: str, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    names = HostNames()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        lost, _ = runner.run(names.look_up([name, "192.0.2.1"]))
    assert (lost, names.address_of(name)) == ([] if ":" in name else [name], name)


@pytest.mark.parametrize("name", ["a\0b", "a:\0b"])
def test_a_stored_name_that_cannot_be_looked_up_stops_no_start(name: str, tmp_path: Path, caplog) -> None:
    """Nobody could take it back: the broker never started again."""
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        assert alter(client, BROKER, "", (OVERRIDES, SET, f"{name}:5,127.0.0.2:7")) == (0, None)
        until(broker, lambda: broker._server._registry._overrides == {name: 5, "127.0.0.2": 7})
    with Broker(data_dir=tmp_path) as broker, Connection(broker.bootstrap_servers) as client:
        assert broker._server._registry._overrides == {name: 5, "127.0.0.2": 7}
        assert alter(client, BROKER, "", (OVERRIDES, SET, "")) == (0, None)


def test_a_name_of_the_configuration_that_cannot_be_looked_up_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="no address is known of a"), Broker(**{OVERRIDES: "a\0b:5"}):
        pass


def test_a_change_ends_the_look_up_of_the_one_before(caplog) -> None:
    """Else a log line tells of names that nobody names any more."""
    with Broker(max_connections_per_ip=0, **{OVERRIDES: "127.0.0.1:9"}) as broker:
        with Connection(broker.bootstrap_servers) as client:
            assert alter(client, BROKER, "", (OVERRIDES, SET, f"127.0.0.1:9,{UNKNOWN}:5")) == (0, None)
        until(broker, lambda: f"no address is known of {UNKNOWN}" in caplog.text)
        caplog.clear()
        server = broker._server._socket_server

        def reload() -> asyncio.Task[None]:
            server.reload()
            assert server._look_up is not None
            return server._look_up

        tasks = broker.call(lambda: [reload(), reload()])
        until(broker, lambda: all(task.done() for task in tasks))
    assert caplog.text.count("no address is known") == 1


def test_a_look_up_that_fails_is_logged(caplog, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> list[str]:
        raise MemoryError

    with Broker(**{OVERRIDES: "127.0.0.1:9"}) as broker, Connection(broker.bootstrap_servers) as client:
        monkeypatch.setattr(type(broker._server._registry), "look_up_hosts", lambda _: fail())
        assert alter(client, BROKER, "", (OVERRIDES, SET, "127.0.0.1:8")) == (0, None)
        until(broker, lambda: f"the hosts of {OVERRIDES} could not be looked up" in caplog.text)
    assert "MemoryError" in caplog.text


class Resolver:
    """The system's resolver, for names of `.test`: `addresses` are those that it knows, and it answers for a name of
    `held` once that is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **addresses: str) -> None:
        self.addresses = addresses
        self.held: dict[str, threading.Event] = {}
        self._found = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, *arguments: Any, **named: Any) -> Any:
        name, _, domain = host.partition(".")
        if domain != "test":
            return self._found(host, *arguments, **named)
        if name in self.held:
            assert self.held[name].wait(PATIENCE_S)
        if name not in self.addresses:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._found(self.addresses[name], *arguments, **named)


def admitted(broker: Broker, most: int = 4) -> int:
    """Returns how many connections from 127.0.0.1 are served beside the one that is open, at most so many."""
    count = 0
    with contextlib.ExitStack() as stack, contextlib.suppress(WireClientError):
        for _ in range(most):
            metadata(stack.enter_context(Connection(broker.bootstrap_servers)))
            count += 1
    until(broker, lambda: len(broker._server._registry.connections) == 1)
    return count


def change(broker: Broker, client: Connection, name: str, value: str) -> None:
    """Set an option and wait until the hosts are looked up."""
    assert alter(client, BROKER, "", (name, SET, value)) == (0, None)
    until(broker, broker._server._socket_server._look_up.done)


def test_a_limit_holds_although_its_host_cannot_be_looked_up_again(caplog, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was dropped at a change of another one, and never looked up again."""
    resolver = Resolver(monkeypatch, limited="127.0.0.1")
    options = {OVERRIDES: "limited.test:2", "loop_factory": asyncio.new_event_loop}
    with (
        Broker(**options) as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        assert admitted(broker) == 1
        del resolver.addresses["limited"]
        change(broker, client, OVERRIDES, "limited.test:3,lost.test:5")
        assert admitted(broker) == 2
        assert "no address is found of limited.test (127.0.0.1): the limit holds for the former one" in caplog.text
        assert "no address is known of lost.test: no limit" in caplog.text
        change(broker, client, OVERRIDES, "limited.test:2")
        assert admitted(broker) == 1
        resolver.addresses["limited"] = "127.0.0.9"
        change(broker, client, "log.retention.ms", "100000")
        assert admitted(broker) == 4


def test_hosts_are_looked_up_if_a_change_is_taken_back_before_its_own_are(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch, limited="127.0.0.1", slow="127.0.0.5")
    resolver.held["slow"] = threading.Event()
    options = {OVERRIDES: "limited.test:2", "loop_factory": asyncio.new_event_loop}
    with (
        Broker(**options) as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        assert admitted(broker) == 1
        resolver.addresses["limited"] = "127.0.0.9"
        assert alter(client, BROKER, "", (OVERRIDES, SET, "slow.test:2")) == (0, None)
        change(broker, client, OVERRIDES, "limited.test:2")
        resolver.held["slow"].set()
        assert admitted(broker) == 4
