"""A client's side of SASL exchanges over the wire client, with every step in the open."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Callable
from typing import Any

from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kafka_shim.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kafka_shim.security.sasl.scram import MECHANISMS, salted_password
from kafka_shim.wire_client import Connection

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def plain_jaas(**users: str) -> str:
    return f"{PLAIN_MODULE} required " + " ".join(f'user_{name}="{word}"' for name, word in users.items()) + ";"


def listener_options(listener: str, **jaas: str) -> dict[str, str]:
    """Options of a SASL listener; `jaas` has the JAAS options by mechanism, with underscores for dashes."""
    names = [mechanism.replace("_", "-") for mechanism in jaas]
    options = {f"listener.name.{listener.lower()}.sasl.enabled.mechanisms": ",".join(names)}
    for name, text in zip(names, jaas.values(), strict=True):
        options[f"listener.name.{listener.lower()}.{name.lower()}.sasl.jaas.config"] = text
    return options


def handshake(connection: Connection, mechanism: str, version: int = 1) -> Any:
    return connection.request(SaslHandshakeRequest(mechanism=mechanism), version)


def send_token(connection: Connection, token: bytes, version: int = 2) -> Any:
    return connection.request(SaslAuthenticateRequest(auth_bytes=token), version)


def plain_token(user: str, password: str, authzid: str = "") -> bytes:
    return f"{authzid}\0{user}\0{password}".encode()


def log_in_plain(connection: Connection, user: str, password: str) -> Any:
    connection.request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    assert handshake(connection, "PLAIN").error_code == 0
    return send_token(connection, plain_token(user, password))


def log_in_scram(
    connection: Connection,
    mechanism: str,
    user: str,
    password: str,
    extensions: str = "",
    meanwhile: Callable[[], object] | None = None,
) -> Any:
    """Returns the last response; if it is one of success, the server has proved that it has the credential.
    `meanwhile` is called between the client's two messages."""
    assert handshake(connection, mechanism).error_code == 0
    digest = MECHANISMS[mechanism][1]
    nonce = base64.b64encode(os.urandom(18)).decode()
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}{extensions}"
    first = send_token(connection, f"n,,{bare}".encode())
    if first.error_code:
        return first
    server_first = bytes(first.auth_bytes).decode()
    fields = dict(part.split("=", 1) for part in server_first.split(","))
    assert fields["r"].startswith(nonce)
    assert len(fields["r"]) > len(nonce)
    salted = salted_password(mechanism, password, base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    unsigned = f"c=biws,r={fields['r']}"
    signed = f"{bare},{server_first},{unsigned}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = base64.b64encode(bytes(one ^ other for one, other in zip(client_key, signature, strict=True))).decode()
    if meanwhile is not None:
        meanwhile()
    final = send_token(connection, f"{unsigned},p={proof}".encode())
    if not final.error_code:
        server_key = hmac.digest(salted, b"Server Key", digest)
        expected = base64.b64encode(hmac.digest(server_key, signed, digest)).decode()
        assert bytes(final.auth_bytes).decode() == f"v={expected}"
    return final


def log_in_by_token(
    connection: Connection,
    mechanism: str,
    token_id: str,
    secret: bytes,
    meanwhile: Callable[[], object] | None = None,
) -> Any:
    password = base64.b64encode(secret).decode()
    return log_in_scram(connection, mechanism, token_id, password, ",tokenauth=true", meanwhile)


def unsecured_token(**claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


def log_in_oauth(connection: Connection, token: str, extensions: str = "") -> Any:
    assert handshake(connection, "OAUTHBEARER").error_code == 0
    return send_token(connection, f"n,,\x01auth=Bearer {token}\x01{extensions}\x01".encode())
