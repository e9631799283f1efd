"""A ShareFetch that waits for records: one entry of the share fetch purgatory (Kafka: DelayedShareFetch).

It looks again when a log grows, when a member gives records of a share partition back, and when a lock ends.
"""

from __future__ import annotations

from kafka_shim.turns import at_once
from kafka_shim.waiters import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.share_fetch_reads import ShareFetchReads
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.share_fetch_response import PartitionData
    from kafka_shim.share.share_sessions import TopicIdPartition

# How often to look again while the share coordinator reads the state of a share partition.
LOAD_RETRY_MS = 50


async def wait_for_records(
    context: Context, reads: ShareFetchReads, max_wait_ms: int
) -> dict[TopicIdPartition, PartitionData]:
    """Wait until the partitions have enough for a response, or until `max_wait_ms` has passed. Returns the response's
    partitions."""
    broker = context.broker
    clock = broker.clock
    waiter = Waiter(clock, "ShareFetch")
    deadline_ms = clock.monotonic_ms() + max_wait_ms
    broker.parked.add(waiter)
    watched = list(reads.shares.values())
    for share in watched:
        share.log.subscribe(waiter.wake)
        share.readers.add(waiter.wake)
    try:
        while True:
            is_loading = reads.refresh()
            left_ms = deadline_ms - clock.monotonic_ms()
            answer = reads.try_answer(is_last=left_ms <= 0 or broker.stopping)
            answers = await broker.turns.run(answer, context.throttle) if reads.is_large else at_once(answer)
            if answers is not None:
                return answers
            await waiter.wait(min(left_ms, LOAD_RETRY_MS) if is_loading else left_ms)
    finally:
        broker.parked.discard(waiter)
        for share in watched:
            share.log.unsubscribe(waiter.wake)
            share.readers.discard(waiter.wake)


async def wait_out(context: Context, max_wait_ms: int) -> None:
    """Wait for the whole time: a client that got no session asks again at once."""
    broker = context.broker
    waiter = Waiter(broker.clock, "ShareFetch")
    broker.parked.add(waiter)
    try:
        if not broker.stopping:
            await waiter.wait(max_wait_ms)
    finally:
        broker.parked.discard(waiter)
