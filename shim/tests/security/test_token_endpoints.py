"""The `https:` endpoints of OAUTHBEARER, which the options of the login module say how to trust: where a broker has the
keys from, and a client its token.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kafka_shim.client_tokens import token_source
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions
from kafka_shim.embedded import Broker
from kafka_shim.embedded_security import unsecured_token
from kafka_shim.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_shim.security.sasl import tokens
from kafka_shim.security.sasl.jaas import parse_jaas
from kafka_shim.security.sasl.mechanism import InvalidTokenError
from kafka_shim.security.sasl.oauthbearer import VALIDATOR, OAuthBearer, maker
from kafka_shim.security.sasl.tokens import ALLOWED_URLS
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.security.sasl_client import OAUTH_MODULE, handshake, listener_options
from kafka_shim.wire_client import Connection, WireClientError

KEY = ec.generate_private_key(ec.SECP256R1())


class Endpoint(BaseHTTPRequestHandler):
    """Has the keys for who GETs, and a token for who POSTs."""

    def do_GET(self) -> None:
        row = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(KEY.public_key())) | {"kid": "0"}
        self._answer({"keys": [row]})

    def do_POST(self) -> None:
        self._answer({"access_token": unsecured_token("carol")})

    def _answer(self, document: dict[str, object]) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the test's output clean."""


