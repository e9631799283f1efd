"""OAUTHBEARER with signed tokens: keys from a file, and each claim that may refuse a token."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, ConfigError, ListenerOptions
from kafka_shim.embedded import Broker
from kafka_shim.security.sasl.mechanism import InvalidTokenError
from kafka_shim.security.sasl.oauthbearer import VALIDATOR
from kafka_shim.security.sasl.tokens import ALLOWED_URLS, MOST_MISSING, RETRY_MS, SignedTokens
from kafka_shim.tests.security.sasl_client import OAUTH_MODULE, listener_options, log_in_oauth
from kafka_shim.wire_client import Connection

KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


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


@pytest.mark.option(
    "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.url"
)
def test_a_token_is_accepted_by_its_signature_and_claims(tmp_path: Path, monkeypatch, caplog):
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    clock = VirtualClock()
    now = clock.now_ms() // 1000
    good = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": ["kafka", "x"]}

    def answer(key: ec.EllipticCurvePrivateKey, kid: str = "0", **claims: object) -> tuple[int, bytes, int]:
        given = {name: value for name, value in (good | claims).items() if value is not None}
        token = jwt.encode(given, key, "ES256", headers={"kid": kid})
        with Connection(broker.bootstrap_servers) as client:
            found = log_in_oauth(client, token)
        return found.error_code, bytes(found.auth_bytes), found.session_lifetime_ms

    refused = (0, b'{"status":"invalid_token"}', 0)
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", clock=clock, **options(url)) as broker:
        code, said, lifetime_ms = answer(KEY)
        assert (code, said) == (0, b"")
        assert lifetime_ms == 1000 * (now + 600) - clock.now_ms()
        assert answer(OTHER) == refused
        assert answer(KEY, kid="9") == refused
        wrong = (
            {"exp": now - 60},
            {"exp": None},
            {"iat": None},
            {"iss": "x"},
            {"aud": "x"},
            {"aud": None},
            {"sub": None},
            {"exp": now + 60, "iat": now + 61},
            {"exp": now - 10, "nbf": now - 9},
        )
        for claims in (*wrong, {"nbf": now + 900}):
            assert answer(KEY, **claims) == refused, claims
        jwks(tmp_path / "keys.json", KEY, OTHER)
        assert answer(OTHER, kid="1")[:2] == (0, b"")


@pytest.mark.parametrize(
    ("audience", "accepted_with", "accepted_without"),
    [
        (None, False, True),
        ("kafka", True, False),
        (["x", "kafka"], True, False),
        (7, False, False),
        ([7], False, False),
    ],
)
def test_an_audience_that_is_null_is_none_and_one_that_is_no_text_is_refused(
    tmp_path: Path, monkeypatch, audience: object, accepted_with: bool, accepted_without: bool
):
    """With `sasl.oauthbearer.expected.audience` and without it, where Kafka takes no token that names an audience."""
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    clock = VirtualClock()
    now = clock.now_ms() // 1000
    claims = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": audience}
    token = jwt.PyJWS().encode(json.dumps(claims).encode(), KEY, "ES256", headers={"kid": "0"})
    for is_expected, accepted in ((True, accepted_with), (False, accepted_without)):
        given = options(url)
        if not is_expected:
            del given["sasl.oauthbearer.expected.audience"]
        settings = ListenerOptions(BrokerConfig.parse(given), "SASL_PLAINTEXT")
        tokens = SignedTokens(settings, clock, [])
        if accepted:
            assert asyncio.run(tokens.validate(token)) == ("carol", 1000 * (now + 600))
        else:
            with pytest.raises(InvalidTokenError, match="audience"):
                asyncio.run(tokens.validate(token))


def judged(tmp_path: Path, monkeypatch, claims: dict[str, object], **options_of_tokens: str) -> str:
    """The subject of a token with these claims besides those of time, or why it is refused."""
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    given = {f"sasl.oauthbearer.{name.replace('_', '.')}": text for name, text in options_of_tokens.items()}
    clock = VirtualClock()
    now = clock.now_ms() // 1000
    settings = ListenerOptions(BrokerConfig.parse({"sasl.oauthbearer.jwks.endpoint.url": url} | given), "SASL_SSL")
    token = jwt.encode({"iat": now, "exp": now + 600} | claims, KEY, "ES256", headers={"kid": "0"})
    try:
        return asyncio.run(SignedTokens(settings, clock, []).validate(token))[0]
    except InvalidTokenError as refused:
        return str(refused)


@pytest.mark.option("sasl.oauthbearer.sub.claim.name")
def test_another_claim_names_the_principal(tmp_path: Path, monkeypatch):
    assert judged(tmp_path, monkeypatch, {"sub": "x", "name": "carol"}, sub_claim_name="name") == "carol"


@pytest.mark.option("sasl.oauthbearer.clock.skew.seconds")
def test_clocks_may_differ_by_the_skew(tmp_path: Path, monkeypatch):
    now = VirtualClock().now_ms() // 1000
    for skew, is_accepted in (("100", True), ("99", False), ("98", False)):
        found = judged(tmp_path, monkeypatch, {"sub": "c", "iat": now - 200, "exp": now - 99}, clock_skew_seconds=skew)
        assert (found == "c", "has expired" in found) == (is_accepted, not is_accepted), skew


@pytest.mark.option("sasl.oauthbearer.scope.claim.name")
@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (["a", "b"], ""),
        ("a b", ""),
        ([], ""),
        (None, ""),
        (7, ""),
        ("", "a scope (claim groups) that is empty"),
        (["a", " "], "a scope (claim groups) that is empty"),
        (["a", 7], "a scope (claim groups) that is not a string"),
        (["a", " a "], "the scope 'a' (claim groups) twice"),
    ],
)
def test_scopes_are_texts_and_none_comes_twice(tmp_path: Path, monkeypatch, scope: object, words: str):
    found = judged(tmp_path, monkeypatch, {"sub": "c", "groups": scope}, scope_claim_name="groups")
    assert words in found if words else found == "c"


def test_a_url_must_be_allowed(tmp_path: Path, monkeypatch):
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    with pytest.raises(ConfigError, match="The URL cannot be accessed due to restrictions"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **options(url)).start()


class Keys(BaseHTTPRequestHandler):
    """Serves a JWKS document by HTTP."""

    document = b""
    requests = 0

    def do_GET(self) -> None:
        type(self).requests += 1
        self.send_response(200 if self.document else 503)
        self.end_headers()
        self.wfile.write(self.document)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the test's output clean."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yields the URL of the document that the handler has. Tokens may ask for it."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/keys"
        monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
        yield url
        server.shutdown()


def test_keys_of_a_url_are_read_once_and_again_for_a_key_that_is_new(tmp_path: Path, monkeypatch):
    with served(Keys, monkeypatch) as url:
        clock = VirtualClock()
        config = BrokerConfig.parse(options(url))
        tokens = SignedTokens(ListenerOptions(config, "SASL_PLAINTEXT"), clock, [])
        now = clock.now_ms() // 1000
        good = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"}

        def name_of(key: ec.EllipticCurvePrivateKey, kid: str) -> str:
            return asyncio.run(tokens.validate(jwt.encode(good, key, "ES256", headers={"kid": kid})))[0]

        with pytest.raises(InvalidTokenError, match="no key of"):  # the server has no document yet
            name_of(KEY, "0")
        clock.advance(RETRY_MS)
        jwks(tmp_path / "keys.json", KEY)
        Keys.document = (tmp_path / "keys.json").read_bytes()
        assert name_of(KEY, "0") == "carol"
        asked = Keys.requests
        assert name_of(KEY, "0") == "carol"
        assert Keys.requests == asked
        jwks(tmp_path / "keys.json", KEY, OTHER)
        Keys.document = (tmp_path / "keys.json").read_bytes()
        clock.advance(RETRY_MS)
        assert name_of(OTHER, "1") == "carol"
        assert Keys.requests == asked + 1


def test_each_new_key_id_has_the_keys_read_at_once_and_again_after_a_while(tmp_path: Path, monkeypatch):
    """A key that was published within 10 s of another reading let nobody in until they were over. Kafka has the
    document read at once (RefreshingHttpsJwks.maybeExpediteRefresh)."""
    jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setattr(Keys, "document", (tmp_path / "keys.json").read_bytes())
    with served(Keys, monkeypatch) as url:
        clock = VirtualClock()
        tokens = SignedTokens(ListenerOptions(BrokerConfig.parse(options(url)), "SASL_PLAINTEXT"), clock, [])
        now = clock.now_ms() // 1000
        good = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"}

        async def name_of(key: ec.EllipticCurvePrivateKey, kid: str) -> str:
            return (await tokens.validate(jwt.encode(good, key, "ES256", headers={"kid": kid})))[0]

        async def log_in() -> None:
            asked = Keys.requests
            assert await name_of(KEY, "0") == "carol"
            assert Keys.requests == asked + 1
            for kid, count in (("1", 2), ("1", 2), ("2", 3), ("x" * 1001, 3)):
                with pytest.raises(InvalidTokenError, match="no key of"):
                    await name_of(OTHER, kid)
                assert Keys.requests == asked + count
            jwks(tmp_path / "keys.json", KEY, *[OTHER] * 20)
            Keys.document = (tmp_path / "keys.json").read_bytes()
            earlier = asyncio.ensure_future(name_of(KEY, "none"))  # its reading may have begun before
            await asyncio.sleep(0)
            later = asyncio.ensure_future(name_of(OTHER, "9"))
            assert await later == "carol"
            with pytest.raises(InvalidTokenError):
                await earlier
            assert await name_of(OTHER, "1") == "carol"
            assert len(tokens._keys._missing) <= MOST_MISSING

        asyncio.run(log_in())


@pytest.mark.option("sasl.oauthbearer.jwks.endpoint.refresh.ms")
def test_a_key_that_was_withdrawn_lets_nobody_in_once_the_keys_are_due(tmp_path: Path, monkeypatch):
    jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setattr(Keys, "document", (tmp_path / "keys.json").read_bytes())
    with served(Keys, monkeypatch) as url:
        clock = VirtualClock()
        given = options(url) | {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "60000"}
        tokens = SignedTokens(ListenerOptions(BrokerConfig.parse(given), "SASL_PLAINTEXT"), clock, [])
        now = clock.now_ms() // 1000
        claims = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"}
        withdrawn, other = [jwt.encode(claims, KEY, "ES256", headers={"kid": kid}) for kid in ("0", "1")]

        async def log_in() -> None:
            assert (await tokens.validate(withdrawn))[0] == "carol"
            Keys.document = Keys.document.replace(b'"kid": "0"', b'"kid": "1"')
            clock.advance(59_000)
            assert (await tokens.validate(withdrawn))[0] == "carol"
            clock.advance(1000)
            with pytest.raises(InvalidTokenError, match="no key of"):
                await tokens.validate(withdrawn)
            assert (await tokens.validate(other))[0] == "carol"

        asyncio.run(log_in())


class Hangs(BaseHTTPRequestHandler):
    """Serves a JWKS document once. Then it answers nothing until the test lets it, and then no HTTP."""

    document = b""
    may_answer = threading.Event()

    def do_GET(self) -> None:
        document, type(self).document = self.document, b""
        if document:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(document)
        else:
            assert self.may_answer.wait(30)
            self.wfile.write(b"nonsense\r\n")

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the test's output clean."""


