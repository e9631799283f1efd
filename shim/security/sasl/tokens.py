"""Signed JSON Web Tokens, checked with the keys of a JWKS document (Kafka: BrokerJwtValidator, RefreshingHttpsJwks).

PyJWT checks signatures; claims are checked here, by the broker's clock. A document from a URL is read by a thread,
at the first token, at the first one after `sasl.oauthbearer.jwks.endpoint.refresh.ms`, which waits for it a short
while, and for a key that it does not have. A document in a file is read again when the file changes.
"""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import urlsafe_b64decode
from http.client import HTTPException
from pathlib import Path
from types import NoneType
from urllib.parse import unquote, urlsplit

from kafka_shim.config import ConfigError
from kafka_shim.security.printable import MAX_NAME
from kafka_shim.security.sasl.jaas import java_property
from kafka_shim.security.sasl.key_endpoint import LARGEST_DOCUMENT_BYTES, KeyEndpoint
from kafka_shim.security.sasl.mechanism import InvalidTokenError, sendable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import ListenerOptions

logger = logging.getLogger("kafka_shim.security")

URL = "sasl.oauthbearer.jwks.endpoint.url"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
# How long tokens with a key that is known wait for the document that is due: the key may have been withdrawn.
REFRESH_WAIT_SECONDS = 2.0
# A key id that is not in the document makes it be read again at once, and later ones not more often than this, unless
# they are new, too (RefreshingHttpsJwks.maybeExpediteRefresh).
RETRY_MS = 10_000
# How long an id that was not found is no new one, how many of them are known, and their greatest length.
MISSING_MS, MOST_MISSING, LONGEST_MISSING = 60_000, 16, 1000
# Keys that a token is tried with if it does not say by which it is signed: a document may have thousands.
MOST_TRIED_KEYS = 32
# type of a key -> the beginning of the algorithms that it may sign with
_ALGORITHMS = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("EdDSA",), "oct": ("HS",)}
# The fewest bits of a key: of RSA, and of HMAC by the size of the digest (RFC 7518).
LEAST_RSA_BITS = 2048
_LEAST_BITS = {"HS256": 256, "HS384": 384, "HS512": 512}
# The longest part of a token that says by which key it is signed. Strangers send it, and of its objects, which may be
# thousands, each takes 2 us.
LONGEST_HEADER = 1 << 14
# Times in claims are smaller.
LATEST_S = 10**12
# What Java's String.trim takes from both ends of a text.
_SPACES = "".join(map(chr, range(0x21)))


