"""Connections of named users, and ACLs, on an Apache Kafka and on a shim, for tests that compare them.

Users authenticate by SASL PLAIN. Another listener is unauthenticated, for the broker itself, and its user is a super
user.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_shim.errors import ErrorCode
from kafka_shim.targets import requests
from kafka_shim.targets.waiting import wait_until
from kafka_shim.wire_client import Connection, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any, Self

    from kafka_shim.protocol.message import Message
    from kafka_shim.targets.secured import SecuredKafka, SecuredShim

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ROOT, ALICE, BOB, PROBE = "root", "alice", "bob", "probe"
USERS = (ROOT, ALICE, BOB, PROBE)
SETTINGS = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS;User:root"}
PASSWORDS = " ".join(f'user_{user}="{user}"' for user in USERS)
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SASL = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {PASSWORDS};",
}
ANY = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
NAMED: dict[str, Any] = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}


@dataclass(frozen=True)
class Rule:
    """An ACL to create, in Kafka's codes."""

    resource_type: int
    name: str
    operation: int
    pattern_type: int = 3
    permission_type: int = 3
    principal: str = "User:alice"
    host: str = "*"

    @property
    def creation(self) -> dict[str, Any]:
        return {
            "resource_type": self.resource_type,
            "resource_name": self.name,
            "resource_pattern_type": self.pattern_type,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation,
            "permission_type": self.permission_type,
        }

    @property
    def filter(self) -> dict[str, Any]:
        """What matches this ACL alone."""
        return {
            "resource_type_filter": self.resource_type,
            "resource_name_filter": self.name,
            "pattern_type_filter": self.pattern_type,
            "principal_filter": self.principal,
            "host_filter": self.host,
            "operation": self.operation,
            "permission_type": self.permission_type,
        }


class Secured:
    """A broker with ACLs, and one connection of each user. `kind` says which broker."""

    def __init__(
        self, kind: type[SecuredKafka | SecuredShim], settings: Mapping[str, str], data_dir: Path | None = None
    ) -> None:
        self.target = kind({**SETTINGS, **settings, **SASL}, data_dir)
        self.connections: dict[str, Connection] = {}
        self._probes = 0

    def connect(self, user: str) -> Connection:
        """Returns a new connection of this user, whose password is the user's name."""
        connection = Connection(self.target.addresses["SASL_PLAINTEXT"], timeout_s=30)
        check(connection.request(requests.make("SaslHandshake", mechanism="PLAIN"), 1).error_code)
        token = f"\0{user}\0{user}".encode()
        check(connection.request(requests.make("SaslAuthenticate", auth_bytes=token), 2).error_code)
        return connection

    def ask(self, user: str, message: Message, version: int) -> Any:
        """Returns the response, or "closed" if the broker closes the connection instead."""
        if user not in self.connections:
            self.connections[user] = self.connect(user)
        try:
            return self.connections[user].request(message, version)
        except WireClientError:
            self.connections.pop(user).close()
            return "closed"

    def set_acls(self, rules: Sequence[Rule]) -> None:
        """Replace all ACLs, and return when every part of the broker decides by the new ones."""
        self._probes += 1
        name = f"probe-{self._probes}"
        # CREATE for the controller and DESCRIBE for the broker; the last of a commit, which is applied as a whole.
        probes = [Rule(2, name, operation, principal=f"User:{PROBE}") for operation in (5, 8)]
        told = self.ask(ROOT, requests.make("DeleteAcls", filters=[{**ANY, **NAMED}]), 3)
        check(told.filter_results[0].error_code, told.filter_results[0].error_message)
        creations = [rule.creation for rule in [*rules, *probes]]
        for one in self.ask(ROOT, requests.make("CreateAcls", creations=creations), 3).results:
            check(one.error_code, one.error_message)
        wait_until(lambda: not self._denies_probe(name), "the ACLs act")

    def _denies_probe(self, name: str) -> bool:
        shown = requests.make("Metadata", topics=[{"name": name}], allow_auto_topic_creation=False)
        if self.ask(PROBE, shown, 9).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return True
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        created = requests.make("CreateTopics", topics=[topic], timeout_ms=5000, validate_only=True)
        return bool(self.ask(PROBE, created, 5).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def __enter__(self) -> Self:
        self.target.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.connections.values():
            connection.close()
        self.target.__exit__()
