"""Metrics and health of one broker, from its start to its stop."""

from __future__ import annotations

import asyncio
import logging
import time

from kafka_shim.clock import RealClock
from kafka_shim.config import ConfigError, ListenerOptions
from kafka_shim.monitoring import HTTP_NAME, HTTPS
from kafka_shim.monitoring.collector import Collector
from kafka_shim.monitoring.http_listener import HttpListener
from kafka_shim.monitoring.request_times import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLContext

    from kafka_shim.broker import Broker
    from kafka_shim.clock import Timer
    from kafka_shim.config import BrokerConfig
    from kafka_shim.monitoring.request_times import MeasuringDispatcher

# How often the lag of the event loop is measured.
LAG_INTERVAL_MS = 100
# Requests that are answered at the same time where the console is: a browser asks for its parts at once.
CONSOLE_REQUESTS = 32
logger = logging.getLogger(__name__)


def tls_of(config: BrokerConfig) -> SSLContext | None:
    """Return the context of `kafka.shim.http.listener` if it begins with https://, made of the options ssl.* of the
    broker, those with the prefix of `HTTP_NAME` first. Raises ConfigError."""
    if not config.kafka_shim_http_listener.startswith(HTTPS):
        return None
    from kafka_shim.security.tls.context import make_context, out_of_date
    from kafka_shim.security.warnings import world_readable

    options = ListenerOptions(config, HTTP_NAME)
    try:
        context, stores, warnings = make_context(options, uses_sasl=False)
    except ConfigError as error:
        raise ConfigError(f"kafka.shim.http.listener, {error}") from None
    warnings += world_readable("ssl.keystore.location", options.text("ssl.keystore.location"))
    if warnings and options.is_strict:
        raise ConfigError(f"--strict-security: kafka.shim.http.listener: {'; '.join(warnings)}")
    for warning in warnings + out_of_date(stores.certificate):
        logger.warning("kafka.shim.http.listener: %s", warning)
    return context


class Monitor:
    """Owned by the server. The lag of the loop is of the machine's time, also on a virtual clock."""

    def __init__(self, broker: Broker, dispatcher: MeasuringDispatcher) -> None:
        self._loop = asyncio.get_running_loop()
        self._workers = broker.logs.services.workers
        self._lag = Histogram()
        self._due_ns = 0
        self._timer: Timer | None = None
        collector = Collector(broker, dispatcher.times, self._lag)
        config = broker.config
        self.listener = HttpListener(
            config.kafka_shim_http_listener,
            collector,
            self._loop,
            bearer_token=config.kafka_shim_http_bearer_token or "",
            most_requests=CONSOLE_REQUESTS if config.kafka_shim_http_console else None,
            tls=tls_of(config),
        )

    def reload(self, config: BrokerConfig) -> None:
        """Take over changed stores. Bad ones change nothing; one line says so."""
        try:
            tls = tls_of(config)
        except (ConfigError, OSError) as error:  # OSError: no descriptor is left to read a store
            logger.warning("metrics and health keep their certificate: %s", error)
        else:
            if tls is not None:
                self.listener.use_tls(tls)

    def start(self) -> None:
        """Serve: the broker is not ready yet."""
        self.listener.start()
        self._due_ns = time.perf_counter_ns()
        self._measure_lag()
        self._timer = RealClock(self._loop).every(LAG_INTERVAL_MS, self._measure_lag)

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
        try:
            await self._workers.begin(self.listener.stop)
        except RuntimeError:  # no thread can be started, as where the program is at its end
            self.listener.stop()

    def _measure_lag(self) -> None:
        now_ns = time.perf_counter_ns()
        due_ns = self._due_ns
        self._due_ns = now_ns + LAG_INTERVAL_MS * 1_000_000
        self._lag.observe(max(0, now_ns - due_ns))
