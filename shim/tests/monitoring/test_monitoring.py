"""Metrics and health over HTTP, read as an operator reads them."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from kafka_shim.client.requests import make
from kafka_shim.client_security import ClientSecurity
from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.http import server
from kafka_shim.monitoring import http_listener, monitor
from kafka_shim.monitoring.collector import Collector, _histogram
from kafka_shim.monitoring.families import Family, counter
from kafka_shim.monitoring.process import process
from kafka_shim.monitoring.request_times import BOUNDS_S, SAMPLE, Histogram
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.metadata_request import MetadataRequest
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.targets.waiting import PATIENCE_S, wait_until
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.produced import batch, fetch, fetch_request, make_topic, produce, produce_request
from kafka_shim.tests.share.share_member import ShareMember, open_share
from kafka_shim.wire_client import Connection, WireClientError

REPORTER = "kafka_shim.telemetry.prometheus_reporter.PrometheusReporter"
ROOT = Path(__file__).resolve().parents[3]
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def watched() -> Iterator[Broker]:
    options = {"kafka_shim_http_listener": "127.0.0.1:0", "metric_reporters": REPORTER}
    with Broker(clock="virtual", **options) as broker:
        yield broker


def get(broker: Broker, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(broker.state.http_address + path, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scrape(broker: Broker) -> Samples:
    status, text = get(broker, "/metrics")
    assert status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


@pytest.mark.option("kafka.shim.http.listener")
def test_a_time_counts_in_its_bucket_and_one_above_all_in_the_last() -> None:
    histogram = Histogram()
    for elapsed_ns in (0, 100_000, 100_001, 31_000_000_000):
        histogram.observe(elapsed_ns)
    assert histogram.counts == [2, 1, *[0] * (len(BOUNDS_S) - 2), 1]
    assert histogram.sum_ns == 31_000_200_001


def test_what_clients_did_is_counted(watched: Broker) -> None:
    one = batch(b"a", b"b")
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 2)
        for partition in (0, 1, 1):
            produce(client, "t", partition, one)
        told = fetch(client, "t", 1, 0)
        client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1)
        parts = [OffsetCommitRequestPartition(partition_index=number, committed_offset=1) for number in (0, 1)]
        commit.topics = [OffsetCommitRequestTopic(name="t", partitions=parts)]
        client.request(commit, 8)
        samples = scrape(watched)
    server = "kafka_server_brokertopicmetrics"
    assert of(samples, f"{server}_bytesin_total", topic="t") == 3 * len(one)
    assert of(samples, f"{server}_messagesin_total", topic="t") == 6
    assert of(samples, f"{server}_bytesout_total", topic="t") == len(told.records) == 2 * len(one)
    assert of(samples, "kafka_shim_log_bytes", topic="t") == 3 * len(one)
    assert of(samples, "kafka_shim_log_offsets", topic="t") == 6
    assert of(samples, "kafka_network_requestmetrics_requests_total", request="Produce", version="9") == 3
    assert of(samples, "kafka_network_requestmetrics_requests_total", request="FetchConsumer", version="12") == 1
    assert of(samples, "kafka_network_requestmetrics_totaltimems_count_total", request="Fetch") == 1
    assert of(samples, "kafka_shim_request_local_seconds_count", request="Produce") == 3
    assert of(samples, "kafka_log_log_logendoffset", topic="t", partition="1") == 4
    assert of(samples, "kafka_log_log_size", topic="t", partition="0") == len(one)
    assert of(samples, "kafka_coordinator_group_groupmetadatamanager_numoffsets") == 2
    assert of(samples, "kafka_coordinator_group_groupmetadatamanager_numgroupsempty") == 1
    assert of(samples, "kafka_shim_request_seconds_count", request="Produce") == 3
    assert of(samples, "kafka_shim_connections") == 1
    assert of(samples, "kafka_shim_group_lag", group="g", topic="t") == (2 - 1) + (4 - 1)
    assert of(samples, "kafka_shim_groups", type="classic", state="Empty") == 1
    assert of(samples, "kafka_controller_kafkacontroller_globaltopiccount") == 2
    assert of(samples, "process_open_fds") > 0


def test_an_open_transaction_shows_what_it_holds_back_and_how_old_it_is(watched: Broker) -> None:
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        writer = Producer(client, "x")
        writer.write(b"held back")
        produce(client, "t", 0, batch(b"behind it"))
        watched.clock.advance("7s")
        samples = scrape(watched)
        assert of(samples, "kafka_shim_transactions", state="Ongoing") == 1
        assert of(samples, "kafka_shim_oldest_transaction_seconds") == 7
        assert of(samples, "kafka_shim_last_stable_offset_lag", topic="t", partition="0") == 2
        watched.call(watched.state.clock.set_wall, watched.clock.now_ms() - 60_000)
        assert of(scrape(watched), "kafka_shim_oldest_transaction_seconds") == 0
        writer.end(commit=True)
        samples = scrape(watched)
    assert of(samples, "kafka_shim_oldest_transaction_seconds") == 0
    assert not [name for name, _ in samples if name == "kafka_shim_last_stable_offset_lag"]


def test_a_request_that_waits_is_seen_and_its_time_counts(watched: Broker) -> None:
    with Connection(watched.bootstrap_servers) as client, Connection(watched.bootstrap_servers) as other:
        make_topic(other, "t", 1)
        client.send(fetch_request({("t", 0): 0}, max_wait_ms=60_000), 12)
        purgatory = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
        while of(scrape(watched), purgatory, delayedOperation="Fetch") < 1:
            pass
        assert of(scrape(watched), "kafka_shim_request_seconds_count", request="Fetch") == 0
        produce(other, "t", 0, batch(b"a"))
        client.receive(1, 12)
        assert of(scrape(watched), "kafka_shim_request_seconds_count", request="Fetch") == 1


def test_versions_beyond_a_number_are_not_counted(watched: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.monitoring.request_times.MOST_VERSIONS", 1)
    with Connection(watched.bootstrap_servers) as client:
        for version in (12, 12, 11):
            client.request(MetadataRequest(topics=[]), version)
    counted = {
        dict(labels)["version"]: value
        for (name, labels), value in scrape(watched).items()
        if name == "kafka_network_requestmetrics_requests_total" and dict(labels)["request"] == "Metadata"
    }
    assert counted == {"12": 2}


def test_many_topics_are_summed_up_beyond_a_number_of_series(watched: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.monitoring.collector.MOST_SERIES", 2)
    with Connection(watched.bootstrap_servers) as client:
        for name in ("a", "b", "c", "d"):
            make_topic(client, name, 1)
            produce(client, name, 0, batch(b"x"))
    wanted = "kafka_server_brokertopicmetrics_messagesin_total"
    topics = {dict(labels)["topic"]: value for (name, labels), value in scrape(watched).items() if name == wanted}
    assert sorted(topics.values()) == [1, 1, 2]
    assert topics["(others)"] == 2


def test_share_groups_are_summed_up_beyond_a_number_of_series(watched: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_shim.monitoring.background.MOST_SERIES", 1)
    with Connection(watched.bootstrap_servers) as client, ExitStack() as members:
        topic_id = make_topic(client, "t", 1, retention_ms="-1")
        for group in ("a", "b", "c"):
            open_share(watched, group, topic_id)
            member = members.enter_context(ShareMember(watched, group, "m", topic_id))
            if group == "a":
                produce(client, "t", 0, batch(b"x", b"y"))
            member.poll()
        samples = scrape(watched)
    for name, each in (("kafka_shim_share_partitions", 1), ("kafka_shim_share_records_in_flight", 2)):
        groups = {dict(labels)["group"]: value for (found, labels), value in samples.items() if found == name}
        assert groups.pop("(others)") == 2 * each
        assert list(groups.values()) == [each]


def test_an_open_transaction_past_every_timeout_is_a_hanging_one() -> None:
    late = "kafka_server_replicamanager_partitionswithlatetransactionscount"
    options = {"kafka_shim_http_listener": "127.0.0.1:0", "transaction_partition_verification_enable": False}
    with Broker(clock="virtual", **options) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        records = batch(b"a", timestamp_ms=broker.clock.now_ms(), **header)
        assert produce(client, "t", 0, records, transactional_id="lost").error_code == 0
        broker.clock.advance("19m")
        assert of(scrape(broker), late) == 0
        broker.clock.advance("2m")
        assert of(scrape(broker), late) == 1


def test_what_is_synced_compacted_throttled_and_refused_is_counted(watched: Broker) -> None:
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 1, flush_messages="1")
        produce(client, "t", 0, batch(b"a"))
        flusher = watched.state.logs.services.flusher
        before_s = flusher.sync_ns / 1e9
        samples = scrape(watched)
        assert of(samples, "kafka_shim_fsync_seconds_count") >= 1
        assert 0 < before_s <= of(samples, "kafka_shim_fsync_seconds_sum") <= flusher.sync_ns / 1e9 < 60
        assert of(samples, "kafka_shim_throttled_responses_total") == 0
        quota = make("AlterClientQuotas", entries=[DEFAULT_QUOTA])
        client.request(quota)
        for _ in range(2):
            client.send(produce_request("t", 0, batch(b"a" * 5000)), 9)
        client.receive(0, 9)
        watched.clock.advance("1h")
        client.receive(0, 9)
        samples = scrape(watched)
    assert of(samples, "kafka_shim_throttled_responses_total") >= 1
    assert of(samples, "kafka_shim_throttled_seconds_total") > 0


DEFAULT_QUOTA = {
    "entity": [{"entity_type": "client-id", "entity_name": None}],
    "ops": [{"key": "producer_byte_rate", "value": 100.0}],
}


def test_a_wrong_password_is_counted() -> None:
    options = {"kafka_shim_http_listener": "127.0.0.1:0"}
    with Broker(sasl="SCRAM-SHA-512", users={"alice": "right"}, **options) as broker:
        wrong = ClientSecurity(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="alice" password="wrong";',
            }
        )
        with pytest.raises(WireClientError):
            Connection(broker.bootstrap_servers, security=wrong)
        samples = scrape(broker)
    failures = {value for (name, _), value in samples.items() if name == "kafka_shim_authentication_failures_total"}
    assert failures == {1}


def test_health_says_whether_the_loop_turns(watched: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get(watched, "/health/live") == (200, "live\n")
    assert get(watched, "/health/ready") == (200, "ready\n")
    assert get(watched, "/")[0] == 404
    monkeypatch.setattr(http_listener, "PATIENCE_S", 0.2)
    began, held = threading.Event(), threading.Event()

    def hold() -> None:
        began.set()
        held.wait(60)

    holder = threading.Thread(target=watched.call, args=(hold,))
    holder.start()
    began.wait(60)
    try:
        assert get(watched, "/health/live") == (503, "the event loop does not answer\n")
        assert get(watched, "/metrics")[0] == 503
    finally:
        held.set()
        holder.join()
    monkeypatch.setattr(http_listener, "PATIENCE_S", 60)
    assert get(watched, "/health/live")[0] == 200


def test_the_lag_of_the_loop_is_measured_on_after_memory_ended_in_it(
    watched: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def no_memory(*_: object) -> None:
        ended.set()
        raise MemoryError

    def count() -> float:
        return of(scrape(watched), "kafka_shim_loop_lag_seconds_count")

    with monkeypatch.context() as patch:
        patch.setattr(monitor, "time", SimpleNamespace(perf_counter_ns=no_memory))
        assert ended.wait(PATIENCE_S)
    before = count()
    wait_until(lambda: count() > before + 1, "two more measurements")


def test_a_stop_closes_the_port_and_a_start_says_a_bad_address() -> None:
    with Broker(kafka_shim_http_listener="127.0.0.1:0") as broker:
        address = broker.state.http_address
        assert get(broker, "/health/live")[0] == 200
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=60)
    for wrong in ("9404", "127.0.0.1:65536"):
        with pytest.raises(ConfigError, match="is not HOST:PORT"):
            Broker(kafka_shim_http_listener=wrong).start()


def test_without_it_nothing_is_served_and_nothing_is_measured() -> None:
    with Broker() as broker:
        assert broker.state.http_address == ""


def test_clients_that_say_nothing_keep_nobody_out(watched: Broker) -> None:
    """The one that is silent for longest loses its place: eight of them kept everybody out for ten seconds."""
    host, port = watched.state.http_address.removeprefix("http://").split(":")
    idle = [socket.create_connection((host, int(port)), timeout=60) for _ in range(3 * server.MOST_REQUESTS)]
    try:
        for one in idle[: 2 * server.MOST_REQUESTS]:
            assert one.recv(1) == b""
        assert get_or_none(watched) == 200
        assert idle[2 * server.MOST_REQUESTS].recv(1) == b"", "the oldest made room for the request"
    finally:
        for one in idle:
            one.close()


def test_without_a_host_it_is_bound_to_loopback() -> None:
    with Broker(kafka_shim_http_listener=":0") as broker:
        assert broker.state.http_address.startswith("http://127.0.0.1:")


def test_a_client_that_sends_a_byte_now_and_then_does_not_keep_its_place(
    watched: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LONGEST_REQUEST_S", 0.0)
    monkeypatch.setattr(server._Handler, "timeout", 600.0)
    host, port = watched.state.http_address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as slow:
        slow.sendall(b"GET /health")
        assert slow.recv(1) == b""


def test_an_error_of_ours_is_logged(
    watched: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_listener.HttpListener, "metrics", lambda listener: {}["missing"])
    assert get_or_none(watched, "/metrics") == 500
    assert "KeyError: 'missing'" in caplog.text


def get_or_none(broker: Broker, path: str = "/health/live") -> int | None:
    try:
        return get(broker, path)[0]
    except (OSError, http.client.HTTPException):
        return None


def test_quantiles_are_those_of_the_last_times() -> None:
    histogram = Histogram()
    assert histogram.quantiles_ms() == [0.0] * 6
    for number in range(1, 5):
        histogram.observe(number * 1_000_000)
    assert histogram.quantiles_ms() == [2.5, 3.75, 4.0, 4.0, 4.0, 4.0]
    for _ in range(SAMPLE):
        histogram.observe(7_000_000)
    assert histogram.quantiles_ms() == [7.0] * 6
    assert sum(histogram.counts) == SAMPLE + 4


def test_each_error_code_of_a_response_is_counted(watched: Broker) -> None:
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 2)
        produce(client, "t", 0, batch(b"a"))
        produce(client, "t", 7, batch(b"a"))
        client.request(fetch_request({("t", 0): 0, ("t", 1): 0, ("missing", 0): 0}), 12)
        client.request(make("JoinGroup", group_id="", session_timeout_ms=10_000, protocol_type="consumer"), 5)
        samples = scrape(watched)
    found = {
        (dict(labels)["request"], dict(labels)["error"]): count
        for (name, labels), count in samples.items()
        if name == "kafka_network_requestmetrics_errors_total"
    }
    assert found["Produce", "NONE"] == found["Produce", "UNKNOWN_TOPIC_OR_PARTITION"] == 1
    assert found["Fetch", "NONE"] == 3  # one of the response, two of partitions
    assert found["Fetch", "UNKNOWN_TOPIC_OR_PARTITION"] == 1
    assert found["JoinGroup", "INVALID_GROUP_ID"] == 1
    quantiles = [labels for name, labels in samples if name == "kafka_network_requestmetrics_totaltimems"]
    assert (("quantile", "0.999"), ("request", "Produce")) in quantiles


def test_the_error_codes_of_a_large_response_are_counted_too(watched: Broker) -> None:
    names = [{"name": f"n{number}"} for number in range(20_000)]
    with Connection(watched.bootstrap_servers, timeout_s=60) as client:
        client.request(make("Metadata", topics=names, allow_auto_topic_creation=False), 12)
        samples = scrape(watched)
    where = ("error", "UNKNOWN_TOPIC_OR_PARTITION"), ("request", "Metadata")
    assert samples["kafka_network_requestmetrics_errors_total", where] == 20_000


def test_partitions_at_and_under_their_minimum_are_counted(watched: Broker) -> None:
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 3)
        produce(client, "t", 1, batch(b"a"))
        partition = watched.state.metadata.image.topics["t"].partitions[1]
        partition.replicas = (1, 2)
        watched.state.metadata.image.last_offset += 1
        samples = scrape(watched)
        where = (("partition", "1"), ("topic", "t"))
        values = {name: samples[f"kafka_cluster_partition_{name}", where] for name in ("underreplicated", "atminisr")}
        assert values == {"underreplicated": 1, "atminisr": 1}
        assert samples["kafka_server_replicamanager_underreplicatedpartitions", ()] == 1
        assert samples["kafka_server_replicamanager_atminisrpartitioncount", ()] == 3
        watched.state.metadata.image.configs[2, "t"] = {"min.insync.replicas": "2"}
        watched.state.metadata.image.last_offset -= 1
        samples = scrape(watched)
        assert samples["kafka_cluster_partition_underminisr", where] == 1
        assert samples["kafka_server_replicamanager_underminisrpartitioncount", ()] == 1


def test_the_text_is_that_of_the_library() -> None:
    theirs = GaugeMetricFamily("kafka_shim_x", "What it is.", labels=["b", "a"])
    ours = Family("gauge", "kafka_shim_x", "What it is.", ("a", "b"))
    large = (999_999, 1_000_000, -1_000_000, 12345678, 10**15, 2**63)
    for value in (0, 1, -1, 1.5, -2.5e-9, float("inf"), float("nan"), True, 12345678.5, *large):
        theirs.add_metric(['"q"\\', "line\nbreak \u00e9 \\n"], value)
        ours.add(value, "line\nbreak \u00e9 \\n", '"q"\\')
    observed = Histogram()
    for elapsed_ns in (90_000, 3_000_000, 40_000_000_000):
        observed.observe(elapsed_ns)
    times = HistogramMetricFamily("kafka_shim_y", "Times.", labels=["request"])
    buckets = [(str(bound), float((bound >= 0.0001) + (bound >= 0.003))) for bound in BOUNDS_S]
    times.add_metric(["p"], [*buckets, ("+Inf", 3.0)], observed.sum_ns / 1e9)
    our_times = Family("histogram", "kafka_shim_y", "Times.")
    our_times.lines.append(_histogram("kafka_shim_y", ("p",), observed))
    library = http_listener.text_of([theirs, times, CounterMetricFamily("kafka_shim_z", "Count.", value=3)])
    text = "".join(one.text() for one in (ours, our_times, counter("kafka_shim_z", "Count.", 3)))
    assert text.encode() == library


def test_the_process_is_told_as_the_library_tells_it() -> None:
    """The library counts one descriptor more: that of its own look."""
    theirs = {
        sample.name: sample.value for family in ProcessCollector(registry=None).collect() for sample in family.samples
    }
    text = "".join(family.text() for family in process())
    ours = {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}
    assert ours.keys() == theirs.keys()
    for name, tolerance in (("start_time_seconds", 0.1), ("max_fds", 0), ("open_fds", 4), ("cpu_seconds_total", 5)):
        assert abs(ours[f"process_{name}"] - theirs[f"process_{name}"]) <= tolerance, name
    for name in ("resident", "virtual"):
        assert 0.8 < ours[f"process_{name}_memory_bytes"] / theirs[f"process_{name}_memory_bytes"] < 1.25


def test_what_was_written_of_times_is_written_anew_when_one_comes() -> None:
    times = Histogram()
    for count in (1, 2):
        times.observe(1000)
        assert f't_count{{request="p"}} {count}.0\n' in times.written("t", ("p",), _histogram)
    times.counts[0] = 0
    assert 't_count{request="p"} 2.0\n' in times.written("t", ("p",), _histogram), "it was kept"


def test_the_series_do_not_grow_with_the_partitions(watched: Broker) -> None:
    """What a scrape costs is bounded by how many series it has."""
    with Connection(watched.bootstrap_servers) as client:
        sizes = []
        for number in (60, 120):
            make_topic(client, f"t{number}", number)
            for partition in range(number):
                produce(client, f"t{number}", partition, batch(b"a"))
            sizes.append(len(scrape(watched)))
    # The second topic has its own series, its partitions have none.
    assert sizes[1] - sizes[0] < 20
    assert sizes[1] < 1500


def test_a_scrape_after_a_start_loads_one_partition_in_a_turn(watched: Broker) -> None:
    """Lags are told of the committed partitions that nobody has used since the start."""
    number = 20
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", number)
        for partition in range(number):
            produce(client, "t", partition, batch(b"a"))
        client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        parts = [OffsetCommitRequestPartition(partition_index=each, committed_offset=0) for each in range(number)]
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1)
        commit.topics = [OffsetCommitRequestTopic(name="t", partitions=parts)]
        client.request(commit, 8)
    watched.restart()
    watched.clock.advance("1s")  # the groups are read soon after the start
    logs = watched.state.logs

    def loaded() -> int:
        return sum(log.topic == "t" for log in logs.loaded())

    def scrape_slowly() -> list[int]:
        return [loaded() for _ in Collector(watched.state, {}, Histogram()).slices()]

    assert watched.call(loaded) == 0
    counts = watched.call(scrape_slowly)
    assert counts[-1] == number
    assert max(after - before for before, after in pairwise(counts)) == 1
    assert of(scrape(watched), "kafka_shim_group_lag", group="g", topic="t") == number


def test_partitions_that_were_written_to_are_shown_before_empty_and_internal_ones(watched: Broker) -> None:
    """All were of `__transaction_state` where the first that a broker got was a transaction, and nearly all empty."""
    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        Producer(client, "x")
        make_topic(client, "empty", 20)
        for partition in range(20):
            client.send(fetch_request({("empty", partition): 0}, max_wait_ms=0), 12)
            client.receive(1, 12)
        make_topic(client, "orders", 20)
        for partition in range(20):
            produce(client, "orders", partition, batch(b"a"))
        samples = scrape(watched)
    for name in ("kafka_log_log_size", "kafka_log_log_logendoffset", "kafka_cluster_partition_replicascount"):
        shown = [dict(labels)["topic"] for one, labels in samples if one == name]
        # One of `__transaction_state` was written to: it holds the transactional id.
        assert shown == ["orders"] * 20 + ["__transaction_state"] + ["t"] + ["empty"] * 20 + ["__transaction_state"] * 8


def test_the_page_of_metrics_lists_them_all(watched: Broker) -> None:
    """docs/metrics.md has a row for each family that is exported, and none for others."""
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = set(re.findall(r"^\| `((?:kafka|process)_\w+)`", page, re.MULTILINE))

    async def families() -> set[str]:
        _, text = await asyncio.to_thread(get, watched, "/metrics")
        return {
            family.name + ("_total" if family.type == "counter" else "")
            for family in text_string_to_metric_families(text)
        }

    with Connection(watched.bootstrap_servers) as client:
        make_topic(client, "t", 1)
        produce(client, "t", 0, batch(b"a"))
    assert rows == asyncio.run(families())


@pytest.mark.option("kafka.shim.http.bearer.token")
def test_metrics_take_a_token_if_there_is_one() -> None:
    with Broker(kafka_shim_http_listener="127.0.0.1:0", kafka_shim_http_bearer_token="s3cret") as broker:
        address = broker.state.http_address + "/metrics"
        for wrong in ("", "Bearer", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "Bearer \xff"):
            request = urllib.request.Request(address, headers={"Authorization": wrong})
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(request, timeout=60)
        request = urllib.request.Request(address, headers={"Authorization": "Bearer s3cret"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert b"kafka_shim_connections" in answer.read()
        assert get(broker, "/health/live")[0] == 200


def test_another_site_that_leads_a_browser_to_loopback_reads_no_metrics() -> None:
    """DNS rebinding: the name is the site's, the address is ours. Who sends a token is no browser."""
    for token in ("", "s3cret"):
        given = {"Authorization": f"Bearer {token}"} if token else {}
        options = {"kafka.shim.http.bearer.token": token} if token else {}
        with Broker(kafka_shim_http_listener="127.0.0.1:0", **options) as broker:
            address = broker.state.http_address
            port = address.rpartition(":")[2]

            def status(path: str, host: str, address: str = address, given: dict[str, str] = given) -> int:
                request = urllib.request.Request(address + path, headers={"Host": host, **given})
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        return int(answer.status)
                except urllib.error.HTTPError as error:
                    return error.code

            local = (f"localhost:{port}", f"127.0.0.1:{port}", "[::1]", "LOCALHOST", f"a.localhost:{port}")
            for host in (*local, f"host.docker.internal:{port}", f"host.containers.internal:{port}"):
                assert status("/metrics", host) == 200, host
            for host in (f"evil.test:{port}", f"127.0.0.1.evil.test:{port}", "docker.internal.evil.test"):
                assert status("/metrics", host) == (200 if token else 403), host
                assert status("/health/live", host) == 200


def test_an_address_that_others_reach_serves_them_metrics_by_any_name() -> None:
    with Broker(kafka_shim_http_listener="0.0.0.0:0") as broker:
        port = broker.state.http_address.rpartition(":")[2]
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Host": "broker.test"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200


def test_metrics_on_loopback_are_served_by_the_name_that_the_option_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of the machine itself, whose name is 127.0.1.1 in many an /etc/hosts."""

    def on_loopback(address: tuple[str, int], *others: Any, **named: Any) -> server.HttpServer:
        return server.HttpServer(("127.0.0.1", address[1]), *others, **named)

    monkeypatch.setattr(http_listener, "HttpServer", on_loopback)
    with Broker(kafka_shim_http_listener="Broker.test:0") as broker:
        port = broker.state.http_address.rpartition(":")[2]
        for host, expected in ((f"broker.test:{port}", 200), (f"other.test:{port}", 403)):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    assert answer.status == expected
            except urllib.error.HTTPError as error:
                assert error.code == expected
