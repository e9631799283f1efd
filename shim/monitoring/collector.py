"""Reads the state of a broker as families of Prometheus metrics.

Names that begin with `kafka_` but not with `kafka_shim_` are those that the JMX exporter of Prometheus makes of the
MBeans of Apache Kafka in KRaft mode, with the same meaning. The others are of this project. docs/metrics.md lists all
of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.monitoring.background import background, protection
from kafka_shim.monitoring.families import MOST_PARTITIONS, MOST_SERIES, REST, counter, gauge
from kafka_shim.monitoring.replicas import Counts, Replicas
from kafka_shim.monitoring.request_times import BOUNDS_S, QUANTILES
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.telemetry.series import KeepsSeries
from kafka_shim.txn.transaction import STATE_NAMES, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kafka_shim.broker import Broker
    from kafka_shim.group.groups import Groups
    from kafka_shim.monitoring.request_times import Histogram, RequestTimes
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.telemetry.client_metrics import ClientMetrics
    from kafka_shim.telemetry.series import Series

# Partitions that are looked at in one turn of the event loop.
SLICE = 250
# How much later than `transaction.max.timeout.ms` an open transaction hangs (Kafka: LATE_TRANSACTION_BUFFER_MS).
LATE_MS = 300_000
FETCH = 1


class Collector:
    """Belongs to one broker. `times` are the requests' by API key, `loop_lag` those of the event loop."""

    def __init__(self, broker: Broker, times: Mapping[int, RequestTimes], loop_lag: Histogram) -> None:
        self._broker = broker
        self._times = times
        self._loop_lag = loop_lag
        # Counted anew when the metadata has changed.
        self._counts = Counts()

    def slices(self) -> Iterator[list[Metric]]:
        """Yields all families. Runs on the event loop, one slice in a turn."""
        yield [*self._requests(), *self._cluster(), *self._storage(), *self._transactions()]
        yield [*background(self._broker), *protection(self._broker)]
        late_ms = self._broker.config.transaction_max_timeout_ms + LATE_MS
        topics = _Topics(self._broker.clock.now_ms() - late_ms)
        replicas = Replicas(self._broker, self._counts)
        for _ in replicas.slices():
            yield []
        for number, log in enumerate(self._broker.logs.loaded()):
            topics.add(log)
            if number < MOST_PARTITIONS:
                replicas.add(log)
            if number % SLICE == SLICE - 1:
                yield []
        yield [*topics.families(), *replicas.families()]
        lags = _Lags(self._broker)
        for groups in self._broker.groups.loaded():
            for _ in lags.slices(groups):
                yield []
            yield []
        yield lags.families()
        if self._broker.client_metrics is not None:
            yield from ([family] for family in _pushed(self._broker.client_metrics))

    def _requests(self) -> Iterator[Metric]:
        metrics = self._broker.metrics
        kafka = "kafka_network_requestmetrics"
        requests = CounterMetricFamily(f"{kafka}_requests", "Requests by API.", labels=["request", "version"])
        answered = CounterMetricFamily(f"{kafka}_totaltimems_count", "Answered requests by API.", labels=["request"])
        errors = CounterMetricFamily(f"{kafka}_errors", "Error codes in responses.", labels=["request", "error"])
        handled = CounterMetricFamily(f"{kafka}_localtimems_count", "Handled requests by API.", labels=["request"])
        with_quantiles = ["request", "quantile"]
        total_ms = GaugeMetricFamily(f"{kafka}_totaltimems", "Times of the last requests.", labels=with_quantiles)
        local_ms = GaugeMetricFamily(f"{kafka}_localtimems", "The loop's times for them.", labels=with_quantiles)
        total = HistogramMetricFamily(
            "kafka_shim_request_seconds", "Time from a request to its response, with waiting.", labels=["request"]
        )
        local = HistogramMetricFamily(
            "kafka_shim_request_local_seconds", "Time of the event loop that a request took.", labels=["request"]
        )
        for api_key, times in sorted(self._times.items()):
            name = API_KEYS[api_key][0]
            quantiles = list(zip(QUANTILES, times.total.quantiles_ms(), times.local.quantiles_ms(), strict=True))
            # Kafka counts a consumer's fetch twice; there is no follower here.
            for each in (name, "FetchConsumer") if api_key == FETCH else (name,):
                for version, count in sorted(times.versions.items()):
                    requests.add_metric([each, str(version)], count)
                answered.add_metric([each], sum(times.total.counts))
                handled.add_metric([each], sum(times.local.counts))
                for quantile, of_total, of_local in quantiles:
                    total_ms.add_metric([each, quantile], of_total)
                    local_ms.add_metric([each, quantile], of_local)
            for code, count in sorted(times.errors.items()):
                errors.add_metric([name, _error(code)], count)
            total.add_metric([name], _buckets(times.total), times.total.sum_ns / 1e9)
            local.add_metric([name], _buckets(times.local), times.local.sum_ns / 1e9)
        yield from (requests, errors, answered, handled, total_ms, local_ms, total, local)
        lag = HistogramMetricFamily("kafka_shim_loop_lag_seconds", "How late the event loop runs what is due.")
        lag.add_metric([], _buckets(self._loop_lag), self._loop_lag.sum_ns / 1e9)
        yield lag
        opened, closed = metrics.connections_opened, metrics.connections_closed
        yield gauge("kafka_shim_connections", "Open connections.", opened - closed)
        yield counter("kafka_shim_connections_opened", "Connections accepted.", opened)
        yield counter("kafka_shim_connections_refused", "Connections over a limit.", metrics.connections_refused)
        yield counter("kafka_shim_frames_refused", "Connections closed for what they sent.", metrics.frames_refused)
        yield counter("kafka_shim_unexpected_errors", "Errors that no rule foresees.", metrics.errors_unexpected)
        yield counter("kafka_shim_appended_bytes", "Bytes of batches that clients wrote.", metrics.appended_bytes)
        yield counter("kafka_shim_fetched_bytes", "Bytes of batches that fetches returned.", metrics.fetched_bytes)
        waiting = Counter(waiter.operation for waiter in self._broker.parked)
        delayed = GaugeMetricFamily(
            "kafka_server_delayedoperationpurgatory_numdelayedoperations",
            "Requests that wait for records.",
            labels=["delayedOperation"],
        )
        for operation in ("Fetch", "ShareFetch"):
            delayed.add_metric([operation], waiting[operation])
        yield delayed
        sessions = len(self._broker.fetch_sessions)
        yield gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", sessions)

    def _cluster(self) -> Iterator[Metric]:
        topics = self._broker.metadata.image.topics
        partitions = sum(len(topic.partitions) for topic in topics.values())
        yield gauge("kafka_controller_kafkacontroller_activecontrollercount", "1: the broker is the controller.", 1)
        yield gauge("kafka_controller_kafkacontroller_activebrokercount", "1: the broker is all there is.", 1)
        yield gauge("kafka_controller_kafkacontroller_fencedbrokercount", "0: the broker serves.", 0)
        yield gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics.", len(topics))
        yield gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions.", partitions)
        offline = self._broker.logs.offline_count
        yield gauge("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without leader.", offline)
        image = self._broker.metadata.image
        applied = "kafka_controller_kafkacontroller_lastappliedrecord"
        yield gauge(f"{applied}offset", "The last record of the metadata log.", image.last_offset)
        yield gauge(f"{applied}timestamp", "When it was written, in ms.", image.last_timestamp_ms)
        failed = len(self._broker.logs.failed_dirs)
        yield gauge("kafka_log_logmanager_offlinelogdirectorycount", "Log directories that failed.", failed)
        yield gauge("kafka_server_replicamanager_partitioncount", "Partitions that can be used.", partitions - offline)
        yield gauge("kafka_server_replicamanager_leadercount", "Partitions that are led here.", partitions - offline)
        yield gauge("kafka_server_replicamanager_offlinereplicacount", "Partitions that cannot be used.", offline)

    def _storage(self) -> Iterator[Metric]:
        files = self._broker.logs.services.files
        yield gauge("kafka_shim_open_partition_files", "Descriptors of partitions that are open.", files.descriptors)
        yield gauge("kafka_shim_open_partition_files_limit", "The most of them.", files.limit)
        receive = self._broker.receive_memory.used_bytes
        yield gauge("kafka_shim_receive_memory_bytes", "Memory of requests that are being received.", receive)
        send = self._broker.send_memory.used_bytes
        yield gauge("kafka_shim_send_memory_bytes", "Memory of responses that clients have not taken.", send)

    def _transactions(self) -> Iterator[Metric]:
        transactions = self._broker.transactions.transactions()
        states = Counter(transaction.state for transaction in transactions)
        family = GaugeMetricFamily("kafka_shim_transactions", "Transactional ids by state.", labels=["state"])
        for state in sorted(states):
            family.add_metric([STATE_NAMES[state]], states[state])
        yield family
        now_ms = self._broker.clock.now_ms()
        begun = [transaction.start_ms for transaction in transactions if transaction.state == State.ONGOING]
        oldest_s = (now_ms - min(begun)) / 1000 if begun else 0
        yield gauge("kafka_shim_oldest_transaction_seconds", "The age of the oldest open transaction.", oldest_s)


