"""What clients are told to push, what becomes of it, and how it is bounded."""

from __future__ import annotations

import gzip
import hashlib
import sys
import time
import urllib.request
from typing import Any

import pytest
from prometheus_client.core import Metric

from kafka_shim.cext.compression import compress
from kafka_shim.clock import VirtualClock
from kafka_shim.config import BrokerConfig, ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.monitoring.collector import _pushed
from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest
from kafka_shim.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kafka_shim.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kafka_shim.telemetry import client_metrics
from kafka_shim.telemetry.client_metrics import MOST_NAME_CHARACTERS, ClientMetrics
from kafka_shim.telemetry.prometheus_reporter import (
    LARGEST_PUSH_BYTES,
    MOST_LABELS,
    MOST_LOOKED_AT,
    MOST_OF_A_CLIENT,
    PrometheusReporter,
)
from kafka_shim.telemetry.receivers import Push, make_receivers
from kafka_shim.telemetry.series import Series
from kafka_shim.tests.api.admin import DELETE, METRICS, SET, alter
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import Connection

ID = bytes(range(16))
RECEIVER = f"{__name__}.Receiver"


class Receiver:
    """Keeps what it gets."""

    last: Receiver

    def __init__(self) -> None:
        self.pushes: list[Push] = []
        self.gone: list[str] = []
        self.is_closed = False
        Receiver.last = self

    def configure(self, options: Any) -> None:
        self.options = options

    def export_metrics(self, push: Push) -> None:
        if push.metrics == b"bad":
            raise ValueError("unreadable")
        self.pushes.append(push)

    def forget_client(self, client_instance_id: str) -> None:
        self.gone.append(client_instance_id)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def broker():
    with Broker(metric_reporters=RECEIVER, clock="virtual", telemetry_max_bytes="1000") as found:
        yield found


@pytest.fixture
def client(broker):
    with Connection(broker.bootstrap_servers, client_id="app-1") as connection:
        yield connection


def subscribe(client, name="all", **options):
    changes = [(key.replace("_", "."), SET, value) for key, value in options.items()]
    assert alter(client, METRICS, name, *changes) == (0, None)


