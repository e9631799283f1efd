"""A fetch that waits for records: one entry of the fetch purgatory (Kafka: DelayedFetch).

A fetch of a session is woken by the session, which the logs tell of changes. Without a session it subscribes to every
partition that it read, and checks all of them again when one changes.
"""

from __future__ import annotations

from kafka_shim.api.fetch_reads import MANY, READ_UNCOMMITTED, PartitionRead, end_for, read_again
from kafka_shim.turns import at_once
from kafka_shim.waiters import Waiter, deadline_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.fetch_reads import FetchReads
    from kafka_shim.api.fetch_sessions import CachedPartition, FetchContext
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.fetch_request import FetchRequest
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps


async def wait_for_reads(context: Context, request: FetchRequest, fetch: FetchContext, reads: FetchReads) -> FetchReads:
    """Wait until the partitions have `min_bytes` of records, an error or a diverging epoch, or until `max_wait_ms` has
    passed. Returns what the partitions then give."""
    broker = context.broker
    waiter = Waiter(broker.clock, "Fetch")
    ends_ms = deadline_ms(broker.clock, request.max_wait_ms)
    min_bytes = min(request.min_bytes, request.max_bytes, broker.config.fetch_max_bytes)
    # A session that ended since the partitions were read hears of nothing.
    session = fetch.session if fetch.session is not None and not fetch.session.is_closed else None
    watched: list[PartitionLog] = []
    is_large, has_rolled = len(reads.entries) > MANY, False
    if session is not None:
        session.waiters.add(waiter)
        for entry in reads.entries:
            if entry.log is not None:
                entry.asked.follow(entry.log)
    else:
        watched = [entry.log for entry in reads.entries if entry.log is not None]
    broker.parked.add(waiter)
    try:
        if is_large:
            await broker.turns.run(_subscribed(watched, waiter), context.throttle)
        else:
            at_once(_subscribed(watched, waiter))
        # Check for changes first: this coroutine starts one turn of the loop after the partitions were read.
        while True:
            if is_large:  # what changes behind the look wakes the waiter
                changed = await broker.turns.run(_changed(reads.entries), context.throttle)
            else:
                changed = [entry for entry in reads.entries if entry.has_changed()]
            if session is not None:
                read = {entry.asked for entry in reads.entries}
                idle = [asked for asked in session.in_order() if asked not in read]
                changed += map(PartitionRead, idle)
                has_rolled = min_bytes > 1 and any(_has_rolled(asked, request.isolation_level) for asked in idle)
            left_ms = ends_ms - broker.clock.monotonic_ms()
            is_over = left_ms <= 0 or broker.stopping
            if changed and (is_over or _can_fill(request, reads, changed, min_bytes)):
                again = read_again(context, request, fetch, reads, changed)
                reads = await broker.turns.run(again, context.throttle) if is_large else at_once(again)
            if is_over or reads.size_bytes + reads.withheld_bytes >= min_bytes or reads.has_news or has_rolled:
                return reads
            await waiter.wait(left_ms)
    finally:
        broker.parked.discard(waiter)
        for log in watched:
            log.unsubscribe(waiter.wake)
        if session is not None:
            session.leave(waiter)


def _subscribed(logs: list[PartitionLog], waiter: Waiter) -> Steps[None]:
    for log in logs:
        log.subscribe(waiter.wake)
        yield


def _changed(entries: list[PartitionRead]) -> Steps[list[PartitionRead]]:
    found = []
    for entry in entries:
        if entry.has_changed():
            found.append(entry)
        yield
    return found


def _has_rolled(asked: CachedPartition, isolation_level: int) -> bool:
    """Returns whether a segment begins where the reader is, although the log ended in another when its session last
    looked. `PartitionRead.is_in_another_segment` does not see that, as this request has not read the partition."""
    log, offset = asked.log, asked.fetch_offset
    if offset != asked.high_watermark or offset == asked.segment_base:
        return False
    if log is None or log.is_closed or log.is_offline:
        return False
    at = log.segment_at(offset)
    return at > 0 and log.segments[at].base_offset == offset < end_for(log, isolation_level)


def _can_fill(request: FetchRequest, reads: FetchReads, changed: list[PartitionRead], min_bytes: int) -> bool:
    """Returns whether the bytes appended since the last read may reach `min_bytes`, or begin a new segment. This avoids
    reading the same bytes again at each append."""
    if min_bytes <= 1 or request.isolation_level != READ_UNCOMMITTED:
        return True
    grown_bytes = reads.size_bytes + reads.withheld_bytes
    for entry in changed:
        log = entry.log
        if log is None or log.is_closed or log.is_offline or log.log_start_offset != entry.start_offset:
            return True
        if entry.is_in_another_segment(request.isolation_level):
            return True
        grown_bytes += log.size_bytes - entry.log_bytes
    return grown_bytes >= min_bytes