@pytest.mark.option("sasl.oauthbearer.jwks.endpoint.refresh.ms")
def test_a_login_with_a_known_key_does_not_wait_for_a_url_that_does_not_answer(tmp_path: Path, monkeypatch, caplog):
    """It waits a moment once the keys are too old, and after a reading that failed not at all."""
    monkeypatch.setattr("kafka_shim.security.sasl.tokens.REFRESH_WAIT_SECONDS", 0.01)
    jwks(tmp_path / "keys.json", KEY)
    Hangs.document = (tmp_path / "keys.json").read_bytes()
    with served(Hangs, monkeypatch) as url:
        clock = VirtualClock()
        given = options(url) | {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "60000"}
        tokens = SignedTokens(ListenerOptions(BrokerConfig.parse(given), "SASL_PLAINTEXT"), clock, [])
        now = clock.now_ms() // 1000
        claims = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"}
        token = jwt.encode(claims, KEY, "ES256", headers={"kid": "0"})

        async def log_in() -> None:
            assert (await tokens.validate(token))[0] == "carol"
            clock.advance(61_000)
            assert (await tokens.validate(token))[0] == "carol"
            reading = tokens._keys._reading
            assert reading is not None
            Hangs.may_answer.set()
            await reading
            assert "the keys stay as they were" in caplog.text
            assert (await tokens.validate(token))[0] == "carol"
            assert tokens._keys._reading is None
            clock.advance(RETRY_MS)
            assert (await tokens.validate(token))[0] == "carol"
            reading = tokens._keys._reading
            assert reading is not None
            await reading

        asyncio.run(log_in())


