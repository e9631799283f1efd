"""What the options of listeners, connections and requests do, seen by a client."""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_shim.config import BrokerConfig, ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.listeners import _send_unpaced, bind, listeners_of
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_shim.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kafka_shim.protocol.messages.describe_topic_partitions_request import TopicRequest as Described
from kafka_shim.tests.api.admin import delete
from kafka_shim.tests.produced import batch, fetch_request, make_topic, metadata, produce, produce_request
from kafka_shim.tests.quota.test_client_quotas import ANONYMOUS, alter, entry
from kafka_shim.wire_client import Connection


def bound(**options: str) -> socket.socket:
    """The first listening socket of a broker with these options."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    config = BrokerConfig.parse({"listeners": "PLAINTEXT://127.0.0.1:0", **given})
    return bind(listeners_of(config)[0][0], config)


@pytest.mark.option("socket.send.buffer.bytes", "socket.receive.buffer.bytes")
def test_sockets_have_the_buffers_that_are_set() -> None:
    with bound(socket_send_buffer_bytes="30000", socket_receive_buffer_bytes="20000") as sock:
        # Linux doubles what is asked for.
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 60_000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 40_000


class Paced(socket.socket):
    """A socket of a system whose congestion control is BBR, whatever this one's is."""

    chosen = b"bbr"

    def getsockopt(self, level: int, option: int, *size: int) -> Any:
        return self.chosen if option == socket.TCP_CONGESTION else super().getsockopt(level, option, *size)

    def setsockopt(self, level: int, option: int, *value: Any) -> None:
        if option == socket.TCP_CONGESTION:
            (self.chosen,) = value
        else:
            super().setsockopt(level, option, *value)


def test_no_listener_of_the_loopback_interface_paces_what_it_sends() -> None:
    """BBR does. What the system chose otherwise stays, and so does BBR where there may be a network."""

    def chosen(host: str) -> bytes:
        config = BrokerConfig.parse({"listeners": f"PLAINTEXT://{host}:0", "advertised.listeners": "PLAINTEXT://h:1"})
        with bind(listeners_of(config)[0][0], config) as sock:
            return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")

    with socket.socket() as sock:
        usual = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    assert chosen("127.0.0.1") == (b"reno" if usual == b"bbr" else usual)
    assert chosen("0.0.0.0") == usual
    for host, expected in (("127.0.0.1", b"reno"), ("127.1.2.3", b"reno"), ("0.0.0.0", b"bbr")):
        with Paced() as sock:
            sock.bind((host, 0))
            _send_unpaced(sock)
            assert sock.chosen == expected


@pytest.mark.option("socket.listen.backlog.size")
def test_as_many_connections_wait_as_may() -> None:
    for text, size in (("7", 7), ("9", 9)):
        with bound(socket_listen_backlog_size=text) as sock:
            # tcpi_sacked of a listening socket is the size of its queue.
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
            assert struct.unpack_from("=I", info, 28)[0] == size


@pytest.mark.option("listeners", "listener.security.protocol.map", "controller.listener.names")
def test_listeners_are_opened_by_name_the_controllers_apart() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
        }
    )
    brokers, controllers = listeners_of(config)
    assert [one.name for one in brokers] == ["INSIDE"]
    assert [one.name for one in controllers] == ["CONTROLLER"]


@pytest.mark.option("inter.broker.listener.name")
def test_listener_between_brokers_is_one_that_is_advertised() -> None:
    options = {"listeners": "PLAINTEXT://127.0.0.1:0", "inter.broker.listener.name": "INSIDE"}
    with pytest.raises(ConfigError, match="must be a listener name defined in"):
        listeners_of(BrokerConfig.parse(options))


