"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802; Kafka: ScramSaslServer, ScramFormatter, ScramMessages).

Credentials are UserScramCredentialRecords of the metadata log: salt, iterations and two keys, never the password. The
primitives are those of the standard library.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

from kafka_shim.security.sasl.mechanism import (
    SASLNAME,
    SaslAuthenticationError,
    SaslError,
    SaslSilentError,
    check_length,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from kafka_shim.randomness import Randomness

    class Credential(Protocol):
        """The fields of a UserScramCredentialRecord."""

        salt: bytes
        stored_key: bytes
        server_key: bytes
        iterations: int


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """What a client that authenticates by a delegation token must prove, and what it then is."""

    credential: Credential
    owner_name: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where credentials are found, by (user or token id, code of the mechanism). `of_token` is None if there are no
    delegation tokens. `are_stored`: the same one is found until it is changed; a callback handler may make another each
    time."""

    of_user: Callable[[str, int], Credential | None]
    of_token: Callable[[str, int], TokenCredential | None] | None = None
    are_stored: bool = True


# name -> (code in requests and records, hash)
MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
NAME_OF = {code: name for name, (code, _) in MECHANISMS.items()}
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384

_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*+(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{SASLNAME}))?,(?P<bare>(?:m={_VALUE},)?n=(?P<name>{SASLNAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(rf"(?P<bare>c={_BASE64},r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})")


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password that AlterUserScramCredentials carries."""
    return hashlib.pbkdf2_hmac(MECHANISMS[mechanism][1], password.encode(), salt, iterations)


def keys_of(mechanism: str, salted: bytes) -> tuple[bytes, bytes]:
    """Return (stored key, server key) of a salted password."""
    digest = MECHANISMS[mechanism][1]
    client_key = hmac.digest(salted, b"Client Key", digest)
    return hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest)


class Scram:
    """One exchange: the client's first message, then its final one."""

    def __init__(self, mechanism: str, credentials: Credentials, random: Randomness) -> None:
        self._mechanism = mechanism
        self._code, self._digest = MECHANISMS[mechanism]
        self._credentials = credentials
        self._random = random
        self.authorization_id = ""
        self.is_complete = False
        self.token_id = ""
        self.expires_at_ms: int | None = None
        # Between the two messages.
        self._credential: Credential | None = None
        self._first_bare = ""
        self._server_first = ""
        self._nonce = ""
        self._user = ""
        self._is_by_token = False
        self._is_failed = False

    async def evaluate(self, token: bytes) -> bytes:
        if self.is_complete or self._is_failed:
            raise SaslSilentError("the client sent a token after the exchange had ended")
        self._is_failed = True  # until this step succeeds
        check_length(token)
        message = token.decode(errors="replace")
        answer = self._first(message) if self._credential is None else self._final(message)
        self._is_failed = False
        return answer.encode()

    def _first(self, message: str) -> str:
        found = _FIRST.fullmatch(message)
        if found is None:
            advice = "" if message.isascii() else ": the name of a user has ASCII characters alone, as in Kafka"
            raise SaslError(f"the client's first message is not a message of {self._mechanism}{advice}")
        user = found["name"].replace("=2C", ",").replace("=3D", "=")
        extensions = dict(part.split("=", 1) for part in found["extensions"].split(",")[1:])
        self._is_by_token = extensions.get("tokenauth", "").lower() == "true"
        credential = self._find(user)
        if found["authzid"] and found["authzid"] != user:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if credential.iterations < MIN_ITERATIONS:
            raise SaslError(f"the credential of user {user!r} has fewer than {MIN_ITERATIONS} iterations: set it again")
        self._credential = credential
        self._user = user
        self._first_bare = found["bare"]
        self._nonce = found["nonce"] + base64.urlsafe_b64encode(self._random.bytes_of(24)).decode()
        salt = base64.b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first

    def _find(self, user: str) -> Credential:
        """Return what the client must prove to know. Takes over who it is then, and the end of a delegation token."""
        if not self._is_by_token:
            self.authorization_id = user
            return self._credential_of(user)
        token = self._token(user)
        self.authorization_id, self.token_id, self.expires_at_ms = token.owner_name, user, token.expires_at_ms
        return token.credential

    def _credential_of(self, user: str) -> Credential:
        credential = self._credentials.of_user(user, self._code)
        if credential is None:
            raise SaslError(
                f"user {user!r} has no {self._mechanism} credential: add it with kafka-configs --alter --entity-type "
                "users"
            )
        return credential

    def _token(self, token_id: str) -> TokenCredential:
        of_token = self._credentials.of_token
        if of_token is None:
            raise SaslError(
                "the client uses a delegation token, and there are none: set delegation.token.secret.key to serve them"
            )
        token = of_token(token_id, self._code)
        if token is None:
            raise SaslError(f"there is no delegation token {token_id!r}, or no longer: create another")
        return token

    def _final(self, message: str) -> str:
        credential = self._credential
        assert credential is not None
        found = _FINAL.fullmatch(message)
        if found is None:
            raise SaslError(f"the client's final message is not a message of {self._mechanism}")
        if not hmac.compare_digest(found["nonce"].encode(), self._nonce.encode()):
            raise SaslError("the client's final message has another nonce")
        signed = f"{self._first_bare},{self._server_first},{found['bare']}".encode()
        proof = base64.b64decode(found["proof"])
        signature = hmac.digest(credential.stored_key, signed, self._digest)
        client_key = bytes(one ^ other for one, other in zip(signature, proof, strict=False))
        stored_key = hashlib.new(self._digest, client_key).digest()
        is_right = hmac.compare_digest(stored_key, credential.stored_key)
        if len(proof) != len(signature) or not is_right:
            raise SaslError(f"user {self._user!r} has another password for {self._mechanism}")
        # It may have been changed or removed since the first message, which ended only the sessions that there were.
        if self._credentials.are_stored and self._find(self._user) is not credential:
            raise SaslError(f"the credential of user {self._user!r} was changed during the exchange")
        self.is_complete = True
        server_signature = hmac.digest(credential.server_key, signed, self._digest)
        return f"v={base64.b64encode(server_signature).decode()}"