def test_documents_without_keys_are_refused(tmp_path: Path, monkeypatch):
    path = tmp_path / "keys.json"
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={path.as_uri()},ftp://x/keys")
    for text in ("nothing", "[]", '{"keys": []}'):
        path.write_text(text)
        with pytest.raises(ConfigError, match="keys"):
            SignedTokens(ListenerOptions(BrokerConfig.parse(options(path.as_uri())), "L"), VirtualClock(), [])
    with pytest.raises(ConfigError, match="is not a file:, http: or https: URL"):
        SignedTokens(ListenerOptions(BrokerConfig.parse(options("ftp://x/keys")), "L"), VirtualClock(), [])


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"sub": "\u2003x "}, "\u2003x"),
        ({"sub": "\u00a0"}, "\u00a0"),
        ({"sub": "\ud800x"}, "?x"),
        ({"sub": "a\nb"}, "a\nb"),
        ({"nbf": 0.5, "iat": 1.5, "jti": "x"}, "carol"),
        ({"nbf": "0"}, None),
        ({"nbf": True}, None),
        ({"iat": True}, None),
        ({"iat": -1}, None),
        ({"iat": float("nan")}, None),
        ({"exp": float("inf")}, None),
        ({"jti": 5}, None),
        ({"iss": ["https://issuer"]}, None),
        ({"other": [float("nan")]}, None),
    ],
)
def test_claims_are_read_as_kafka_reads_them(tmp_path: Path, monkeypatch, claims: dict[str, object], name: str | None):
    """Each was judged by Kafka's BrokerJwtValidator; None: it refuses the token."""
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    clock = VirtualClock()
    del (given := options(url))["sasl.oauthbearer.expected.issuer"]
    tokens = SignedTokens(ListenerOptions(BrokerConfig.parse(given), "SASL_PLAINTEXT"), clock, [])
    now = clock.now_ms() // 1000
    text = json.dumps({"sub": "carol", "iat": now, "exp": now + 600.9, "aud": "kafka"} | claims)
    token = jwt.PyJWS().encode(text.encode(), KEY, "ES256", headers={"kid": "0"})
    if name is not None:
        assert asyncio.run(tokens.validate(token)) == (name, 1000 * (now + 600))
    else:
        with pytest.raises(InvalidTokenError, match=r"a claim|no time|no expiration|the claims"):
            asyncio.run(tokens.validate(token))