def ask(client, instance_id=ID):
    return client.request(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


def push(client, subscription_id, metrics=b"m", instance_id=ID, **fields):
    request = PushTelemetryRequest(
        client_instance_id=instance_id, subscription_id=subscription_id, metrics=metrics, **fields
    )
    return client.request(request, 0).error_code


def advertised(bootstrap):
    with Connection(bootstrap) as connection:
        return {71, 72} & connection.ranges().keys()


@pytest.mark.option("metric.reporters")
def test_apis_are_advertised_if_there_is_a_receiver(broker):
    assert advertised(broker.bootstrap_servers) == {71, 72}
    with Broker() as other, Connection(other.bootstrap_servers) as connection:
        assert advertised(other.bootstrap_servers) == set()
        answer = ask(connection)  # served all the same, as by Kafka
        assert (answer.error_code, answer.requested_metrics, answer.push_interval_ms) == (0, [], 300_000)


@pytest.mark.option("client-metrics:metrics", "client-metrics:interval.ms", "client-metrics:match")
def test_client_is_told_what_its_subscriptions_want_and_no_other(client):
    subscribe(client, "a", metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.", interval_ms="1000")
    subscribe(client, "b", metrics="x", interval_ms="200", match="client_id=other.*")
    answer = ask(client)
    assert answer.error_code == 0
    assert answer.client_instance_id == ID
    assert sorted(answer.requested_metrics) == ["org.apache.kafka.consumer.", "org.apache.kafka.producer."]
    assert answer.push_interval_ms == 1000
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.delta_temporality
    subscribe(client, "b", match="client_id=app-[0-9],client_source_address=127.*")
    changed = ask(client)
    assert sorted(changed.requested_metrics) == [*sorted(answer.requested_metrics), "x"]
    assert changed.push_interval_ms == 200
    assert changed.subscription_id != answer.subscription_id
    subscribe(client, "c", metrics="*")
    assert ask(client).requested_metrics == ["*"]
    for name, options in (("a", ("metrics", "interval.ms")), ("b", ("metrics", "interval.ms", "match"))):
        assert alter(client, METRICS, name, *((option, DELETE, None) for option in options))[0] == 0
    assert ask(client).push_interval_ms == 300_000


@pytest.mark.parametrize(("number", "subscription_id"), [(0, 1654481936), (1, 477856876), (2, -1634053570)])
def test_subscription_id_is_kafkas(client, number, subscription_id):
    """These are the values that Apache Kafka 4.3.1 answers to these ids without a subscription."""
    assert ask(client, hashlib.sha256(bytes([number])).digest()[:16]).subscription_id == subscription_id


def test_client_without_an_id_gets_one(client):
    first, second = (ask(client, bytes(16)).client_instance_id for _ in range(2))
    assert len({first, second, bytes(16)}) == 3


def test_pushes_reach_the_receiver_in_every_compression(broker, client):
    subscribe(client, metrics="*", interval_ms="100")
    told = ask(client)
    for codec in range(5):
        metrics = bytes(compress(codec, b"metrics" * 9)) if codec else b"metrics" * 9
        assert push(client, told.subscription_id, metrics, compression_type=codec) == 0
        broker.clock.advance(100)
    pushes = Receiver.last.pushes
    assert [one.metrics for one in pushes] == [b"metrics" * 9] * 5
    assert pushes[0].push_interval_ms == 100
    assert pushes[0].attributes["client_id"] == "app-1"
    assert pushes[0].attributes["client_source_address"] == "127.0.0.1"
    assert pushes[0].principal == "User:ANONYMOUS"


def test_who_comes_too_early_is_throttled(broker, client):
    subscribe(client, metrics="*", interval_ms="1000")
    told = ask(client)
    assert ask(client).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(client, told.subscription_id) == 0  # the first may come at once
    assert push(client, told.subscription_id) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(1000)
    assert push(client, told.subscription_id) == 0
    assert push(client, told.subscription_id, terminating=True) == 0
    assert push(client, told.subscription_id) == ErrorCode.INVALID_REQUEST


def test_changed_subscriptions_are_asked_for_again(broker, client):
    subscribe(client, metrics="a", interval_ms="1000")
    told = ask(client)
    assert push(client, told.subscription_id) == 0
    broker.clock.advance(1000)
    subscribe(client, metrics="b")
    assert push(client, told.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = ask(client)
    assert (again.error_code, again.requested_metrics) == (0, ["b"])
    assert push(client, again.subscription_id) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    broker.clock.advance(1000)
    assert push(client, again.subscription_id) == 0


@pytest.mark.option("telemetry.max.bytes")
def test_what_cannot_be_taken_has_kafkas_error(broker, client):
    subscribe(client, metrics="*", interval_ms="100")

    def one(metrics, **fields):
        broker.clock.advance(100)
        return push(client, told.subscription_id, metrics, **fields)

    told = ask(client)
    assert told.telemetry_max_bytes == 1000
    assert one(b"m" * 1000) == 0
    assert one(b"m" * 1001) == ErrorCode.TELEMETRY_TOO_LARGE
    assert one(b"m", compression_type=5) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert one(b"bad") == ErrorCode.INVALID_RECORD
    assert one(b"no gzip", compression_type=1) == ErrorCode.INVALID_RECORD
    assert one(gzip.compress(b"m" * 2000), compression_type=1) == ErrorCode.INVALID_RECORD
    assert one(b"m", instance_id=bytes(15) + b"\x01") == ErrorCode.INVALID_REQUEST
    assert one(b"") == 0
    assert len(Receiver.last.pushes) == 1


def test_clients_are_matched_by_the_software_that_they_name(client):
    subscribe(client, metrics="x", match="client_software_name=some-app,client_software_version=7.*")
    for version, told in (("7.1", ["x"]), ("8", [])):
        named = ApiVersionsRequest(client_software_name="some-app", client_software_version=version)
        assert client.request(named, 3).error_code == 0
        assert ask(client, version.encode().ljust(16)).requested_metrics == told


def test_a_client_without_a_client_id_has_an_empty_one(broker, client):
    subscribe(client, metrics="x", match="client_id=.*")
    with Connection(broker.bootstrap_servers, client_id=None) as other:
        assert ask(other).requested_metrics == ["x"]


@pytest.mark.parametrize("match", ["client_id=a=b", "client_id=", "client_id=(", "client_id=(?=a)a", "nothing=a"])
def test_pattern_that_cannot_be_matched_is_refused(client, match):
    code, message = alter(client, METRICS, "all", ("match", SET, match))
    assert code == ErrorCode.INVALID_CONFIG
    assert message.startswith(f"Illegal client matching pattern: {match}")


def test_match_takes_bounded_time(broker, client):
    """The name of a client is the client's choice: an engine that backtracks would not come to an end."""
    subscribe(client, metrics="x", match="client_id=(a|aa)+[0-9]")
    with Connection(broker.bootstrap_servers, client_id="a" * MOST_NAME_CHARACTERS) as other:
        assert ask(other).requested_metrics == []
    with Connection(broker.bootstrap_servers, client_id="a" * (MOST_NAME_CHARACTERS - 1) + "1") as other:
        assert ask(other).requested_metrics == ["x"]


def test_a_bounded_part_of_a_client_id_is_kept(broker):
    with Connection(broker.bootstrap_servers, client_id="a" * 30_000) as client:
        assert push(client, ask(client).subscription_id) == 0
        assert Receiver.last.pushes[0].attributes["client_id"] == "a" * MOST_NAME_CHARACTERS


def test_clients_are_forgotten_at_their_disconnection_and_after_three_intervals(broker, client, monkeypatch):
    monkeypatch.setattr(client_metrics, "MOST_INSTANCES", 3)
    with Connection(broker.bootstrap_servers) as other:
        ask(other, ID)
        known = broker.state.client_metrics
        assert known.instance_count == 1
    deadline = time.monotonic() + 30
    while known.instance_count:
        assert time.monotonic() < deadline, "the connection closed, and its client is known still"
        client.ranges()
    for number in range(5):
        ask(client, bytes([number]) * 16)
    assert known.instance_count == 3
    broker.clock.advance(3 * 300_000 + client_metrics.SWEEP_MS)
    assert known.instance_count == 0
    assert len(Receiver.last.gone) == 6


def test_a_client_with_a_short_interval_is_known_for_a_minute(broker, client):
    """Three of its intervals may be shorter than a pause of its process."""
    subscribe(client, metrics="*", interval_ms="100")
    assert ask(client).push_interval_ms == 100
    known = broker.state.client_metrics
    broker.clock.advance(50_000)
    assert known.instance_count == 1
    broker.clock.advance(10_000 + client_metrics.SWEEP_MS)
    assert known.instance_count == 0


def test_the_client_that_said_nothing_for_longest_is_forgotten_first(client, monkeypatch):
    monkeypatch.setattr(client_metrics, "MOST_INSTANCES", 2)
    first, second, third = (bytes([number]) * 16 for number in (1, 2, 3))
    for instance_id in (first, second, first, third):
        ask(client, instance_id)
    assert [uuid_text(second)] == Receiver.last.gone


def test_a_client_that_comes_back_after_its_time_is_taken_for_a_new_one(broker, client):
    """Its name may have changed; until then, it is the client of its first request."""
    known = broker.state.client_metrics
    with Connection(broker.bootstrap_servers, client_id="second") as second:
        ask(client)
        ask(second)
        (one,) = known._instances.values()
        first_id = one.attributes["client_id"]
        assert first_id != "second"
        broker.call(broker.state.clock.set_wall, broker.clock.now_ms() + 3 * 300_000)
        ask(second)
        (other,) = known._instances.values()
        assert other is not one
        assert other.attributes["client_id"] == "second"


def test_clients_are_forgotten_although_memory_ended_when_they_were_to_be(broker, client, monkeypatch):
    ask(client)
    known = broker.state.client_metrics

    with monkeypatch.context() as patch:
        patch.setattr(known, "_forget", no_memory_left)
        with pytest.raises(MemoryError):
            broker.clock.advance(3 * 300_000 + client_metrics.SWEEP_MS)
    assert known.instance_count == 1
    broker.clock.advance(client_metrics.SWEEP_MS)
    assert known.instance_count == 0


def test_receiver_is_configured_and_closed():
    with Broker(metric_reporters=RECEIVER):
        assert Receiver.last.options["metric.reporters"] == RECEIVER
    assert Receiver.last.is_closed


class HearsContext(Receiver):
    def context_change(self, labels: Any) -> None:
        self.heard = [*self.options, *labels.items()]


def test_receiver_that_asks_for_it_is_told_the_cluster_and_the_node():
    with Broker(metric_reporters=f"{__name__}.HearsContext", node_id=7) as broker:
        labels = {"_namespace": "kafka.server", "kafka.cluster.id": broker.state.cluster_id, "kafka.node.id": "7"}
        # After its options.
        assert Receiver.last.heard[-3:] == [*labels.items()]
        assert "metric.reporters" in Receiver.last.heard


@pytest.mark.parametrize(
    ("name", "fault"),
    [("nowhere.Class", "cannot be created"), ("Class", "cannot be created"), ("builtins.dict", "has no")],
)
def test_class_that_is_no_receiver_is_refused(name, fault):
    with pytest.raises(ConfigError, match=fault):
        make_receivers([name], {}, {})
    assert make_receivers(BrokerConfig().metric_reporters, {}, {}) == []


class CannotStart(Receiver):
    def configure(self, options: Any) -> None:
        raise OSError("no table")


class CannotBeMade(Receiver):
    def __init__(self) -> None:
        raise OSError("no memory")


def test_receiver_that_fails_stops_the_start_with_one_line():
    with pytest.raises(ConfigError, match=r"CannotStart cannot be configured: OSError: no table"):
        Broker(metric_reporters=f"{__name__}.CannotStart").start()
    with pytest.raises(ConfigError, match=r"CannotBeMade cannot be created \(no memory\)"):
        make_receivers([f"{__name__}.CannotBeMade"], {}, {})


def test_a_reporter_without_its_package_says_what_to_install(monkeypatch):
    name = "kafka_shim.telemetry.prometheus_reporter"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    with pytest.raises(ConfigError, match=r"cannot be created \(.*\): pip install opentelemetry-proto$"):
        make_receivers([f"{name}.PrometheusReporter"], {}, {})


# --- the reporter for Prometheus


def otlp(*metrics: Any) -> bytes:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData, ResourceMetrics, ScopeMetrics

    scope = ScopeMetrics(metrics=metrics)
    return MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[scope])]).SerializeToString()


