"""How long requests take, by API (Kafka: RequestMetrics, TotalTimeMs and LocalTimeMs).

The whole time is measured from the complete request to the response that is ready to be sent, with the time in
purgatory; the local time is the turn of the event loop in which the request is handled.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left

from kafka_shim.dispatch import Dispatcher
from kafka_shim.monitoring.response_errors import count_errors, count_errors_in_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from kafka_shim.api import Api
    from kafka_shim.broker import Broker
    from kafka_shim.cext.replies import DelayedBase, Reply
    from kafka_shim.context import Context
    from kafka_shim.session import Session

# Upper bounds of the histogram's buckets, in seconds.
BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
# As Kafka's histograms have them.
QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
# The times of so many requests are known one by one, the last ones (Kafka's sample has 1,028 of five minutes).
SAMPLE = 1024
# The most versions of one API that are counted apart.
MOST_VERSIONS = 32
_BOUNDS_NS = [round(bound * 1e9) for bound in BOUNDS_S]


class Histogram:
    """The times of one API. `counts` has one entry for each bucket, and one for what is above them all."""

    __slots__ = ("_at", "_last_ns", "_written", "counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_ns = 0
        self._last_ns = array("q")
        self._at = 0
        # What was written of it, by name, until the next observation.
        self._written: dict[str, str] | None = None

    def observe(self, elapsed_ns: int) -> None:
        self.counts[bisect_left(_BOUNDS_NS, elapsed_ns)] += 1
        self.sum_ns += elapsed_ns
        self._written = None
        if len(self._last_ns) < SAMPLE:
            self._last_ns.append(elapsed_ns)
            return
        self._last_ns[self._at] = elapsed_ns
        self._at = (self._at + 1) % SAMPLE

    def quantiles_ms(self) -> list[float]:
        """QUANTILES of the last `SAMPLE` times, between neighbours as Kafka has them (Yammer: Snapshot.getValue)."""
        ordered = sorted(self._last_ns)
        return [_quantile(ordered, float(each)) / 1e6 for each in QUANTILES]

    @property
    def count(self) -> int:
        """The number of times."""
        return sum(self.counts)

    def written(
        self, name: str, requests: tuple[str, ...], tell: Callable[[str, tuple[str, ...], Histogram], str]
    ) -> str:
        """Returns what `tell` writes of these times under `name`, which is kept until the next one comes: most APIs
        rest between two scrapes."""
        if self._written is None:
            self._written = {}
        text = self._written.get(name)
        if text is None:
            text = self._written[name] = tell(name, requests, self)
        return text


def _quantile(ordered: list[int], quantile: float) -> float:
    if not ordered:
        return 0.0
    position = quantile * (len(ordered) + 1)
    if position < 1:
        return ordered[0]
    if position >= len(ordered):
        return ordered[-1]
    lower = int(position)
    return ordered[lower - 1] + (position - lower) * (ordered[lower] - ordered[lower - 1])


class RequestTimes:
    """What is measured of one API."""

    __slots__ = ("errors", "local", "total", "versions")

    def __init__(self) -> None:
        self.total = Histogram()
        self.local = Histogram()
        # Version -> requests.
        self.versions: dict[int, int] = {}
        # Error code -> how often it was in a response.
        self.errors: dict[int, int] = {}


class MeasuringDispatcher(Dispatcher):
    """A dispatcher that measures. A broker without metrics has the plain one and pays nothing."""

    __slots__ = ("times",)

    def __init__(self, broker: Broker, table: dict[int, Api]) -> None:
        super().__init__(broker, table)
        # By API key.
        self.times: dict[int, RequestTimes] = {}

    def handle(self, session: Session, frame: memoryview) -> Reply | None:
        began_ns = time.perf_counter_ns()
        api_key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
        reply = super().handle(session, frame)
        times = self.times.get(api_key)
        if times is None:
            if api_key not in self._table:
                return reply
            times = self.times[api_key] = RequestTimes()
        # Anything may stand there: in ApiVersions, which is answered in any version, and in tokens without a header.
        if version in times.versions or len(times.versions) < MOST_VERSIONS:
            times.versions[version] = times.versions.get(version, 0) + 1
        elapsed_ns = time.perf_counter_ns() - began_ns
        times.local.observe(elapsed_ns)
        if reply is not None and reply.waiting is not None:
            reply.waiting = _measured(times.total, began_ns, reply.waiting)
        elif reply is not None and reply.delayed is not None:
            reply.delayed.measured = times.total, began_ns
        else:
            times.total.observe(elapsed_ns)
        return reply

    def completed(self, delayed: DelayedBase) -> Reply:
        total, began_ns = delayed.measured
        waiting = None
        try:
            reply = super().completed(delayed)
            if (waiting := reply.waiting) is not None:
                reply.waiting = _measured(total, began_ns, waiting)
            return reply
        finally:
            if waiting is None:
                total.observe(time.perf_counter_ns() - began_ns)

    def _encode(self, context: Context, response: Any) -> list[Any]:
        count_errors(response, self._errors(context.api_key))
        return super()._encode(context, response)

    def _answered(self, api_key: int, codes: int, code: int) -> None:
        errors = self._errors(api_key)
        errors[code] = errors.get(code, 0) + codes

    async def _encode_large(self, context: Context, response: Any) -> list[Any]:
        await self.broker.turns.run(count_errors_in_steps(response, self._errors(context.api_key)), None)
        return await super()._encode_large(context, response)

    def _errors(self, api_key: int) -> dict[int, int]:
        times = self.times.get(api_key)
        if times is None:
            times = self.times[api_key] = RequestTimes()
        return times.errors


async def _measured(total: Histogram, began_ns: int, waiting: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await waiting
    finally:
        total.observe(time.perf_counter_ns() - began_ns)