def _pushed(clients: ClientMetrics) -> Iterator[Metric]:
    """Yields what is known of the clients that push metrics (KIP-714), and what they pushed if a receiver keeps it."""
    yield gauge("kafka_shim_client_metrics_instances", "Clients that push metrics.", clients.instance_count)
    yield counter("kafka_shim_client_metrics_exports", "Pushes that the receivers took.", clients.exports)
    yield counter("kafka_shim_client_metrics_export_errors", "Pushes that one refused.", clients.failed_exports)
    yield counter("kafka_shim_client_metrics_throttled", "Requests that came too early.", clients.throttled)
    keepers = [receiver for receiver in clients.receivers if isinstance(receiver, KeepsSeries)]
    if keepers:
        dropped = sum(keeper.dropped for keeper in keepers)
        yield counter("kafka_shim_client_metrics_dropped_values", "Values above the bounds.", dropped)
    families: dict[str, list[Series]] = defaultdict(list)
    for keeper in keepers:
        for one in keeper.series():
            families[one.name].append(one)
    for name, every in sorted(families.items()):
        is_counter = every[0].is_counter
        base = name.removesuffix("_total") if is_counter else name
        family = Metric(base, "Pushed by clients.", "counter" if is_counter else "gauge")
        # Each with its own labels: the union of what many clients made up would grow with the square of their number.
        for one in every:
            family.add_sample(f"{base}_total" if is_counter else name, dict(one.labels), one.value)
        yield family


