"""Reads the state of a broker as families of Prometheus metrics.

Names that begin with `kafka_` but not with `kafka_shim_` are those that the JMX exporter of Prometheus makes of the
MBeans of Apache Kafka in KRaft mode, with the same meaning. The others are of this project. docs/metrics.md lists all
of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from prometheus_client.core import Metric

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.monitoring.background import background, protection
from kafka_shim.monitoring.exposition import inner_labels, labels_of, number
from kafka_shim.monitoring.families import MOST_SERIES, OF_PARTITION, REST, Family, counter, gauge
from kafka_shim.monitoring.replicas import Counts, Replicas
from kafka_shim.monitoring.request_times import BOUNDS_S, QUANTILES
from kafka_shim.monitoring.shown_partitions import ShownPartitions
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.telemetry.series import KeepsSeries
from kafka_shim.txn.transaction import STATE_NAMES, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
        # Counted again when the metadata has changed.
        self._counts = Counts()

    def slices(self) -> Iterator[list[Family | Metric]]:
        """Yields all families: the broker's own, and of the library those with names that clients made up. Runs on the
        event loop, one slice in a turn."""
        yield [*self._requests(), *self._connections(), *self._fetches()]
        yield [*self._cluster(), *self._storage(), *self._transactions()]
        yield [*background(self._broker), *protection(self._broker)]
        late_ms = self._broker.config.transaction_max_timeout_ms + LATE_MS
        topics = _Topics(self._broker.clock.now_ms() - late_ms)
        replicas = Replicas(self._broker, self._counts)
        for _ in replicas.slices():
            yield []
        logs = self._broker.logs.loaded()
        shown = ShownPartitions()
        for start in range(0, len(logs), SLICE):
            topics.add(logs[start : start + SLICE])
            shown.look_at(logs[start : start + SLICE])
            yield []
        for log in shown.chosen():
            where = labels_of(OF_PARTITION, (str(log.partition), log.topic))
            topics.add_partition(log, where)
            replicas.add(log, where)
        yield [*topics.families(), *replicas.families()]
        lags = _Lags(self._broker)
        for groups in self._broker.groups.loaded():
            for _ in lags.slices(groups):
                yield []
            yield []
        yield [*lags.families()]
        if self._broker.client_metrics is not None:
            yield from ([family] for family in _pushed(self._broker.client_metrics))

    def _requests(self) -> Iterator[Family]:
        kafka = "kafka_network_requestmetrics"
        of_request = ("request",)
        requests = Family("counter", f"{kafka}_requests", "Requests by API.", ("request", "version"))
        answered = Family("counter", f"{kafka}_totaltimems_count", "Answered requests by API.", of_request)
        errors = Family("counter", f"{kafka}_errors", "Error codes in responses.", ("error", "request"))
        handled = Family("counter", f"{kafka}_localtimems_count", "Handled requests by API.", of_request)
        total_ms = Family("gauge", f"{kafka}_totaltimems", "Times of the last requests.")
        local_ms = Family("gauge", f"{kafka}_localtimems", "The loop's times for them.")
        total = Family("histogram", "kafka_shim_request_seconds", "Time from a request to its response, with waiting.")
        local = Family("histogram", "kafka_shim_request_local_seconds", "Time of the event loop that a request took.")
        for api_key, times in sorted(self._times.items()):
            name = API_KEYS[api_key][0]
            # Kafka counts a consumer's fetch twice; there is no follower here.
            names = (name, "FetchConsumer") if api_key == FETCH else (name,)
            for each in names:
                for version, count in sorted(times.versions.items()):
                    requests.add(count, each, str(version))
                answered.add(times.total.count, each)
                handled.add(times.local.count, each)
            total_ms.lines.append(times.total.written(f"{kafka}_totaltimems", names, _quantiles))
            local_ms.lines.append(times.local.written(f"{kafka}_localtimems", names, _quantiles))
            for code, count in sorted(times.errors.items()):
                errors.add(count, ErrorCode(code).name, name)
            total.lines.append(times.total.written("kafka_shim_request_seconds", (name,), _histogram))
            local.lines.append(times.local.written("kafka_shim_request_local_seconds", (name,), _histogram))
        yield from (requests, errors, answered, handled, total_ms, local_ms, total, local)
        lag = Family("histogram", "kafka_shim_loop_lag_seconds", "How late the event loop runs what is due.")
        lag.lines.append(_histogram("kafka_shim_loop_lag_seconds", (), self._loop_lag))
        yield lag

    def _connections(self) -> Iterator[Family]:
        metrics = self._broker.metrics
        opened, closed = metrics.connections_opened, metrics.connections_closed
        yield gauge("kafka_shim_connections", "Open connections.", opened - closed)
        yield counter("kafka_shim_connections_opened", "Connections accepted.", opened)
        yield counter("kafka_shim_connections_refused", "Connections over a limit.", metrics.connections_refused)
        yield counter("kafka_shim_frames_refused", "Connections closed for what they sent.", metrics.frames_refused)
        yield counter("kafka_shim_unexpected_errors", "Errors that no rule foresees.", metrics.errors_unexpected)
        yield counter("kafka_shim_appended_bytes", "Bytes of batches that clients wrote.", metrics.appended_bytes)
        yield counter("kafka_shim_fetched_bytes", "Bytes of batches that fetches returned.", metrics.fetched_bytes)

    def _fetches(self) -> Iterator[Family]:
        waiting = Counter(waiter.operation for waiter in self._broker.parked)
        delayed = Family(
            "gauge",
            "kafka_server_delayedoperationpurgatory_numdelayedoperations",
            "Requests that wait for records.",
            ("delayedOperation",),
        )
        for operation in ("Fetch", "ShareFetch"):
            delayed.add(waiting[operation], operation)
        yield delayed
        sessions = len(self._broker.fetch_sessions)
        yield gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions.", sessions)

    def _cluster(self) -> Iterator[Family]:
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

    def _storage(self) -> Iterator[Family]:
        files = self._broker.logs.services.files
        yield gauge("kafka_shim_open_partition_files", "Descriptors of partitions that are open.", files.descriptors)
        yield gauge("kafka_shim_open_partition_files_limit", "The most of them.", files.limit)
        receive = self._broker.receive_memory.used_bytes
        yield gauge("kafka_shim_receive_memory_bytes", "Memory of requests that are being received.", receive)
        send = self._broker.send_memory.used_bytes
        yield gauge("kafka_shim_send_memory_bytes", "Memory of responses that clients have not taken.", send)

    def _transactions(self) -> Iterator[Family]:
        transactions = self._broker.transactions.transactions()
        states = Counter(transaction.state for transaction in transactions)
        family = Family("gauge", "kafka_shim_transactions", "Transactional ids by state.", ("state",))
        for state in sorted(states):
            family.add(states[state], STATE_NAMES[state])
        yield family
        now_ms = self._broker.clock.now_ms()
        begun = [transaction.start_ms for transaction in transactions if transaction.state == State.ONGOING]
        oldest_s = max(0, now_ms - min(begun)) / 1000 if begun else 0  # the clock may be set back
        yield gauge("kafka_shim_oldest_transaction_seconds", "The age of the oldest open transaction.", oldest_s)


def _pushed(clients: ClientMetrics) -> Iterator[Family | Metric]:
    """Yields what is known of the clients that push metrics (KIP-714), and what they pushed if a receiver keeps it."""
    yield gauge("kafka_shim_client_metrics_instances", "Clients that push metrics.", clients.instance_count)
    yield counter("kafka_shim_client_metrics_exports", "Pushes that all receivers took.", clients.exports)
    yield counter("kafka_shim_client_metrics_export_errors", "Pushes that one refused.", clients.failed_exports)
    yield counter("kafka_shim_client_metrics_throttled", "Requests that came too early.", clients.throttled)
    keepers = [receiver for receiver in clients.receivers if isinstance(receiver, KeepsSeries)]
    if keepers:
        dropped = sum(keeper.dropped for keeper in keepers)
        yield counter(
            "kafka_shim_client_metrics_dropped_values", "Values above the bounds; a push above them is one.", dropped
        )
    gauges: dict[str, dict[frozenset[tuple[str, str]], Series]] = defaultdict(dict)
    counters: dict[str, dict[frozenset[tuple[str, str]], Series]] = defaultdict(dict)
    for keeper in keepers:
        # Names that differ may become the same: of one series the last is shown, or Prometheus would take nothing.
        for one in keeper.series():
            if one.is_counter:
                counters[f"{one.name.removesuffix('_total')}_total"][frozenset(one.labels)] = one
            else:
                gauges[one.name][frozenset(one.labels)] = one
    for name, every in sorted({**gauges, **counters}.items()):
        try:
            if name in counters:
                family = Metric(name.removesuffix("_total"), "Pushed by clients.", "counter")
            else:
                family = Metric(name, "Pushed by clients.", "gauge")
        except ValueError:
            continue  # a name that is none, of a receiver that looks at names less: the others are shown
        # Each with its own labels: the union of what many clients made up would grow with the square of their number.
        for one in every.values():
            family.add_sample(name, dict(one.labels), one.value)
        yield family


class _Topics:
    """Sums over the partitions of each topic that were used since the start."""

    def __init__(self, late_before_ms: int) -> None:
        self._sums: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
        self._late_before_ms = late_before_ms
        self._late = 0
        kafka = "kafka_log_log"
        self._partitions = (
            Family("gauge", f"{kafka}_size", "Stored bytes of a partition.", OF_PARTITION),
            Family("gauge", f"{kafka}_numlogsegments", "Segments of a partition.", OF_PARTITION),
            Family("gauge", f"{kafka}_logstartoffset", "First offset of a partition.", OF_PARTITION),
            Family("gauge", f"{kafka}_logendoffset", "Next offset of a partition.", OF_PARTITION),
        )
        self._held_back = Family(
            "gauge",
            "kafka_shim_last_stable_offset_lag",
            "Offsets above the last stable offset, where there are any: what an open transaction holds back.",
            OF_PARTITION,
        )

    def add(self, logs: Sequence[PartitionLog]) -> None:
        """Sum up some partitions: in one loop, because there may be thousands in each scrape."""
        sums_of = self._sums
        for log in logs:
            topic = log.topic
            sums = sums_of.get(topic)
            if sums is None:
                sums = sums_of[topic if len(sums_of) < MOST_SERIES else REST]
            segments = log.segments
            sums[0] += log.appended_bytes
            sums[1] += log.appended_records
            sums[2] += log.fetched_bytes
            sums[3] += segments[0].size_bytes if len(segments) == 1 else log.size_bytes
            sums[4] += len(segments)
            sums[5] += log.log_end_offset - log.log_start_offset
            if log.producers.first_open_offset >= 0:
                self._add_open(log)

    def _add_open(self, log: PartitionLog) -> None:
        self._late += log.producers.has_late_transaction(self._late_before_ms)
        lag = log.high_watermark - log.last_stable_offset
        if lag > 0 and len(self._held_back.lines) < MOST_SERIES:
            self._held_back.add(lag, str(log.partition), log.topic)

    def add_partition(self, log: PartitionLog, where: str) -> None:
        """One of the partitions that have series of their own."""
        values = (log.size_bytes, len(log.segments), log.log_start_offset, log.log_end_offset)
        for family, value in zip(self._partitions, values, strict=True):
            family.put(where, value)

    def families(self) -> list[Family]:
        server = "kafka_server_brokertopicmetrics"
        families = (
            Family("counter", f"{server}_bytesin", "Bytes that clients wrote."),
            Family("counter", f"{server}_messagesin", "Records that clients wrote."),
            Family("counter", f"{server}_bytesout", "Bytes that clients fetched."),
            Family("gauge", "kafka_shim_log_bytes", "Stored bytes."),
            Family("gauge", "kafka_shim_log_segments", "Segments."),
            Family("gauge", "kafka_shim_log_offsets", "Offsets from the start to the end."),
        )
        for topic, sums in sorted(self._sums.items()):
            where = labels_of(("topic",), (topic,))
            for family, value in zip(families, sums, strict=True):
                family.put(where, value)
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
                    is_loaded = (topic, partition) in self._broker.logs.partitions.loaded
                    self._lags[where] += max(0, self._end_of(topic, partition) - committed.offset)
                    number += 1
                    if number % SLICE == 0 or not is_loaded:  # its first use since the start takes as long as a slice
                        yield

    def _end_of(self, topic: str, partition: int) -> int:
        try:
            return self._broker.logs.get(topic, partition).last_stable_offset
        except (KafkaError, OSError):
            return 0  # a deleted or an offline partition has nothing to read

    def families(self) -> list[Family]:
        groups = Family("gauge", "kafka_shim_groups", "Groups by type and state.", ("state", "type"))
        for (kind, state), count in sorted(self._states.items()):
            groups.add(count, state, kind)
        lags = Family(
            "gauge",
            "kafka_shim_group_lag",
            "Offsets between a group's committed ones and the last stable ones.",
            ("group", "topic"),
        )
        for (group_id, topic), lag in sorted(self._lags.items()):
            lags.add(lag, group_id, topic)
        kafka = "kafka_coordinator_group_groupmetadatamanager"
        classic = [
            gauge(
                f"{kafka}_numgroups{state.lower()}", f"Classic groups in state {state}.", self._states["classic", state]
            )
            for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")
        ]
        return [groups, lags, gauge(f"{kafka}_numoffsets", "Committed offsets.", self._offsets), *classic]


def _quantiles(name: str, requests: tuple[str, ...], histogram: Histogram) -> str:
    """Returns the series of the quantiles, of each of these names of a request."""
    texts = [(quantile, number(value)) for quantile, value in zip(QUANTILES, histogram.quantiles_ms(), strict=True)]
    return "".join(
        [f'{name}{{quantile="{each}",request="{request}"}} {text}\n' for request in requests for each, text in texts]
    )


def _histogram(name: str, requests: tuple[str, ...], histogram: Histogram) -> str:
    """Returns the series of a histogram: the cumulative counts that Prometheus wants, their number and their sum. Of a
    request, if one is named."""
    inner = inner_labels(("request",), requests) if requests else ""
    lines, sum_so_far = [], 0
    for bound, count in zip(_BOUNDS, histogram.counts, strict=True):
        sum_so_far += count
        lines.append(f'{name}_bucket{{le="{bound}"{"," + inner if inner else ""}}} {number(sum_so_far)}\n')
    where = f"{{{inner}}}" if inner else ""
    lines.append(f"{name}_count{where} {number(sum_so_far)}\n")
    lines.append(f"{name}_sum{where} {number(histogram.sum_ns / 1e9)}\n")
    return "".join(lines)


_BOUNDS = (*map(str, BOUNDS_S), "+Inf")
