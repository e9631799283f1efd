"""Listeners that `listeners` opens and closes while the broker runs. What Kafka answers to the same changes:
compat_tests/tests/admin/test_dynamic_listeners.py."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.client.requests import make
from kafka_shim.config import BrokerConfig, ConfigError
from kafka_shim.dynamic_listeners import DynamicListeners
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets.base import free_ports
from kafka_shim.tests.api.admin import alter
from kafka_shim.tests.produced import batch, make_topic, metadata, produce
from kafka_shim.tests.security.test_tls import tls_connection
from kafka_shim.tests.unknown_host import UNKNOWN_HOST
from kafka_shim.tests.waiting import PATIENCE_S, until
from kafka_shim.wire_client import Connection, WireClientError

BROKER = 4
SET, DELETE = 0, 1
PROTOCOLS = "listener.security.protocol.map"
MAP = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,TLS:SSL"
FIRST = "PLAINTEXT://127.0.0.1:0"


def listen(client: Connection, text: str | None, *more: tuple[str, int, str | None]) -> tuple[int, str | None]:
    return alter(client, BROKER, "1", ("listeners", DELETE if text is None else SET, text), *more)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(listener_security_protocol_map=MAP, advertised_listeners=FIRST) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers) as connection:
        yield connection


def extra(port: int) -> str:
    return f"{FIRST},EXTRA://127.0.0.1:{port}"


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver(monkeypatch)
    yield made
    made.may_answer.set()


class Resolver:
    """The system's resolver, which answers for `slow.test` only when it may, and never on the loop's thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_answer, self.asked = threading.Event(), threading.Event()
        self.threads: set[str] = set()
        self._found = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
        if host != "slow.test" or flags & socket.AI_NUMERICHOST:
            return self._found(host, port, family, type, proto, flags)
        self.threads.add(threading.current_thread().name)
        self.asked.set()
        assert self.may_answer.wait(PATIENCE_S)
        return self._found("127.0.0.1", port, family, type, proto, flags)


def test_a_listener_whose_name_is_looked_up_holds_up_nobody(resolver):
    """A name server that does not answer blocks who asks for many seconds."""
    options = {"listener_security_protocol_map": MAP, "advertised_listeners": FIRST}
    running = Broker(loop_factory=asyncio.new_event_loop, **options)
    with running as broker, Connection(broker.bootstrap_servers) as client:
        (port, gone) = free_ports(2)
        assert listen(client, f"{FIRST},EXTRA://slow.test:{port}") == (0, None)
        assert resolver.asked.wait(PATIENCE_S)
        metadata(client)
        assert not is_open(port)
        resolver.may_answer.set()
        until(broker, lambda: is_open(port))
        with Connection(f"127.0.0.1:{port}") as other:
            metadata(other)
        assert "kafka-shim" not in resolver.threads
        # One that is removed while its name is looked up is never opened.
        resolver.may_answer.clear()
        resolver.asked.clear()
        assert listen(client, FIRST) == (0, None)
        assert listen(client, f"{FIRST},EXTRA://slow.test:{gone}") == (0, None)
        assert resolver.asked.wait(PATIENCE_S)
        assert listen(client, FIRST) == (0, None)
        resolver.may_answer.set()
        metadata(client)
        assert not is_open(gone)
        assert [one.name for one in broker.state.listeners] == ["PLAINTEXT"]


def test_a_listener_whose_name_is_looked_up_has_its_own_limits(resolver):
    """They held after the next change of the options only."""
    (port,) = free_ports(1)
    options = {"listener_security_protocol_map": MAP, "advertised_listeners": FIRST}
    running = Broker(loop_factory=asyncio.new_event_loop, **options)
    with running as broker, Connection(broker.bootstrap_servers) as client:
        limit = ("listener.name.extra.max.connections", SET, "1")
        assert listen(client, f"{FIRST},EXTRA://slow.test:{port}", limit) == (0, None)
        resolver.may_answer.set()
        until(broker, lambda: is_open(port))
        with Connection(f"127.0.0.1:{port}") as first:
            metadata(first)
            (listener,) = (one for one in broker.state.listeners if one.name == "EXTRA")
            assert not broker.call(lambda: broker._server._registry.has_place(listener))


