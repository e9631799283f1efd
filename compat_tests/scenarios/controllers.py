"""Rows I1, I2, I7, I8: what a client of a broker sees of the controller."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, ScenarioClient, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BROKER = 4
SET, DELETE = 0, 1
ELR, MIN_ISR = "eligible.leader.replicas.version", "min.insync.replicas"
UPGRADE, SAFE_DOWNGRADE = 1, 2
# The default listener of the quorum is the controller's, or the broker's where there is no other.
LISTENERS = [{"name": name, "host": "127.0.0.1", "port": 9} for name in ("CONTROLLER", "PLAINTEXT")]


@scenario("I1")
def the_controllers_requests_close_a_connection_to_a_broker(t: ScenarioClient) -> None:
    """Vote and BrokerHeartbeat are the controller's alone; the connection works up to them."""
    t.error(t.ask("DescribeCluster", 0), NONE)
    t.closes("Vote", 0, cluster_id=None, topics=[])
    t.closes("BrokerHeartbeat", 0, broker_id=1, broker_epoch=1)
    t.error(t.ask("DescribeCluster", 0), NONE)


@scenario("I2")
def a_broker_is_no_controller(t: ScenarioClient) -> None:
    """DescribeCluster of the endpoint type 2 is MISMATCHED_ENDPOINT_TYPE there, of an unknown type
    UNSUPPORTED_ENDPOINT_TYPE."""
    t.error(t.ask("DescribeCluster", 1, endpoint_type=1), NONE)
    t.error(t.ask("DescribeCluster", 1, endpoint_type=2), "MISMATCHED_ENDPOINT_TYPE")
    t.error(t.ask("DescribeCluster", 1, endpoint_type=3), "UNSUPPORTED_ENDPOINT_TYPE")


@scenario("I7")
def a_static_quorum_keeps_its_voters(t: ScenarioClient) -> None:
    """AddRaftVoter and RemoveRaftVoter are checked, and then UNSUPPORTED_VERSION without kraft.version 1."""
    voter = {"voter_id": 7, "voter_directory_id": b"directory-of-one"}
    for api, more in (("AddRaftVoter", {"listeners": LISTENERS, "timeout_ms": 5000}), ("RemoveRaftVoter", {})):

        def ask(api: str = api, more: dict[str, Any] = more, **fields: Any) -> str:
            return name_of(t.ask(api, 0, **{"cluster_id": None, **voter, **more, **fields}).error_code)

        t.same(ask(), "UNSUPPORTED_VERSION", api)
        t.same(ask(voter_id=-1), "INVALID_REQUEST", f"{api} without an id")
        t.same(ask(voter_directory_id=bytes(16)), "INVALID_REQUEST", f"{api} without a directory")


@scenario("I8", spoils=True)
def min_insync_replicas_belongs_to_the_cluster(t: ScenarioClient) -> None:
    """Enabling eligible.leader.replicas.version stores min.insync.replicas for the cluster and removes it from single
    brokers; while it is enabled, both stay so."""

    def level(wanted: int, kind: int) -> None:
        row = {"feature": ELR, "max_version_level": wanted, "upgrade_type": kind}
        t.ask("UpdateFeatures", 1, timeout_ms=30_000, feature_updates=[row])

    def alter(broker: str, how: int, value: str | None) -> str:
        rows = [{"name": MIN_ISR, "config_operation": how, "value": value}]
        resource = {"resource_type": BROKER, "resource_name": broker, "configs": rows}
        return name_of(t.ask("IncrementalAlterConfigs", 1, resources=[resource]).responses[0].error_code)

    def values(broker: str) -> list[tuple[str, str, int]]:
        resource = {"resource_type": BROKER, "resource_name": broker, "configuration_keys": [MIN_ISR]}
        answer = t.quietly("DescribeConfigs", 4, resources=[resource])
        return [(one.name, one.value, one.config_source) for one in answer.results[0].configs]

    node = str(t.quietly("DescribeCluster", 0).brokers[0].broker_id)
    level(0, SAFE_DOWNGRADE)
    t.same(alter(node, SET, "2"), NONE, "an option of one broker")
    t.wait(lambda: values(node)[0][1] == "2", "the option of the broker")
    level(1, UPGRADE)
    t.wait(lambda: values("") == [(MIN_ISR, "1", 3)], "the option of the cluster", lambda: str(values("")))
    t.wait(lambda: values(node)[0][1:] == ("1", 3), "none of the broker", lambda: str(values(node)))
    t.same(alter(node, SET, "2"), "INVALID_CONFIG", "an option of one broker while it is enabled")
    t.same(alter("", DELETE, None), "INVALID_CONFIG", "no option of the cluster while it is enabled")
