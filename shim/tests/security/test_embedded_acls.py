"""`Broker(acls=[...], authorizer=...)`."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_shim.client_security import ClientSecurity
from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import Acl
from kafka_shim.security.acl_spec import parse_acl
from kafka_shim.security.standard_authorizer import StandardAuthorizer
from kafka_shim.tests.produced import metadata
from kafka_shim.wire_client import Connection

DESCRIBE_T = {"principal": "User:ANONYMOUS", "operation": "Describe", "topic": "t"}


class Mine(StandardAuthorizer):
    """A class of the user's own."""


def codes(broker: Broker, *names: str) -> list[int]:
    with Connection(broker.bootstrap_servers) as client:
        told = metadata(client, *names, allow_auto_topic_creation=False).topics
        return [{topic.name: topic.error_code for topic in told}[name] for name in names]


def test_acls_given_in_words_decide():
    for how in ({}, {"authorizer": Mine}, {"authorizer": f"{__name__}.Mine"}):
        with Broker(acls=[DESCRIBE_T], **how) as broker:
            assert codes(broker, "t", "u") == [
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ]
            assert type(broker.state.authorizer) is (Mine if how else StandardAuthorizer)


def test_words_become_an_acl():
    everything = {"principal": "User:a", "cluster": True, "permission": "deny", "host": "h"}
    assert parse_acl(everything) == Acl(
        ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:a", "h", AclOperation.ALL, PermissionType.DENY
    )
    prefixed = {"principal": "User:a", "group": "g", "pattern": "prefixed", "operation": "ALTER_CONFIGS"}
    assert parse_acl(prefixed).fields == (
        *(ResourceType.GROUP, "g", PatternType.PREFIXED, "User:a", "*"),
        *(AclOperation.ALTER_CONFIGS, PermissionType.ALLOW),
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"principal": "User:a"}, "names the resource"),
        ({"principal": "User:a", "topic": "t", "group": "g"}, "names the resource"),
        ({"principal": "User:a", "topic": "t", "op": "READ"}, "unknown: op"),
        ({"principal": "alice", "topic": "t"}, "User:NAME"),
        (
            {"principal": "User:a", "topic": "t", "operation": "CLUSTER_ACTION"},
            "is not an operation on a resource of type TOPIC",
        ),
        ({"principal": "User:a", "topic": "t", "pattern": "match"}, "match is not a pattern"),
        ({"principal": "User:a", "topic": "t", "permission": "maybe"}, "maybe is not a permission"),
        ({"principal": "User:a", "topic": ""}, "Invalid empty resource name"),
    ],
)
def test_words_that_are_no_acl_stop_the_start(words: dict[str, Any], reason: str):
    with pytest.raises(ConfigError, match=reason):
        Broker(acls=[words]).start()


@pytest.mark.parametrize("authorizer", [None, f"{__name__}.Mine"])
def test_a_broker_in_a_process_has_them_before_it_serves(authorizer: str | None):
    """With users, whose passwords come the same way, and again after a crash."""
    listen = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    users = {"alice": "secret"}
    made = Broker(
        acls=[DESCRIBE_T], authorizer=authorizer, process=True, listen=listen, sasl="SCRAM-SHA-256", users=users
    )
    with made as broker:
        for _ in range(2):
            assert codes(broker, "t", "u") == [
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ]
            properties = broker.client_config("java", "alice")
            address = broker._word(1).split(",")[1].partition("://")[2]
            with Connection(address, security=ClientSecurity(properties)) as client:
                assert client.request(DescribeClusterRequest()).error_code == 0
            broker.kill()
            broker.start()


def test_a_bad_acl_stops_the_start_of_a_process():
    with pytest.raises(ConfigError, match="User:NAME"):
        Broker(acls=[{"principal": "alice", "topic": "t"}], process=True).start()
    with pytest.raises(RuntimeError, match="ended with status 1"):
        Broker(acls=[{"principal": "User:a", "topic": ""}], process=True).start()
