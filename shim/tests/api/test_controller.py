"""The controller's listener: its own APIs, its address, what a quorum of one answers, and its authorization."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import kafka_shim.api.controller
from kafka_shim.api import APIS
from kafka_shim.api.controller import CONTROLLER_APIS, OWN_ROWS
from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.messages import encode
from kafka_shim.cext.records import build, iterate
from kafka_shim.config import BrokerConfig, ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.listeners import listeners_of
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.headers import encode_request_frame, parse_response_header, response_class
from kafka_shim.protocol.record_frames import ControlType
from kafka_shim.protocol.records.default_principal_data import DefaultPrincipalData
from kafka_shim.targets.requests import make
from kafka_shim.tests.produced import make_topic, metadata
from kafka_shim.wire_client import Connection, WireClientError

METADATA_TOPIC = (1).to_bytes(16)
BOTH = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


@pytest.fixture
def node() -> Iterator[Broker]:
    with Broker(listen=BOTH, controller_listener_names="CONTROLLER", clock="virtual") as running:
        yield running


@pytest.fixture
def controller(node: Broker) -> Iterator[Connection]:
    with Connection(node.bootstrap_controllers, timeout_s=60) as connection:
        yield connection


def codes(response) -> list[int]:
    return [response.error_code, *(one.error_code for topic in response.topics for one in topic.partitions)]


def quorum(**fields):
    return [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0, **fields}]}]


def test_every_row_has_its_file_and_kafkas_range():
    folder = Path(kafka_shim.api.controller.__file__).parent
    files = {
        int(found[1]): found[2] for path in folder.glob("k*.py") if (found := re.match(r"k(\d+)_(\w+)", path.stem))
    }
    assert {row[0]: row[1] for row in OWN_ROWS} == files
    keys = [api.key for api in CONTROLLER_APIS]
    assert keys == sorted(set(keys))
    for api in CONTROLLER_APIS:
        api.load()
        _, first, last, _, _, listeners = API_KEYS[api.key][:6]
        module = import_module(api.module_name)
        assert (api.first, api.last) == (first, last) == (module.MIN, module.MAX)
        assert "controller" in listeners
        assert api.request.API_KEY == api.response.API_KEY == api.key


def test_nothing_of_the_controller_is_missing_but_what_brokers_miss_too():
    served = {api.key for api in APIS}
    of_controllers = {key for key, row in API_KEYS.items() if "controller" in row[5]}
    missing = of_controllers - {api.key for api in CONTROLLER_APIS}
    assert missing == {38, 39, 40} - served


def test_each_listener_has_its_own_table(node: Broker, controller: Connection):
    served = {api.key for api in APIS}
    assert controller.ranges() == {api.key: (api.advertised_min, api.last) for api in CONTROLLER_APIS}
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        # Some are advertised by option alone.
        assert client.ranges().items() <= {api.key: (api.advertised_min, api.last) for api in APIS}.items()
        assert not client.ranges().keys() & {api.key for api in CONTROLLER_APIS if api.key not in served}
        with pytest.raises(WireClientError, match="closed"):
            client.request(make("Vote", topics=[]), 2)
    with pytest.raises(WireClientError, match="closed"):
        controller.request(make("Metadata", topics=[]), 12)


def test_the_controllers_address_is_told(node: Broker, controller: Connection):
    host, _, port = node.bootstrap_controllers.partition(":")
    told = controller.request(make("DescribeCluster", endpoint_type=2), 2)
    assert (told.endpoint_type, told.controller_id, told.cluster_id) == (2, 1, node.cluster_id)
    assert [(one.broker_id, one.host, one.port) for one in told.brokers] == [(1, host, int(port))]
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        for connection in (client, controller):
            voters = connection.request(make("DescribeQuorum", topics=quorum()), 2).nodes
            assert [(one.name, one.host, one.port) for one in voters[0].listeners] == [("CONTROLLER", host, int(port))]
        # Clients of a broker are not sent there.
        assert [one.port for one in metadata(client).brokers] == [node.port]
    image = node.state.metadata.image
    assert [one.name for one in image.controllers[1].end_points] == ["CONTROLLER"]
    assert [one.name for one in image.brokers[1].end_points] == ["PLAINTEXT"]


def test_without_a_listener_of_the_controller_the_clients_is_told(broker: Broker, client: Connection):
    assert broker.bootstrap_controllers == ""
    (voter,) = client.request(make("DescribeQuorum", topics=quorum()), 2).nodes
    assert [(one.name, one.port) for one in voter.listeners] == [("PLAINTEXT", broker.port)]
    assert [one.name for one in broker.state.metadata.image.controllers[1].end_points] == ["PLAINTEXT"]


@pytest.mark.parametrize(
    ("version", "kind", "code"),
    [
        (0, 1, ErrorCode.INVALID_REQUEST),
        (2, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (2, 9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_a_controller_describes_no_brokers(controller: Connection, version: int, kind: int, code: ErrorCode):
    fields = {"endpoint_type": kind} if version else {}
    assert controller.request(make("DescribeCluster", **fields), version).error_code == code


def test_without_a_map_a_controllers_listener_is_plaintext_unless_another_is_secured():
    given = {"listeners": "PLAINTEXT://:0,QUORUM://:0", "controller.listener.names": "QUORUM"}
    _, (listener,) = listeners_of(BrokerConfig.parse(given))
    assert (listener.name, listener.security_protocol) == ("QUORUM", "PLAINTEXT")
    with pytest.raises(ConfigError, match="QUORUM is not in"):
        listeners_of(BrokerConfig.parse({**given, "listeners": "SSL://:0,QUORUM://:0"}))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"replica_epoch": 1, "replica_id": 2}, [0, 0]),
        ({"replica_epoch": 0, "replica_id": 2, "last_offset_epoch": -1}, [0, ErrorCode.INVALID_REQUEST]),
        ({"replica_epoch": 1, "replica_id": 2, "last_offset_epoch": 1}, [0, ErrorCode.INVALID_REQUEST]),
        ({"replica_epoch": 1, "replica_id": -1}, [0, ErrorCode.INVALID_REQUEST]),
        ({"replica_epoch": 9, "replica_id": 2}, [0, ErrorCode.INVALID_REQUEST]),
        (
            {"replica_epoch": 1, "replica_id": 2, "voter_directory_id": b"x" * 16},
            [0, ErrorCode.INVALID_VOTER_KEY],
        ),
    ],
)
def test_no_vote_is_granted_and_no_epoch_taken(node: Broker, controller: Connection, fields, expected):
    epoch = node.state.metadata.epoch
    request = make("Vote", cluster_id=node.cluster_id, voter_id=1, topics=quorum(**fields))
    response = controller.request(request, 2)
    assert codes(response) == expected
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.vote_granted) == (1, epoch, False)
    assert node.state.metadata.epoch == epoch


@pytest.mark.parametrize("name", ["BeginQuorumEpoch", "EndQuorumEpoch"])
@pytest.mark.parametrize(
    ("leader", "epoch", "code"),
    [
        (1, 1, ErrorCode.NONE),
        (1, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 1, ErrorCode.INVALID_REQUEST),
        (2, 1, ErrorCode.INVALID_REQUEST),
        (2, 9, ErrorCode.INVALID_REQUEST),
    ],
)
def test_nobody_else_leads(node: Broker, controller: Connection, name: str, leader: int, epoch: int, code: ErrorCode):
    request = make(name, cluster_id=None, topics=quorum(leader_id=leader, leader_epoch=epoch))
    assert codes(controller.request(request, 1)) == [0, code]
    assert node.state.metadata.epoch == 1


@pytest.mark.parametrize("name", ["Vote", "BeginQuorumEpoch", "EndQuorumEpoch"])
def test_another_cluster_or_partition_is_refused(controller: Connection, name: str):
    response = controller.request(make(name, cluster_id="another", topics=quorum()), 1)
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    other = quorum()
    other[0]["partitions"][0]["partition_index"] = 1
    for topics in ([], other, quorum() * 2):
        assert controller.request(make(name, topics=topics, cluster_id=None), 1).error_code == ErrorCode.INVALID_REQUEST


def fetch(offset: int, last_epoch: int = 1, epoch: int = 1, **fields):
    partition = {"fetch_offset": offset, "last_fetched_epoch": last_epoch, "current_leader_epoch": epoch}
    topic = {"topic_id": METADATA_TOPIC, "partitions": [partition]}
    return make("Fetch", **{"max_wait_ms": 0, "max_bytes": 1 << 20, "topics": [topic], "cluster_id": None, **fields})


def fetched(response):
    return response.responses[0].partitions[0]


def test_an_observer_reads_the_metadata_log(node: Broker, controller: Connection):
    found = fetched(controller.request(fetch(0, 0), 17))
    log = node.state.metadata.partition_log
    offsets = [record.offset for record in iterate(found.records, 0, len(found.records))]
    assert offsets == list(range(log.log_end_offset))
    assert (found.high_watermark, found.current_leader.leader_id) == (log.log_end_offset, 1)
    assert fetched(controller.request(fetch(log.log_end_offset), 17)).records in (None, b"")
    for request, code in (
        (fetch(0, 0, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (fetch(0, 0, 9), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (fetch(-1), ErrorCode.INVALID_REQUEST),
        (fetch(0, 2), ErrorCode.INVALID_REQUEST),
        (fetch(0, max_wait_ms=-1), ErrorCode.INVALID_REQUEST),
    ):
        assert fetched(controller.request(request, 17)).error_code == code
    assert controller.request(fetch(0, topics=[]), 17).error_code == ErrorCode.INVALID_REQUEST
    diverging = fetched(controller.request(fetch(10**6), 17)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (1, log.log_end_offset)


def test_an_observer_is_told_where_the_leader_is_from_version_17_on(node: Broker, controller: Connection):
    host, _, port = node.bootstrap_controllers.partition(":")
    told = [(one.node_id, one.host, one.port) for one in controller.request(fetch(0, 0), 17).node_endpoints or ()]
    assert told == [(1, host, int(port))]
    assert not controller.request(fetch(0, 0), 16).node_endpoints


def test_an_observer_waits_for_the_next_record_or_its_timeout(node: Broker, controller: Connection):
    end = node.state.metadata.next_offset
    controller.send(fetch(end, max_wait_ms=3_600_000), 17)
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t")
    found = fetched(controller.receive(1, 17)[1])
    assert found.high_watermark > end
    assert found.records
    controller.send(fetch(node.state.metadata.next_offset, max_wait_ms=1000), 17)
    while node.call(lambda: not node.state.parked):
        pass
    node.clock.advance("1s")
    assert fetched(controller.receive(1, 17)[1]).error_code == 0


def test_a_snapshot_is_read_in_pieces(node: Broker, controller: Connection):
    metadata = node.state.metadata
    path = metadata.snapshot_path(5, 1)
    path.write_bytes(b"0123456789")

    def ask(position: int, name: str = "__cluster_metadata", epoch: int = 1, end: int = 5):
        partition = {
            "current_leader_epoch": epoch,
            "snapshot_id": {"end_offset": end, "epoch": 1},
            "position": position,
        }
        topics = [{"name": name, "partitions": [partition]}]
        request = make("FetchSnapshot", cluster_id=None, max_bytes=6, topics=topics)
        return controller.request(request, 1).topics[0].partitions[0]

    first, second = ask(0), ask(6)
    assert bytes(first.unaligned_records) + bytes(second.unaligned_records) == b"0123456789"
    assert (first.size, second.position) == (10, 6)
    assert ask(10).error_code == ask(-1).error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert ask(0, end=6).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert ask(0, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(0, "t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert controller.request(make("FetchSnapshot", topics=[], cluster_id=None), 1).error_code == 42
    assert controller.request(make("FetchSnapshot", topics=[], cluster_id="x"), 1).error_code == 104
    # Whoever begins at offset 0 is sent to it.
    assert fetched(controller.request(fetch(0, 0), 17)).snapshot_id.end_offset == 5


def test_a_broker_with_an_old_epoch_is_refused(node: Broker, controller: Connection):
    for name, version in (
        ("AlterPartition", 3),
        ("BrokerHeartbeat", 2),
        ("AllocateProducerIds", 0),
        ("AssignReplicasToDirs", 0),
    ):
        for broker_id, epoch in ((77, 1), (1, -1)):
            topics = {"topics": [{"partitions": []}]} if name == "AlterPartition" else {}
            request = make(name, broker_id=broker_id, broker_epoch=epoch, **topics)
            response = controller.request(request, version)
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


def own(node: Broker) -> dict[str, int]:
    return {"broker_id": 1, "broker_epoch": node.state.metadata.broker_epoch}


def test_a_block_of_producer_ids_is_given_once(node: Broker, controller: Connection):
    blocks = [controller.request(make("AllocateProducerIds", **own(node)), 0) for _ in range(2)]
    assert [(one.error_code, one.producer_id_len) for one in blocks] == [(0, 1000)] * 2
    assert blocks[1].producer_id_start == blocks[0].producer_id_start + 1000


def test_the_only_broker_is_alive_and_no_other_registers(node: Broker, controller: Connection):
    beat = controller.request(make("BrokerHeartbeat", **own(node), current_metadata_offset=10**6, want_fence=True), 2)
    assert (beat.error_code, beat.is_caught_up, beat.is_fenced, beat.should_shut_down) == (0, True, False, False)
    for broker_id, cluster_id, code in (
        (77, node.cluster_id, ErrorCode.INVALID_REGISTRATION),
        (1, node.cluster_id, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (1, "another", ErrorCode.INCONSISTENT_CLUSTER_ID),
    ):
        request = make("BrokerRegistration", broker_id=broker_id, cluster_id=cluster_id)
        assert controller.request(request, 4).error_code == code
    incarnation = node.state.metadata.image.brokers[1].incarnation_id
    request = make("BrokerRegistration", broker_id=1, cluster_id=node.cluster_id, incarnation_id=incarnation)
    assert controller.request(request, 4).broker_epoch == node.state.metadata.broker_epoch
    assert list(node.state.metadata.image.brokers) == [1]


def test_a_partition_is_changed_by_nobody(node: Broker, controller: Connection):
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t")
    topic = node.state.metadata.image.topics["t"]
    (partition, *_) = topic.partitions
    fits = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "new_isr_with_epochs": [own(node)],
    }
    changes: list[tuple[dict, ErrorCode]] = [
        ({}, ErrorCode.NONE),
        ({"partition_index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"new_isr_with_epochs": []}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"new_isr_with_epochs": [{"broker_id": 1, "broker_epoch": 5000}]}, ErrorCode.INELIGIBLE_REPLICA),
    ]
    for change, code in changes:
        topics = [{"topic_id": topic.topic_id, "partitions": [{**fits, **change}]}]
        (answer,) = controller.request(make("AlterPartition", **own(node), topics=topics), 3).topics[0].partitions
        assert answer.error_code == code, change
    topics = [{"topic_id": b"x" * 16, "partitions": [fits]}]
    (answer,) = controller.request(make("AlterPartition", **own(node), topics=topics), 3).topics[0].partitions
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_where_a_partition_is_the_node_knows(node: Broker, controller: Connection):
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        make_topic(client, "t")
    topic = node.state.metadata.image.topics["t"]
    here = topic.partitions[0].directories[0]

    def told(directory: bytes, topic_id: bytes, number: int) -> int:
        topics = [{"topic_id": topic_id, "partitions": [{"partition_index": number}]}]
        request = make("AssignReplicasToDirs", **own(node), directories=[{"id": directory, "topics": topics}])
        return controller.request(request, 0).directories[0].topics[0].partitions[0].error_code

    assert told(here, topic.topic_id, 0) == ErrorCode.NONE
    assert told(b"x" * 16, topic.topic_id, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told(here, topic.topic_id, 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told(here, b"x" * 16, 0) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_controller_registers_itself_alone(node: Broker, controller: Connection):
    listeners = [{"name": "CONTROLLER", "host": "elsewhere", "port": 9, "security_protocol": 0}]
    request = make("ControllerRegistration", controller_id=1, listeners=listeners)
    assert controller.request(request, 0).error_code == 0
    assert node.state.metadata.image.controllers[1].end_points[0].host == "elsewhere"
    assert controller.request(make("ControllerRegistration", controller_id=7), 0).error_code == 119


def test_the_one_voter_stays(node: Broker, controller: Connection):
    host, _, port = node.bootstrap_controllers.partition(":")
    good = {
        "cluster_id": node.cluster_id,
        "current_leader_epoch": 1,
        "voter_id": 1,
        "voter_directory_id": node.state.metadata.directory_id,
        "listeners": [{"name": "CONTROLLER", "host": host, "port": int(port)}],
        "kraft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
    }
    changes: list[tuple[dict, ErrorCode]] = [
        ({}, ErrorCode.NONE),
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"current_leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter_id": 2}, ErrorCode.VOTER_NOT_FOUND),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"listeners": [{"name": "CONTROLLER", "host": "x", "port": 1}]}, ErrorCode.INVALID_REQUEST),
        (
            {"kraft_version_feature": {"min_supported_version": 1, "max_supported_version": 0}},
            ErrorCode.INVALID_REQUEST,
        ),
        (
            {"kraft_version_feature": {"min_supported_version": 1, "max_supported_version": 1}},
            ErrorCode.INVALID_REQUEST,
        ),
    ]
    for change, code in changes:
        response = controller.request(make("UpdateRaftVoter", **{**good, **change}), 0)
        assert response.error_code == code, change
        assert response.current_leader.port == int(port)
    own_key = {"voter_id": 1, "voter_directory_id": node.state.metadata.directory_id, "cluster_id": None}
    listeners = good["listeners"]
    add, remove = make("AddRaftVoter", **own_key, listeners=listeners), make("RemoveRaftVoter", **own_key)
    assert {controller.request(one, 0).error_code for one in (add, remove)} == {ErrorCode.UNSUPPORTED_VERSION}
    node.call(node.state.metadata.upgrade_kraft_version)
    response = controller.request(add, 1)
    assert response.error_code == ErrorCode.DUPLICATE_VOTER
    assert "is already part of the set of voters [ReplicaKey(id=1, directoryId=" in response.error_message
    assert controller.request(remove, 0).error_code == ErrorCode.VOTER_NOT_FOUND
    other = make("AddRaftVoter", voter_id=2, voter_directory_id=b"x" * 16, listeners=listeners, cluster_id=None)
    assert controller.request(other, 1).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_voter_records_its_new_address(tmp_path: Path):
    """The port of the controller's listener is another one after each start; the log learns of it once (KIP-853)."""

    def start(listen: str) -> tuple[str, int]:
        with Broker(listen=listen, controller_listener_names="CONTROLLER", data_dir=tmp_path) as node:
            store = node.state.metadata
            if not store.kraft_version:
                node.call(store.upgrade_kraft_version)
            (voter,) = store._log._voters.voters
            (endpoint,) = voter.endpoints
            assert f"{endpoint.host}:{endpoint.port}" == node.bootstrap_controllers
            return node.bootstrap_controllers, voters_records(tmp_path)

    first, count = start(BOTH)
    assert count == 1
    other, count = start(BOTH)
    assert (other != first, count) == (True, 2)
    assert start(f"PLAINTEXT://127.0.0.1:0,CONTROLLER://{other}") == (other, 2)


