"""Connections to listeners with TLS and SASL, by the properties of Kafka's clients."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from kafka_shim.cli import main
from kafka_shim.client_security import ClientSecurity, read_client_security
from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.embedded_security import unsecured_token
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.wire_client import Connection, WireClientError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USERS = {"alice": 'sec"ret', "b=o,b": "other"}
OF_PLAIN = {"alice": 'sec"ret', "bob": "other"}
PLAIN_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{}";'


def oauth(jaas: str, url: str = "") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas,
        "sasl.oauthbearer.token.endpoint.url": url,
    }


def asks(broker: Broker, properties: dict[str, Any]) -> str:
    """Returns the principal of a connection that can ask."""
    with Connection(broker.bootstrap_servers, security=ClientSecurity(properties)) as connection:
        assert connection.request(MetadataRequest(topics=[]), 12).cluster_id == broker.cluster_id
        (principal,) = broker.call(lambda: {one.session.principal for one in broker._server._registry.connections})
        return str(principal)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_settings_of_java_clients_connect(mechanism: str, tls: bool):
    users = OF_PLAIN if mechanism == "PLAIN" else USERS
    with Broker(tls=tls, sasl=mechanism, users=None if mechanism == "OAUTHBEARER" else users) as broker:
        for user in users:
            assert asks(broker, broker.client_config("java", user)) == f"User:{user}"


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(tls=True, sasl="SCRAM-SHA-256", users=USERS) as broker:
        yield broker


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sasl.jaas.config": PLAIN_LOGIN.format("wrong")}, "SASL_AUTHENTICATION_FAILED: .*; check username"),
        ({"sasl.mechanism": "SCRAM-SHA-512"}, "does not offer SCRAM-SHA-512 but SCRAM-SHA-256: set sasl.mechanism"),
        ({"ssl.truststore.certificates": CertificateAuthority().certificate}, "is not accepted: .*ssl.truststore"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "the connection broke|closed the connection"),
    ],
)
def test_what_is_wrong_is_said(secured: Broker, changes: dict[str, str], reason: str):
    properties = {**secured.client_config("java", "alice"), **changes}
    with pytest.raises(WireClientError, match=reason) as caught:
        Connection(secured.bootstrap_servers, security=ClientSecurity(properties), timeout_s=60)
    assert "wrong" not in str(caught.value)


def test_name_in_the_certificate_is_compared_unless_told_not_to(secured: Broker):
    name = secured.bootstrap_servers.replace("127.0.0.1", "127.0.0.2")
    properties = secured.client_config("java", "alice")
    with pytest.raises(WireClientError, match=r"127\.0\.0\.2|cannot connect"):
        Connection(name, security=ClientSecurity(properties))
    lax = ClientSecurity({**properties, "ssl.endpoint.identification.algorithm": ""})
    assert lax._context is not None
    assert not lax._context.check_hostname


def test_client_certificate_is_shown(tmp_path: Path):
    authority = CertificateAuthority()
    key, chain = authority.issue("localhost")
    with Broker(
        listen="SSL://127.0.0.1:0",
        ssl_keystore_type="PEM",
        ssl_keystore_key=key,
        ssl_keystore_certificate_chain=chain,
        ssl_truststore_type="PEM",
        ssl_truststore_certificates=authority.certificate,
        ssl_client_auth="required",
    ) as broker:
        own = tmp_path / "bob.pem"
        own.write_text("".join(authority.issue("bob")))
        trusted = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority.certificate,
        }
        assert asks(broker, {**trusted, "ssl.keystore.type": "PEM", "ssl.keystore.location": str(own)}) == "User:CN=bob"
        with (
            pytest.raises(WireClientError),
            Connection(broker.bootstrap_servers, security=ClientSecurity(trusted)) as connection,
        ):
            connection.request(MetadataRequest(topics=[]), 12)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: TLS is not one of"),
        ({"security.protocol": "SASL_SSL"}, "sasl.jaas.config is missing"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "NTLM"}, "sasl.mechanism: Kafka has no mechanism NTLM"),
        (oauth("A required;"), "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url"),
        (oauth("A required;", "https://host/token"), "needs clientId"),
        (oauth('A required clientId="a" clientSecret="b";', "ftp://host/token"), "is not a file:, http: or https: URL"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'A required password="x";',
            },
            "has no username",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/such"}, "ssl.truststore.location: cannot read"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1"}, "older ones are not safe"),
    ],
)
def test_properties_that_cannot_work_are_refused(tmp_path: Path, properties: dict[str, str], reason: str):
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    with pytest.raises(ConfigError, match=reason) as caught:
        read_client_security(str(file))
    assert str(file) in str(caught.value)


def test_a_misspelt_property_is_named_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "client.properties"
    names = ("secruity.protocol", "ssl.truststore.locations", "config.providersX", "client.id", "schema.registry.url")
    file.write_text("".join(f"{name}=x\n" for name in (*names, "config.providers.x.class")))
    with Broker() as broker:
        line = ["topics", "list", "--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file)]
        assert main(line) == 0
    ignored = "is no option of Kafka's clients and is ignored: did you mean"
    assert capsys.readouterr().err.splitlines() == [
        f"warning: {file}: secruity.protocol {ignored} security.protocol?",
        f"warning: {file}: ssl.truststore.locations {ignored} ssl.truststore.location?",
        f"warning: {file}: config.providersX {ignored} config.providers?",
    ]


def test_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"cannot read .*nothing\.properties"):
        read_client_security(str(tmp_path / "nothing.properties"))


class Impostor:
    """Answers as a broker that does not know the password."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.nonce = ""

    def request(self, message: Any, version: int) -> Any:
        if not hasattr(message, "auth_bytes"):
            return SaslAuthenticateResponse()
        self.nonce = self.nonce or message.auth_bytes.decode().rpartition("r=")[2]
        answer = self._answers.pop(0).replace(b"NONCE", self.nonce.encode())
        return SaslAuthenticateResponse(auth_bytes=answer)