class TlsServer(HTTPServer):
    """Asks its clients for a certificate of the authority."""

    def __init__(self, authority: CertificateAuthority, pem: Path, hosts: tuple[str, ...]) -> None:
        super().__init__(("127.0.0.1", 0), Endpoint)
        pem.write_text("".join(authority.issue("endpoint", hosts)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        context.load_verify_locations(cadata=authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, *_: object) -> None:
        """A client that does not trust this server ends the handshake."""


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def serving(server: TlsServer) -> Iterator[str]:
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}/path"
        server.shutdown()
        thread.join()


@pytest.fixture
def url(authority: CertificateAuthority, tmp_path: Path) -> Iterator[str]:
    yield from serving(TlsServer(authority, tmp_path / "server.pem", ("127.0.0.1",)))


@pytest.fixture
def url_of_another_name(authority: CertificateAuthority, tmp_path: Path) -> Iterator[str]:
    yield from serving(TlsServer(authority, tmp_path / "server.pem", ("elsewhere",)))


@pytest.fixture
def stores(authority: CertificateAuthority, tmp_path: Path) -> str:
    """Options of a login module that trust the authority and show a certificate of it."""
    trusted, own = tmp_path / "trusted.pem", tmp_path / "own.pem"
    trusted.write_text(authority.certificate)
    own.write_text("".join(authority.issue("broker")))
    return (
        f'ssl.truststore.type=PEM ssl.truststore.location="{trusted}" '
        f'ssl.keystore.type=PEM ssl.keystore.location="{own}"'
    )


def read_keys(url: str, login: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who a token of the key is for a broker with this login module."""
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    clock = VirtualClock()
    config = BrokerConfig.parse({"sasl.oauthbearer.jwks.endpoint.url": url})
    module = parse_jaas(f"{OAUTH_MODULE} required {login};")
    exchange = maker(VALIDATOR, [module], ListenerOptions(config, "L"), clock, [])()
    assert isinstance(exchange, OAuthBearer)
    now = clock.now_ms() // 1000
    token = jwt.encode({"sub": "carol", "iat": now, "exp": now + 600}, KEY, "ES256", headers={"kid": "0"})
    return asyncio.run(exchange._validator.validate(token))[0]


def fetch_token(url: str, login: str) -> str:
    """Who the token is for that the endpoint gives."""
    module = parse_jaas(f'{OAUTH_MODULE} required clientId="carol" clientSecret="word" {login};')
    token = token_source({"sasl.oauthbearer.token.endpoint.url": url}, module.options)()
    subject: str = jwt.decode(token, options={"verify_signature": False})["sub"]
    return subject


def test_an_endpoint_is_trusted_by_the_stores_of_the_login_module(
    url: str, stores: str, monkeypatch: pytest.MonkeyPatch
):
    assert read_keys(url, stores, monkeypatch) == "carol"
    assert fetch_token(url, stores) == "carol"


def test_an_endpoint_is_asked_without_the_proxies_of_the_environment(
    url: str, stores: str, monkeypatch: pytest.MonkeyPatch
):
    """As from Java: a proxy could give other keys, and has nothing to do with a token."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # it does not listen: who is sent there is refused
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert read_keys(url, stores, monkeypatch) == "carol"
        assert fetch_token(url, stores) == "carol"


def test_an_endpoint_without_them_is_trusted_by_the_authorities_of_the_machine(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(InvalidTokenError, match="no key of"):
        read_keys(url, "", monkeypatch)
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text
    with pytest.raises(WireClientError, match="CERTIFICATE_VERIFY_FAILED"):
        fetch_token(url, "")


def test_the_name_of_an_endpoint_is_checked_whatever_the_login_module_says(
    url_of_another_name: str, stores: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Java's HttpsURLConnection does so."""
    login = f'{stores} ssl.endpoint.identification.algorithm=""'
    with pytest.raises(InvalidTokenError, match="no key of"):
        read_keys(url_of_another_name, login, monkeypatch)
    assert "IP address mismatch" in caplog.text
    with pytest.raises(WireClientError, match="IP address mismatch"):
        fetch_token(url_of_another_name, login)


def test_a_store_of_the_login_module_that_cannot_be_read_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    login = f'ssl.truststore.location="{tmp_path}/none.pem" ssl.truststore.type=PEM'
    for call in (lambda url: read_keys(url, login, monkeypatch), lambda url: fetch_token(url, login)):
        with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config, ssl\.truststore\.location: cannot read"):
            call("https://127.0.0.1:1/path")


def test_keys_are_not_read_from_a_url_of_another_scheme(monkeypatch: pytest.MonkeyPatch, caplog):
    """Java follows a redirection within `https:` and within `http:` alone: what another one names is not asked."""
    asked = []

    class Redirects(Endpoint):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path == "/keys":
                super().do_GET()
                return
            self.send_response(302)
            self.send_header("Location", elsewhere if self.path == "/elsewhere" else "/keys")
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Redirects) as server, socket.create_server(("127.0.0.1", 0)) as other:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        elsewhere = f"https://127.0.0.1:{other.getsockname()[1]}/keys"
        try:
            assert read_keys(f"http://127.0.0.1:{server.server_port}/moved", "", monkeypatch) == "carol"
            assert asked == ["/moved", "/keys"]
            with pytest.raises(InvalidTokenError, match="no key of"):
                read_keys(f"http://127.0.0.1:{server.server_port}/elsewhere", "", monkeypatch)
            assert "302" in caplog.text
            other.setblocking(False)
            with pytest.raises(BlockingIOError):
                other.accept()
        finally:
            server.shutdown()
            thread.join()


def test_keys_are_made_beside_the_loop(monkeypatch: pytest.MonkeyPatch):
    """A document of thousands would hold it."""
    made = []

    def make(document: bytes) -> list[object]:
        made.append(threading.current_thread())
        return keys_of(document)

    keys_of = tokens._keys_of
    monkeypatch.setattr(tokens, "_keys_of", make)
    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert read_keys(f"http://127.0.0.1:{server.server_port}/keys", "", monkeypatch) == "carol"
        finally:
            server.shutdown()
            thread.join()
    assert [one.name for one in made] == ["kafka-shim-keys"]


def test_a_stop_does_not_wait_for_keys(monkeypatch: pytest.MonkeyPatch):
    """Nor for the login that waits for them."""
    monkeypatch.setattr("kafka_shim.security.sasl.key_endpoint.FETCH_SECONDS", 600)
    monkeypatch.setattr("kafka_shim.server.DRAIN_SECONDS", 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/keys"
        monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
        options = {
            **listener_options("SASL_PLAINTEXT", OAUTHBEARER=f"{OAUTH_MODULE} required;"),
            "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": url,
        }
        broker = Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options).start()
        stopping = threading.Thread(target=broker.stop)
        try:
            with Connection(broker.bootstrap_servers, timeout_s=60) as client:
                handshake(client, "OAUTHBEARER")
                token = jwt.encode({"sub": "carol"}, KEY, "ES256", headers={"kid": "0"})
                client.send(SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {token}\x01\x01".encode()), 2)
                asked, _ = silent.accept()
                stopping.start()
                stopping.join(60)
                assert not stopping.is_alive()
        finally:
            asked.close()
            stopping.join()
