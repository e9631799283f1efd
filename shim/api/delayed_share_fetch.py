"""A ShareFetch that waits for records: one entry of the share fetch purgatory (Kafka: DelayedShareFetch).

It looks again when a log grows, when a member gives records of a share partition back, and when a lock ends.
"""

from __future__ import annotations

from kafka_shim.api.share_fetch_reads import PARTITIONS_PER_STEP
from kafka_shim.errors import DisconnectError
from kafka_shim.turns import at_once
from kafka_shim.waiters import Waiter, deadline_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    from kafka_shim.api.share_fetch_reads import ShareFetchReads
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.share_fetch_response import PartitionData
    from kafka_shim.share.share_partition import SharePartition
    from kafka_shim.share.share_sessions import TopicIdPartition
    from kafka_shim.turns import Steps

    T = TypeVar("T")

# How often to look again while the share coordinator reads the state of a share partition.
LOAD_RETRY_MS = 50


async def wait_for_records(
    context: Context, reads: ShareFetchReads, max_wait_ms: int
) -> dict[TopicIdPartition, PartitionData]:
    """Wait until the partitions have enough for a response, or until `max_wait_ms` has passed. Returns the response's
    partitions. Raises DisconnectError if the client is gone."""
    broker = context.broker
    clock = broker.clock
    waiter = Waiter(clock, "ShareFetch")
    ends_ms = deadline_ms(clock, max_wait_ms)
    broker.parked.add(waiter)
    watched: list[SharePartition] = []

    async def take(steps: Steps[T]) -> T:
        return await broker.turns.run(steps, context.throttle) if reads.is_large else at_once(steps)

    try:
        await take(_watch(reads.shares.values(), watched, waiter))
        while True:
            is_loading = await take(reads.refresh())
            left_ms = ends_ms - clock.monotonic_ms()
            is_last = left_ms <= 0 or broker.stopping or context.session.is_ending
            answers = await take(reads.try_answer(is_last=is_last))
            if answers is not None:
                await take(_unwatch(watched, waiter))
                return answers
            await _wait(context, waiter, min(left_ms, LOAD_RETRY_MS) if is_loading else left_ms)
    finally:
        broker.parked.discard(waiter)
        at_once(_unwatch(watched, waiter))


def _watch(shares: Iterable[SharePartition], watched: list[SharePartition], waiter: Waiter) -> Steps[None]:
    """Hear of what may become available. What comes before is found by the look that follows."""
    for share in list(shares):
        watched.append(share)
        share.log.subscribe(waiter.wake)
        share.readers.add(waiter.wake)
        if len(watched) % PARTITIONS_PER_STEP == 0:
            yield


def _unwatch(watched: list[SharePartition], waiter: Waiter) -> Steps[None]:
    """End it for those that are left in the list, one after the other."""
    while watched:
        share = watched.pop()
        share.log.unsubscribe(waiter.wake)
        share.readers.discard(waiter.wake)
        if len(watched) % PARTITIONS_PER_STEP == 0:
            yield


async def wait_out(context: Context, max_wait_ms: int) -> None:
    """Wait for the whole time: a client that got no session asks again at once. Raises DisconnectError if it is
    gone."""
    broker = context.broker
    waiter = Waiter(broker.clock, "ShareFetch")
    broker.parked.add(waiter)
    try:
        if not broker.stopping:
            await _wait(context, waiter, deadline_ms(broker.clock, max_wait_ms) - broker.clock.monotonic_ms())
    finally:
        broker.parked.discard(waiter)


async def _wait(context: Context, waiter: Waiter, timeout_ms: float) -> None:
    """The only time in which the request ends with its client: what it acknowledges is carried out whole. There is none
    if the connection ends with the answer."""
    session = context.session
    if session.is_ending and not session.is_closed:
        return
    if not session.is_closed:
        session.is_abandonable = True
        try:
            await waiter.wait(timeout_ms)
        finally:
            session.is_abandonable = False
    if session.is_closed:
        raise DisconnectError
