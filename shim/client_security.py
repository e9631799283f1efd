"""How the command line and `wire_client` connect to a listener with TLS or SASL: by the properties of Kafka's clients,
as its tools take them with `--command-config` (Kafka: SslFactory, SaslClientAuthenticator).

`security.protocol`, `ssl.*`, `sasl.mechanism`, `sasl.jaas.config`, for GSSAPI `sasl.kerberos.service.name`, and for
OAUTHBEARER `sasl.oauthbearer.token.endpoint.url` mean what they mean in Kafka; other properties are ignored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl

from kafka_shim.client_tokens import token_source
from kafka_shim.config import ConfigError, read_properties, resolve
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.randomness import Randomness
from kafka_shim.security.sasl.jaas import parse_jaas
from kafka_shim.security.sasl.scram import MECHANISMS, keys_of, salted_password
from kafka_shim.security.tls.context import client_context
from kafka_shim.wire_client import HandshakeLostError, NoAnswerError, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from typing import Any

    from kafka_shim.client_tickets import Initiator
    from kafka_shim.security.sasl.jaas import LoginModule
    from kafka_shim.wire_client import Requests

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
INT32_MAX = (1 << 31) - 1
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2


def read_client_security(path: str) -> ClientSecurity:
    """Return what the properties file of a client says, with the values that its `config.providers` have. Raises
    ConfigError, with the file's name."""
    properties = read_properties(path)
    try:
        return ClientSecurity(resolve(properties))
    except ConfigError as err:
        raise ConfigError(f"{path}: {err}") from None


def strange_properties(properties: Mapping[str, str]) -> list[str]:
    """Return a line for each property that looks like a misspelt one: Kafka's clients have none of this name, but one
    that is near to it. Others are of other programs that read the same file."""
    from difflib import get_close_matches

    from kafka_shim.config import CLIENT_NAMES, is_of_providers

    lines = []
    for name in properties:
        near = [] if name in CLIENT_NAMES or is_of_providers(name) else get_close_matches(name, CLIENT_NAMES, 1, 0.8)
        if near:
            lines.append(f"{name} is no option of Kafka's clients and is ignored: did you mean {near[0]}?")
    return lines


class LoginRefusedError(WireClientError):
    """The broker refused a login. `reason`: what it said, for who has typed a name and password and has no file."""

    def __init__(self, reason: str, advice: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}; {advice}")


