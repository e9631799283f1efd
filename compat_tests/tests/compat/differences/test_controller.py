"""The controller and its quorum. The last tests leave brokers that serve nothing."""

from __future__ import annotations

import pytest

from kafka_shim.compat.tests.compat.differences.conftest import until
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import TargetError, make
from kafka_shim.targets import requests as ask
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def test_fetch_snapshot_without_a_snapshot(each_controller) -> None:
    def fetched(connection: Connection) -> Any:
        topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        (quorum,) = connection.request(ask.make("DescribeQuorum", topics=topics), 1).topics[0].partitions
        wanted = {"snapshot_id": {"end_offset": 5, "epoch": 1}, "current_leader_epoch": quorum.leader_epoch}
        topics = [{"name": "__cluster_metadata", "partitions": [wanted]}]
        return connection.request(ask.make("FetchSnapshot", cluster_id=None, max_bytes=100, topics=topics), 1)

    ours, theirs = each_controller(fetched)
    assert ours.topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert theirs.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_another_broker_registers(each_controller) -> None:
    def register(connection: Connection) -> int:
        cluster = connection.request(ask.make("DescribeCluster", endpoint_type=2), 1).cluster_id
        names = {"client_software_name": "test", "client_software_version": "1"}
        features = [
            {"name": one.name, "min_supported_version": one.min_version, "max_supported_version": one.max_version}
            for one in connection.request(ask.make("ApiVersions", **names), 4).supported_features
        ]
        listener = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "security_protocol": 0}
        request = ask.make(
            "BrokerRegistration",
            broker_id=77,
            cluster_id=cluster,
            incarnation_id=b"1" * 16,
            listeners=[listener],
            features=features,
            log_dirs=[b"2" * 16],
        )
        return connection.request(request, 4).error_code

    assert each_controller(register) == [ErrorCode.INVALID_REGISTRATION, ErrorCode.NONE]


def test_a_broker_without_a_listener_of_the_controller() -> None:
    with make("shim") as ours, Connection(ours.bootstrap) as connection:
        assert connection.request(ask.make("DescribeQuorum", topics=[]), 2).error_code == ErrorCode.NONE
    theirs = make("kafka-native")
    theirs.settings["controller.listener.names"] = ""
    try:
        with pytest.raises(TargetError, match=r"controller\.listener\.names"):
            theirs.start()
    finally:
        theirs.close()


def test_another_leader_of_the_quorum(each_controller) -> None:
    """One of the last on these brokers: Kafka's controller resigns, and is elected again after some time."""

    def vote(connection: Connection) -> tuple[int, int]:
        quorum = ask.make("DescribeQuorum", topics=[_of_quorum({})])
        before = connection.request(quorum, 1).topics[0].partitions[0].leader_epoch
        ballot = {"replica_epoch": before + 5, "replica_id": 2, "last_offset_epoch": before, "last_offset": 0}
        request = ask.make("Vote", cluster_id=None, voter_id=1, topics=[_of_quorum(ballot)])
        (partition,) = connection.request(request, 1).topics[0].partitions

        def leader() -> Any:
            found = connection.request(quorum, 1).topics[0].partitions[0]
            return found if found.leader_id == 1 and not found.error_code else None

        leads = until(leader)
        return partition.error_code, leads.leader_epoch - before

    ours, theirs = each_controller(vote)
    assert ours == (ErrorCode.INVALID_REQUEST, 0)
    assert theirs[0] == ErrorCode.NONE
    assert theirs[1] > 5


def _of_quorum(partition: dict[str, int]) -> dict[str, Any]:
    return {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0, **partition}]}


def test_unregistering_the_running_broker(each, brokers) -> None:
    """The last one on these brokers: Kafka's serves no partition after it, and does not stop."""
    codes = each(lambda connection: connection.request(ask.make("UnregisterBroker", broker_id=1), 0).error_code)
    brokers[1].kill()
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
