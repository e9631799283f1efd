"""The counters of one broker, as plain integers. Tests read them."""

from __future__ import annotations

from kafka_shim.cext.dispatcher_base import RequestCounts


class Metrics:
    """Event-loop thread only. A hot path only adds to a counter."""

    __slots__ = (
        "appended_bytes",
        "connections_closed",
        "connections_opened",
        "connections_refused",
        "errors_unexpected",
        "fetched_bytes",
        "frames_refused",
        "requests",
        "throttled_ms",
        "throttled_responses",
    )

    def __init__(self) -> None:
        # (api key) -> requests handled
        self.requests = RequestCounts()
        self.connections_opened = 0
        self.connections_closed = 0
        self.connections_refused = 0
        self.frames_refused = 0
        self.errors_unexpected = 0
        self.appended_bytes = 0
        self.fetched_bytes = 0
        # Responses with a throttle time, and the sum of these times.
        self.throttled_responses = 0
        self.throttled_ms = 0

    def error_unexpected(self) -> None:
        """Count an error that no rule foresees, for those that get a function to call."""
        self.errors_unexpected += 1
