"""Rows I1 to I8: what a client of a broker sees of the controller, and what that answers on its own listener."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, ScenarioClient, name_of, records_of
from kafka_shim.targets import Power
from kafka_shim.targets.requests import make
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Ask = Callable[..., Any]

BROKER = 4
SET, DELETE = 0, 1
ELR, MIN_ISR = "eligible.leader.replicas.version", "min.insync.replicas"
UPGRADE, SAFE_DOWNGRADE = 1, 2
# The default listener of the quorum is the controller's, or the broker's where there is no other.
LISTENERS = [{"name": name, "host": "127.0.0.1", "port": 9} for name in ("CONTROLLER", "PLAINTEXT")]
CONTROLLER = {"controller.listener.names": "CONTROLLER"}
METADATA, METADATA_TOPIC_ID = "__cluster_metadata", (1).to_bytes(16, "big")
NODE = 1


def _controller(t: ScenarioClient) -> tuple[Connection, Ask]:
    """A connection to the controller, and what asks it; only what the scenario expects is noted."""
    connection = Connection(t.target.controller, client_id="scenario", timeout_s=t.patience_s)
    return connection, lambda api, version, **fields: connection.request(make(api, **fields), version)


def _epoch(ask: Ask) -> int:
    """The epoch of the quorum."""
    topics = [{"topic_name": METADATA, "partitions": [{"partition_index": 0}]}]
    return int(ask("DescribeQuorum", 2, topics=topics).topics[0].partitions[0].leader_epoch)


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


@scenario("I3", needs=Power.CONTROLLER, settings=CONTROLLER)
def the_quorum_checks_cluster_partition_and_epoch(t: ScenarioClient) -> None:
    """Requests of the quorum from another cluster, of another partition, or from an old epoch are refused; a leader
    grants no vote."""
    connection, ask = _controller(t)
    with connection:
        epoch = _epoch(ask)
        leader = {"leader_id": NODE}
        candidate = {"replica_id": 2, "last_offset_epoch": 0, "last_offset": 0}

        def topics(name: str, **fields: Any) -> list[dict[str, Any]]:
            return [{"topic_name": name, "partitions": [{"partition_index": 0, **fields}]}]

        for api, version, who, of_epoch in (
            ("Vote", 2, {**candidate, "pre_vote": True}, "replica_epoch"),
            ("BeginQuorumEpoch", 1, leader, "leader_epoch"),
            ("EndQuorumEpoch", 1, leader, "leader_epoch"),
        ):
            old, now = topics(METADATA, **who, **{of_epoch: epoch - 1}), topics(METADATA, **who, **{of_epoch: epoch})
            strange = ask(api, version, cluster_id="another", topics=now)
            t.same(name_of(strange.error_code), "INCONSISTENT_CLUSTER_ID", f"{api} from another cluster")
            other = ask(api, version, topics=topics("t", **who, **{of_epoch: epoch}))
            t.same(name_of(other.error_code), "INVALID_REQUEST", f"{api} of another partition")
            (topic,) = ask(api, version, topics=old).topics
            t.same(name_of(topic.partitions[0].error_code), "FENCED_LEADER_EPOCH", f"{api} from an old epoch")
            t.note(api, "from another cluster, of another partition, from an old epoch", "refused")
        (topic,) = ask("Vote", 2, topics=topics(METADATA, replica_epoch=epoch, **candidate)).topics
        (told,) = topic.partitions
        facts = (name_of(told.error_code), told.vote_granted, told.leader_id, told.leader_epoch == epoch)
        t.same(facts, (NONE, False, NODE, True), "a vote of the epoch")
        t.note("Vote", "of the epoch", facts)


@scenario("I4", needs=Power.CONTROLLER, settings=CONTROLLER)
def an_observer_reads_the_metadata_log(t: ScenarioClient) -> None:
    """The metadata log is read by its topic id from any offset; an epoch that it does not have diverges, and offset 0
    is where the newest snapshot takes over."""
    connection, ask = _controller(t)
    t.topic()
    with connection:
        epoch = _epoch(ask)

        def fetch(offset: int, last_epoch: int, now: int = epoch, **fields: Any) -> Any:
            partition = {
                "partition": 0,
                "fetch_offset": offset,
                "last_fetched_epoch": last_epoch,
                "current_leader_epoch": now,
                "partition_max_bytes": 1 << 20,
            }
            topic = {"topic_id": METADATA_TOPIC_ID, "partitions": [partition]}
            given = {"replica_state": {"replica_id": 9}, "max_bytes": 1 << 20, "max_wait_ms": 0, "topics": [topic]}
            return ask("Fetch", 17, **{**given, **fields})

        def part(*which: Any) -> Any:
            return fetch(*which).responses[0].partitions[0]

        end = part(1, epoch).high_watermark
        for offset in (1, 2, end - 1):
            found = [record.offset for record, _ in records_of(part(offset, epoch).records)]
            at = [number for number in found if number >= offset]
            t.same(at[:1], [offset], f"the first record from {offset} on")
        # Apache Kafka's controller may have written a NoOpRecord meanwhile.
        beyond = [record.offset for record, _ in records_of(part(end, epoch).records)]
        t.same([offset for offset in beyond if offset < end], [], "records before the end, read from there")
        t.same(name_of(part(1, 0, epoch - 1).error_code), "FENCED_LEADER_EPOCH", "from an old epoch")
        t.same(name_of(part(1, epoch, epoch + 5).error_code), "UNKNOWN_LEADER_EPOCH", "from an epoch to come")
        diverging = part(end + 100, epoch).diverging_epoch
        t.same((diverging.epoch, diverging.end_offset >= end), (epoch, True), "beyond the end")
        t.same(name_of(fetch(1, epoch, cluster_id="another").error_code), "INCONSISTENT_CLUSTER_ID", "another cluster")
        t.same(name_of(fetch(1, epoch, topics=[]).error_code), "INVALID_REQUEST", "no partition")
        t.note("Fetch", "of the metadata log", "from each offset; old and unknown epochs refused; beyond it diverges")


@scenario("I5", needs=Power.CONTROLLER, settings=CONTROLLER)
def a_broker_has_the_epoch_of_its_registration(t: ScenarioClient) -> None:
    """A request with another broker epoch is STALE_BROKER_EPOCH; one of an unknown broker is not registered."""
    connection, ask = _controller(t)
    with connection:
        for api, version in (("BrokerHeartbeat", 1), ("AllocateProducerIds", 0), ("AssignReplicasToDirs", 0)):
            stale = name_of(ask(api, version, broker_id=NODE, broker_epoch=0).error_code)
            unknown = name_of(ask(api, version, broker_id=77, broker_epoch=0).error_code)
            t.note(api, "another epoch, another broker", (stale, unknown))
            t.same(stale, "STALE_BROKER_EPOCH", f"{api} with another epoch")
        registered = ask("BrokerRegistration", 4, broker_id=77, cluster_id="another")
        t.same(name_of(registered.error_code), "INCONSISTENT_CLUSTER_ID", "registration with another cluster")


@scenario("I6", needs=Power.CONTROLLER, settings=CONTROLLER)
def options_of_a_broker_at_the_controller(t: ScenarioClient) -> None:
    """Options of a broker that is not registered are refused, for one that is they are only validated here; an unknown
    kind of resource is UNSUPPORTED_VERSION."""
    connection, ask = _controller(t)
    with connection:
        for kind, name in ((BROKER, str(NODE)), (BROKER, ""), (BROKER, "77"), (BROKER, "x"), (77, "x")):
            row = {"name": "log.cleaner.backoff.ms", "config_operation": SET, "value": "7"}
            wanted = {"resource_type": kind, "resource_name": name, "configs": [row]}
            answer = ask("IncrementalAlterConfigs", 1, resources=[wanted], validate_only=True)
            code = name_of(answer.error_code if hasattr(answer, "error_code") else answer.responses[0].error_code)
            t.note("IncrementalAlterConfigs", (kind, name), code)
            if name == "77":
                t.same(code, "BROKER_ID_NOT_REGISTERED", "a broker that is not there")
            if kind == 77:
                t.same(code, "UNSUPPORTED_VERSION", "an unknown kind")


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
