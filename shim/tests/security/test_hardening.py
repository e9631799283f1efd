"""What strangers cost: connections that never authenticate, slow handshakes, half frames, guessed passwords."""

from __future__ import annotations

import resource
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kafka_shim.client_security import ClientSecurity
from kafka_shim.embedded import Broker
from kafka_shim.line_limit import MAX_LINES, PERIOD_MS
from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.registry import LOGIN_LIMIT_BYTES
from kafka_shim.security.sasl.scram import salted_password
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.security import sasl_client as sasl
from kafka_shim.wire_client import Connection, WireClientError

SAMPLE, ALL = 300, 5000
PROTOCOLS = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")
LISTEN = ",".join(f"{name}://127.0.0.1:0" for name in PROTOCOLS)
ASKED = 200
# Of one connection that has sent half a frame: its socket's buffers are the kernel's.
MOST_BYTES_EACH = 64 * 1024


def options() -> dict[str, str]:
    key, chain = CertificateAuthority().issue("localhost")
    return {
        **sasl.listener_options("SASL_PLAINTEXT", SCRAM_SHA_256=f"{sasl.SCRAM_MODULE} required;"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": chain,
        "connection.failed.authentication.delay.ms": "0",
    }


@pytest.fixture
def broker() -> Iterator[Broker]:
    """In a process of its own, whose memory and time are its own."""
    with Broker(listen=LISTEN, process=True, **options()) as running:
        yield running


def addresses(broker: Broker) -> dict[str, tuple[str, int]]:
    found = {}
    for one in broker._word(1).split(","):
        name, _, address = one.partition("://")
        host, _, port = address.rpartition(":")
        found[name] = host, int(port)
    return found


def memory_bytes(broker: Broker) -> int:
    """Anonymous memory, in which shared files do not count."""
    assert broker._process is not None
    text = Path(f"/proc/{broker._process.popen.pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("RssAnon")).split()[1]) * 1024


def cpu_seconds(broker: Broker) -> float:
    assert broker._process is not None
    fields = Path(f"/proc/{broker._process.popen.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def p99_ms(client: Connection) -> float:
    times = []
    for _ in range(ASKED):
        began = time.perf_counter()
        client.request(MetadataRequest(topics=[]), 12)
        times.append(1000 * (time.perf_counter() - began))
    return sorted(times)[ASKED * 99 // 100]


# Each sends something and then nothing: no byte; half a length; half a frame; a record of TLS that is cut short; the
# first half of a ClientHello.
def half_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    hello = outgoing.read()
    return hello[: len(hello) // 2]


def strangers(count: int) -> list[tuple[str, bytes]]:
    hello = half_hello()
    kinds = [
        ("SASL_PLAINTEXT", b""),
        ("SASL_PLAINTEXT", b"\0\0"),
        ("SASL_PLAINTEXT", (100_000).to_bytes(4) + bytes(1000)),
        ("SSL", b""),
        ("SSL", b"\x16\x03\x01\x40\x00" + bytes(100)),
        ("SSL", hello),
    ]
    return [kinds[number % len(kinds)] for number in range(count)]


def crowd(broker: Broker, count: int) -> None:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < count + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, count + 1000), most))
    at = addresses(broker)
    with ExitStack() as stack:
        client = stack.enter_context(Connection(broker.bootstrap_servers))
        alone_ms = max(p99_ms(client), p99_ms(client))
        before_bytes = memory_bytes(broker)
        for name, sent in strangers(count):
            one = stack.enter_context(socket.create_connection(at[name], timeout=30))
            one.sendall(sent)
        crowded_ms = min(p99_ms(client) for _ in range(3))
        grown_bytes = memory_bytes(broker) - before_bytes
        began_s = cpu_seconds(broker)
        asked_s = time.perf_counter()
        while time.perf_counter() < asked_s + 1:
            client.request(MetadataRequest(topics=[]), 12)
        idle_share = cpu_seconds(broker) - began_s
    print(f"{count} strangers: p99 {alone_ms:.2f} -> {crowded_ms:.2f} ms, {grown_bytes >> 10} KB, cpu {idle_share:.2f}")
    assert grown_bytes < count * MOST_BYTES_EACH + (8 << 20)
    assert grown_bytes < LOGIN_LIMIT_BYTES + count * MOST_BYTES_EACH
    # Twice the value, and what a loaded machine adds to single requests.
    assert crowded_ms < 2 * alone_ms + 20


@pytest.mark.alone
def test_strangers_that_never_authenticate_cost_little(broker: Broker):
    crowd(broker, SAMPLE)


@pytest.mark.alone
@pytest.mark.soak
def test_five_thousand_strangers_cost_little(broker: Broker):
    crowd(broker, ALL)


def test_frame_over_the_limit_before_authentication_is_not_read(broker: Broker):
    with socket.create_connection(addresses(broker)["SASL_PLAINTEXT"], timeout=30) as one:
        one.sendall((1 << 20).to_bytes(4))
        assert one.recv(1) == b""


def test_half_a_frame_is_given_up_in_time():
    with Broker(listen=LISTEN, kafka_shim_login_timeout_ms=300, **options()) as running:
        at = addresses(running)
        with ExitStack() as stack:
            crowd_of = [
                (stack.enter_context(socket.create_connection(at[name], timeout=30)), sent)
                for name, sent in strangers(12)
            ]
            for one, sent in crowd_of:
                one.sendall(sent)
            for one, _ in crowd_of:
                while one.recv(4096):
                    pass  # an alert of TLS may come first
        with Connection(running.bootstrap_servers) as client:
            assert client.request(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.option("kafka.shim.login.timeout.ms")
def test_handshake_that_trickles_is_given_up_in_time():
    """A byte now and then must not make the deadline move."""
    with Broker(listen=LISTEN, kafka_shim_login_timeout_ms=600, **options()) as running:
        began = time.monotonic()
        with socket.create_connection(addresses(running)["SSL"], timeout=0.05) as one:
            for byte in half_hello():
                try:
                    one.sendall(bytes([byte]))
                    if one.recv(4096) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            else:
                pytest.fail("the handshake may trickle for ever")
        assert time.monotonic() - began > 0.5


def test_renegotiation_is_refused(broker: Broker):
    """TLS 1.2 alone knows it. Python's client cannot ask for one, so the listener's context is looked at."""
    with Broker(listen=LISTEN, **options()) as running:
        (listener,) = [one for one in running.state.listeners if one.name == "SSL"]
        assert listener.security.tls_context().options & ssl.OP_NO_RENEGOTIATION


def guess(address: tuple[str, int], user: str, password: str) -> int:
    with Connection(f"{address[0]}:{address[1]}", timeout_s=30) as client:
        return int(sasl.log_in_scram(client, "SCRAM-SHA-256", user, password).error_code)


def test_a_dictionary_costs_the_broker_little(broker: Broker):
    """The iterations of a guess are the guesser's to compute: the broker does two hashes."""
    salted = salted_password("SCRAM-SHA-256", "right", b"salt", 16384)
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=16384, salt=b"salt", salted_password=salted
    )
    with Connection(broker.bootstrap_servers) as admin:
        admin.request(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        address = addresses(broker)["SASL_PLAINTEXT"]
        assert guess(address, "alice", "right") == 0
        before_s = cpu_seconds(broker)
        codes = {guess(address, user, f"word-{number}") for number in range(50) for user in ("alice", "nobody")}
        spent_s = cpu_seconds(broker) - before_s
        assert codes == {58}
        assert guess(address, "alice", "right") == 0
        assert admin.request(MetadataRequest(topics=[]), 12).brokers
    own = time.process_time()
    salted_password("SCRAM-SHA-256", "word", b"salt", 16384)
    own = time.process_time() - own
    print(f"a guess costs the broker {10 * spent_s:.1f} ms, and who guesses {1000 * own:.1f} ms of hashing alone")
    assert spent_s / 100 < 0.02


@pytest.mark.parametrize("kind", ["guesses", "strange bytes", "connections over the limit"])
def test_strangers_do_not_fill_the_log(kind: str, caplog: pytest.LogCaptureFixture):
    """A dictionary attack wrote a line for each guess."""
    count = 4 * MAX_LINES
    most = {"max.connections.per.ip": "1"} if kind == "connections over the limit" else {}
    with Broker(listen=LISTEN, clock="virtual", **options(), **most) as running, ExitStack() as stack:
        address = addresses(running)["SASL_PLAINTEXT"]
        if most:
            stack.enter_context(Connection(running.bootstrap_servers)).request(MetadataRequest(topics=[]), 12)
        caplog.clear()
        for number in range(count):
            if kind == "guesses":
                assert guess(address, "alice", f"word-{number}") == 58
            else:
                with socket.create_connection(address, timeout=30) as one:
                    one.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    with suppress(ConnectionResetError):
                        assert one.recv(1) == b""
        assert len(caplog.records) == MAX_LINES
        running.clock.advance(PERIOD_MS)
        (told,) = [record.getMessage() for record in caplog.records[MAX_LINES:]]
        assert told.startswith(
            f"{count - MAX_LINES} further lines like those before were left out within 10 s; the latest: "
        )


def test_failed_login_is_answered_late():
    """`connection.failed.authentication.delay.ms` bounds the rate of guesses over one connection each."""
    given = {**options(), "connection.failed.authentication.delay.ms": "300"}
    with Broker(listen=LISTEN, **given) as running:
        address = addresses(running)["SASL_PLAINTEXT"]
        began = time.monotonic()
        assert guess(address, "nobody", "word") == 58
        assert time.monotonic() - began >= 0.29
        with pytest.raises(WireClientError):
            Connection(
                f"{address[0]}:{address[1]}",
                security=ClientSecurity(
                    {
                        "security.protocol": "SASL_PLAINTEXT",
                        "sasl.mechanism": "SCRAM-SHA-256",
                        "sasl.jaas.config": 'M required username="nobody" password="x";',
                    }
                ),
            )
