"""A fetch that waits for records: one entry of the fetch purgatory (Kafka: DelayedFetch).

It watches every partition that it read and looks again when one of them changes. An append that told a fetch session
which of its partitions have news would take the place of this look through all of them.
"""

from __future__ import annotations

from kafka_shim.api.fetch_reads import READ_UNCOMMITTED, read_again
from kafka_shim.waiters import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.fetch_reads import FetchReads, PartitionRead
    from kafka_shim.api.fetch_sessions import FetchContext
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.fetch_request import FetchRequest


async def wait_for_reads(context: Context, request: FetchRequest, fetch: FetchContext, reads: FetchReads) -> FetchReads:
    """Wait until the partitions have `min_bytes` to give or something to tell, or the time is up; what they gave
    then."""
    broker = context.broker
    waiter = Waiter(broker.clock)
    deadline_ms = broker.clock.monotonic_ms() + request.max_wait_ms
    min_bytes = min(request.min_bytes, request.max_bytes, broker.config.fetch_max_bytes)
    watched = [entry.log for entry in reads.entries if entry.log is not None]
    for log in watched:
        log.subscribe(waiter.wake)
    broker.parked.add(waiter)
    try:
        # First a look at what came since they were read: this coroutine starts a turn of the loop later.
        while True:
            changed = [entry for entry in reads.entries if entry.has_changed()]
            left_ms = deadline_ms - broker.clock.monotonic_ms()
            is_over = left_ms <= 0 or broker.stopping
            if changed and (is_over or _can_fill(request, reads, changed, min_bytes)):
                reads = read_again(context, request, fetch, reads, changed)
            if is_over or reads.size_bytes >= min_bytes or reads.has_news:
                return reads
            await waiter.wait(left_ms)
    finally:
        broker.parked.discard(waiter)
        for log in watched:
            log.unsubscribe(waiter.wake)


def _can_fill(request: FetchRequest, reads: FetchReads, changed: list[PartitionRead], min_bytes: int) -> bool:
    """Whether what was appended since they were read may be enough: saves reading the same bytes at each append."""
    if min_bytes <= 1 or request.isolation_level != READ_UNCOMMITTED:
        return True
    grown_bytes = reads.size_bytes
    for entry in changed:
        log = entry.log
        if log is None or log.is_closed or log.is_offline or log.log_start_offset != entry.start_offset:
            return True
        grown_bytes += log.size_bytes - entry.log_bytes
    return grown_bytes >= min_bytes
