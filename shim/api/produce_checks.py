"""A Produce with batches that take long to check: threads check them while the loop serves others, then all batches of
the request are appended (docs/adr/0047-more-than-one-core.md)."""

from __future__ import annotations

from types import CoroutineType

from kafka_shim.storage.validation import takes_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from typing import Any

    from kafka_shim.api.produce_append import PartitionBatch
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.produce_response import ProduceResponse
    from kafka_shim.storage.validation import Checked

    Checking = list[tuple[PartitionBatch, asyncio.Future[Checked | None]]]


def long_ones(batches: list[PartitionBatch]) -> list[PartitionBatch]:
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
    batches: list[PartitionBatch],
    long: list[PartitionBatch],
    append: Callable[[], ProduceResponse | Coroutine[Any, Any, Any] | None],
) -> Coroutine[Any, Any, ProduceResponse | None]:
    """Have threads check the `long` ones of the request's batches. Returns a coroutine that calls `append` then, and
    returns what that returns in the end. The connection handles no other request meanwhile, so that a producer's
    batches keep their order."""
    broker = context.broker
    # The views of the receive buffer are valid only during this call. The copies count as received memory.
    copies = []
    for batch in batches:
        size_bytes = len(batch.records)
        copy = broker.receive_memory.take(size_bytes)
        copy[:size_bytes] = batch.records
        batch.records = copy[:size_bytes]
        copies.append(copy)
    checking: Checking = []
    for batch in long:
        assert batch.log is not None
        log, version, now_ms = batch.log, context.api_version, context.received_ms
        checking.append((batch, broker.batch_checks.begin(batch.records, log.name, version, now_ms, log.config)))
    return _append_checked(context, copies, checking, append)


async def _append_checked(
    context: Context,
    copies: list[memoryview],
    checking: Checking,
    append: Callable[[], ProduceResponse | Coroutine[Any, Any, Any] | None],
) -> ProduceResponse | None:
    for batch, work in checking:
        batch.checked = checked = await work
        if checked is not None and context.throttle is not None:
            context.throttle.worked(checked.spent_ns)
    # A task is cancelled before this by the end of the loop alone: threads may use its copies, and none is reused.
    try:
        answer = append()
        while isinstance(answer, CoroutineType):
            answer = await answer
        return answer  # type: ignore[return-value]
    finally:
        for copy in copies:
            context.broker.receive_memory.give_back(copy)