def metric(name: str, value: float, *, delta: bool = False, **attributes: str) -> Any:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint, Sum

    labels = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in attributes.items()]
    point = NumberDataPoint(as_double=value, attributes=labels)
    if delta:
        return Metric(name=name, sum=Sum(data_points=[point], is_monotonic=True, aggregation_temporality=1))
    return Metric(name=name, gauge=Gauge(data_points=[point]))


def pushed(client: str, *metrics: Any) -> Push:
    return Push({"client_instance_id": client, "client_id": "app"}, "User:x", otlp(*metrics), 1000, False)


def test_reporter_keeps_gauges_and_adds_differences():
    reporter = PrometheusReporter()
    for _ in range(3):
        reporter.export_metrics(
            pushed("c", metric("a.b-c", 2.5, topic="t"), metric("sent.total", 4, delta=True, **{"node.id": "1"}))
        )
    rows = {(one.name, one.is_counter): (dict(one.labels), one.value) for one in reporter.series()}
    labels = {"client_id": "app", "client_instance_id": "c", "client_software_name": ""}
    assert rows == {
        ("a_b_c", False): ({**labels, "topic": "t"}, 2.5),
        ("sent_total", True): ({**labels, "node_id": "1"}, 12.0),
    }
    reporter.forget_client("c")
    assert reporter.series() == []


