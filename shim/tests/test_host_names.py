"""The addresses of hosts that limits name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.host_names import HostNames
from kafka_shim.tests.api.admin import BROKER, SET, alter
from kafka_shim.tests.waiting import until
from kafka_shim.wire_client import Connection

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
        lost = runner.run(names.look_up([name, "192.0.2.1"]))
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
