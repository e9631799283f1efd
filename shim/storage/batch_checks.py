"""Checks large compressed batches in threads: to decompress 1 MB of gzip takes tens of milliseconds, in which the loop
serves others, and other CPUs other batches (docs/adr/0047-more-than-one-core.md)."""

from __future__ import annotations

import asyncio
import os
import time

from kafka_shim.storage.validation import check_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from kafka_shim.clock import Clock
    from kafka_shim.config import TopicConfig
    from kafka_shim.storage.results import Buffer
    from kafka_shim.storage.validation import Checked

# Each thread may hold what one batch decompresses to, 128 times `max.message.bytes` at most (`EXPANSION_LIMIT`).
MOST_THREADS = 4


class BatchChecks:
    """The threads of one broker, one for each CPU that the process may use. They are there from the first batch that
    needs them. Event-loop thread only."""

    __slots__ = ("_clock", "_pool")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pool: ThreadPoolExecutor | None = None

    def begin(
        self, records: Buffer, name: str, version: int, now_ms: int, config: TopicConfig
    ) -> asyncio.Future[Checked | None]:
        """Have a thread do `validation.check_apart`. Nobody may change the records until the future is done. Its result
        is None if no thread can be had: whoever appends checks then."""
        loop = asyncio.get_running_loop()
        self._clock.begin_work()
        # The executor keeps work for which it could start no thread: it must not read the records then.
        claim = [records]
        try:
            work = loop.run_in_executor(self._threads(), _check, claim, name, version, now_ms, config)
            work.add_done_callback(self._end)
        except BaseException as error:
            self._clock.end_work()
            claim.clear()
            if not isinstance(error, RuntimeError):
                raise
            # The system starts no thread.
            refused: asyncio.Future[Checked | None] = loop.create_future()
            refused.set_result(None)
            return refused
        return work

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(min(usable_cpus(), MOST_THREADS), "kafka-shim-batches")
        return self._pool

    def _end(self, work: object) -> None:
        self._clock.end_work()

    def stop(self) -> None:
        """End the threads, each after the batch that it has begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _check(claim: list[Buffer], name: str, version: int, now_ms: int, config: TopicConfig) -> Checked | None:
    if not claim:
        return None
    began_ns = time.perf_counter_ns()
    checked = check_apart(claim.pop(), name, version, now_ms, config)
    checked.spent_ns = time.perf_counter_ns() - began_ns
    return checked


def usable_cpus() -> int:
    """Returns how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