class ClientSecurity:
    """The security of connections to one cluster. May be shared by connections of several threads."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises ConfigError, whose message has no secret."""
        protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if protocol not in PROTOCOLS:
            raise ConfigError(f"security.protocol: {protocol} is not one of {', '.join(PROTOCOLS)}")
        self.protocol = protocol
        self._context = client_context(properties) if protocol.endswith("SSL") else None
        self._mechanism = ""
        self._login: dict[str, str] = {}
        self._token: Callable[[], str] | None = None
        self._initiator: Initiator | None = None
        if protocol.startswith("SASL_"):
            self._mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
            module = _module_of(self._mechanism, properties.get("sasl.jaas.config"))
            self._login = dict(module.options)
            if self._mechanism == "OAUTHBEARER":
                self._token = token_source(properties, self._login)
            elif self._mechanism == "GSSAPI":
                from kafka_shim.client_tickets import Initiator

                self._initiator = Initiator(module, properties)
            elif missing := [name for name in ("username", "password") if name not in self._login]:
                raise ConfigError(f"sasl.jaas.config has no {' and no '.join(missing)}")

    @property
    def tls_context(self) -> ssl.SSLContext | None:
        """For who makes the connection itself, and then calls `log_in`; None without TLS."""
        return self._context

    # --- what Connection asks for

    def wrap(self, plain: socket.socket, host: str) -> socket.socket:
        """Return the socket to speak through, after the handshake of TLS. Raises WireClientError."""
        if self._context is None:
            return plain
        try:
            return self._context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as err:
            raise WireClientError(
                f"the certificate of {host} is not accepted: {err.verify_message}; check ssl.truststore.location and "
                "the name that you connect to"
            ) from err
        except (ssl.SSLError, OSError) as err:
            reason = getattr(err, "reason", None) or err
            text = (
                f"no TLS with {host}: {reason}; check security.protocol, the port, and whether the listener wants a "
                "certificate (ssl.keystore.location)"
            )
            if isinstance(err, TimeoutError):
                raise NoAnswerError(text) from err
            if isinstance(err, ssl.SSLEOFError | ConnectionError):
                raise HandshakeLostError(text) from err
            raise WireClientError(text) from err

    def log_in(self, connection: Requests) -> None:
        """Authenticate with SASL where the protocol has it. Raises WireClientError."""
        if not self._mechanism:
            return
        handshake = SaslHandshakeRequest(mechanism=self._mechanism)
        answer = connection.request(handshake, HANDSHAKE_VERSION)
        if answer.error_code:
            enabled = ", ".join(answer.mechanisms)
            if not enabled:
                raise WireClientError("the listener has no SASL: set security.protocol, or connect to another listener")
            raise WireClientError(f"the listener does not offer {self._mechanism} but {enabled}: set sasl.mechanism")
        if self._mechanism == "PLAIN":
            self._send(connection, f"\0{self._login['username']}\0{self._login['password']}".encode())
        elif self._token is not None:
            refusal = self._send(connection, f"n,,\x01auth=Bearer {self._token()}\x01\x01".encode())
            if refusal:  # RFC 7628: the dummy answer to it lets the broker end the exchange
                self._send(connection, b"\x01")
        elif self._initiator is not None:
            self._initiator.log_in(connection.host, lambda token: self._send(connection, token))
        else:
            self._scram(connection)

    def _scram(self, connection: Requests) -> None:
        """RFC 5802. Raises WireClientError, also if the broker does not prove that it knows the credential."""
        digest = MECHANISMS[self._mechanism][1]
        name = self._login["username"].replace("=", "=3D").replace(",", "=2C")
        nonce = base64.b64encode(Randomness().bytes_of(18)).decode()
        extension = ",tokenauth=true" if self._login.get("tokenauth", "").lower() == "true" else ""
        bare = f"n={name},r={nonce}{extension}"
        answer = self._send(connection, f"n,,{bare}".encode())
        try:
            server_first = answer.decode()
            fields = dict(part.partition("=")[::2] for part in server_first.split(","))
            salt, iterations = base64.b64decode(fields["s"], validate=True), int(fields["i"])
            is_fresh = fields["r"].startswith(nonce) and len(fields["r"]) > len(nonce)
        except (KeyError, ValueError):
            is_fresh = False
        if not is_fresh or not 1 <= iterations <= INT32_MAX:
            raise WireClientError(f"the broker's response is not a message of {self._mechanism}")
        salted = salted_password(self._mechanism, self._login["password"], salt, iterations)
        stored_key, server_key = keys_of(self._mechanism, salted)
        unsigned = f"c=biws,r={fields['r']}"
        signed = f"{bare},{server_first},{unsigned}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        assert hashlib.new(digest, client_key).digest() == stored_key
        signature = hmac.digest(stored_key, signed, digest)
        proof = base64.b64encode(bytes(one ^ two for one, two in zip(client_key, signature, strict=True))).decode()
        final = self._send(connection, f"{unsigned},p={proof}".encode())
        expected = f"v={base64.b64encode(hmac.digest(server_key, signed, digest)).decode()}"
        if not hmac.compare_digest(final, expected.encode()):
            raise WireClientError(
                "the broker did not prove that it knows the password: check that the address is the right one"
            )

    def _send(self, connection: Requests, token: bytes) -> bytes:
        answer: Any = connection.request(SaslAuthenticateRequest(auth_bytes=token), AUTHENTICATE_VERSION)
        if answer.error_code:
            name = ErrorCode(answer.error_code).name
            what = "the token" if self._token else "the principal" if self._initiator else "username and password"
            raise LoginRefusedError(f"{name}: {answer.error_message}", f"check {what} in sasl.jaas.config")
        return bytes(answer.auth_bytes)


def _module_of(mechanism: str, jaas: str | None) -> LoginModule:
    if mechanism not in ("PLAIN", "OAUTHBEARER", "GSSAPI", *MECHANISMS):
        raise ConfigError(f"sasl.mechanism: Kafka has no mechanism {mechanism}")
    if jaas is None:
        raise ConfigError('sasl.jaas.config is missing: LoginModule required username="NAME" password="WORD";')
    return parse_jaas(jaas)
