"""Metrics and health of one broker, from its start to its stop."""

from __future__ import annotations

import asyncio
import time

from kafka_shim.monitoring.collector import Collector
from kafka_shim.monitoring.http_listener import HttpListener
from kafka_shim.monitoring.request_times import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.monitoring.request_times import MeasuringDispatcher

# How often the lag of the event loop is measured.
LAG_INTERVAL_S = 0.1
# Requests that are answered at the same time where the console is: a browser asks for its parts at once.
CONSOLE_REQUESTS = 32


class Monitor:
    """Owned by the server. The lag of the loop is of the machine's time, also on a virtual clock."""

    def __init__(self, broker: Broker, dispatcher: MeasuringDispatcher) -> None:
        self._loop = asyncio.get_running_loop()
        self._lag = Histogram()
        self._timer: asyncio.TimerHandle | None = None
        collector = Collector(broker, dispatcher.times, self._lag)
        config = broker.config
        self.listener = HttpListener(
            config.kafka_shim_http_listener,
            collector,
            self._loop,
            bearer_token=config.kafka_shim_http_bearer_token or "",
            most_requests=CONSOLE_REQUESTS if config.kafka_shim_http_console else None,
        )

    def start(self) -> None:
        """Serve: the broker is not ready yet."""
        self.listener.start()
        self._measure_lag(time.perf_counter_ns())

    def is_ready(self) -> None:
        """The broker serves clients."""
        self.listener.is_ready = True

    def leaves(self) -> None:
        """The broker serves no more clients."""
        self.listener.is_ready = False
        if self._timer is not None:
            self._timer.cancel()

    def stop(self) -> None:
        """Close the listener of a start that failed."""
        self.leaves()
        self.listener.stop()

    async def close(self) -> None:
        """Close the listener. The loop turns meanwhile, because a request may wait for it."""
        await asyncio.to_thread(self.listener.stop)

    def _measure_lag(self, due_ns: int) -> None:
        now_ns = time.perf_counter_ns()
        self._lag.observe(max(0, now_ns - due_ns))
        due_ns = now_ns + round(LAG_INTERVAL_S * 1e9)
        self._timer = self._loop.call_later(LAG_INTERVAL_S, self._measure_lag, due_ns)