def voters_records(data_dir: Path) -> int:
    """How often the metadata log says who votes."""
    (log,) = (data_dir / "__cluster_metadata-0").glob("*.log")
    stored = log.read_bytes()
    records = (
        record
        for batch in scan_all(stored)
        if batch.is_control
        for record in iterate(stored, batch.position, batch.position + batch.size_bytes)
    )
    return sum(int.from_bytes(record.key[2:4]) == ControlType.KRAFT_VOTERS for record in records)


def test_enabling_eligible_leader_replicas_removes_the_option_of_the_broker(node: Broker):
    """The option is gone at once, also where it is in force."""

    def level(wanted: int, kind: int) -> None:
        row = {"feature": "eligible.leader.replicas.version", "max_version_level": wanted, "upgrade_type": kind}
        assert client.request(make("UpdateFeatures", timeout_ms=9000, feature_updates=[row]), 1).error_code == 0

    with Connection(node.bootstrap_servers) as client:
        level(0, 2)
        change = {"name": "min.insync.replicas", "config_operation": 0, "value": "2"}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        client.request(make("IncrementalAlterConfigs", resources=[resource]), 1)
        assert node.state.config.dynamic == {"min.insync.replicas": "2"}
        level(1, 1)
        assert node.state.config.dynamic == {"min.insync.replicas": "1"}
        asked = {"resource_type": 4, "resource_name": "1", "configuration_keys": ["min.insync.replicas"]}
        (result,) = client.request(make("DescribeConfigs", resources=[asked]), 4).results
        assert [(one.value, one.config_source) for one in result.configs] == [("1", 3)]