def test_reporter_bounds_its_series():
    reporter = PrometheusReporter()
    for number in range(MOST_OF_A_CLIENT + 10):
        reporter.export_metrics(pushed("c", metric("a", 1, topic=f"t{number}")))
    assert len(reporter.series()) == MOST_OF_A_CLIENT
    assert reporter.dropped == 10
    with pytest.raises(Exception, match=r"(?i)pars"):
        reporter.export_metrics(Push({"client_instance_id": "c"}, "User:x", b"\xff\xff", 1000, False))


def test_reporter_keeps_only_names_and_labels_that_an_endpoint_can_show():
    reporter = PrometheusReporter()
    for name in ("", "kafka_shim_connections", "process.open.fds"):
        reporter.export_metrics(pushed("c", metric(name, 1)))
    assert reporter.series() == []
    assert reporter.dropped == 3
    odd = {"": "v", "__name__": "v", "client_id": "v", "1st": "v", "k" * 1000: "v" * 1000}
    reporter.export_metrics(pushed("c", metric("a", 1, **odd)))
    (one,) = reporter.series()
    client = [("client_id", "app"), ("client_instance_id", "c"), ("client_software_name", "")]
    assert sorted(one.labels) == sorted([*client, ("_1st", "v"), ("k" * 200, "v" * 200)])
    reporter.export_metrics(pushed("d", metric("a", 1, **{f"k{number}": "v" for number in range(1000)})))
    assert len(reporter.series()[1].labels) == MOST_LABELS + len(client)


@pytest.mark.parametrize("kind", ["points", "metrics", "resources"])
def test_reporter_looks_at_a_bounded_part_of_a_push(kind):
    """Half a million empty messages fit into one push, and it is read on the event loop."""
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics

    count = 2 * MOST_LOOKED_AT
    if kind == "resources":
        sent = MetricsData(resource_metrics=[ResourceMetrics()] * count).SerializeToString()
        sent += otlp(metric("late", 1))
    elif kind == "metrics":
        sent = otlp(*[Metric(name="a")] * count, metric("late", 1))
    else:
        sent = otlp(Metric(name="a", gauge=Gauge(data_points=[NumberDataPoint()] * count)), metric("late", 1))
    reporter = PrometheusReporter()
    reporter.export_metrics(Push({"client_instance_id": "c"}, "User:x", sent, 1000, False))
    assert "late" not in {one.name for one in reporter.series()}


