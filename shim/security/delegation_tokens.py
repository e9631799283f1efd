"""Delegation tokens: who may have one, until when, and which credential it is (KIP-48, KIP-373; Kafka:
DelegationTokenControlManager, DelegationTokenManager, DelegationTokenCache).

A token is a DelegationTokenRecord of the metadata log. Its secret is the HMAC of its id under
`delegation.token.secret.key`, which is stored nowhere: another key makes every token useless.
"""

from __future__ import annotations

import base64
import hmac
import logging
from contextlib import suppress
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.authors import said_of
from kafka_shim.metadata.features import DELEGATION_TOKENS, METADATA_VERSION
from kafka_shim.protocol.records.delegation_token_record import DelegationTokenRecord
from kafka_shim.protocol.records.remove_delegation_token_record import RemoveDelegationTokenRecord
from kafka_shim.scheduler import Scheduler
from kafka_shim.security.sasl.scram import MIN_ITERATIONS, NAME_OF, TokenCredential, salted_password
from kafka_shim.security.scram_credentials import credential_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.metadata.authors import Author
    from kafka_shim.metadata.store import MetadataStore

logger = logging.getLogger("kafka_shim.security")

USER_TYPE = "User"
MAX_TIMESTAMP_MS = 2**63 - 1
# So many tokens are removed in one commit (DelegationTokenControlManager.MAX_RECORDS_PER_EXPIRATION).
MAX_EXPIRED_AT_ONCE = 1000
SWEEP = "expireDelegationTokens"
SALT_BYTES = 16