def test_a_broker_of_another_life_is_forgotten_and_the_running_one_is_not(node: Broker, controller: Connection):
    from kafka_shim.protocol.records.register_broker_record import RegisterBrokerRecord

    store = node.state.metadata
    node.call(store.commit, [RegisterBrokerRecord(broker_id=9, broker_epoch=3)])
    assert controller.request(make("UnregisterBroker", broker_id=9), 0).error_code == 0
    assert list(store.image.brokers) == [1]
    gone = controller.request(make("UnregisterBroker", broker_id=9), 0)
    assert (gone.error_code, gone.error_message) == (102, "Broker ID 9 is not currently registered")
    assert controller.request(make("UnregisterBroker", broker_id=1), 0).error_code == ErrorCode.INVALID_REQUEST


def envelope(request, version: int, principal: str = "alice", address: bytes = b"\x7f\0\0\x05"):
    data = DefaultPrincipalData(type="User", name=principal, token_authenticated=False)
    return make(
        "Envelope",
        request_data=encode_request_frame(request, version, 7, "inner")[4:],
        request_principal=b"\0\0" + encode(data, 0),
        client_host_address=address,
    )


def test_a_request_in_an_envelope_is_its_clients(node: Broker, controller: Connection):
    asked = []

    class Nobody:
        def allowed(self, principal, host, operation, resource_type, names):
            asked.append((principal, host, operation.name))
            return set(names) if operation.name == "CLUSTER_ACTION" else set()

        def allowed_on_any(self, *_):
            return False

    inner = make("UnregisterBroker", broker_id=77)
    node.state.authorizer = Nobody()
    try:
        outer = controller.request(envelope(inner, 0), 0)
    finally:
        node.state.authorizer = None
    assert asked == [("User:ANONYMOUS", "127.0.0.1", "CLUSTER_ACTION"), ("User:alice", "127.0.0.5", "ALTER")]
    assert outer.error_code == 0

    def inside(outer):
        from kafka_shim.cext.messages import decode

        correlation_id, start = parse_response_header(64, 0, outer.response_data)
        assert correlation_id == 7
        return decode(response_class(64), 0, outer.response_data, start)

    assert inside(outer).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert inside(controller.request(envelope(inner, 0), 0)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    for request, code in (
        (envelope(make("ApiVersions"), 0), ErrorCode.INVALID_REQUEST),
        (envelope(inner, 0, address=b"123"), ErrorCode.INVALID_REQUEST),
        (make("Envelope", request_principal=b"\0", client_host_address=bytes(4)), 97),
        (
            make("Envelope", request_principal=b"\0\0\x05User\x02a\0\0", client_host_address=bytes(4)),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ):
        assert controller.request(request, 0).error_code == code


def test_quotas_are_altered_in_an_envelope(node: Broker, controller: Connection):
    """Their handler works in steps, unlike most."""
    from kafka_shim.cext.messages import decode

    entity = [{"entity_type": "user", "entity_name": "alice"}]
    entry = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 5000.0}]}
    outer = controller.request(envelope(make("AlterClientQuotas", entries=[entry]), 1), 0)
    assert outer.error_code == 0
    _, start = parse_response_header(49, 1, outer.response_data)
    inner = decode(response_class(49), 1, outer.response_data, start)
    assert [one.error_code for one in inner.entries] == [0]
    assert (("user", "alice"),) in node.state.metadata.image.quotas


