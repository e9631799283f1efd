"""A Produce with batches that take long to check: threads check them while the loop serves others, then all batches of
the request are appended (docs/adr/0047-more-than-one-core.md)."""

from __future__ import annotations

from collections import deque
from types import CoroutineType

from kafka_shim.storage.batch_checks import MOST_THREADS
from kafka_shim.storage.validation import takes_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from kafka_shim.cext.many_logs import PartitionBatch
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.produce_response import ProduceResponse
    from kafka_shim.storage.validation import Checked

    Checking = deque[tuple[PartitionBatch, asyncio.Future[Checked | None]]]


def long_ones(batches: Iterable[PartitionBatch]) -> list[PartitionBatch]:
    """Returns the batches that a thread should check."""
    return [
        batch
        for batch in batches
        if batch.error is None
        and batch.log is not None
        and takes_long(batch.records, batch.expected_bytes, batch.log.config)
    ]


def check_then(
    context: Context,
    received: Iterable[PartitionBatch],
    long: list[PartitionBatch],
    append: Callable[[], ProduceResponse | Coroutine[Any, Any, Any] | None],
) -> Coroutine[Any, Any, ProduceResponse | None]:
    """Have threads check the `long` ones of the request's batches. Returns a coroutine that calls `append` then, and
    returns what that returns in the end. The connection handles no other request meanwhile, so that a producer's
    batches keep their order. `received` are the batches in the receive buffer: all, or none of a request that has its
    bytes to itself."""
    broker = context.broker
    # The views of the receive buffer are valid only during this call. The copies count as received memory.
    copies: list[memoryview] = []
    try:
        for batch in received:
            size_bytes = len(batch.records)
            copies.append(broker.receive_memory.take(size_bytes))
            copies[-1][:size_bytes] = batch.records
            batch.records = copies[-1][:size_bytes]
    except (MemoryError, OSError):  # what is counted for good would stop all connections at the limit
        _give_back(context, copies)
        raise
    return _append_checked(context, copies, deque(long), append)


async def _append_checked(
    context: Context,
    copies: list[memoryview],
    long: deque[PartitionBatch],
    append: Callable[[], ProduceResponse | Coroutine[Any, Any, Any] | None],
) -> ProduceResponse | None:
    try:
        await _check(context, long)
    except Exception:  # no memory; a cancelled task's copies end with the loop
        for copy in copies:
            context.broker.receive_memory.drop(copy)
        raise
    # The time of LogAppendTime is that of the append: others have appended meanwhile, and times ascend with offsets.
    context.received_ms = context.broker.clock.now_ms()
    # A task is cancelled before this by the end of the loop alone: threads may use its copies, and none is reused.
    try:
        answer = append()
        while isinstance(answer, CoroutineType):
            answer = await answer
        return answer  # type: ignore[return-value]
    finally:
        _give_back(context, copies)


async def _check(context: Context, long: deque[PartitionBatch]) -> None:
    """Have threads check the batches, and note what they find."""
    broker, version, now_ms = context.broker, context.api_version, context.received_ms
    # A batch that is compressed with another codec may become a thousand times as large. What exceeds the largest
    # request in all is dropped, and the append compresses it again.
    left_bytes = broker.config.socket_request_max_bytes
    checking: Checking = deque()
    while long or checking:
        # A few at a time, so that the threads serve other requests in between.
        while long and len(checking) < MOST_THREADS:
            batch = long.popleft()
            assert batch.log is not None
            work = broker.batch_checks.begin(batch.records, batch.log.name, version, now_ms, batch.log.config)
            checking.append((batch, work))
        batch, work = checking.popleft()
        checked = await work
        if checked is not None:
            if context.throttle is not None:
                context.throttle.worked(checked.spent_ns)
            if checked.stored is not None:
                left_bytes -= len(checked.stored)
        batch.checked = checked if left_bytes >= 0 or checked is None or checked.stored is None else None


def _give_back(context: Context, copies: list[memoryview]) -> None:
    for copy in copies:
        context.broker.receive_memory.give_back(copy)
