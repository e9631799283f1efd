"""Checks large compressed batches in threads: to decompress 1 MB of gzip takes tens of milliseconds, in which the loop
serves others, and other CPUs other batches (docs/adr/0047-more-than-one-core.md)."""

from __future__ import annotations

import asyncio
import os
import time

from kafka_shim.storage.validation import check_apart
from kafka_shim.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock
    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.results import Buffer
    from kafka_shim.storage.validation import Checked

# Each thread may hold what one batch decompresses to, 128 times `max.message.bytes` at most (`EXPANSION_LIMIT`).
MOST_THREADS = 4


class BatchChecks:
    """The threads of one broker, one for each CPU that the process may use. They are there from the first batch that
    needs them. Event-loop thread only."""

    __slots__ = ("_workers",)

    def __init__(self, clock: Clock) -> None:
        self._workers = Workers(clock, "kafka-shim-batches", min(usable_cpus(), MOST_THREADS))

    def begin(
        self, records: Buffer, name: str, version: int, now_ms: int, config: TopicConfig
    ) -> asyncio.Future[Checked | None]:
        """Have a thread do `validation.check_apart`. Nobody may change the records until the future is done. Its result
        is None if no thread can be had: whoever appends checks then."""
        try:
            return self._workers.begin(_check, records, name, version, now_ms, config)
        except RuntimeError:  # the system starts no thread
            refused: asyncio.Future[Checked | None] = asyncio.get_running_loop().create_future()
            refused.set_result(None)
            return refused

    def stop(self) -> None:
        """End the threads, each after the batch that it has begun."""
        self._workers.stop()


def _check(records: Buffer, name: str, version: int, now_ms: int, config: TopicConfig) -> Checked:
    began_ns = time.perf_counter_ns()
    checked = check_apart(records, name, version, now_ms, config)
    checked.spent_ns = time.perf_counter_ns() - began_ns
    return checked


def usable_cpus() -> int:
    """Returns how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