@pytest.mark.parametrize("host", [UNKNOWN_HOST, "no..name"])
def test_a_listener_whose_name_is_not_found_is_logged(caplog, tmp_path, host):
    """Also at the next start, which it does not stop."""
    options = {"listener_security_protocol_map": MAP, "advertised_listeners": FIRST, "data_dir": tmp_path}
    (port,) = free_ports(1)
    line = f"the listener EXTRA is not opened: cannot listen on EXTRA://{host}:{port}: "

    def is_told() -> bool:
        return any(record.getMessage().startswith(line) for record in caplog.records)

    with Broker(**options) as broker, Connection(broker.bootstrap_servers) as client:
        assert listen(client, f"{FIRST},EXTRA://{host}:{port}") == (0, None)
        until(broker, is_told)
    caplog.clear()
    with Broker(**options):
        assert is_told()


def test_a_listener_that_is_added_answers_before_the_answer_and_one_removed_is_closed(broker, client):
    make_topic(client, "t")
    (port,) = free_ports(1)
    assert listen(client, extra(port)) == (0, None)
    with Connection(f"127.0.0.1:{port}") as other:
        produce(other, "t", 0, batch(b"a"))
        assert [one.text for one in broker.consume("t")] == ["a"]
        # A client of it is told where it is.
        assert [(one.host, one.port) for one in metadata(other, "t").brokers] == [("127.0.0.1", port)]
        assert metadata(client, "t").brokers[0].port == broker.port
        assert listen(client, FIRST) == (0, None)
        with pytest.raises(WireClientError):
            other.request(make("ListGroups"), 4)
    with pytest.raises(WireClientError, match="refused"):
        Connection(f"127.0.0.1:{port}")


def test_who_removes_the_listener_that_is_spoken_through_has_the_answer(client):
    (port,) = free_ports(1)
    listen(client, extra(port))
    with Connection(f"127.0.0.1:{port}") as other:
        assert listen(other, FIRST) == (0, None)
        with pytest.raises(WireClientError):
            other.request(make("ListGroups"), 4)


def test_a_listener_that_stays_keeps_its_socket_and_its_connections_whatever_its_address(client):
    first, second = free_ports(2)
    listen(client, extra(first))
    with Connection(f"127.0.0.1:{first}") as other:
        assert listen(client, extra(second)) == (0, None)
        assert other.request(make("ListGroups"), 4).error_code == 0
    with pytest.raises(WireClientError):
        Connection(f"127.0.0.1:{second}")