def test_a_member_that_comes_twice_refuses_a_token(tmp_path: Path, monkeypatch):
    url = jwks(tmp_path / "keys.json", KEY)
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={url}")
    clock = VirtualClock()
    tokens = SignedTokens(ListenerOptions(BrokerConfig.parse(options(url)), "SASL_PLAINTEXT"), clock, [])
    now = clock.now_ms() // 1000
    good = json.dumps({"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"})
    for head, claims, words in (
        ('{"alg":"ES256","kid":"0"}', good, None),
        ('{"alg":"ES256","kid":"1","kid":"0"}', good, "not a JSON Web Token"),
        ('{"alg":"ES256","kid":"0"}', good.replace("{", '{"sub": "alice", '), "have a member twice"),
        ('{"alg":"ES256","kid":"0"}', '["carol"]', "no object of JSON"),
    ):
        parts = [urlsafe_b64encode(part.encode()).rstrip(b"=") for part in (head, claims)]
        signature = jwt.get_algorithm_by_name("ES256").sign(b".".join(parts), KEY)
        token = b".".join([*parts, urlsafe_b64encode(signature).rstrip(b"=")]).decode()
        if words is None:
            assert asyncio.run(tokens.validate(token))[0] == "carol"
        else:
            with pytest.raises(InvalidTokenError, match=words):
                asyncio.run(tokens.validate(token))


@pytest.mark.parametrize("algorithm", ["RS256", "HS256"])
@pytest.mark.filterwarnings("ignore:The .* key is .* long")
def test_a_key_that_is_short_or_not_for_signatures_has_signed_nothing(tmp_path: Path, monkeypatch, algorithm: str):
    library = jwt.get_algorithm_by_name(algorithm)
    if algorithm == "RS256":
        keys = [rsa.generate_private_key(65537, size) for size in (2048, 1024)]
        long, short = (json.loads(library.to_jwk(key.public_key())) for key in keys)
    else:
        keys = [b"k" * 32, b"k" * 31]
        long, short = (json.loads(library.to_jwk(key)) for key in keys)
    long, short = ({name: row[name] for name in row if name not in ("key_ops", "alg")} for row in (long, short))
    rows = [
        (keys[0], long, True),
        (keys[0], long | {"use": "sig", "key_ops": ["verify"]}, True),
        (keys[0], long | {"use": None, "key_ops": None, "alg": None}, True),
        (keys[0], long | {"use": "enc"}, False),
        (keys[0], long | {"key_ops": ["encrypt"]}, False),
        (keys[1], short, False),
    ]
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [row | {"kid": str(at)} for at, (_, row, _) in enumerate(rows)]}))
    monkeypatch.setenv("KAFKA_OPTS", f"-D{ALLOWED_URLS}={path.as_uri()}")
    clock = VirtualClock()
    given = BrokerConfig.parse(options(path.as_uri()))
    tokens = SignedTokens(ListenerOptions(given, "SASL_PLAINTEXT"), clock, [])
    now = clock.now_ms() // 1000
    claims = {"sub": "carol", "iat": now, "exp": now + 600, "iss": "https://issuer", "aud": "kafka"}
    for at, (key, _, is_good) in enumerate(rows):
        token = jwt.encode(claims, key, algorithm, headers={"kid": str(at)})
        if is_good:
            assert asyncio.run(tokens.validate(token))[0] == "carol"
        else:
            with pytest.raises(InvalidTokenError, match="too short, or not for signatures"):
                asyncio.run(tokens.validate(token))