@pytest.mark.option("security.inter.broker.protocol")
def test_protocol_between_brokers_is_that_of_a_listener() -> None:
    options = {"listeners": "PLAINTEXT://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    with pytest.raises(ConfigError, match="must be a listener name defined in"):
        listeners_of(BrokerConfig.parse(options))


@pytest.mark.option("advertised.listeners")
def test_clients_are_told_the_advertised_address() -> None:
    with (
        Broker(advertised_listeners="PLAINTEXT://a.name:4567") as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        assert [(one.host, one.port) for one in metadata(client).brokers] == [("a.name", 4567)]


@pytest.mark.option("broker.rack")
def test_clients_are_told_the_rack() -> None:
    with Broker(broker_rack="r1") as broker, Connection(broker.bootstrap_servers) as client:
        assert [one.rack for one in metadata(client).brokers] == ["r1"]


@pytest.mark.option("socket.request.max.bytes")
def test_longer_request_closes_its_connection() -> None:
    with Broker(socket_request_max_bytes=500) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        answers = []
        for size in (500, 501):
            with socket.create_connection((host, int(port)), timeout=60) as sock:
                body = struct.pack(">hhih", 18, 0, 9, -1)
                sock.sendall(struct.pack(">i", size) + body.ljust(size, b"\0"))
                answers.append(sock.recv(8)[4:])
    assert answers == [struct.pack(">i", 9), b""]


@pytest.mark.option("auto.create.topics.enable", "num.partitions")
def test_unknown_topic_is_made_with_its_partitions_where_it_may_be() -> None:
    for may, counts in ((True, [3]), (False, [])):
        with (
            Broker(auto_create_topics_enable=may, num_partitions=3) as broker,
            Connection(broker.bootstrap_servers) as client,
        ):
            metadata(client, "t", allow_auto_topic_creation=True)
            assert [len(topic.partitions) for topic in metadata(client).topics] == counts


@pytest.mark.option("default.replication.factor")
def test_topic_without_a_factor_has_the_default_and_there_is_one_broker() -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=-1)
    with Broker(default_replication_factor=2) as broker, Connection(broker.bootstrap_servers) as client:
        (told,) = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics
    assert told.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.option("delete.topic.enable")
def test_topic_is_deleted_where_it_may_be() -> None:
    for may, code in ((True, ErrorCode.NONE), (False, ErrorCode.TOPIC_DELETION_DISABLED)):
        with Broker(delete_topic_enable=may) as broker, Connection(broker.bootstrap_servers) as client:
            make_topic(client, "t", 1)
            assert delete(client, "t") == [("t", code)]


@pytest.mark.option("fetch.max.bytes")
def test_answer_of_a_fetch_has_its_limit() -> None:
    with Broker(fetch_max_bytes=2000) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 2)
        for partition in range(2):
            produce(client, "t", partition, batch(b"z" * 1500))
        answer = client.request(fetch_request({("t", 0): 0, ("t", 1): 0}), 12)
        sizes = [len(part.records or b"") for topic in answer.responses for part in topic.partitions]
    assert sizes[0] > 1500
    assert sizes[1:] == [0]


@pytest.mark.option("max.incremental.fetch.session.cache.slots")
@pytest.mark.parametrize(("slots", "wanted"), [(7, 0), (15, 8)])
def test_as_many_fetch_sessions_are_remembered_as_may(slots: int, wanted: int) -> None:
    """Kafka divides the slots among eight caches, in whole numbers."""
    with Broker(max_incremental_fetch_session_cache_slots=slots) as broker, ExitStack() as opened:
        clients = [opened.enter_context(Connection(broker.bootstrap_servers)) for _ in range(10)]
        make_topic(clients[0], "t", 1)
        request = fetch_request({("t", 0): 0}, session_epoch=0)
        sessions = [client.request(request, 12).session_id for client in clients]
    assert [session > 0 for session in sessions] == [True] * wanted + [False] * (10 - wanted)


@pytest.mark.option("max.request.partition.size.limit")
def test_partitions_are_described_in_pages_of_the_limit() -> None:
    with Broker(max_request_partition_size_limit=2) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 3)
        request = DescribeTopicPartitionsRequest(topics=[Described(name="t")], response_partition_limit=100)
        answer = client.request(request, 0)
    assert [len(topic.partitions) for topic in answer.topics] == [2]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("t", 2)


@pytest.mark.option("quota.window.num", "quota.window.size.seconds")
@pytest.mark.parametrize(
    ("options", "seconds"), [({}, 10), ({"quota_window_num": 3}, 2), ({"quota_window_size_seconds": 2}, 20)]
)
def test_bytes_are_spread_over_all_windows_but_one(options: dict[str, int], seconds: int) -> None:
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        alter(client, entry(ANONYMOUS, producer_byte_rate=1000))
        data = batch(b"x" * 40_000)
        told = client.request(produce_request("t", 0, data), 9)
        assert told.throttle_time_ms == pytest.approx(len(data) - seconds * 1000, abs=100)


@pytest.mark.option("controller.quota.window.num", "controller.quota.window.size.seconds")
@pytest.mark.parametrize(
    ("options", "burst"),
    [({}, 11), ({"controller_quota_window_num": 3}, 3), ({"controller_quota_window_size_seconds": 2}, 22)],
)
def test_mutations_of_all_windows_may_come_at_once(options: dict[str, int], burst: int) -> None:
    topic = CreatableTopic(name="t", num_partitions=40, replication_factor=1)
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        alter(client, entry(ANONYMOUS, controller_mutation_rate=1))
        told = client.request(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
        assert told.throttle_time_ms == (40 - burst) * 1000