def test_a_listener_that_cannot_be_bound_is_stored_and_opened_by_the_next_change(client, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert listen(client, extra(port)) == (0, None)
        assert f"the listener EXTRA is not opened: cannot listen on EXTRA://127.0.0.1:{port}" in caplog.text
    (other,) = free_ports(1)
    listen(client, f"{extra(port)},THIRD://127.0.0.1:{other}", (PROTOCOLS, SET, f"{MAP},THIRD:PLAINTEXT"))
    Connection(f"127.0.0.1:{port}").close()
    Connection(f"127.0.0.1:{other}").close()


def test_what_was_stored_is_open_after_a_restart_and_closed_when_it_is_deleted(broker, client):
    (port,) = free_ports(1)
    listen(client, extra(port))
    broker.restart()
    with Connection(f"127.0.0.1:{port}") as other:
        assert other.request(make("ListGroups"), 4).error_code == 0
    with Connection(broker.bootstrap_servers) as again:
        assert listen(again, None) == (0, None)
    assert not is_open(port)


def test_a_listener_that_was_stored_has_its_own_limits_after_a_restart(broker, client):
    (port,) = free_ports(1)
    assert listen(client, extra(port), ("listener.name.extra.max.connections", SET, "1")) == (0, None)
    broker.restart()
    with Connection(f"127.0.0.1:{port}") as first:
        first.request(make("ListGroups"), 4)
        registry = broker._server._registry
        (listener,) = (one for one in broker.state.listeners if one.name == "EXTRA")
        assert not broker.call(lambda: registry.has_place(listener))


@pytest.mark.parametrize("own", [None, "4"])
def test_the_listener_between_brokers_has_the_limits_of_all_as_its_own(broker, client, own):
    """Those of all listeners together do not hold for it: it had none."""
    (port,) = free_ports(1)
    limits = [("max.connections", SET, "2"), ("max.connection.creation.rate", SET, "7")]
    if own is not None:
        limits.append(("listener.name.plaintext.max.connections", SET, own))
    assert listen(client, extra(port), *limits) == (0, None)
    registry = broker._server._registry
    (listener,) = (one for one in broker.state.listeners if one.name == "PLAINTEXT")
    most = int(own or 2)
    assert broker.call(lambda: [registry.has_place(listener, most - open) for open in (2, 1)]) == [True, False]
    held = [broker.call(lambda: registry.throttle_ms(listener)) for _ in range(200)]
    assert held[0] == 0
    assert held[-1] > 0


def test_a_connection_that_is_accepted_as_its_listener_is_removed_is_closed(broker, client):
    (port,) = free_ports(1)
    listen(client, extra(port))
    sockets = broker._server._socket_server

    def accept_and_remove() -> socket.socket:
        late = socket.create_connection(("127.0.0.1", port), timeout=60)
        sockets._acceptors["EXTRA"]._accept_some()
        sockets._broker.config.apply_dynamic({"listeners": FIRST})
        sockets.reload()
        return late

    with broker.call(accept_and_remove) as late:
        assert late.recv(1) == b""


def test_who_removes_the_listener_on_a_connection_just_accepted_has_the_answer(broker, client, monkeypatch):
    (port,) = free_ports(1)
    listen(client, extra(port))
    frames: list[bytes] = []
    with monkeypatch.context() as capture:
        capture.setattr(client, "send_bytes", frames.append)
        capture.setattr(client, "receive_frame", lambda *_: (_ for _ in ()).throw(WireClientError))
        with pytest.raises(WireClientError):
            listen(client, FIRST)

    def ask_and_accept() -> socket.socket:
        late = socket.create_connection(("127.0.0.1", port), timeout=60)
        late.sendall(frames[0])
        broker._server._socket_server._acceptors["EXTRA"]._accept_some()
        return late

    with broker.call(ask_and_accept) as late:
        answer = b"".join(iter(lambda: late.recv(4096), b""))
    assert len(answer) == 4 + int.from_bytes(answer[:4])
    assert not is_open(port)


def test_a_broker_that_stops_opens_and_removes_no_listeners(broker, client):
    """Connections stay open until their requests are answered."""
    (first, second) = free_ports(2)
    assert listen(client, extra(first)) == (0, None)
    broker.call(broker._server._socket_server.close)
    assert listen(
        client, f"{extra(first)},TLS://127.0.0.1:{second}", (PROTOCOLS, SET, MAP.replace("SSL", "PLAINTEXT"))
    ) == (
        0,
        None,
    )
    assert not is_open(second)
    assert listen(client, FIRST) == (0, None)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_listener_with_tls_has_the_options_of_its_name(broker, client):
    authority = CertificateAuthority()
    key, chain = authority.issue("broker")
    (port,) = free_ports(1)
    options = {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    changes = [(f"listener.name.tls.{name}", SET, value) for name, value in options.items()]
    assert listen(client, f"{FIRST},TLS://127.0.0.1:{port}", *changes) == (0, None)
    with tls_connection(SimpleNamespace(_word=lambda _: f"TLS://localhost:{port}"), authority, "TLS") as other:
        assert other.request(make("ListGroups"), 4).error_code == 0


def test_a_listener_goes_with_the_logins_that_it_needs_while_it_is_there(broker, client):
    users = "listener.name.logins.plain.sasl.jaas.config"
    module = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="a";'
    (port,) = free_ports(1)
    mechanisms = ("listener.name.logins.sasl.enabled.mechanisms", SET, "PLAIN")
    added = f"{FIRST},LOGINS://127.0.0.1:{port}"
    protocols = (PROTOCOLS, SET, f"{MAP},LOGINS:SASL_PLAINTEXT")
    assert listen(client, added, (users, SET, module), mechanisms, protocols) == (0, None)
    code, why = alter(client, BROKER, "1", (users, DELETE, None))
    assert code == ErrorCode.INVALID_REQUEST
    assert "listener LOGINS, PLAIN: Could not find" in why
    code, why = alter(client, BROKER, "1", ("max.connections", SET, "1000"))
    assert code == ErrorCode.INVALID_REQUEST
    assert "existing listener ListenerName(LOGINS)" in why
    assert listen(client, FIRST, (users, DELETE, None)) == (0, None)
    assert not is_open(port)


def test_a_listener_without_what_it_needs_is_not_opened(client, caplog):
    (port,) = free_ports(1)
    assert listen(client, f"{FIRST},TLS://127.0.0.1:{port}") == (0, None)
    assert "the listener TLS is not opened" in caplog.text
    assert not is_open(port)


def test_listeners_are_of_one_broker(client):
    code, text = alter(client, BROKER, "", ("listeners", SET, FIRST))
    assert (code, text) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
    )


# --- what is refused. `NOT_STARTED` are the words of a start, the others those of a change.

CHANGE = "Invalid value org.apache.kafka.common.config.ConfigException: "
LISTENERS = f"{FIRST},CONTROLLER://127.0.0.1:0"


@pytest.fixture
def listeners() -> DynamicListeners:
    options = {
        "listeners": LISTENERS,
        "advertised.listeners": "PLAINTEXT://a.name:7",
        "controller.listener.names": "CONTROLLER",
        PROTOCOLS: f"{MAP},CONTROLLER:PLAINTEXT",
        "listener.name.plaintext.connections.max.reauth.ms": "9",
    }

    def never(listener):
        raise AssertionError(listener)

    return DynamicListeners(SimpleNamespace(config=BrokerConfig.parse(options)), never, never, never)


@pytest.mark.parametrize(
    ("text", "protocols", "why"),
    [
        (
            f"{LISTENERS},OTHER://h:1",
            None,
            f"Error creating broker listeners from '[{LISTENERS.replace(',', ', ')}, OTHER://h:1]': No security "
            "protocol defined for listener OTHER",
        ),
        (
            f"{LISTENERS},nonsense",
            None,
            f"Error creating broker listeners from '[{LISTENERS.replace(',', ', ')}, nonsense]': Unable to parse "
            "nonsense to a broker endpoint",
        ),
        (f"{LISTENERS},://h:1", None, "://h:1]': The provided listener name is null or empty string"),
        (f"{LISTENERS},EXTRA://h:1,EXTRA://h:2", None, "Each listener must have a different name, listeners: ["),
        (f"{LISTENERS},EXTRA://h:1,TLS://h:1", None, "Each listener must have a different port, listeners: ["),
        (f"{LISTENERS},EXTRA://1.1.1.1:1,TLS://1.1.1.2:1", None, "one needs to be IPv4 and the other IPv6"),
        (
            f"{LISTENERS},EXTRA://1.1.1.1:1,TLS://[::1]:1,OTHER://1.1.1.3:1",
            f"{MAP},CONTROLLER:PLAINTEXT,OTHER:SSL",
            "unless exactly one listener has an IPv4 address",
        ),
        (
            FIRST,
            None,
            "requirement failed: controller.listener.names must contain at least one value appearing in the "
            "'listeners' configuration when running the KRaft controller role",
        ),
        (
            "EXTRA://h:1,CONTROLLER://127.0.0.1:0",
            None,
            "requirement failed: advertised.listeners listener names must be equal to or a subset of the ones defined "
            "in listeners. Found PLAINTEXT. The valid options based on the current configuration are EXTRA,CONTROLLER",
        ),
        (
            None,
            f"{MAP},CONTROLLER:SSL",
            f"{CHANGE}Security protocol cannot be updated for existing listener ListenerName(CONTROLLER) for "
            "configuration Invalid dynamic configuration",
        ),
        (f"{LISTENERS},EXTRA://h:2147483648", None, 'EXTRA://h:2147483648]\': For input string: "2147483648"'),
        (f"{LISTENERS},EXTRA://h:{'9' * 5000}", None, 'For input string: "99999'),
        ("", None, "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
        (None, "", "No security protocol defined for listener PLAINTEXT"),
        (None, "PLAINTEXT:NOPE", "Invalid security protocol `NOPE` defined in listener.security.protocol.map"),
        (
            None,
            "nonsense",
            "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, length 8",
        ),
        (None, f"PLAINTEXT:PLAINTEXT , \t,{' ' * 1_000_000}nonsense", "begin 0, end -1, length 8"),
        # An expression that looks for a comma behind each of these blanks would take an hour.
        (None, f"{' ' * 1_000_000}nonsense", "begin 0, end -1, length 1000008"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(listeners, text, protocols, why):
    proposed = {name: value for name, value in (("listeners", text), (PROTOCOLS, protocols)) if value is not None}
    with pytest.raises(ConfigError) as caught:
        listeners.check(proposed)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PLAINTEXT://:0,nonsense", "Unable to parse a listener name from nonsense"),
        (
            "SSL://:0,nonsense",
            "Error creating broker listeners from '[SSL://:0, nonsense]': Unable to parse nonsense to a broker "
            "endpoint",
        ),
    ],
)
def test_without_a_map_of_protocols_the_names_of_listeners_are_read_first(text, why):
    broker = SimpleNamespace(config=BrokerConfig.parse({"listeners": FIRST}))
    with pytest.raises(ConfigError) as caught:
        DynamicListeners(broker, None, None, None).check({"listeners": text})
    assert str(caught.value) == why


def test_a_listener_that_stays_keeps_the_options_that_are_not_dynamic(listeners):
    added = {"listeners": f"{LISTENERS},EXTRA://h:1"}
    listeners.check(added)
    listeners.check({**added, "listener.name.plaintext.max.connections": "5", "listener.name.extra.any": "1"})
    with pytest.raises(ConfigError, match="Configs cannot be updated dynamically for existing listener"):
        listeners.check({**added, "listener.name.plaintext.connections.max.reauth.ms": "10"})


def test_a_stored_option_of_sasl_pins_the_listeners_until_it_goes(listeners):
    """As in Kafka, which compares with the options of the start alone."""
    mechanisms = "listener.name.extra.sasl.enabled.mechanisms"
    stored = {"listeners": f"{LISTENERS},EXTRA://h:1", mechanisms: "PLAIN", "listener.name.extra.ssl.keystore.key": "k"}
    listeners.check(stored)
    listeners._broker.config.apply_dynamic(stored)
    listeners.check(stored)
    listeners.check({**stored, mechanisms: "PLAIN,GSSAPI", "listener.name.extra.max.connections": "5"})
    listeners.check({**stored, "listeners": LISTENERS})
    listeners.check({"listeners": f"{LISTENERS},EXTRA://h:1,TLS://h:2"})
    for change in (
        {"listeners": f"{LISTENERS},EXTRA://h:1,TLS://h:2"},
        {PROTOCOLS: f"{MAP},CONTROLLER:PLAINTEXT,MORE:SSL"},
        {"max.connections": "5"},
        {"ssl.client.auth": "required"},
        {"sasl.enabled.mechanisms": "PLAIN"},
        {"max.connection.creation.rate": "5"},
        {"num.network.threads": "5"},
    ):
        with pytest.raises(ConfigError, match=r"existing listener ListenerName\(EXTRA\)"):
            listeners.check({**stored, **change})


def test_without_advertised_listeners_what_was_added_stays():
    """As in Kafka: it is advertised then."""
    config = BrokerConfig.parse({"listeners": FIRST, PROTOCOLS: MAP})
    config.apply_dynamic({"listeners": f"{FIRST},EXTRA://h:1"})
    listeners = DynamicListeners(SimpleNamespace(config=config), print, print, print)
    with pytest.raises(ConfigError, match=r"Advertised listeners 'Set\(ListenerName\(PLAINTEXT\), ListenerName\(EXTRA"):
        listeners.check({"listeners": FIRST})
    with pytest.raises(ConfigError, match="There must be at least one broker advertised listener"):
        DynamicListeners(
            SimpleNamespace(config=BrokerConfig.parse({"controller.listener.names": "EXTRA", PROTOCOLS: MAP})),
            print,
            print,
            print,
        ).check({"listeners": "EXTRA://h:1"})
    with pytest.raises(ConfigError, match=r"cannot use the nonroutable meta-address 0\.0\.0\.0"):
        listeners.check({"listeners": f"{FIRST},EXTRA://h:1,TLS://0.0.0.0:9"})


def test_a_listener_that_is_opened_anew_has_opened_no_connections_yet() -> None:
    """As in Kafka, whose measure of connections ends with the listener: clients waited for seconds."""
    (port,) = free_ports(1)
    options = {"listener_security_protocol_map": MAP, "advertised_listeners": FIRST, "clock": "virtual"}
    limit = {"listener.name.extra.max.connection.creation.rate": "1"}
    with Broker(**options, **limit) as broker, Connection(broker.bootstrap_servers, timeout_s=60) as client:
        for _ in range(2):
            assert listen(client, extra(port)) == (0, None)
            for _ in range(10):  # in the first windows; one more would wait
                with Connection(f"127.0.0.1:{port}", timeout_s=60) as other:
                    metadata(other)
            assert listen(client, FIRST) == (0, None)
