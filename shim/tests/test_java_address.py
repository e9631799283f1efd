"""Addresses as Java writes them; the expectations are what `InetAddress.getHostAddress` returned."""

from __future__ import annotations

import pytest

from kafka_shim.embedded import Broker
from kafka_shim.java_address import java_address
from kafka_shim.targets.requests import make
from kafka_shim.tests.ipv6 import wants_ipv6
from kafka_shim.wire_client import Connection


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a:0", "2001:db8:0:0:0:0:a:0"),
        ("2001:0DB8:0:0:0:0:000A:0", "2001:db8:0:0:0:0:a:0"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("broker.example", "broker.example"),
        ("no:address", "no:address"),
        ("", ""),
    ],
)
def test_an_address_is_written_as_by_java(text: str, written: str) -> None:
    assert java_address(text) == written


@wants_ipv6
@pytest.mark.option("max.connections.per.ip.overrides")
def test_a_client_over_ipv6_has_the_address_that_java_writes() -> None:
    joining = make(
        "ConsumerGroupHeartbeat",
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=9000,
        topic_partitions=[],
        subscribed_topic_names=["t"],
    )
    denied = {"principal": "User:ANONYMOUS", "operation": "DESCRIBE", "group": "g", "permission": "DENY"}
    allowed = {"principal": "User:*", "operation": "READ", "group": "*"}
    limits = {"max_connections_per_ip": 0, "max_connections_per_ip_overrides": "::1:7"}
    with Broker(listen="PLAINTEXT://[::1]:0", **limits) as broker, Connection(broker.bootstrap_servers) as client:
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4)
        assert client.request(joining, 1).error_code == 0
        (group,) = client.request(make("ConsumerGroupDescribe", group_ids=["g"]), 1).groups
        assert [member.client_host for member in group.members] == ["/0:0:0:0:0:0:0:1"]
    acls = [allowed, {**denied, "host": "0:0:0:0:0:0:0:1"}]
    with Broker(listen="PLAINTEXT://[::1]:0", acls=acls) as broker, Connection(broker.bootstrap_servers) as client:
        (group,) = client.request(make("ConsumerGroupDescribe", group_ids=["g"]), 1).groups
        assert group.error_code == 30
