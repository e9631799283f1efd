"""Delegation tokens over the wire: who gets one, until when, what it opens, and what is left of it."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.metadata.features import METADATA_VERSION
from kafka_shim.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kafka_shim.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kafka_shim.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafka_shim.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kafka_shim.security import delegation_tokens
from kafka_shim.security.acl import AclOperation, PermissionType, ResourceType
from kafka_shim.tests.security.sasl_client import (
    SCRAM_MODULE,
    handshake,
    listener_options,
    log_in_by_token,
    log_in_plain,
    plain_jaas,
)
from kafka_shim.wire_client import Connection, WireClientError

HOUR_MS = 3_600_000
SECRET_KEY = "a key of tokens"
LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
USERS = ("alice", "bob", "carol")
OPTIONS = {
    **listener_options(
        "SASL_PLAINTEXT",
        PLAIN=plain_jaas(**{user: user for user in USERS}),
        SCRAM_SHA_256=f"{SCRAM_MODULE} required;",
        SCRAM_SHA_512=f"{SCRAM_MODULE} required;",
    ),
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": SECRET_KEY,
    "delegation.token.max.lifetime.ms": str(10 * HOUR_MS),
    "delegation.token.expiry.time.ms": str(4 * HOUR_MS),
    "delegation.token.expiry.check.interval.ms": str(HOUR_MS),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class Clients:
    """Connections of the users to one broker."""

    def __init__(self, broker: Broker, stack: ExitStack) -> None:
        self.broker = broker
        self._stack = stack
        self._users: dict[str, Connection] = {}

    def new(self) -> Connection:
        address = self.broker._word(1).split(",")[1].partition("://")[2]
        return self._stack.enter_context(Connection(address, timeout_s=60))

    def __getitem__(self, user: str) -> Connection:
        if user not in self._users:
            self._users[user] = self.new()
            assert log_in_plain(self._users[user], user, user).error_code == 0
        return self._users[user]

    def allow(self, user: str, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        creation = AclCreation(
            resource_type=resource_type,
            resource_name=name,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=PermissionType.ALLOW,
        )
        with Connection(self.broker.bootstrap_servers) as admin:
            assert admin.request(CreateAclsRequest(creations=[creation]), 3).results[0].error_code == 0

    def stored(self) -> list[str]:
        return self.broker.call(lambda: sorted(self.broker.state.metadata.image.delegation_tokens))


@pytest.fixture
def clients() -> Iterator[Clients]:
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(listen=LISTENERS, clock="virtual", **OPTIONS))
        yield Clients(broker, stack)


def create(client: Connection, version: int = 3, *, owner: str | None = None, renewers: str = "", **more: Any) -> Any:
    names = [CreatableRenewers(principal_type="User", principal_name=name) for name in renewers.split()]
    if owner is not None:
        more |= {"owner_principal_type": "User", "owner_principal_name": owner}
    return client.request(CreateDelegationTokenRequest(renewers=names, **more), version)


def renew(client: Connection, token: Any, period_ms: int = -1) -> tuple[int, int]:
    answer = client.request(RenewDelegationTokenRequest(hmac=bytes(token.hmac), renew_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def expire(client: Connection, token: Any, period_ms: int = -1) -> tuple[int, int]:
    answer = client.request(ExpireDelegationTokenRequest(hmac=bytes(token.hmac), expiry_time_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def described(client: Connection, *owners: str, every: bool = True) -> set[str]:
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    answer = client.request(DescribeDelegationTokenRequest(owners=None if every and not owners else named), 3)
    assert answer.error_code == 0
    return {token.token_id for token in answer.tokens}


@pytest.mark.option("kafka.shim.disconnect.changed.users")
@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends"])
def test_a_session_by_a_token_that_is_removed_goes_on_unless_it_is_to_end(ends: bool):
    """A token is removed by a client, or because its time is over. The owner's own session has nothing to do with
    it."""

    def goes_on(client: Connection) -> bool:
        try:
            return bool(client.request(MetadataRequest(topics=[]), 12).brokers)
        except WireClientError:
            return False

    options = {**OPTIONS, "kafka.shim.disconnect.changed.users": str(ends).lower()}
    with ExitStack() as stack:
        clients = Clients(stack.enter_context(Broker(listen=LISTENERS, clock="virtual", **options)), stack)
        sessions = []
        tokens = [create(clients["alice"]) for _ in range(3)]
        for token in tokens:
            sessions.append(clients.new())
            log_in = log_in_by_token(sessions[-1], "SCRAM-SHA-256", token.token_id, bytes(token.hmac))
            assert log_in.error_code == 0
        assert expire(clients["alice"], tokens[0])[0] == 0
        assert [goes_on(one) for one in (*sessions, clients["alice"])] == [not ends, True, True, True]
        assert expire(clients["alice"], tokens[1], 1000)[0] == 0
        clients.broker.clock.advance(HOUR_MS)
        assert clients.stored() == [tokens[2].token_id]
        assert [goes_on(one) for one in (*sessions, clients["alice"])] == [not ends, not ends, True, True]


def test_a_token_that_is_removed_during_the_exchange_lets_nobody_in(clients: Clients):
    token, client = create(clients["alice"]), clients.new()

    def remove() -> None:
        assert expire(clients["alice"], token)[0] == 0

    assert log_in_by_token(client, "SCRAM-SHA-256", token.token_id, bytes(token.hmac), remove).error_code == 58


def test_a_token_that_ends_earlier_since_the_exchange_began_ends_the_session_earlier(clients: Clients):
    token, client = create(clients["alice"]), clients.new()

    def shorten() -> None:
        assert expire(clients["alice"], token, 1000)[0] == 0

    logged_in = log_in_by_token(client, "SCRAM-SHA-256", token.token_id, bytes(token.hmac), shorten)
    assert (logged_in.error_code, logged_in.session_lifetime_ms) == (0, 1000)


# --- create and describe


@pytest.mark.option(
    "delegation.token.secret.key", "delegation.token.max.lifetime.ms", "delegation.token.expiry.time.ms"
)
def test_a_token_has_an_owner_a_requester_and_two_times(clients: Clients):
    now_ms = clients.broker.clock.now_ms()
    token = create(clients["alice"], renewers="bob carol")
    assert token.error_code == 0
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "alice")
    assert token.issue_timestamp_ms == now_ms
    assert token.expiry_timestamp_ms == now_ms + 4 * HOUR_MS
    assert token.max_timestamp_ms == now_ms + 10 * HOUR_MS
    assert len(token.hmac) == 64
    (shown,) = clients["carol"].request(DescribeDelegationTokenRequest(owners=None), 3).tokens
    assert (shown.token_id, bytes(shown.hmac)) == (token.token_id, bytes(token.hmac))
    assert (shown.principal_name, shown.token_requester_principal_name) == ("alice", "alice")
    assert (shown.issue_timestamp, shown.expiry_timestamp, shown.max_timestamp) == (
        token.issue_timestamp_ms,
        token.expiry_timestamp_ms,
        token.max_timestamp_ms,
    )
    assert [one.principal_name for one in shown.renewers] == ["bob", "carol"]


@pytest.mark.parametrize(("wanted_ms", "lifetime_ms"), [(1000, 1000), (2**63 - 1, 10 * HOUR_MS), (-1, 10 * HOUR_MS)])
def test_the_longest_lifetime_is_the_shorter_of_what_is_asked_and_the_option(
    clients: Clients, wanted_ms: int, lifetime_ms: int
):
    token = create(clients["alice"], 1, max_lifetime_ms=wanted_ms)
    assert token.max_timestamp_ms - token.issue_timestamp_ms == lifetime_ms
    assert token.expiry_timestamp_ms == min(token.max_timestamp_ms, token.issue_timestamp_ms + 4 * HOUR_MS)


def test_renewers_are_users(clients: Clients):
    renewers = [CreatableRenewers(principal_type="Group", principal_name="g")]
    answer = clients["alice"].request(CreateDelegationTokenRequest(renewers=renewers), 3)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.INVALID_PRINCIPAL_TYPE, -1)
    assert clients.stored() == []


def test_a_token_for_another_owner_needs_an_acl_on_that_user(clients: Clients):
    refused = create(clients["alice"], owner="bob")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")
    clients.allow("alice", AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    token = create(clients["alice"], owner="bob")
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "bob", "alice")
    # Who asked for it sees it, and is neither owner nor renewer.
    assert described(clients["alice"]) == {token.token_id}
    assert described(clients["bob"]) == {token.token_id}
    assert expire(clients["alice"], token)[0] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_owner_without_a_type_gets_no_token(clients: Clients):
    """It was an owner of the type `None`."""
    clients.allow("alice", AclOperation.CREATE_TOKENS, ResourceType.USER, "None:bob")
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="bob")
    answer = clients["alice"].request(request, 3)
    assert (answer.error_code, answer.principal_name) == (ErrorCode.UNKNOWN_SERVER_ERROR, "ANONYMOUS")
    assert clients.stored() == []


def test_tokens_of_others_are_described_by_an_acl_on_the_token_or_its_owner(clients: Clients):
    first, second, third = (
        create(clients[user], renewers=renewers).token_id
        for user, renewers in (("alice", ""), ("alice", "carol"), ("carol", ""))
    )
    assert described(clients["bob"]) == set()
    clients.allow("bob", AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, first)
    assert described(clients["bob"]) == {first}
    clients.allow("bob", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol")
    assert described(clients["bob"]) == {first, third}
    assert described(clients["bob"], "alice") == {first}
    # A renewer is as good as an owner, in the list of owners too.
    assert described(clients["carol"]) == {second, third}
    assert described(clients["alice"], "carol") == {second}
    assert described(clients["alice"], every=False) == set()


# --- renew and expire


def test_owner_and_renewers_move_the_expiry_within_the_longest_lifetime(clients: Clients):
    token = create(clients["alice"], renewers="bob")
    clients.broker.clock.advance("3h")
    now_ms = clients.broker.clock.now_ms()
    assert renew(clients["bob"], token) == (0, now_ms + 4 * HOUR_MS)
    assert renew(clients["alice"], token, 1000) == (0, now_ms + 1000)
    assert renew(clients["alice"], token, 99 * HOUR_MS) == (0, now_ms + 4 * HOUR_MS)
    assert expire(clients["alice"], token, 99 * HOUR_MS) == (0, token.max_timestamp_ms)
    assert renew(clients["carol"], token) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert expire(clients["carol"], token) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    token.hmac = b"unknown"
    assert renew(clients["alice"], token) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert expire(clients["alice"], token) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


@pytest.mark.option("delegation.token.expiry.check.interval.ms")
def test_an_expired_token_is_dead_at_once_and_removed_at_the_next_check(clients: Clients):
    token = create(clients["alice"], max_lifetime_ms=1000)
    kept = create(clients["alice"])
    clients.broker.clock.advance(1001)
    assert renew(clients["alice"], token) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert expire(clients["alice"], token, 0) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert clients.stored() == sorted([token.token_id, kept.token_id])
    clients.broker.clock.advance(HOUR_MS - 1000)
    assert clients.stored() == [kept.token_id]
    assert renew(clients["alice"], token) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_a_token_that_nobody_renews_expires_long_before_its_longest_lifetime(clients: Clients):
    token = create(clients["alice"])
    clients.broker.clock.advance(4 * HOUR_MS)
    assert clients.stored() == [token.token_id]
    clients.broker.clock.advance(1)
    assert renew(clients["alice"], token) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    clients.broker.clock.advance(HOUR_MS)
    assert clients.stored() == []


def test_an_expired_token_can_be_removed_by_its_owner(clients: Clients, caplog):
    caplog.set_level(logging.INFO, "kafka_shim.security")
    token = create(clients["alice"], max_lifetime_ms=1000)
    clients.broker.clock.advance(1001)
    assert expire(clients["alice"], token) == (0, clients.broker.clock.now_ms())
    assert clients.stored() == []
    told = f"the delegation token {token.token_id} of User:alice is removed (by User:alice at 127.0.0.1)"
    assert [one.getMessage() for one in caplog.records if "delegation token" in one.getMessage()] == [told]


def test_the_log_tells_who_makes_and_renews_a_token(clients: Clients, caplog):
    caplog.set_level(logging.INFO, "kafka_shim.metadata")
    token = create(clients["alice"], renewers="bob")
    assert renew(clients["bob"], token)[0] == 0
    assert expire(clients["alice"], token, 1000)[0] == 0
    whose = f"the delegation token {token.token_id} of User:alice"
    assert [one.getMessage() for one in caplog.records if one.getMessage().startswith(whose)] == [
        f"{whose} is created (by User:alice at 127.0.0.1)",
        f"{whose} has another expiry (by User:bob at 127.0.0.1)",
        f"{whose} has another expiry (by User:alice at 127.0.0.1)",
    ]


def test_more_expired_tokens_than_one_commit_may_hold_are_removed_in_turns(clients: Clients, monkeypatch):
    monkeypatch.setattr(delegation_tokens, "MAX_EXPIRED_AT_ONCE", 2)
    for _ in range(5):
        assert create(clients["alice"], max_lifetime_ms=1).error_code == 0
    before = clients.broker.call(lambda: clients.broker.state.metadata.next_offset)
    clients.broker.clock.advance(HOUR_MS + 1)
    assert clients.stored() == []
    assert clients.broker.call(lambda: clients.broker.state.metadata.next_offset) == before + 5


# --- who may not


def test_a_client_without_authentication_gets_no_token(clients: Clients):
    with Connection(clients.broker.bootstrap_servers) as anonymous:
        refused = create(anonymous)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert (refused.issue_timestamp_ms, refused.expiry_timestamp_ms, refused.max_timestamp_ms) == (-1, -1, -1)
        assert renew(anonymous, refused) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
        assert expire(anonymous, refused) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
        answer = anonymous.request(DescribeDelegationTokenRequest(owners=None), 3)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_session_by_token_gets_no_token(clients: Clients):
    token = create(clients["alice"])
    by_token = clients.new()
    assert log_in_by_token(by_token, "SCRAM-SHA-256", token.token_id, bytes(token.hmac)).error_code == 0
    assert create(by_token).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert renew(by_token, token)[0] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_key_there_are_no_tokens():
    options = {name: value for name, value in OPTIONS.items() if name != "delegation.token.secret.key"}
    with ExitStack() as stack:
        clients = Clients(stack.enter_context(Broker(listen=LISTENERS, **options)), stack)
        disabled = create(clients["alice"])
        assert (disabled.error_code, disabled.principal_name) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "alice")
        assert renew(clients["alice"], disabled) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        assert expire(clients["alice"], disabled) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        answer = clients["alice"].request(DescribeDelegationTokenRequest(owners=None), 3)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert log_in_by_token(clients.new(), "SCRAM-SHA-256", "x", b"y").error_code == 58


def test_a_directory_of_an_older_metadata_version_takes_no_tokens(clients: Clients):
    clients.broker.call(lambda: clients.broker.state.metadata.image.features.__setitem__(METADATA_VERSION, 13))
    assert create(clients["alice"]).error_code == ErrorCode.UNSUPPORTED_VERSION


# --- authentication


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_authenticates_as_its_owner_until_it_expires(clients: Clients, mechanism: str):
    clients.allow("alice", AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    token = create(clients["alice"], owner="bob")
    client = clients.new()
    answer = log_in_by_token(client, mechanism, token.token_id, bytes(token.hmac))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 4 * HOUR_MS)
    sessions = clients.broker.call(
        lambda: {one.session.principal for one in clients.broker._server._registry.connections}
    )
    assert "User:bob" in sessions
    clients.broker.clock.advance("4h")
    assert client.request(MetadataRequest(topics=[]), 12).cluster_id
    clients.broker.clock.advance(1)
    with pytest.raises(WireClientError):
        client.request(MetadataRequest(topics=[]), 12)


def test_a_session_by_a_token_that_is_over_and_not_removed_yet_serves_no_request(clients: Clients):
    """As in Kafka, whose login knows no expiry: the session has no lifetime, and its first request is late."""
    token = create(clients["alice"], max_lifetime_ms=1000)
    clients.broker.clock.advance(1001)
    assert clients.stored() == [token.token_id]
    client = clients.new()
    answer = log_in_by_token(client, "SCRAM-SHA-256", token.token_id, bytes(token.hmac))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    with pytest.raises(WireClientError):
        client.request(MetadataRequest(topics=[]), 12)


def test_a_session_outlives_its_token_until_it_authenticates_again(clients: Clients):
    """As in Kafka: the end of a token closes no connection."""
    token = create(clients["alice"])
    client = clients.new()
    assert log_in_by_token(client, "SCRAM-SHA-512", token.token_id, bytes(token.hmac)).error_code == 0
    assert expire(clients["alice"], token)[0] == 0
    assert client.request(MetadataRequest(topics=[]), 12).cluster_id
    assert log_in_by_token(client, "SCRAM-SHA-512", token.token_id, bytes(token.hmac)).error_code == 58
    assert log_in_by_token(clients.new(), "SCRAM-SHA-512", token.token_id, bytes(token.hmac)).error_code == 58


def test_a_renewed_token_gives_its_session_more_time_when_it_authenticates_again(clients: Clients):
    token = create(clients["alice"])
    client = clients.new()
    assert log_in_by_token(client, "SCRAM-SHA-256", token.token_id, bytes(token.hmac)).session_lifetime_ms > 0
    clients.broker.clock.advance("3h")
    assert renew(clients["alice"], token)[0] == 0
    again = log_in_by_token(client, "SCRAM-SHA-256", token.token_id, bytes(token.hmac))
    assert (again.error_code, again.session_lifetime_ms) == (0, 4 * HOUR_MS)


def test_a_token_with_another_password_or_an_unknown_one_is_refused(clients: Clients, caplog):
    token = create(clients["alice"])
    assert log_in_by_token(clients.new(), "SCRAM-SHA-256", token.token_id, b"guess").error_code == 58
    assert log_in_by_token(clients.new(), "SCRAM-SHA-256", "none", bytes(token.hmac)).error_code == 58
    # The id of a token is no user, and a user is no token.
    client = clients.new()
    assert handshake(client, "SCRAM-SHA-256").error_code == 0
    assert "no delegation token 'none'" in caplog.text
    assert base64.b64encode(bytes(token.hmac)).decode() not in caplog.text
    assert SECRET_KEY not in caplog.text


# --- on disk


def test_tokens_survive_a_restart_and_another_key_makes_them_useless(tmp_path):
    with ExitStack() as stack:
        clients = Clients(stack.enter_context(Broker(listen=LISTENERS, data_dir=tmp_path, **OPTIONS)), stack)
        token = create(clients["alice"])
    with ExitStack() as stack:
        clients = Clients(stack.enter_context(Broker(listen=LISTENERS, data_dir=tmp_path, **OPTIONS)), stack)
        assert described(clients["alice"]) == {token.token_id}
        assert log_in_by_token(clients.new(), "SCRAM-SHA-512", token.token_id, bytes(token.hmac)).error_code == 0
        assert renew(clients["alice"], token)[0] == 0
    with ExitStack() as stack:
        options = OPTIONS | {"delegation.token.secret.key": "another"}
        clients = Clients(stack.enter_context(Broker(listen=LISTENERS, data_dir=tmp_path, **options)), stack)
        assert log_in_by_token(clients.new(), "SCRAM-SHA-512", token.token_id, bytes(token.hmac)).error_code == 58
        assert renew(clients["alice"], token)[0] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