def test_what_kafkas_controller_has_no_handler_for(controller: Connection):
    for name in ("DescribeDelegationToken", "DescribeUserScramCredentials"):
        low, _ = controller.ranges()[API_KEYS_BY_NAME[name]]
        assert controller.request(make(name), low).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


API_KEYS_BY_NAME = {row[0]: key for key, row in API_KEYS.items()}
# What each request needs on the cluster; the others need it on what they name.
NEEDED = {
    **dict.fromkeys((1, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82), "CLUSTER_ACTION"),
    **dict.fromkeys((30, 31, 43, 45, 51, 57, 60, 64, 80, 81), "ALTER"),
    **dict.fromkeys((29, 46, 55), "DESCRIBE"),
    49: "ALTER_CONFIGS",
}


def test_the_cluster_operation_of_each_api_is_kafkas():
    assert {
        api.key: "".join(one.name for one in api.cluster_operations)
        for api in CONTROLLER_APIS
        if api.cluster_operations
    } == NEEDED


def test_a_client_that_may_do_nothing_is_told_so(node: Broker, controller: Connection):
    class Nobody:
        def allowed(self, *_):
            return set()

        def allowed_on_any(self, *_):
            return False

    node.state.authorizer = Nobody()
    for key in NEEDED:
        name, _, last = API_KEYS[key][:3]
        request = make(name)
        if name == "Fetch":
            request = fetch(0)
        response = controller.request(request, last)
        found = {getattr(response, "error_code", 31)}
        if key in (30, 31, 49, 29, 46, 51):  # the error of such a request is at each of its entries
            continue
        assert found == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}, name
    node.state.authorizer = None


