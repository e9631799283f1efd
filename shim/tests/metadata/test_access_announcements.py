"""What the log says of who may do what: one line for each change of ACLs, users, quotas and delegation tokens."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka_shim.commands.main import run
from kafka_shim.embedded import Broker
from kafka_shim.metadata import access_announcements
from kafka_shim.metadata.announcements import ACCESS, announce, announcements
from kafka_shim.metadata.image import Image
from kafka_shim.metadata.replay import APPLY
from kafka_shim.protocol.records.access_control_entry_record import AccessControlEntryRecord
from kafka_shim.protocol.records.client_quota_record import ClientQuotaRecord, EntityData
from kafka_shim.protocol.records.delegation_token_record import DelegationTokenRecord
from kafka_shim.protocol.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafka_shim.protocol.records.user_scram_credential_record import UserScramCredentialRecord
from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.sasl.scram import NAME_OF
from kafka_shim.session import Listener, Session

# Who changes it.
BY = " (by User:ANONYMOUS at 127.0.0.1)"


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def acl(number: int = 1, **fields: Any) -> AccessControlEntryRecord:
    given = {"resource_type": 2, "resource_name": "orders", "pattern_type": 3, "principal": "User:alice", "host": "*"}
    return AccessControlEntryRecord(
        id=number.to_bytes(16, "big"), **(given | {"operation": 4, "permission_type": 3} | fields)
    )


def test_what_administrators_change_is_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SHIM_PASSWORD", "a secret")
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    with Broker(authorizer_class_name=authorizer, super_users="User:ANONYMOUS") as broker:

        def told(*words: str) -> list[str]:
            caplog.clear()
            assert run([*words, "--bootstrap-server", broker.bootstrap_servers]) == 0
            return [one.getMessage() for one in caplog.records if one.name == "kafka_shim.metadata"]

        may = ("--topic", "orders", "--allow-principal", "User:alice", "--operation", "Write")
        entry = "ALLOW WRITE on topic orders for User:alice from host *"
        assert told("acls", "add", *may) == [f"ACL is added: {entry}{BY}"]
        assert told("acls", "remove", "--topic", "orders", "--force") == [f"ACL is removed: {entry}{BY}"]
        assert told("users", "add", "alice") == [f"user alice has a password for SCRAM-SHA-512{BY}"]
        assert told("users", "add", "alice") == [f"user alice has another password for SCRAM-SHA-512{BY}"]
        assert told("users", "remove", "alice") == [f"user alice has no password for SCRAM-SHA-512 any more{BY}"]
        whose = ("--user", "alice", "--client-id-default")
        assert told(
            "quotas", "set", *whose, "--add", "producer_byte_rate=1048576", "--add", "request_percentage=12.5"
        ) == [
            "quotas of user alice, the default client id change: request_percentage=12.5, "
            f"producer_byte_rate=1048576{BY}"
        ]
        assert told("quotas", "set", *whose, "--delete", "producer_byte_rate") == [
            f"quotas of user alice, the default client id change: producer_byte_rate is unset{BY}"
        ]


def test_what_is_unusual_of_an_acl_is_told() -> None:
    (line,) = announcements([acl(pattern_type=4, permission_type=2, resource_type=3, operation=3, host="::1")], Image())
    assert line == "ACL is added: DENY READ on groups that begin with orders for User:alice from host ::1"
    (line,) = announcements([acl(pattern_type=4, resource_type=7, operation=99)], Image())
    assert line == "ACL is added: ALLOW 99 on users that begin with orders for User:alice from host *"
    (line,) = announcements([RemoveAccessControlEntryRecord(id=bytes(15) + b"\x07")], Image())
    assert line == f"ACL is removed: {7:032x}"


def test_a_token_and_its_new_expiry_are_told() -> None:
    image, token = Image(), DelegationTokenRecord(owner="User:alice", token_id="T")
    assert announcements([token], image) == ["the delegation token T of User:alice is created"]
    image.delegation_tokens["T"] = token
    assert announcements([token], image) == ["the delegation token T of User:alice has another expiry"]


def test_no_key_of_a_user_is_told() -> None:
    record = UserScramCredentialRecord(name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"k")
    assert announcements([record], Image()) == ["user alice has a password for SCRAM-SHA-256"]


def test_thousands_of_changes_are_a_hundred_lines_and_their_number() -> None:
    found = announcements([acl(number) for number in range(1000)], Image())
    assert len(found) == 101
    assert found[-1] == "900 more ACLs, users, quotas or delegation tokens change with these"
    entities = [[EntityData(entity_type="ip", entity_name=str(number))] for number in range(101)]
    found = announcements([ClientQuotaRecord(entity=one, key="k", value=1.0) for one in entities], Image())
    assert found[0] == "quotas of address 0 change: k=1"
    assert found[100:] == ["1 more ACLs, users, quotas or delegation tokens change with these"]


def test_the_entities_of_a_hundred_lines_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    entity_of = access_announcements.entity_of
    monkeypatch.setattr(access_announcements, "entity_of", lambda record: looked.append(record) or entity_of(record))
    entities = [[EntityData(entity_type="ip", entity_name=str(number))] for number in range(10_000)]
    found = announcements([ClientQuotaRecord(entity=one, key="k", value=1.0) for one in entities], Image())
    assert found[100:] == ["9900 more ACLs, users, quotas or delegation tokens change with these"]
    assert len(looked) == 500


def test_a_name_of_a_client_is_cut() -> None:
    (line,) = announcements([acl(principal="User:" + "x" * 40_000)], Image())
    assert len(line) < 300


def test_who_has_a_long_name_is_cut_and_without_a_client_nobody_is_named(caplog: pytest.LogCaptureFixture) -> None:
    session = Session(Listener("PLAINTEXT", "127.0.0.1", 0), ("::1", 9), ("::1", 8))
    session.principal = "User:" + "x" * 40_000
    announce(["a line"], session)
    announce(["a line"])
    announce([], None)
    assert [one.getMessage() for one in caplog.records] == [f"a line (by User:{'x' * 195}... at ::1)", "a line"]


def test_codes_have_the_names_of_the_authorizer() -> None:
    module = access_announcements
    assert set(module.OPERATIONS.items()) == {(one.value, one.name) for one in AclOperation if one.value > 1}
    assert set(module.RESOURCES) == {one.value for one in ResourceType if one.value > 1}
    assert set(module.PERMISSIONS.items()) == {(one.value, one.name) for one in PermissionType if one.value > 1}
    assert module.PREFIXED == PatternType.PREFIXED
    assert module.MECHANISMS == NAME_OF
    assert {*module.TOLD, module.QUOTA} == ACCESS
    assert set(APPLY) >= ACCESS