class _Topics:
    """Sums over the partitions of each topic that were used since the start."""

    def __init__(self, late_before_ms: int) -> None:
        self._sums: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
        self._late_before_ms = late_before_ms
        self._late = 0
        where = ["topic", "partition"]
        kafka = "kafka_log_log"
        self._partitions = (
            GaugeMetricFamily(f"{kafka}_size", "Stored bytes of a partition.", labels=where),
            GaugeMetricFamily(f"{kafka}_numlogsegments", "Segments of a partition.", labels=where),
            GaugeMetricFamily(f"{kafka}_logstartoffset", "First offset of a partition.", labels=where),
            GaugeMetricFamily(f"{kafka}_logendoffset", "Next offset of a partition.", labels=where),
        )
        self._held_back = GaugeMetricFamily(
            "kafka_shim_last_stable_offset_lag",
            "Records above the last stable offset, where there are any: what an open transaction holds back.",
            labels=["topic", "partition"],
        )

    def add(self, log: PartitionLog) -> None:
        topic = log.topic
        sums = self._sums.get(topic)
        if sums is None:
            sums = self._sums[topic if len(self._sums) < MOST_SERIES else REST]
        sums[0] += log.appended_bytes
        sums[1] += log.appended_records
        sums[2] += log.fetched_bytes
        segments = log.segments
        sums[3] += segments[0].size_bytes if len(segments) == 1 else log.size_bytes
        sums[4] += len(segments)
        sums[5] += log.log_end_offset - log.log_start_offset
        if len(self._partitions[0].samples) < MOST_PARTITIONS:
            values = (log.size_bytes, len(log.segments), log.log_start_offset, log.log_end_offset)
            for family, value in zip(self._partitions, values, strict=True):
                family.add_metric([log.topic, str(log.partition)], value)
        if log.producers.first_open_offset >= 0:
            self._late += log.producers.has_late_transaction(self._late_before_ms)
            lag = log.high_watermark - log.last_stable_offset
            if lag > 0 and len(self._held_back.samples) < MOST_SERIES:
                self._held_back.add_metric([log.topic, str(log.partition)], lag)

    def families(self) -> list[Metric]:
        server = "kafka_server_brokertopicmetrics"
        families: tuple[CounterMetricFamily | GaugeMetricFamily, ...] = (
            CounterMetricFamily(f"{server}_bytesin", "Bytes that clients wrote.", labels=["topic"]),
            CounterMetricFamily(f"{server}_messagesin", "Records that clients wrote.", labels=["topic"]),
            CounterMetricFamily(f"{server}_bytesout", "Bytes that clients fetched.", labels=["topic"]),
            GaugeMetricFamily("kafka_shim_log_bytes", "Stored bytes.", labels=["topic"]),
            GaugeMetricFamily("kafka_shim_log_segments", "Segments.", labels=["topic"]),
            GaugeMetricFamily("kafka_shim_log_offsets", "Offsets from the start to the end.", labels=["topic"]),
        )
        for at, family in enumerate(families):
            for topic, sums in sorted(self._sums.items()):
                family.add_metric([topic], sums[at])
        late = gauge(
            "kafka_server_replicamanager_partitionswithlatetransactionscount",
            "Partitions with a hanging transaction.",
            self._late,
        )
        return [*families, *self._partitions, self._held_back, late]