def test_a_record_appended_by_hand_reaches_an_observer_whole(node: Broker, controller: Connection):
    """More than is copied at once: the sender reads it from the file."""
    log = node.state.metadata.partition_log
    start = log.log_end_offset
    batch = build([(None, b"x" * 200_000, 1, ())], leader_epoch=node.state.metadata.epoch)
    node.call(lambda: log.append_batch(batch, now_ms=1))
    found = fetched(controller.request(fetch(start), 17))
    assert len(found.records) > 200_000


def alter(connection: Connection, name: str, option: str, value: str | None, kind: int = 4):
    configs = [{"name": option, "config_operation": 0, "value": value}]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    (told,) = connection.request(make("IncrementalAlterConfigs", resources=[resource], validate_only=True), 1).responses
    replaced = {**resource, "configs": [{"name": option, "value": value}]}
    (again,) = connection.request(make("AlterConfigs", resources=[replaced], validate_only=True), 2).responses
    return [(one.error_code, one.error_message) for one in (told, again)]


def test_the_controller_leaves_a_brokers_options_to_the_broker(node: Broker, controller: Connection):
    """As Kafka's, which stores them for any broker, whatever they say."""
    assert alter(controller, "1", "sasl.kerberos.ticket.renew.jitter", "abc") == [(0, None)] * 2
    assert alter(controller, "1", "no.such", "x") == [(0, None)] * 2
    message = "No node with id 9 found."
    assert alter(controller, "9", "no.such", "x") == [(ErrorCode.BROKER_ID_NOT_REGISTERED, message)] * 2
    message = "Unable to parse broker name as a base 10 number."
    assert alter(controller, "x", "no.such", "x") == [(ErrorCode.INVALID_REQUEST, message)] * 2
    assert [code for code, _ in alter(controller, "-1", "no.such", "x")] == [ErrorCode.INVALID_REQUEST] * 2
    assert [code for code, _ in alter(controller, "1", "cordoned.log.dirs", "/x")] == [ErrorCode.INVALID_CONFIG] * 2
    assert [code for code, _ in alter(controller, "1", "a", "x", kind=77)] == [ErrorCode.UNSUPPORTED_VERSION] * 2
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        assert [code for code, _ in alter(client, "9", "no.such", "x")] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize("unusable", [("max.connections", "abc"), ("ssl.keystore.location", "a.jks")])
def test_a_stored_option_without_effect_is_no_reason_to_refuse_another(node: Broker, controller, name, unusable):
    """The controller stores it. What a broker leaves out of its options it leaves out of what it checks, as Kafka's."""

    def change(connection: Connection, option: str, value: str) -> tuple[int, str | None]:
        configs = [{"name": option, "config_operation": 0, "value": value}]
        resource = {"resource_type": 4, "resource_name": name, "configs": configs}
        (told,) = connection.request(make("IncrementalAlterConfigs", resources=[resource]), 1).responses
        return told.error_code, told.error_message

    assert change(controller, *unusable) == (0, None)
    with Connection(node.bootstrap_servers, timeout_s=60) as client:
        assert change(client, "background.threads", "11") == (0, None)
        assert change(client, *unusable)[0] == ErrorCode.INVALID_REQUEST
    option, value = unusable
    stored = node.state.metadata.image.config_of(4, name)
    assert (stored[option], stored["background.threads"]) == (value, "11")


def test_eligible_leader_replicas_need_the_clusters_min_insync_replicas(node: Broker, controller: Connection):
    def finalise(level: int, kind: int):
        updates = [{"feature": "eligible.leader.replicas.version", "max_version_level": level, "upgrade_type": kind}]
        assert controller.request(make("UpdateFeatures", feature_updates=updates), 2).error_code == 0

    finalise(0, 2)
    name = "min.insync.replicas"
    stored = [{"name": name, "config_operation": 0, "value": "1"}]
    resources = [{"resource_type": 4, "resource_name": "1", "configs": stored}]
    request = make("IncrementalAlterConfigs", resources=resources)
    assert controller.request(request, 1).responses[0].error_code == 0
    finalise(1, 1)
    image = node.state.metadata.image
    assert image.config_of(4, "")[name] == "1"
    assert name not in image.config_of(4, "1")