class SignedTokens:
    """The tokens of one issuer. Event-loop thread only."""

    def __init__(
        self, options: ListenerOptions, clock: Clock, warnings: list[str], login: Mapping[str, str] | None = None
    ) -> None:
        """`login`: the options of the login module. Raises ConfigError."""
        url: str | None = options.get(URL, "oauthbearer")
        if not url:
            raise ConfigError(f"{URL} must say where the keys are that sign tokens")
        allowed = (java_property(ALLOWED_URLS) or "").split(",")
        if url not in [one.strip() for one in allowed]:
            raise ConfigError(
                f"Invalid value {url} for configuration {URL}: The URL cannot be accessed due to restrictions. Update "
                f"the system property '{ALLOWED_URLS}' to allow the URL to be accessed. (-D{ALLOWED_URLS}={url} in "
                "KAFKA_OPTS)"
            )
        self._clock = clock
        is_file = urlsplit(url).scheme == "file"
        self._keys = _FileKeys(url) if is_file else _UrlKeys(url, options, clock, login or {})
        self._audiences = {one for one in options.get("sasl.oauthbearer.expected.audience", "oauthbearer") if one}
        self._issuer: str | None = options.get("sasl.oauthbearer.expected.issuer", "oauthbearer") or None
        self._skew_ms: int = 1000 * options.get("sasl.oauthbearer.clock.skew.seconds", "oauthbearer")
        self._scope_claim: str = options.get("sasl.oauthbearer.scope.claim.name", "oauthbearer")
        self._subject_claim: str = options.get("sasl.oauthbearer.sub.claim.name", "oauthbearer")
        for missing, name in ((not self._audiences, "audience"), (self._issuer is None, "issuer")):
            if missing:
                warnings.append(
                    f"OAUTHBEARER does not check the {name} of tokens: set sasl.oauthbearer.expected.{name}"
                )

    async def validate(self, token: str) -> tuple[str, int]:
        import jwt

        head = token.partition(".")[0]
        if len(head) > LONGEST_HEADER:
            raise InvalidTokenError(f"the header of the token has {len(head)} characters, at most {LONGEST_HEADER}")
        try:
            jwt.get_unverified_header(token)
            header = _object(jwt.utils.base64url_decode(head))
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise InvalidTokenError("the token is not a JSON Web Token") from None
        algorithm, key_id = str(header.get("alg")), header.get("kid")
        claims = None
        fit = [key for key in await self._keys.find(key_id) if key.fits(algorithm)]
        for key in fit[:MOST_TRIED_KEYS]:
            try:
                signed = jwt.PyJWS().decode(token, key.of_library(algorithm), algorithms=[algorithm])
            except (jwt.PyJWTError, ValueError, RecursionError):
                await asyncio.sleep(0)  # others have their turn before the next key
            else:
                claims = _claims(signed)
                break
        if claims is None and len(fit) > MOST_TRIED_KEYS:
            raise InvalidTokenError(
                f"the first {MOST_TRIED_KEYS} of {len(fit)} keys of {self._keys.source} have not signed the token, "
                "which does not say by which one it is signed (kid)"
            )
        if claims is None:
            raise InvalidTokenError(
                f"no key of {self._keys.source} has signed the token (alg {algorithm[:MAX_NAME]}, kid "
                f"{str(key_id)[:MAX_NAME]}): it is of another issuer, or its key is not published, too short, or not "
                "for signatures"
            )
        return self._checked(claims)

    def _checked(self, claims: Mapping[str, Any]) -> tuple[str, int]:
        subject = claims.get(self._subject_claim)
        if not isinstance(subject, str) or not subject.strip(_SPACES):
            raise InvalidTokenError(f"the token has no principal name (claim {self._subject_claim})")
        who = f"the token of {subject[:MAX_NAME]!r}"
        for name in ("sub", "iss", "jti"):
            if not isinstance(claims.get(name), (str, NoneType)):
                raise InvalidTokenError(f"{who} has a claim {name} that is not a text")
        now_ms = self._clock.now_ms()
        expires, issued, not_before = (_seconds(claims, name, who) for name in ("exp", "iat", "nbf"))
        if expires is None or expires < 0:
            raise InvalidTokenError(f"{who} has no expiration time (exp)")
        if issued is None or issued < 0:
            raise InvalidTokenError(f"{who} has no time of issue (iat)")
        if now_ms - self._skew_ms >= 1000 * expires:
            raise InvalidTokenError(f"{who} has expired: the client needs a new one")
        for began, claim in ((issued, "iat"), (not_before, "nbf")):
            if began is not None and expires < began:
                raise InvalidTokenError(f"{who} expires (exp) before it begins ({claim})")
        if not_before is not None and now_ms + self._skew_ms < 1000 * not_before:
            raise InvalidTokenError(f"{who} is not valid yet (nbf): compare the clocks")
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise InvalidTokenError(
                f"{who} is of issuer {str(claims.get('iss'))[:MAX_NAME]!r}, expected is {self._issuer!r}"
            )
        named = _audiences(claims.get("aud"), who)
        if (self._audiences or claims.get("aud") is not None) and not self._audiences & named:
            raise InvalidTokenError(
                f"{who} is for the audience {[one[:MAX_NAME] for one in sorted(named)]}, "
                f"sasl.oauthbearer.expected.audience has {sorted(self._audiences)}"
            )
        _check_scopes(claims.get(self._scope_claim), self._scope_claim, who)
        return sendable(subject.strip(_SPACES)), 1000 * expires


def _object(text: bytes) -> dict[str, Any]:
    """Return an object of JSON (RFC 8259), as jose4j reads it: one that names a member twice could mean two things.
    Raises ValueError."""
    found = json.loads(text.decode(errors="replace"), object_pairs_hook=_once, parse_constant=_refused, strict=False)
    if isinstance(found, dict):
        return found
    raise ValueError("not an object")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member comes twice")
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _claims(signed: bytes) -> dict[str, Any]:
    try:
        return _object(signed)
    except (ValueError, RecursionError):
        raise InvalidTokenError("the claims of the token are no object of JSON, or have a member twice") from None