SALT = base64.b64encode(b"salt").decode().encode()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (
            (b"r=NONCEmore,s=" + SALT + b",i=4096", b"v=" + base64.b64encode(bytes(32))),
            "did not prove that it knows the password",
        ),
        ((b"r=another,s=" + SALT + b",i=4096",), "is not a message of SCRAM-SHA-256"),
        ((b"r=NONCEmore,i=4096",), "is not a message of SCRAM-SHA-256"),
        ((b"e=other-error",), "is not a message of SCRAM-SHA-256"),
        ((b"r=NONCEmore\xff,s=" + SALT + b",i=4096",), "is not a message of SCRAM-SHA-256"),
        ((b"r=NONCEmore,s=" + SALT + b",i=99999999999",), "is not a message of SCRAM-SHA-256"),
    ],
)
def test_broker_must_prove_that_it_knows_the_credential(answers: tuple[bytes, ...], reason: str):
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": 'ScramLoginModule required username="alice" password="secret";',
    }
    with pytest.raises(WireClientError, match=reason):
        ClientSecurity(properties).log_in(Impostor(*answers))  # type: ignore[arg-type]


# --- tokens of OAUTHBEARER


class Endpoint(HTTPServer):
    """Issues tokens to clients with the right secret, as RFC 6749 says, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Issuer)
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.answer: bytes | None = None
        self.redirects_to = ""


class _Issuer(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        self.server.asked.append((given, parse_qs(body)))
        if self.server.redirects_to:
            self.send_response(302)
            self.send_header("Location", self.server.redirects_to)
            self.end_headers()
            return
        name, _, secret = given.partition(":")
        self.send_response(200 if secret == "s/cret" else 401)
        self.end_headers()
        token = {"access_token": unsecured_token(name), "token_type": "Bearer"}
        self.wfile.write(json.dumps(token).encode() if self.server.answer is None else self.server.answer)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def bearer() -> Iterator[Broker]:
    with Broker(sasl="OAUTHBEARER") as broker:
        yield broker


def properties_of(endpoint: Endpoint, secret: str = "s/cret") -> dict[str, str]:
    login = f'M required clientId="carol" clientSecret="{secret}" scope="kafka";'
    return oauth(login, f"http://127.0.0.1:{endpoint.server_port}/token")


def test_a_token_comes_from_its_endpoint_or_from_a_file(bearer: Broker, endpoint: Endpoint, tmp_path: Path):
    assert asks(bearer, properties_of(endpoint)) == "User:carol"
    assert endpoint.asked == [("carol:s/cret", {"grant_type": ["client_credentials"], "scope": ["kafka"]})]
    options_of_4 = {
        **oauth("M required;", f"http://127.0.0.1:{endpoint.server_port}/token"),
        "sasl.oauthbearer.client.credentials.client.id": "d/ve",
        "sasl.oauthbearer.client.credentials.client.secret": "x y",
        "sasl.oauthbearer.header.urlencode": "true",
    }
    with pytest.raises(WireClientError, match="401"):
        asks(bearer, options_of_4)
    assert endpoint.asked[1] == ("d%2Fve:x%20y", {"grant_type": ["client_credentials"]})
    file = tmp_path / "a token"
    file.write_text(unsecured_token("dave") + "\n")
    assert asks(bearer, oauth("M required;", file.as_uri())) == "User:dave"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"no", "is not JSON with access_token"),
        (b"[]", "is not JSON with access_token"),
        (b'{"access_token": 7}', "access_token is not a string"),
        (b'{"access_token": "x.y.z"}', "closed the connection|SASL_AUTHENTICATION_FAILED"),
    ],
)
def test_an_endpoint_that_gives_no_token_is_named(bearer: Broker, endpoint: Endpoint, answer: bytes, reason: str):
    endpoint.answer = answer
    with pytest.raises(WireClientError, match=reason):
        asks(bearer, properties_of(endpoint))


def test_a_secret_does_not_follow_a_redirection_and_is_in_no_error(bearer: Broker, endpoint: Endpoint, tmp_path: Path):
    with pytest.raises(WireClientError, match=r"401.*check clientId") as caught:
        asks(bearer, properties_of(endpoint, "wrong-word"))
    assert "wrong-word" not in str(caught.value)
    endpoint.redirects_to = f"http://127.0.0.1:{endpoint.server_port}/other"
    with pytest.raises(WireClientError, match="302"):
        asks(bearer, properties_of(endpoint))
    assert len(endpoint.asked) == 2
    with pytest.raises(WireClientError, match="cannot read"):
        asks(bearer, oauth("M required;", (tmp_path / "none").as_uri()))
