"""OAUTHBEARER with signed tokens: keys from a file, and each claim that may refuse a token."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.security.sasl.oauthbearer import VALIDATOR
from kafka_shim.security.sasl.tokens import ALLOWED_URLS
from kafka_shim.tests.security.sasl_client import OAUTH_MODULE, listener_options, log_in_oauth
from kafka_shim.wire_client import Connection

KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
NOW = int(time.time())
GOOD = {"sub": "carol", "iat": NOW, "exp": NOW + 600, "iss": "https://issuer", "aud": ["kafka", "x"]}


def jwks(path: Path, *keys: ec.EllipticCurvePrivateKey) -> str:
    algorithm = jwt.get_algorithm_by_name("ES256")
    rows = [json.loads(algorithm.to_jwk(key.public_key())) | {"kid": str(at)} for at, key in enumerate(keys)]
    path.write_text(json.dumps({"keys": rows}))
    return path.as_uri()


def options(url: str) -> dict[str, str]:
    return {
        **listener_options("SASL_PLAINTEXT", OAUTHBEARER=f"{OAUTH_MODULE} required;"),
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.expected.audience": "kafka",
        "connection.failed.authentication.delay.ms": "0",
    }


def test_a_token_is_accepted_by_its_signature_and_claims(tmp_path: Path, monkeypatch, caplog):
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")

    def answer(key: ec.EllipticCurvePrivateKey, kid: str = "0", **claims: object) -> tuple[int, bytes, int]:
        given = {name: value for name, value in (GOOD | claims).items() if value is not None}
        token = jwt.encode(given, key, "ES256", headers={"kid": kid})
        with Connection(broker.bootstrap_servers) as client:
            found = log_in_oauth(client, token)
        return found.error_code, bytes(found.auth_bytes), found.session_lifetime_ms

    refused = (0, b'{"status":"invalid_token"}', 0)
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(url)) as broker:
        code, said, lifetime_ms = answer(KEY)
        assert (code, said) == (0, b"")
        assert 500_000 < lifetime_ms <= 600_000
        assert answer(OTHER) == refused
        assert answer(KEY, kid="9") == refused
        wrong = (
            {"exp": NOW - 60},
            {"exp": None},
            {"iat": None},
            {"iss": "x"},
            {"aud": "x"},
            {"aud": None},
            {"sub": None},
        )
        for claims in (*wrong, {"nbf": NOW + 900}):
            assert answer(KEY, **claims) == refused, claims
        jwks(tmp_path / "keys.json", KEY, OTHER)
        assert answer(OTHER, kid="1")[:2] == (0, b"")


def test_a_url_must_be_allowed(tmp_path: Path, monkeypatch):
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    with pytest.raises(ConfigError, match="The URL cannot be accessed due to restrictions"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(url)).start()
