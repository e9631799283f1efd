"""What a stranger, or a client with a certificate, may send to make the broker compute for long or hold much."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions
from kafka_shim.embedded import Broker
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.security.kerberos_rules import KerberosRules, NoMatchingRuleError
from kafka_shim.security.listener_security import ListenerSecurity
from kafka_shim.security.principals import MOST_PARTS
from kafka_shim.security.rule_patterns import MOST_CHARACTERS
from kafka_shim.security.sasl import key_endpoint
from kafka_shim.security.sasl.mechanism import LONGEST_MESSAGE_BYTES, InvalidTokenError, SaslError, check_length
from kafka_shim.security.sasl.scram import Credentials
from kafka_shim.security.sasl.tokens import (
    ALLOWED_URLS,
    LARGEST_DOCUMENT_BYTES,
    LONGEST_HEADER,
    MOST_TRIED_KEYS,
    RETRY_MS,
    SignedTokens,
)
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.security.tls.distinguished_name import MOST_OID_BYTES, java_name
from kafka_shim.security.tls.mapping_rules import MappingRules
from kafka_shim.tests.security import sasl_client as sasl
from kafka_shim.tests.security.test_signed_tokens import options
from kafka_shim.tests.security.test_tls import store_options
from kafka_shim.wire_client import Connection

KEY, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
AUTHENTICATION_FAILED = 58
LISTEN = "SASL_PLAINTEXT://127.0.0.1:0"


# --- messages of a login


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("SCRAM-SHA-256", b"n,,n=" + b"a" * LONGEST_MESSAGE_BYTES + b",r=x"),
        ("SCRAM-SHA-512", b"n,,n=a,r=x" + b",a=b" * LONGEST_MESSAGE_BYTES),
        ("OAUTHBEARER", b"n,,\x01" + b"a=b\x01" * LONGEST_MESSAGE_BYTES + b"\x01"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer " + b"a" * LONGEST_MESSAGE_BYTES + b"\x01\x01"),
    ],
    ids=["name", "extensions", "pairs", "token"],
)
def test_a_login_of_half_a_megabyte_is_not_parsed(mechanism: str, message: bytes, caplog: pytest.LogCaptureFixture):
    """Extensions of half a megabyte held the loop for 57 ms, and a token of that size and many keys for 600."""
    modules = {"SCRAM_SHA_256": sasl.SCRAM_MODULE, "SCRAM_SHA_512": sasl.SCRAM_MODULE, "OAUTHBEARER": sasl.OAUTH_MODULE}
    given = sasl.listener_options("SASL_PLAINTEXT", **{name: f"{module} required;" for name, module in modules.items()})
    given["connection.failed.authentication.delay.ms"] = "0"
    with Broker(listen=LISTEN, **given) as broker, Connection(broker.bootstrap_servers) as client:
        assert sasl.handshake(client, mechanism).error_code == 0
        assert sasl.send_token(client, message).error_code == AUTHENTICATION_FAILED
    assert f"has {len(message)} bytes, at most {LONGEST_MESSAGE_BYTES} are read" in caplog.text


def test_a_nested_token_is_refused_as_one_that_is_none(caplog: pytest.LogCaptureFixture):
    nested = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 20_000).decode()
    given = sasl.listener_options("SASL_PLAINTEXT", OAUTHBEARER=f"{sasl.OAUTH_MODULE} required;")
    with Broker(listen=LISTEN, **given) as broker, Connection(broker.bootstrap_servers) as client:
        assert bytes(sasl.log_in_oauth(client, f"{nested}.{nested}.").auth_bytes) == b'{"status":"invalid_token"}'
    assert "Traceback" not in caplog.text


# --- keys of tokens


def jwks(path: Path, *keys: dict[str, object]) -> str:
    path.write_text(json.dumps({"keys": keys}))
    return path.as_uri()


def public(key: rsa.RSAPrivateKey, kid: str) -> dict[str, object]:
    return {**json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(key.public_key())), "kid": kid}


def signed_by(url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[SignedTokens, VirtualClock, dict[str, object]]:
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    clock = VirtualClock()
    now = clock.now_ms() // 1000
    claims = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"}
    return SignedTokens(ListenerOptions(BrokerConfig.parse(options(url)), "SASL_PLAINTEXT"), clock, []), clock, claims


def test_a_token_that_names_no_key_is_tried_with_a_few_and_one_that_does_with_its_own(tmp_path: Path, monkeypatch):
    """Each try costs a check of the signature: a document with thousands of keys made one of a guess."""
    rows = [public(OTHER, str(number)) for number in range(2000)]
    tokens, _, claims = signed_by(jwks(tmp_path / "keys.json", *rows, public(KEY, "mine")), monkeypatch)
    tried = []
    decode = jwt.PyJWS.decode

    def counted(self, token, key, **options):
        tried.append(key)
        return decode(self, token, key, **options)

    monkeypatch.setattr(jwt.PyJWS, "decode", counted)
    with pytest.raises(InvalidTokenError, match=rf"the first {MOST_TRIED_KEYS} of 2001 keys .* \(kid\)"):
        asyncio.run(tokens.validate(jwt.encode(claims, KEY, "RS256")))
    assert len(tried) == MOST_TRIED_KEYS
    tried.clear()
    assert asyncio.run(tokens.validate(jwt.encode(claims, KEY, "RS256", headers={"kid": "mine"})))[0] == "carol"
    assert len(tried) == 1


def test_a_token_with_a_long_header_is_not_parsed(tmp_path: Path, monkeypatch):
    """It comes from strangers, and one of 5,000 objects held the loop for 11 ms."""
    tokens, _, claims = signed_by(jwks(tmp_path / "keys.json", public(KEY, "mine")), monkeypatch)
    for count, words in ((10, None), (5000, rf"at most {LONGEST_HEADER}")):
        token = jwt.encode(claims, KEY, "RS256", headers={"kid": "mine", "x": [{}] * count})
        if words is None:
            assert asyncio.run(tokens.validate(token))[0] == "carol"
        else:
            with pytest.raises(InvalidTokenError, match=words):
                asyncio.run(tokens.validate(token))


def test_others_have_their_turn_between_two_keys(tmp_path: Path, monkeypatch):
    rows = [public(OTHER, str(number)) for number in range(10)]
    tokens, _, claims = signed_by(jwks(tmp_path / "keys.json", *rows), monkeypatch)

    async def turns() -> int:
        found = 0
        trying = asyncio.ensure_future(tokens.validate(jwt.encode(claims, KEY, "RS256")))
        while not trying.done():
            found += 1
            await asyncio.sleep(0)
        with pytest.raises(InvalidTokenError):
            await trying
        return found

    assert asyncio.run(turns()) >= len(rows)


def test_an_algorithm_of_another_kind_of_key_proves_nothing(tmp_path: Path, monkeypatch):
    """`none`, and HMAC with the public key as its secret."""
    tokens, _, claims = signed_by(jwks(tmp_path / "keys.json", public(KEY, "mine")), monkeypatch)
    encoded = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).rstrip(b"=")

    for algorithm in ("none", "None", "HS256", "HS512", "RS", "", "ES256"):
        signed = b".".join((part({"alg": algorithm, "kid": "mine"}), part(claims)))
        for proof in (b"", hmac.digest(encoded, signed, "sha256"), hmac.digest(encoded, signed, "sha512")):
            with pytest.raises(InvalidTokenError, match=r"no key of|no JSON Web Token"):
                asyncio.run(tokens.validate(b".".join((signed, part(proof))).decode()))


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/keys"
        server.shutdown()


class Documents(BaseHTTPRequestHandler):
    """Serves one document after the other, `b""` byte by byte without an end."""

    left: ClassVar[list[bytes]] = []
    gone = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        document = self.left.pop(0)
        self.wfile.write(document)
        while not document:
            try:
                self.wfile.write(b" ")
            except OSError:
                return
            if self.gone.wait(0.005):
                return

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the test's output clean."""


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "it is not whole after"),
        (b" " * (LARGEST_DOCUMENT_BYTES + 1), f"it has more than {LARGEST_DOCUMENT_BYTES} bytes"),
        (b"[" * 100_000, "it is nested too deep"),
        (b'{"keys": 7}', "it is no JWKS document with keys"),
    ],
    ids=["slow", "large", "nested", "none"],
)
def test_a_bad_document_leaves_the_keys_as_they_were(
    tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture, document: bytes, reason: str
):
    jwks(tmp_path / "keys.json", public(KEY, "mine"))
    Documents.left = [(tmp_path / "keys.json").read_bytes(), document]
    Documents.gone.clear()
    with served(Documents) as url:
        tokens, clock, claims = signed_by(url, monkeypatch)
        known = jwt.encode(claims, KEY, "RS256", headers={"kid": "mine"})
        unknown = jwt.encode(claims, OTHER, "RS256", headers={"kid": "other"})

        async def log_in() -> None:
            assert (await tokens.validate(known))[0] == "carol"
            clock.advance(RETRY_MS)
            if not document:
                monkeypatch.setattr(key_endpoint, "LONGEST_FETCH_SECONDS", 0.2)
            with pytest.raises(InvalidTokenError):
                await tokens.validate(unknown)
            assert (await tokens.validate(known))[0] == "carol"

        asyncio.run(log_in())
        Documents.gone.set()
    assert reason in caplog.text
    assert "the keys stay as they were" in caplog.text