class DelegationTokens:
    """The tokens of a broker with a secret key. Event-loop thread only. Each method that changes one commits its record
    before it returns; the caller awaits the store's `flushed`."""

    def __init__(self, metadata: MetadataStore, config: BrokerConfig, clock: Clock) -> None:
        # Constant.
        self._metadata = metadata
        self._config = config
        self._clock = clock
        assert config.delegation_token_secret_key
        self._secret_key = config.delegation_token_secret_key.encode()
        self._scheduler = Scheduler(clock)
        # Called with the ids of tokens that were removed.
        self.on_removed: Callable[[Collection[str]], None] | None = None
        # Of the stored tokens: HMAC -> token id, and (token id, mechanism) -> credential, made at its first use.
        self._ids = {self.hmac_of(token_id): token_id for token_id in metadata.image.delegation_tokens}
        self._credentials: dict[tuple[str, int], Any] = {}

    def run_periodically(self) -> None:
        """Remove expired tokens each `delegation.token.expiry.check.interval.ms`."""
        self._scheduler.every(SWEEP, self._config.delegation_token_expiry_check_interval_ms, self.remove_expired)

    def stop(self) -> None:
        self._scheduler.stop()

    # --- changes

    def create(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int, by: Author | None = None
    ) -> tuple[DelegationTokenRecord, bytes]:
        """Return (the new token, its HMAC). Principals are `Type:name`. `by` is who asked for it, here
        and below. Raises KafkaError."""
        self._check_version()
        now_ms = self._clock.now_ms()
        lifetime_ms = self._config.delegation_token_max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        max_timestamp_ms = _later(now_ms, lifetime_ms)
        if not all(renewer.startswith(USER_TYPE + ":") for renewer in renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        token = DelegationTokenRecord(
            owner=owner,
            requester=requester,
            renewers=list(renewers),
            issue_timestamp=now_ms,
            max_timestamp=max_timestamp_ms,
            expiration_timestamp=min(max_timestamp_ms, _later(now_ms, self._config.delegation_token_expiry_time_ms)),
            token_id=self._clock.random.uuid_text(),
        )
        secret = self.hmac_of(token.token_id)
        self._metadata.commit_and_follow([token], [partial(self._ids.__setitem__, secret, token.token_id)], by=by)
        return token, secret

    def renew(self, principal: str, secret: bytes, period_ms: int, by: Author | None = None) -> int:
        """Return the new time of expiry. Raises KafkaError."""
        token = self._token_of(secret)
        now_ms = self._clock.now_ms()
        if _is_expired(token, now_ms):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_may_renew(token, principal)
        renewal_ms = self._config.delegation_token_expiry_time_ms
        if period_ms > 0:
            renewal_ms = min(renewal_ms, period_ms)
        return self._expire_at(token, _later(now_ms, renewal_ms), by)

    def expire(self, principal: str, secret: bytes, period_ms: int, by: Author | None = None) -> int:
        """Return the new time of expiry; with a negative period the token is removed at once. Raises KafkaError."""
        token = self._token_of(secret)
        _check_may_renew(token, principal)
        now_ms = self._clock.now_ms()
        if period_ms < 0:
            self._remove([token])
            with suppress(MemoryError):  # it is removed: the request does not fail for want of a line
                who = f" by {principal}" if by is None else said_of(by)
                logger.info("the delegation token %s of %s is removed%s", token.token_id, token.owner, who)
            return now_ms
        if _is_expired(token, now_ms):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return self._expire_at(token, _later(now_ms, period_ms), by)

    def _expire_at(self, token: DelegationTokenRecord, timestamp_ms: int, by: Author | None) -> int:
        expiry_ms = min(token.max_timestamp, timestamp_ms)
        changed = {row[0]: getattr(token, row[0]) for row in token.FIELDS}
        self._metadata.commit([DelegationTokenRecord(**changed | {"expiration_timestamp": expiry_ms})], by=by)
        return expiry_ms

    def remove_expired(self) -> None:
        """Remove the tokens whose time is over, at most `MAX_EXPIRED_AT_ONCE` in one turn of the loop."""
        now_ms = self._clock.now_ms()
        expired = [token for token in self._stored.values() if _is_expired(token, now_ms)]
        for token in expired[:MAX_EXPIRED_AT_ONCE]:
            logger.info("the delegation token %s of %s has expired", token.token_id, token.owner)
        if expired:
            self._remove(expired[:MAX_EXPIRED_AT_ONCE])
        if len(expired) > MAX_EXPIRED_AT_ONCE:
            self._scheduler.after(SWEEP + ".rest", 0, self.remove_expired)

    def _remove(self, tokens: Sequence[DelegationTokenRecord]) -> None:
        records = [RemoveDelegationTokenRecord(token_id=token.token_id) for token in tokens]
        self._metadata.commit_and_follow(records, [partial(self._removed, tokens)])

    def _removed(self, tokens: Sequence[DelegationTokenRecord]) -> None:
        for token in tokens:
            self._ids.pop(self.hmac_of(token.token_id), None)
            for mechanism in NAME_OF:
                self._credentials.pop((token.token_id, mechanism), None)
        if self.on_removed is not None:
            self.on_removed({token.token_id for token in tokens})

    # --- look up

    @property
    def _stored(self) -> dict[str, DelegationTokenRecord]:
        return self._metadata.image.delegation_tokens

    def __iter__(self) -> Iterator[DelegationTokenRecord]:
        return iter(list(self._stored.values()))

    def hmac_of(self, token_id: str) -> bytes:
        """Return the token's secret, whose base64 is the password of its SCRAM credentials."""
        return hmac.digest(self._secret_key, token_id.encode(), "sha512")

    def credential(self, token_id: str, mechanism: int) -> TokenCredential | None:
        """Return what a client that authenticates by this token must prove; None if there is no such token."""
        token = self._stored.get(token_id)
        if token is None:
            return None
        credential = self._credentials.get((token_id, mechanism))
        if credential is None:
            name = NAME_OF[mechanism]
            salt = self._clock.random.bytes_of(SALT_BYTES)
            password = base64.b64encode(self.hmac_of(token_id)).decode()
            salted = salted_password(name, password, salt, MIN_ITERATIONS)
            credential = credential_record(token_id, name, salt, salted, MIN_ITERATIONS)
            self._credentials[token_id, mechanism] = credential
        return TokenCredential(credential, token.owner.partition(":")[2], token.expiration_timestamp)

    def _token_of(self, secret: bytes) -> DelegationTokenRecord:
        self._check_version()
        token = self._stored.get(self._ids.get(secret, ""))
        if token is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    def _check_version(self) -> None:
        if self._metadata.feature(METADATA_VERSION) < DELEGATION_TOKENS:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _later(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, MAX_TIMESTAMP_MS)


def _is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def is_owner_or_renewer(token: DelegationTokenRecord, principal: str) -> bool:
    """Return whether this principal may describe, renew and expire the token without an ACL."""
    return principal == token.owner or principal in token.renewers


def _check_may_renew(token: DelegationTokenRecord, principal: str) -> None:
    if not is_owner_or_renewer(token, principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
