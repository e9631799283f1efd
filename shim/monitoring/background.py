"""Families of what goes on beside the requests: fsync, compaction, share groups, quotas, authentication."""

from __future__ import annotations

from kafka_shim.monitoring.exposition import number
from kafka_shim.monitoring.families import MOST_SERIES, REST, Family, counter, gauge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.broker import Broker


def background(broker: Broker) -> Iterator[Family]:
    """Yields the families of work that no request waits for."""
    flusher = broker.logs.services.flusher
    name = "kafka_shim_fsync_seconds"
    times = Family("summary", name, "Calls of fsync, and the time that they took.")
    times.lines += (f"{name}_count {number(flusher.sync_count)}\n", f"{name}_sum {number(flusher.sync_ns / 1e9)}\n")
    yield times
    yield counter("kafka_shim_fsync_errors", "Calls of fsync that failed.", flusher.sync_failures)
    cleaner = broker.logs.cleaner
    yield counter("kafka_shim_compactions", "Rounds of compaction of a partition.", cleaner.rounds)
    yield counter("kafka_shim_compaction_errors", "Rounds that failed.", cleaner.failures)
    yield counter("kafka_shim_compaction_read_bytes", "Bytes that they read.", cleaner.read_bytes)
    yield counter("kafka_shim_compaction_written_bytes", "Bytes that they wrote.", cleaner.written_bytes)
    yield gauge("kafka_shim_uncleanable_partitions", "Partitions with a corrupt log.", cleaner.uncleanable_count)
    shares = broker.share_partitions
    sessions = 0 if shares is None else len(shares.sessions)
    yield gauge("kafka_server_sharesessioncache_sharesessionscount", "Share sessions.", sessions)
    partitions: dict[str, list[int]] = {}
    for share in () if shares is None else shares.loaded():
        is_named = share.group_id in partitions or len(partitions) < MOST_SERIES
        sums = partitions.setdefault(share.group_id if is_named else REST, [0, 0])
        sums[0] += 1
        sums[1] += share.in_flight_count() - share.delivery_complete_count
    loaded = Family("gauge", "kafka_shim_share_partitions", "Share partitions in memory.", ("group",))
    in_flight = Family(
        "gauge",
        "kafka_shim_share_records_in_flight",
        "Records that were acquired and are not acknowledged for good.",
        ("group",),
    )
    for group_id, (count, records) in sorted(partitions.items()):
        loaded.add(count, group_id)
        in_flight.add(records, group_id)
    yield from (loaded, in_flight)


def protection(broker: Broker) -> Iterator[Family]:
    """Yields the families of what quotas and security keep away."""
    metrics = broker.metrics
    yield counter("kafka_shim_throttled_responses", "Responses after which a quota rests.", metrics.throttled_responses)
    yield counter("kafka_shim_throttled_seconds", "How long those connections rest.", metrics.throttled_ms / 1000)
    failures = Family(
        "counter", "kafka_shim_authentication_failures", "Connections that failed to authenticate.", ("listener",)
    )
    for listener in broker.listeners:
        if listener.security is not None:
            failures.add(listener.security.failures.total, listener.name)
    yield failures
