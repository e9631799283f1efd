"""The quotas of one request: what it uses, and for how long its connection is muted (Kafka: RequestHandlerHelper).

Since KIP-219 a request over quota is served and answered at once, with `throttle_time_ms`. Then nothing more is read
from its connection for that time.
"""

from __future__ import annotations

from time import perf_counter_ns

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.clock import Clock
    from kafka_shim.quota.quotas import Quotas
    from kafka_shim.quota.rate import Rate, TokenBucket

# Nanoseconds to percent of a second.
PERCENT = 100 / 1e9


class RequestThrottle:
    """Made for each request while a client has a quota."""

    __slots__ = (
        "_began_ns",
        "_client_id",
        "_is_charged",
        "_mutations",
        "_quotas",
        "_size_bytes",
        "_spent_ns",
        "_throttle_ms",
        "_user",
    )

    def __init__(self, quotas: Quotas, principal: str, client_id: str | None, size_bytes: int) -> None:
        self._quotas = quotas
        self._user = principal.partition(":")[2]
        self._client_id = client_id or ""
        self._size_bytes = size_bytes
        self._began_ns = perf_counter_ns()
        # The time that was spent on the request before it waited.
        self._spent_ns: int | None = None
        self._mutations: MutationQuota | None = None
        self._is_charged = False
        self._throttle_ms = 0

    def wait(self) -> None:
        """The request waits from now on, which costs no time of the broker."""
        self._spent_ns = perf_counter_ns() - self._began_ns

    def resume(self) -> None:
        """The broker works on the request again, until the next `wait`. The time of all its turns counts."""
        if self._spent_ns is not None:
            self._began_ns = perf_counter_ns() - self._spent_ns
            self._spent_ns = None

    def worked(self, spent_ns: int) -> None:
        """A thread has worked on the request while it waited."""
        if self._spent_ns is not None:
            self._spent_ns += spent_ns

    def charge(self, *, is_exempt: bool = False, used_ms: int = 0) -> int:
        """Count the time of the request, once, when its response is made. `used_ms` is the throttle time for what else
        it used. Returns the throttle time in all. An exempt request is not throttled for its time."""
        if self._is_charged:
            return self._throttle_ms
        self._is_charged = True
        throttle_ms = used_ms
        if self._mutations is not None:
            throttle_ms = max(throttle_ms, self._mutations.throttle_time_ms())
        request = self._quotas.request
        if request.is_enabled and not is_exempt:
            spent_ns = self._spent_ns if self._spent_ns is not None else perf_counter_ns() - self._began_ns
            request_ms = request.record(self._user, self._client_id, spent_ns * PERCENT)
            throttle_ms = max(throttle_ms, min(request_ms, self._quotas.longest_request_throttle_ms))
        self._throttle_ms = throttle_ms
        return throttle_ms

    def charge_produce(self, *, is_answered: bool) -> int:
        """Count a Produce: its size, and its time unless it gets no response."""
        if self._is_charged:
            return self._throttle_ms
        used_ms = self._quotas.produce.record(self._user, self._client_id, self._size_bytes)
        return self.charge(is_exempt=not is_answered, used_ms=used_ms)

    def charge_fetch(self, size_bytes: int) -> int:
        """Count a Fetch whose response has this size. If it is throttled it gets an empty response, which is not
        counted."""
        fetch = self._quotas.fetch
        throttle_ms = self.charge(used_ms=fetch.record(self._user, self._client_id, size_bytes))
        if throttle_ms:
            fetch.record(self._user, self._client_id, -size_bytes)
        return throttle_ms

    def most_fetched_bytes(self) -> float | None:
        """Returns the most that a Fetch may return, or None without a quota."""
        return self._quotas.fetch.most_in_window(self._user, self._client_id)

    def quota_of_topic_on_demand(self) -> MutationQuota:
        """Returns the strict quota for topics that a Metadata request or a StreamsGroupHeartbeat creates. It does not
        throttle that request."""
        meter = self._quotas.controller_mutation.meter(self._user, self._client_id)
        return MutationQuota(self._quotas.clock, meter, is_strict=True)

    def mutation_quota(self, *, is_strict: bool) -> MutationQuota:
        """Returns the quota for the partitions that this request creates or deletes."""
        meter = self._quotas.controller_mutation.meter(self._user, self._client_id)
        self._mutations = quota = MutationQuota(self._quotas.clock, meter, is_strict=is_strict)
        return quota


class MutationQuota:
    """Partitions that one request creates or deletes (Kafka: ControllerMutationQuota). A strict quota refuses what
    begins while the bucket is below zero. Older versions of requests are throttled alone."""

    __slots__ = ("_clock", "_is_strict", "_measured_ms", "_meter", "_throttle_ms")

    def __init__(self, clock: Clock, meter: Rate | TokenBucket | None, *, is_strict: bool) -> None:
        self._clock = clock
        self._meter = meter
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._measured_ms = 0

    def record(self, partition_count: int) -> None:
        """Count partitions before they are created or deleted.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED if a strict quota is used up; nothing is counted then."""
        meter = self._meter
        if meter is None:
            return
        now_ms = self._clock.monotonic_ms()
        if self._is_strict:
            throttle_ms = meter.throttle_time_ms(now_ms)
            if not throttle_ms:
                meter.record(partition_count, now_ms)
        else:
            meter.record(partition_count, now_ms)
            throttle_ms = meter.throttle_time_ms(now_ms)
        if throttle_ms:
            self._throttle_ms, self._measured_ms = throttle_ms, now_ms
            if self._is_strict:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)

    def throttle_time_ms(self) -> int:
        """Returns what is left of the throttle time now."""
        if not self._throttle_ms:
            return 0
        return max(0, self._throttle_ms - (self._clock.monotonic_ms() - self._measured_ms))