class _Lags:
    """Groups by type and state, and how far their committed offsets are behind."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lags: dict[tuple[str, str], int] = defaultdict(int)
        self._states: Counter[tuple[str, str]] = Counter()
        self._offsets = 0

    def slices(self, groups: Groups) -> Iterator[None]:
        """Adds the groups of one partition of `__consumer_offsets`. Yields now and then."""
        self._states.update((group.TYPE, group.state_name) for group in groups.by_id.values())
        number = 0
        for group_id in list(groups.offsets.group_ids()):
            for topic, partitions in list(groups.offsets.of_group(group_id).items()):
                known = (group_id, topic) in self._lags or len(self._lags) < MOST_SERIES
                where = (group_id, topic) if known else (REST, REST)
                self._offsets += len(partitions)
                for partition, committed in list(partitions.items()):
                    self._lags[where] += max(0, self._end_of(topic, partition) - committed.offset)
                    number += 1
                    if number % SLICE == 0:
                        yield

    def _end_of(self, topic: str, partition: int) -> int:
        try:
            return self._broker.logs.get(topic, partition).last_stable_offset
        except (KafkaError, OSError):
            return 0  # a deleted or an offline partition has nothing to read

    def families(self) -> list[Metric]:
        groups = GaugeMetricFamily("kafka_shim_groups", "Groups by type and state.", labels=["type", "state"])
        for (kind, state), count in sorted(self._states.items()):
            groups.add_metric([kind, state], count)
        lags = GaugeMetricFamily(
            "kafka_shim_group_lag",
            "Records between a group's committed offsets and the last stable offsets.",
            labels=["group", "topic"],
        )
        for (group_id, topic), lag in sorted(self._lags.items()):
            lags.add_metric([group_id, topic], lag)
        kafka = "kafka_coordinator_group_groupmetadatamanager"
        classic = [
            gauge(
                f"{kafka}_numgroups{state.lower()}", f"Classic groups in state {state}.", self._states["classic", state]
            )
            for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")
        ]
        return [groups, lags, gauge(f"{kafka}_numoffsets", "Committed offsets.", self._offsets), *classic]


def _error(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Returns the cumulative counts that Prometheus wants."""
    found, sum_so_far = [], 0
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), histogram.counts, strict=True):
        sum_so_far += count
        found.append((bound, float(sum_so_far)))
    return found