def test_metrics_endpoint_shows_what_clients_pushed():
    options = {"metric_reporters": f"{PrometheusReporter.__module__}.PrometheusReporter"}
    with (
        Broker(kafka_shim_http_listener="127.0.0.1:0", **options) as broker,
        Connection(broker.bootstrap_servers, client_id="app") as client,
    ):
        subscribe(client, metrics="*")
        sent = otlp(
            metric("org.apache.x", 7.5, topic="t"),
            metric("org.apache.x", 8, other="made up"),
            metric("sent.total", 4, delta=True),
            metric("sent", 5, delta=True, topic="t"),
            metric(".total", 6, delta=True),
        )
        assert push(client, ask(client).subscription_id, sent) == 0
        with urllib.request.urlopen(f"{broker.state.http_address}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    line, other = [line for line in lines if line.startswith("org_apache_x{")]
    assert "topic" not in other, "each value has its own labels"
    assert 'client_id="app"' in line
    assert 'topic="t"' in line
    assert line.endswith(" 7.5")
    assert [line.rpartition(" ")[2] for line in lines if line.startswith("sent_total{")] == ["4.0", "5.0"]
    assert lines.count("# TYPE sent_total counter") == 1
    assert "kafka_shim_client_metrics_dropped_values_total 1.0" in lines
    assert "kafka_shim_client_metrics_exports_total 1.0" in lines
    assert "kafka_shim_client_metrics_instances 1.0" in lines


def test_no_series_is_shown_twice_whatever_clients_call_it():
    """Prometheus refuses the whole scrape for one."""
    options = {"metric_reporters": f"{PrometheusReporter.__module__}.PrometheusReporter"}
    with (
        Broker(kafka_shim_http_listener="127.0.0.1:0", **options) as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        subscribe(client, metrics="*")
        sent = otlp(
            metric("x.total", 1),
            metric("x", 2, delta=True, topic="t"),
            metric("y", 3, delta=True),
            metric("y.total", 4, delta=True),
            metric("z", 5, a="1", b="2"),
            metric("z", 6, b="2", a="1"),
        )
        assert push(client, ask(client).subscription_id, sent) == 0
        with urllib.request.urlopen(f"{broker.state.http_address}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    series = [line.rpartition(" ") for line in lines if line[:2] in ("x_", "y_", "z{")]
    assert [(text.partition("{")[0], value) for text, _, value in series] == [
        ("x_total", "2.0"),
        ("y_total", "4.0"),
        ("z", "6.0"),
    ]
    for name, kind in (("x_total", "counter"), ("y_total", "counter"), ("z", "gauge")):
        assert [line for line in lines if line.startswith(f"# TYPE {name} ")] == [f"# TYPE {name} {kind}"]


class Careless:
    """A receiver of somebody's own, which shows every name that it gets."""

    dropped = 0

    def series(self) -> list[Series]:
        return [Series(name, (), is_counter) for name in ("", "c") for is_counter in (False, True)]


def test_a_name_that_cannot_be_shown_leaves_the_others():
    clients = ClientMetrics(VirtualClock(), 1000, lambda: [])
    clients.receivers = [Careless()]
    assert [one.name for one in _pushed(clients) if isinstance(one, Metric)] == ["c", "c"]


def test_a_push_that_takes_long_to_parse_is_dropped_and_its_client_goes_on(caplog):
    """`telemetry.max.bytes` of the shortest messages held the loop for 27 ms. A client of Java takes an error for
    final."""
    options = {"metric_reporters": f"{PrometheusReporter.__module__}.PrometheusReporter"}
    with Broker(**options) as broker, Connection(broker.bootstrap_servers) as client:
        (reporter,) = broker.state.client_metrics.receivers
        sent = b"\x0a\x00" * (LARGEST_PUSH_BYTES // 2)
        for more, dropped in ((b"", 0), (b"\x0a\x00", 1)):
            instance_id = bytes([dropped + 1]) * 16
            subscription_id = ask(client, instance_id).subscription_id
            assert push(client, subscription_id, sent + more, instance_id=instance_id) == 0
            assert broker.call(lambda: (reporter.dropped, broker.state.client_metrics.exports)) == (dropped, 1)
    (line,) = caplog.messages
    reason = f"a push of {LARGEST_PUSH_BYTES + 2} bytes has more than {LARGEST_PUSH_BYTES}"
    assert line == f"metrics of client {uuid_text(instance_id)} are lost: {reason}"
