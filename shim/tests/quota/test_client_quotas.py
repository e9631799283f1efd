"""Client quotas on a broker with a virtual clock: who may set them, what they do to requests, and what outlives a
restart."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import encode_request_frame
from kafka_shim.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafka_shim.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from kafka_shim.protocol.messages.fetch_request import FetchRequest
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_shim.protocol.messages.share_fetch_request import ShareFetchRequest
from kafka_shim.quota.connection_quotas import ConnectionQuotas
from kafka_shim.quota.request_throttle import RequestThrottle
from kafka_shim.targets.waiting import wait_until
from kafka_shim.tests.produced import batch, fetch_request, make_topic, produce_request
from kafka_shim.tests.share.share_member import ShareMember, open_share
from kafka_shim.wire_client import Connection, WireClientError

TOO_LARGE = "Proposed value for producer_byte_rate is too large for a LONG."
ANONYMOUS = {"user": "ANONYMOUS"}
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
# What Apache Kafka 4.3.1 answers in `test_answers_list_entities_and_values_in_the_order_of_kafkas_maps`.
ALTERED = [
    [("client-id", "b"), ("user", "a")],
    [("ip", "127.0.0.1")],
    [("client-id", "x"), ("user", "y")],
    [("user", "a")],
]
DESCRIBED = [
    ([("ip", "127.0.0.1")], ["connection_creation_rate"]),
    ([("client-id", "x"), ("user", "y")], ["request_percentage"]),
    ([("user", "a")], ["consumer_byte_rate", "request_percentage", "producer_byte_rate"]),
    ([("user", "y")], ["controller_mutation_rate", "request_percentage", "producer_byte_rate"]),
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(clock="virtual") as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Connection]:
    with Connection(broker.bootstrap_servers, timeout_s=60) as connection:
        yield connection


def entry(entity: Mapping[str, str | None], **values: float | None) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
    )


def alter(client: Connection, *entries: EntryData, **how: Any) -> list[tuple[int, str | None]]:
    told = client.request(AlterClientQuotasRequest(entries=list(entries), **how), 1)
    return [(one.error_code, one.error_message) for one in told.entries]


def describe(client: Connection, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    told = client.request(DescribeClientQuotasRequest(components=asked, strict=strict), 1)
    if told.error_code:
        return told.error_code, told.error_message, told.entries
    return {
        tuple((part.entity_type, part.entity_name) for part in one.entity): {
            value.key: value.value for value in one.values
        }
        for one in told.entries
    }


def is_silent(client: Connection) -> bool:
    """Whether nothing arrives. The broker has handled what came before: another connection was answered after it."""
    client._socket.setblocking(False)
    try:
        return client._socket.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return True
    finally:
        client._socket.setblocking(True)


def answered_after(broker: Broker, client: Connection, throttle_ms: int) -> None:
    """The connection is muted for exactly this time."""
    client.send(HeartbeatRequest(group_id="g", member_id="m"), 4)
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        other.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        broker.clock.advance(throttle_ms - 1)
        other.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        assert is_silent(client)
    broker.clock.advance(1)
    client.receive(12, 4)


# --- what is throttled


def test_produce_over_quota_is_served_then_its_connection_is_muted(broker: Broker, client: Connection):
    make_topic(client, "t")
    assert alter(client, entry(ANONYMOUS, producer_byte_rate=1000)) == [(0, None)]
    told = client.request(produce_request("t", 0, batch(b"x" * 19_000)), 9)
    assert told.responses[0].partition_responses[0].base_offset == 0
    # All windows but one: 10 seconds. What exceeds 10,000 bytes takes its time.
    assert 9000 < told.throttle_time_ms < 10_000
    answered_after(broker, client, told.throttle_time_ms)


def test_what_was_used_counts_against_a_quota_that_comes_again(broker: Broker, client: Connection):
    """As in Apache Kafka, where who takes a quota away and sets another one gives nobody a fresh window."""
    make_topic(client, "t")

    def produced(size_bytes: int) -> int:
        with Connection(broker.bootstrap_servers, timeout_s=60, client_id="c") as producer:
            return producer.request(produce_request("t", 0, batch(b"x" * size_bytes)), 9).throttle_time_ms

    alter(client, entry({"client-id": "c"}, producer_byte_rate=1000))
    assert 9000 < produced(19_000) < 10_000
    alter(client, entry({"client-id": "c"}, producer_byte_rate=None))
    assert produced(10) == 0
    alter(client, entry({"client-id": "c"}, producer_byte_rate=1000))
    assert 9000 < produced(10) < 10_000


def test_produce_without_answer_is_counted_and_mutes(broker: Broker, client: Connection):
    make_topic(client, "t")
    alter(client, entry(ANONYMOUS, producer_byte_rate=1000))
    client.send(produce_request("t", 0, batch(b"x" * 20_000), acks=0), 9)
    client.send(HeartbeatRequest(group_id="g", member_id="m"), 4)
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        for _ in range(3):
            other.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        assert is_silent(client)
        broker.clock.advance(11_000)
        client.receive(12, 4)


def test_fetch_over_quota_gets_nothing_and_reads_the_same_later(broker: Broker, client: Connection):
    make_topic(client, "t")
    client.request(produce_request("t", 0, batch(b"x" * 9000)), 9)
    alter(client, entry(ANONYMOUS, consumer_byte_rate=1000))
    first = client.request(fetch_request({("t", 0): 0}), 12)
    assert first.throttle_time_ms == 0
    assert len(first.responses[0].partitions[0].records) > 9000
    second = client.request(fetch_request({("t", 0): 0}), 12)
    assert second.responses == []
    assert second.throttle_time_ms > 0
    answered_after(broker, client, second.throttle_time_ms)
    broker.clock.advance(11_000)
    third = client.request(fetch_request({("t", 0): 0}), 12)
    assert len(third.responses[0].partitions[0].records) > 9000


def test_a_fetch_that_waits_when_the_first_quota_is_set_is_charged(broker: Broker, client: Connection):
    """As in Kafka, which looks for a quota when it answers: all that came meanwhile was given at once."""
    make_topic(client, "t")
    with Connection(broker.bootstrap_servers, timeout_s=60) as waiting:
        request = fetch_request({("t", 0): 0}, max_wait_ms=600_000)
        waiting.send(request, 12)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)) == 1, "it waits")
        alter(client, entry(ANONYMOUS, consumer_byte_rate=100))
        client.request(produce_request("t", 0, batch(b"x" * 9000)), 9)
        answer = waiting.receive(FetchRequest.API_KEY, 12)[1]
    assert answer.responses == []
    assert answer.throttle_time_ms > 0


def charged_late(
    broker: Broker, client: Connection, request: ProduceRequest, version: int, point: str, **where: Any
) -> Any:
    """Returns the answer to a Produce that waits at a fault point as the first quota is set: all of it is charged."""
    broker.faults.arm(point, "hold", **where)
    with Connection(broker.bootstrap_servers, timeout_s=60) as waiting:
        waiting.send(request, version)
        wait_until(lambda: broker.faults.reached(point) == 1, "it waits")
        alter(client, entry(ANONYMOUS, producer_byte_rate=100))
        broker.faults.disarm()
        answer = waiting.receive(ProduceRequest.API_KEY, version)[1]
    size_bytes = len(encode_request_frame(request, version, 1, "kafka-shim")) - 4
    assert abs(answer.throttle_time_ms - (size_bytes / 100 - 10) * 1000) < 2000
    return answer


def test_a_produce_that_waits_when_the_first_quota_is_set_is_charged(broker: Broker, client: Connection):
    make_topic(client, "t")
    client.request(FindCoordinatorRequest(key_type=1, coordinator_keys=["app"]), 4)
    given = client.request(InitProducerIdRequest(transactional_id="app", transaction_timeout_ms=60_000), 5)
    records = batch(
        b"x" * 9000,
        producer_id=given.producer_id,
        producer_epoch=given.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    request = produce_request("t", 0, records)
    request.transactional_id = "app"
    answer = charged_late(broker, client, request, 12, "produce.verified")
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_large_produce_that_waits_when_the_first_quota_is_set_is_charged(broker: Broker, client: Connection):
    partitions = [PartitionProduceData(index=number, records=b"") for number in range(30_000)]
    topic = TopicProduceData(name="u", partition_data=partitions)
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
    answer = charged_late(broker, client, request, 9, "request.received", where={"api_key": ProduceRequest.API_KEY})
    assert len(answer.responses[0].partition_responses) == 30_000


def test_a_join_that_waits_when_the_first_quota_is_set_is_charged():
    with Broker(clock="virtual", group_initial_rebalance_delay_ms=3000) as broker, ExitStack() as stack:
        client = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=60))
        waiting = stack.enter_context(Connection(broker.bootstrap_servers, timeout_s=60, client_id="waits"))
        request = JoinGroupRequest(group_id="g", session_timeout_ms=60_000, rebalance_timeout_ms=60_000)
        request.protocol_type, request.protocols = "consumer", [JoinGroupRequestProtocol(name="range")]
        client.request(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        request.member_id = waiting.request(request, 9).member_id
        assert request.member_id
        waiting.send(request, 9)
        wait_until(lambda: broker.call(lambda: len(broker.state.groups._runtime.purgatory)) == 1, "it waits")
        alter(client, entry({"client-id": "waits"}, request_percentage=0.000001))
        broker.clock.advance(3000)
        answer = waiting.receive(JoinGroupRequest.API_KEY, 9)[1]
        assert (answer.error_code, answer.throttle_time_ms) == (0, 1000)


def test_a_share_fetch_that_waits_when_the_first_quota_is_set_is_charged(broker: Broker, client: Connection):
    make_topic(client, "t")
    topic_id = broker.call(lambda: broker.state.metadata.image.topics["t"].topic_id)
    open_share(broker, "g", topic_id)
    with ShareMember(broker, "g", "AAAAAAAAAAAAAAAAAAAAAA", topic_id) as member:
        assert member.fetch().error_code == 0
        member.connection.send(member.fetch_request(max_wait_ms=60_000), member.version)
        wait_until(lambda: broker.call(lambda: len(broker.state.parked)) == 1, "it waits")
        alter(client, entry({"client-id": "kafka-shim-cli"}, request_percentage=0.000001))
        with Connection(broker.bootstrap_servers, timeout_s=60, client_id="other") as other:
            other.request(produce_request("t", 0, batch(b"x")), 9)
        answer = member.connection.receive(ShareFetchRequest.API_KEY, member.version)[1]
    assert (answer.error_code, answer.throttle_time_ms) == (0, 1000)


def test_throttled_fetch_leaves_its_session_as_it_was(broker: Broker, client: Connection):
    make_topic(client, "t")
    client.request(produce_request("t", 0, batch(b"x" * 9000, timestamp_ms=broker.clock.now_ms())), 9)
    opened = client.request(fetch_request({("t", 0): 0}, session_epoch=0), 12)
    alter(client, entry(ANONYMOUS, consumer_byte_rate=100))
    throttled = client.request(fetch_request({("t", 0): 0}, session_id=opened.session_id, session_epoch=1), 12)
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    assert throttled.throttle_time_ms > 0
    alter_later(broker, entry(ANONYMOUS, consumer_byte_rate=None))
    again = client.request(fetch_request({}, session_id=opened.session_id, session_epoch=2), 12)
    assert len(again.responses[0].partitions[0].records) > 9000


def alter_later(broker: Broker, *entries: EntryData) -> None:
    """From a connection of its own, after all throttling is over."""
    broker.clock.advance(120_000)
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        assert alter(other, *entries) == [(0, None)] * len(entries)


def test_time_of_requests_is_throttled_for_one_window_at_most(client: Connection):
    alter(client, entry(ANONYMOUS, request_percentage=0.000001))
    told = client.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
    assert told.throttle_time_ms == 1000


def test_time_of_a_thread_that_checks_a_batch_counts(
    broker: Broker, client: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(client, "t")
    alter(client, entry(ANONYMOUS, request_percentage=100))
    seconds: list[float] = []
    worked = RequestThrottle.worked

    def count(self: RequestThrottle, spent_ns: int) -> None:
        seconds.append(spent_ns / 1e9)
        worked(self, spent_ns + 60 * 10**9)

    monkeypatch.setattr(RequestThrottle, "worked", count)
    told = client.request(produce_request("t", 0, batch(b"x" * 1_000_000, codec=1)), 9)
    assert len(seconds) == 1
    assert 0 < seconds[0] < 60
    assert told.throttle_time_ms > 0


def test_client_without_a_quota_is_not_throttled(client: Connection):
    make_topic(client, "t")
    alter(client, entry({"user": "somebody else"}, producer_byte_rate=1, request_percentage=0.000001))
    told = client.request(produce_request("t", 0, batch(b"x" * 20_000)), 9)
    assert told.throttle_time_ms == 0


def test_muted_connection_does_not_hold_up_a_stop(broker: Broker, client: Connection):
    make_topic(client, "t")
    alter(client, entry(ANONYMOUS, producer_byte_rate=1))
    assert client.request(produce_request("t", 0, batch(b"x" * 20_000)), 9).throttle_time_ms > 1_000_000
    broker.stop()  # the virtual clock stands still, so a wait for it would never end


def test_address_over_its_rate_of_connections_is_held_then_refused(broker: Broker, client: Connection):
    """A rate of 1 allows 10 in the first windows. What the client sends on a held connection is not served."""
    assert alter(client, entry({"ip": "127.0.0.1"}, connection_creation_rate=1)) == [(0, None)]
    for _ in range(10):
        with Connection(broker.bootstrap_servers, timeout_s=60) as other:
            other.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
    with Connection(broker.bootstrap_servers, timeout_s=60) as held:
        held.send(HeartbeatRequest(group_id="g", member_id="m"), 4)
        client.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        assert is_silent(held)
        broker.clock.advance(1000)
        with pytest.raises(WireClientError):
            held.receive(12, 4)
    # It takes no place among the open connections any more.
    assert broker.call(lambda: broker._server._socket_server._acceptors["PLAINTEXT"]._budget.pending) == 0
    broker.clock.advance(20_000)
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        other.request(HeartbeatRequest(group_id="g", member_id="m"), 4)


def test_a_quota_of_a_host_holds_for_its_address_also_after_a_restart(tmp_path: Path):
    def rates() -> tuple[float | None, ...]:
        bounds = running._server.broker.quotas.connections._bounds
        return tuple(bounds.get(name) for name in ("127.0.0.1", "localhost"))

    with Broker(data_dir=tmp_path) as running, Connection(running.bootstrap_servers) as client:
        assert alter(client, entry({"ip": "localhost"}, connection_creation_rate=7)) == [(0, None)]
        assert running.call(rates) == (7, None)
    with Broker(data_dir=tmp_path) as running, Connection(running.bootstrap_servers) as client:
        assert running.call(rates) == (7, None)
        assert alter(client, entry({"ip": "localhost"}, connection_creation_rate=None)) == [(0, None)]
        assert running.call(rates) == (None, None)
        assert running.call(lambda: running._server.broker.quotas.hosts._addresses) == {}


@pytest.mark.option("max.connection.creation.rate")
@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
def test_connection_over_the_rate_of_its_listener_waits_and_is_served(prefix: str):
    """A rate of 1 allows 10 in the first windows; the next one is late by the excess, at most by one window."""
    with Broker(clock="virtual", **{f"{prefix}max.connection.creation.rate": "1"}) as broker, ExitStack() as opened:
        address = broker.bootstrap_servers
        clients = [opened.enter_context(Connection(address, timeout_s=60)) for _ in range(11)]
        for client in clients:
            client.send(HeartbeatRequest(group_id="g", member_id="m"), 4)
        for client in clients[:10]:
            client.receive(12, 4)
        broker.clock.advance(999)
        clients[0].request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        assert is_silent(clients[10])
        broker.clock.advance(1)
        clients[10].receive(12, 4)


@pytest.mark.parametrize("prefix", ["", "listener.name.plaintext."])
def test_a_rate_of_connections_counts_those_that_came_before_it_was_set(prefix: str):
    """As in Kafka, whose sensors measure without a limit."""
    with Broker(clock="virtual") as broker, ExitStack() as opened:
        clients = [opened.enter_context(Connection(broker.bootstrap_servers, timeout_s=60)) for _ in range(10)]
        for client in clients:
            client.request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        change = AlterableConfig(name=f"{prefix}max.connection.creation.rate", value="1")
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
        answer = clients[0].request(IncrementalAlterConfigsRequest(resources=[resource]))
        assert [one.error_code for one in answer.responses] == [0]
        late = opened.enter_context(Connection(broker.bootstrap_servers, timeout_s=60))
        late.send(HeartbeatRequest(group_id="g", member_id="m"), 4)
        clients[0].request(HeartbeatRequest(group_id="g", member_id="m"), 4)
        assert is_silent(late)
        broker.clock.advance(1000)
        late.receive(12, 4)


def test_quota_of_an_address_precedes_that_of_all():
    quotas = ConnectionQuotas(VirtualClock(), 11, 1)
    quotas.set_quotas({None: 1, "10.0.0.1": 1000})
    assert [quotas.hold_ms("10.0.0.2") > 0 for _ in range(11)] == [False] * 10 + [True]
    assert not any(quotas.hold_ms("10.0.0.1") for _ in range(100))
    quotas.set_quotas({})
    assert quotas.hold_ms("10.0.0.2") == 0
    quotas.set_quotas({None: 1})
    assert quotas.hold_ms("10.0.0.2") > 0  # as in Kafka, its connections were not forgotten


@pytest.mark.option("connections.max.idle.ms")
def test_muted_connection_is_closed_when_it_is_idle():
    with (
        Broker(connections_max_idle_ms=60_000, clock="virtual") as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
    ):
        make_topic(client, "t")
        alter(client, entry(ANONYMOUS, producer_byte_rate=1))
        assert client.request(produce_request("t", 0, batch(b"x" * 20_000)), 9).throttle_time_ms > 1_000_000
        broker.clock.advance("90s", silent=True)
        assert client._socket.recv(1) == b""


# --- mutations of partitions


def create(client: Connection, *topics: tuple[str, int], version: int, **how: Any) -> tuple[int, list[tuple[int, Any]]]:
    wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics]
    told = client.request(CreateTopicsRequest(topics=wanted, timeout_ms=1000, **how), version)
    return told.throttle_time_ms, [(one.error_code, one.error_message) for one in told.topics]


EXCEEDED = (ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)


def test_mutations_over_quota_are_refused_from_the_versions_that_know_the_error(broker: Broker, client: Connection):
    alter(client, entry(ANONYMOUS, controller_mutation_rate=1))
    # A burst of 11; the topic that goes below zero is the last one.
    assert create(client, ("a", 10), ("b", 6), ("c", 1), version=7) == (5000, [(0, None), (0, None), EXCEEDED])
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        grow = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=12, assignments=None)], timeout_ms=1000
        )
        told = other.request(grow, 3)
        assert [(one.error_code, one.error_message) for one in told.results] == [EXCEEDED]
        assert told.throttle_time_ms == 5000
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        told = other.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1000), 6)
        assert [(one.error_code, one.error_message) for one in told.responses] == [EXCEEDED]
    broker.clock.advance(5000)
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        assert create(other, ("c", 1), version=7) == (0, [(0, None)])


def test_older_versions_are_throttled_and_never_refused(broker: Broker, client: Connection):
    alter(client, entry(ANONYMOUS, controller_mutation_rate=1))
    assert create(client, ("a", 10), ("b", 6), ("c", 1), version=5) == (6000, [(0, None)] * 3)
    with Connection(broker.bootstrap_servers, timeout_s=60) as other:
        told = other.request(DeleteTopicsRequest(topic_names=["b"], timeout_ms=1000), 4)
        assert (told.throttle_time_ms, told.responses[0].error_code) == (12_000, 0)


def test_topics_on_demand_count_and_are_not_created_over_quota(broker: Broker, client: Connection):
    """The client is told nothing, as in Kafka, whose controller refuses while the response is under way."""

    def ask(name: str) -> tuple[int, int]:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        answer = client.request(wanted, 12)
        return answer.topics[0].error_code, answer.throttle_time_ms

    alter(client, entry(ANONYMOUS, controller_mutation_rate=0.1))
    assert ask("first") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    for _ in range(3):
        ask("second")
        ask("third")
    assert ask("first") == (0, 0)
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert ask("third") == unknown
    broker.clock.advance(60_000)
    assert (ask("third"), ask("third")) == (unknown, (0, 0))


def test_mutations_that_are_only_validated_count_too(client: Connection):
    alter(client, entry(ANONYMOUS, controller_mutation_rate=1))
    assert create(client, ("a", 16), version=7, validate_only=True) == (0, [(0, None)])
    assert create(client, ("a", 1), version=7) == (5000, [EXCEEDED])


# --- the requests themselves


def test_what_is_set_is_described_and_removed(client: Connection):
    alter(
        client,
        entry({"user": "u"}, producer_byte_rate=1000, consumer_byte_rate=2000),
        entry({"user": "u", "client-id": None}, producer_byte_rate=10),
        entry({"client-id": "c"}, request_percentage=12.5),
        entry({"ip": "127.0.0.9"}, connection_creation_rate=5),
    )
    user = {(("user", "u"),): {"producer_byte_rate": 1000, "consumer_byte_rate": 2000}}
    both = {(("client-id", None), ("user", "u")): {"producer_byte_rate": 10}}
    assert describe(client, ("user", EXACT, "u"), strict=True) == user
    assert describe(client, ("user", EXACT, "u")) == user | both
    assert describe(client, ("user", SPECIFIED, None), ("client-id", DEFAULT, None)) == both
    assert describe(client, ("ip", SPECIFIED, None)) == {(("ip", "127.0.0.9"),): {"connection_creation_rate": 5}}
    assert len(describe(client)) == 4
    alter(client, entry({"user": "u"}, producer_byte_rate=None, consumer_byte_rate=None))
    assert describe(client, ("user", EXACT, "u")) == both


def test_quota_that_only_memory_has_is_not_told_as_stored_when_it_comes_again(broker: Broker, client: Connection):
    broker.faults.arm("log.before_fsync", "oserror", "EIO")
    for _ in range(2):
        ((code, _message),) = alter(client, entry({"user": "u"}, request_percentage=1.0))
        assert code == ErrorCode.KAFKA_STORAGE_ERROR


def test_answers_list_entities_and_values_in_the_order_of_kafkas_maps(client: Connection):
    """The own tests of @platformatic/kafka compare the lists as they come."""
    told = client.request(
        AlterClientQuotasRequest(
            entries=[
                entry({"user": "a", "client-id": "b"}, producer_byte_rate=-1.0),
                entry({"ip": "127.0.0.1"}, connection_creation_rate=3.0),
                entry({"user": "a"}, producer_byte_rate=1000.0, consumer_byte_rate=1000.0, request_percentage=0.5),
                entry({"client-id": "x", "user": "y"}, request_percentage=1.0),
            ]
        ),
        1,
    )
    assert [[(part.entity_type, part.entity_name) for part in one.entity] for one in told.entries] == ALTERED
    alter(client, entry({"user": "y"}, request_percentage=1.0))
    alter(client, entry({"user": "y"}, controller_mutation_rate=1.0, producer_byte_rate=1.0))
    assert [(list(entity), list(values)) for entity, values in describe(client).items()] == DESCRIBED


def test_only_validated_alteration_changes_nothing(client: Connection):
    assert alter(client, entry(ANONYMOUS, producer_byte_rate=1), validate_only=True) == [(0, None)]
    assert describe(client) == {}
    bad = entry(ANONYMOUS, producer_byte_rate=-1)
    assert alter(client, bad, validate_only=True)[0][0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry({}), "Invalid empty client quota entity"),
        (entry({"group": "g"}, producer_byte_rate=1), "Unhandled client quota entity type: group"),
        (entry({"user": ""}, producer_byte_rate=1), "Empty user not supported"),
        (entry({"user": "u"}, connection_creation_rate=1), "Invalid configuration key connection_creation_rate"),
        (entry({"user": "u"}, producer_byte_rate=0.0), "Quota producer_byte_rate must be greater than 0"),
        (entry({"user": "u"}, producer_byte_rate=1.5), "producer_byte_rate cannot be a fractional value."),
        (
            entry({"user": "u"}, producer_byte_rate=1e19),
            "Proposed value for producer_byte_rate is too large for a LONG.",
        ),
    ],
)
def test_bad_alteration_is_refused_and_keeps_nothing(client: Connection, bad: EntryData, reason: str):
    told = alter(client, bad, entry({"user": "good"}, producer_byte_rate=5))
    assert sorted(told, reverse=True) == [(ErrorCode.INVALID_REQUEST, reason), (0, None)]
    assert describe(client) == {(("user", "good"),): {"producer_byte_rate": 5}}


def test_largest_long_is_taken_as_the_double_that_clients_send_for_it(client: Connection):
    assert alter(client, entry({"user": "u"}, producer_byte_rate=float(2**63 - 1))) == [(0, None)]
    assert describe(client) == {(("user", "u"),): {"producer_byte_rate": 2.0**63}}


def test_bad_value_among_good_ones_keeps_none_of_its_entity(client: Connection):
    assert alter(client, entry({"user": "u"}, producer_byte_rate=5, consumer_byte_rate=-1))[0][0]
    assert describe(client) == {}


def test_entity_that_is_named_twice_keeps_its_first_values_and_gets_an_error(client: Connection):
    told = alter(client, entry(ANONYMOUS, producer_byte_rate=1.0), entry(ANONYMOUS, producer_byte_rate=2.0))
    ((code, reason),) = told
    assert code == ErrorCode.INVALID_REQUEST
    assert reason is not None
    assert reason.startswith("Ignoring duplicate entity ")
    assert describe(client, ("user", EXACT, "ANONYMOUS")) == {(("user", "ANONYMOUS"),): {"producer_byte_rate": 1.0}}


def test_bad_filter_is_refused(client: Connection):
    code, reason, entries = describe(client, ("user", EXACT, None))
    assert (code, entries) == (ErrorCode.INVALID_REQUEST, None)
    assert reason == "Request specified MATCH_TYPE_EXACT, but set match string to null."
    assert describe(client, ("group", SPECIFIED, None))[0] == ErrorCode.UNSUPPORTED_VERSION


def test_quotas_outlive_a_restart_and_hold(tmp_path: Path):
    with Broker(data_dir=tmp_path) as first, Connection(first.bootstrap_servers) as client:
        alter(client, entry({"user": None}, producer_byte_rate=1000))
        make_topic(client, "t")
    with Broker(data_dir=tmp_path) as second, Connection(second.bootstrap_servers) as client:
        assert describe(client) == {(("user", None),): {"producer_byte_rate": 1000}}
        assert client.request(produce_request("t", 0, batch(b"x" * 19_000)), 9).throttle_time_ms > 0