def test_a_bad_file_is_read_once(tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "keys.json"
    tokens, _, claims = signed_by(jwks(path, public(KEY, "mine")), monkeypatch)
    path.write_text(" " * (LARGEST_DOCUMENT_BYTES + 1))
    known = jwt.encode(claims, KEY, "RS256", headers={"kid": "mine"})
    for _ in range(3):
        assert asyncio.run(tokens.validate(known))[0] == "carol"
    assert caplog.text.count("the keys stay as they were") == 1


# --- rules that make names


def test_a_name_makes_no_rule_backtrack():
    """With Python's `re` the first of these would take longer than the universe is old."""
    rules = MappingRules("RULE:^CN=(([a-z]+)+)$/$1/,DEFAULT")
    assert rules.warnings == []
    assert rules.name_of(f"CN={'a' * 100}!") == f"CN={'a' * 100}!"
    assert rules.name_of("CN=abc") == "abc"
    with pytest.raises(ConfigError, match="is tried on no rule"):
        rules.name_of("CN=" + "a" * MOST_CHARACTERS)
    assert MappingRules("DEFAULT").name_of("CN=" + "a" * MOST_CHARACTERS)


def test_a_principal_makes_no_rule_backtrack():
    rules = KerberosRules("R", ["RULE:[1:$1](" + "[a-z]*" * 40 + ")s/" + "[a-z]*" * 40 + "!//"])
    assert rules.warnings == []
    with pytest.raises(NoMatchingRuleError, match="No rules apply"):
        rules.name_of("a" * 2000 + "!@R")
    with pytest.raises(NoMatchingRuleError, match="is tried on no rule"):
        rules.name_of("a" * MOST_CHARACTERS + "@R")


def test_an_expression_that_may_backtrack_is_warned_of():
    rules = MappingRules(r"RULE:^CN=(?!x)(.*)$/$1/L")
    (warning,) = rules.warnings
    assert "lookaround, a backreference" in warning
    assert rules.name_of("CN=Duke") == "duke"
    config = BrokerConfig.parse(
        {**store_options(CertificateAuthority()), "ssl.principal.mapping.rules": "RULE:(?!x).*//"}
    )
    config.strict_security = True
    with pytest.raises(ConfigError, match=r"--strict-security: listener SSL.*lookaround"):
        ListenerSecurity("SSL", ListenerOptions(config, "SSL"), Credentials(lambda user, code: None), VirtualClock())


# --- names in certificates


def test_a_certificate_with_thousands_of_parts_in_its_name_lets_nobody_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Whoever has issued it is trusted, but 4,000 parts held the loop for 31 ms."""
    authority = CertificateAuthority()
    with Broker(listen="SSL://127.0.0.1:0", **store_options(authority), **{"ssl.client.auth": "required"}) as broker:
        for count, is_served in ((MOST_PARTS, True), (MOST_PARTS + 1, False)):
            parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"u{at}") for at in range(count)]
            key = ec.generate_private_key(ec.SECP256R1())
            path = tmp_path / f"{count}.pem"
            path.write_bytes(
                key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                + authority._signed(x509.Name(parts), key).public_bytes(Encoding.PEM)
            )
            context = ssl.create_default_context(cadata=authority.certificate)
            context.load_cert_chain(path)
            host, _, port = broker.bootstrap_servers.rpartition(":")
            with (
                socket.create_connection((host, int(port)), timeout=60) as bare,
                context.wrap_socket(bare, server_hostname="localhost") as client,
            ):
                client.sendall(encode_request_frame(ApiVersionsRequest(), 0, 1, "c"))
                assert bool(client.recv(100)) == is_served


def test_a_long_object_identifier_in_a_name_is_not_read():
    """OpenSSL takes one of 60,000 bytes, which held the loop for 500 ms: its numbers were made bit by bit."""
    for size_bytes, is_read in ((MOST_OID_BYTES, True), (MOST_OID_BYTES + 1, False), (60_000, False)):
        oid = bytes(size_bytes - 1).replace(b"\0", b"\xff") + b"\1"
        name = b"\x0c\1x"
        for tag, content in ((0x06, oid), (0x30, None), (0x31, None), (0x30, None)):
            inner = name if content is None else content
            size = len(inner).to_bytes(4)
            whole = bytes([tag, 0x84]) + size + inner
            name = whole + name if content is not None else whole
        if is_read:
            assert java_name(name).endswith("=#0c0178")
        else:
            with pytest.raises(ValueError, match=f"at most {MOST_OID_BYTES} are read"):
                java_name(name)


def test_the_longest_message_is_still_read() -> None:
    check_length(bytes(LONGEST_MESSAGE_BYTES))
    with pytest.raises(SaslError, match=f"has {LONGEST_MESSAGE_BYTES + 1} bytes"):
        check_length(bytes(LONGEST_MESSAGE_BYTES + 1))