def _seconds(claims: Mapping[str, Any], name: str, who: str) -> int | None:
    """Return a time in whole seconds, as Kafka counts, or None if there is none. Raises InvalidTokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -LATEST_S < value < LATEST_S:
        raise InvalidTokenError(f"{who} has a claim {name} that is not a time in seconds")
    return int(value)


def _check_scopes(claim: Any, name: str, who: str) -> None:
    """Raise InvalidTokenError for a scope that is empty or comes twice. As in Kafka a claim that is neither a text nor
    a list names none (ClaimValidationUtils.validateScopes)."""
    seen = set()
    for scope in [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []:
        if not isinstance(scope, str):
            raise InvalidTokenError(f"{who} has a scope (claim {name}) that is not a string")
        text = scope.strip(_SPACES)
        if not text:
            raise InvalidTokenError(f"{who} has a scope (claim {name}) that is empty")
        if text in seen:
            raise InvalidTokenError(f"{who} has the scope {text[:MAX_NAME]!r} (claim {name}) twice")
        seen.add(text)


def _audiences(claim: Any, who: str) -> set[str]:
    """Return the audiences that a token names. As in Kafka a claim that is null is none. Raises InvalidTokenError."""
    if claim is None:
        return set()
    listed = [claim] if isinstance(claim, str) else claim
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise InvalidTokenError(f"{who} has an audience (aud) that is neither a text nor a list of texts")
    return set(listed)


class _Key:
    """One key of a document."""

    __slots__ = ("_made", "_size_bits", "_texts")

    def __init__(self, texts: dict[str, Any]) -> None:
        self._texts = texts
        self._size_bits = _size_bits(texts)
        # By algorithm, once a token needed it.
        self._made: dict[str, Any] = {}

    @property
    def key_id(self) -> object:
        """The name by which tokens refer to it (`kid`), or None."""
        return self._texts.get("kid")

    def fits(self, algorithm: str) -> bool:
        """Whether tokens may be signed with it by this algorithm: `none` and the algorithms of other types of keys may
        not, as HMAC with the text of a public key. As in Kafka (jose4j) a key must be for signatures, and long enough
        for the algorithm."""
        kind = str(self._texts.get("kty"))
        families = _ALGORITHMS.get(kind)
        named, use, uses = (self._texts.get(name) for name in ("alg", "use", "key_ops"))  # null as if it were not there
        if families is None or not algorithm.startswith(families) or named not in (None, algorithm):
            return False
        if use not in (None, "sig") or (isinstance(uses, list) and "verify" not in uses):
            return False
        return self._size_bits >= (LEAST_RSA_BITS if kind == "RSA" else _LEAST_BITS.get(algorithm, 0))

    def of_library(self, algorithm: str) -> Any:
        """Return the key as PyJWT takes it. Raises jwt.PyJWTError, ValueError."""
        import jwt

        found = self._made.get(algorithm)
        if found is None:
            found = self._made[algorithm] = jwt.PyJWK(dict(self._texts), algorithm).key
        return found


def _size_bits(texts: Mapping[str, Any]) -> int:
    """Return the size of a key of RSA or HMAC, 0 of others."""
    is_rsa = texts.get("kty") == "RSA"
    try:
        content = urlsafe_b64decode(f"{texts.get('n' if is_rsa else 'k', '')}==")
    except ValueError:
        return 0
    return int.from_bytes(content).bit_length() if is_rsa else 8 * len(content)


class _FileKeys:
    def __init__(self, url: str) -> None:
        self.source = unquote(urlsplit(url).path)
        self._changed_ns = -1
        self._keys: list[_Key] = []
        try:
            self._read()
        except (OSError, ValueError) as err:
            raise ConfigError(f"{URL}: cannot use {self.source}: {err}") from None

    def _read(self) -> None:
        changed_ns = Path(self.source).stat().st_mtime_ns
        if changed_ns != self._changed_ns:
            self._changed_ns = changed_ns  # a bad file is read once, not for each login
            with Path(self.source).open("rb") as file:
                self._keys = _keys_of(file.read(LARGEST_DOCUMENT_BYTES + 1))

    async def find(self, key_id: str | None) -> list[_Key]:
        try:
            self._read()
        except (OSError, ValueError) as err:
            logger.warning("%s: cannot use %s any more, the keys stay as they were: %s", URL, self.source, err)
        return _matching(self._keys, key_id)


class _UrlKeys:
    def __init__(self, url: str, options: ListenerOptions, clock: Clock, login: Mapping[str, str]) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ConfigError(f"{URL}: {url} is not a file:, http: or https: URL")
        self.source = url
        self._endpoint = KeyEndpoint(url, login, clock)
        self._clock = clock
        self._refresh_ms: int = options.get("sasl.oauthbearer.jwks.endpoint.refresh.ms", "oauthbearer")
        self._keys: list[_Key] = []
        # The last attempt, and whether it failed.
        self._read_at_ms: float | None = None
        self._has_failed = False
        self._reading: asyncio.Task[None] | None = None
        # Until when, by the event loop's clock, tokens with a known key wait for the reading.
        self._wait_ends_s = 0.0
        # Ids that were not found -> until when they are not new. The last one asked for is the last.
        self._missing: dict[str, float] = {}

    async def find(self, key_id: str | None) -> list[_Key]:
        found = _matching(self._keys, key_id)
        if not found and self._reading is not None:
            await asyncio.shield(self._reading)  # which may have begun before the key was published
            found = _matching(self._keys, key_id)
            if not found and self._reading is not None:  # another one's, which has not
                await asyncio.shield(self._reading)
                return _matching(self._keys, key_id)
        age_ms = None if self._read_at_ms is None else self._clock.monotonic_ms() - self._read_at_ms
        wait_ms = RETRY_MS if self._has_failed or not found else self._refresh_ms
        is_due = age_ms is None or age_ms >= min(wait_ms, self._refresh_ms)
        if not found:
            is_due = self._is_new(key_id) or is_due
        loop = asyncio.get_running_loop()
        if is_due and self._reading is None:
            is_refresh = age_ms is not None and age_ms >= self._refresh_ms
            self._wait_ends_s = loop.time() + REFRESH_WAIT_SECONDS if is_refresh else 0.0
            self._reading = loop.create_task(self._read())
        reading = self._reading
        if reading is None:
            return found
        if not found:
            await asyncio.shield(reading)
        elif loop.time() < self._wait_ends_s:
            # No longer: a document that cannot be read must not hold up every login.
            await asyncio.wait({reading}, timeout=self._wait_ends_s - loop.time())
        return _matching(self._keys, key_id)

    def _is_new(self, key_id: object) -> bool:
        """Whether an id that is not found was not asked for of late. It counts as asked for from now on."""
        if not isinstance(key_id, str) or len(key_id) > LONGEST_MISSING:
            return False
        now_ms = self._clock.monotonic_ms()
        until_ms = self._missing.pop(key_id, now_ms)
        is_new = until_ms <= now_ms
        self._missing[key_id] = now_ms + MISSING_MS if is_new else until_ms
        if len(self._missing) > MOST_MISSING:
            del self._missing[next(iter(self._missing))]
        return is_new

    async def _read(self) -> None:
        self._clock.begin_work()
        self._read_at_ms = self._clock.monotonic_ms()
        try:
            self._keys = await self._endpoint.read(_keys_of)
            self._has_failed = False
            for key in self._keys:
                if isinstance(key.key_id, str):
                    self._missing.pop(key.key_id, None)
        except (OSError, ValueError, HTTPException, RuntimeError) as err:  # RuntimeError: no thread can be started
            self._has_failed = True
            logger.warning("%s: cannot read %s, the keys stay as they were: %s", URL, self.source, err)
        finally:
            self._clock.end_work()
            self._reading = None


def _keys_of(document: bytes | bytearray) -> list[_Key]:
    """Return the keys of a JWKS document. Raises ValueError."""
    if len(document) > LARGEST_DOCUMENT_BYTES:
        raise ValueError(f"it has more than {LARGEST_DOCUMENT_BYTES} bytes")
    try:
        found = json.loads(document)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list) or not keys:
        raise ValueError("it is no JWKS document with keys")
    return [_Key(key) for key in keys if isinstance(key, dict)]


def _matching(keys: list[_Key], key_id: str | None) -> list[_Key]:
    return keys if key_id is None else [key for key in keys if key.key_id == key_id]
