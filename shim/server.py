"""The broker's start and stop. Start order: data directory, metadata, coordinators, listeners. The stop goes in reverse
order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time

from kafka_shim.api import TABLE
from kafka_shim.api.fetch_sessions import FetchSessionCache, slots_of
from kafka_shim.broker import Broker
from kafka_shim.clock import RealClock
from kafka_shim.config import ConfigError
from kafka_shim.dispatch import Dispatcher
from kafka_shim.faults import Faults
from kafka_shim.group.coordinator import GroupCoordinator
from kafka_shim.large_requests import LargeRequests
from kafka_shim.listeners import listeners_of, printable
from kafka_shim.memory_pool import ReceiveMemory
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS
from kafka_shim.metadata.store import MetadataStore
from kafka_shim.metrics import Metrics
from kafka_shim.network_send import SendMemory
from kafka_shim.registry import Registry
from kafka_shim.share.persister import ShareStatePersister
from kafka_shim.socket_server import SocketServer
from kafka_shim.storage.batch_checks import BatchChecks
from kafka_shim.storage.clean_stop import attempt, log_failed_step
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN
from kafka_shim.storage.logs import Logs
from kafka_shim.storage.open_files import raise_limit
from kafka_shim.turns import Turns
from kafka_shim.txn.coordinator import TransactionCoordinator
from kafka_shim.txn.producer_ids import ProducerIds
from kafka_shim.txn.settling import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.console.app import Console
    from kafka_shim.monitoring.monitor import Monitor

logger = logging.getLogger("kafka_shim.server")

# How long a clean stop waits for requests in progress and for transactions that end; and for clients to receive their
# last responses, which is also the least for those transactions.
DRAIN_SECONDS = 5.0
FLUSH_SECONDS = 1.0


class Server:
    """One broker on the running loop. It serves from `await start()` until `await stop()`."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None, faults: Faults | None = None) -> None:
        self.broker = broker = Broker()
        broker.config = config
        broker.clock = clock or RealClock()
        broker.faults = faults or Faults()
        broker.faults.begin()
        broker.metrics = Metrics()
        broker.node_id = config.node_id
        slots = slots_of(config.max_incremental_fetch_session_cache_slots)
        broker.fetch_sessions = FetchSessionCache(slots, broker.clock.random)
        self._is_starting = True
        self._is_given_up = False
        self._dispatcher = Dispatcher(broker, TABLE)
        self._monitor: Monitor | None = None
        self._console: Console | None = None
        broker.http_address = ""
        broker.receive_memory = ReceiveMemory(config.queued_max_request_bytes)
        broker.send_memory = SendMemory()
        broker.turns = Turns(broker.clock)
        broker.large_requests = LargeRequests(broker.clock)
        broker.batch_checks = BatchChecks(broker.clock)
        self._registry = Registry(broker)
        self._socket_server = SocketServer(broker, self._registry)
        # When the stop began.
        self._stopping_ns = 0

    # --- start

    async def start(self, cluster_id: str | None = None) -> None:
        """Open the data directory, recover, and listen. Raises ConfigError, StorageError, OSError, and then leaves
        nothing open, nor if it is cancelled."""
        started_ns = time.monotonic_ns()
        broker = self.broker
        config = broker.config
        broker.listeners, broker.controller_listeners = listeners_of(config)
        raise_limit()
        for warning in config.warnings:
            logger.warning("%s", warning)
        broker.logs = logs = Logs(config, broker.clock, broker.faults)
        logs.services.is_given_up = self._is_given_up
        broker.cluster_id = logs.open_dirs(cluster_id)
        undo: list[Callable[[], None]] = [logs.stop]
        try:
            broker.metadata = metadata = MetadataStore(config, broker.clock, logs, broker.faults)
            metadata.start()
            undo.append(metadata.stop)
            self._secure(undo)
            self._issue_tokens(undo)
            await self._limit_clients()
            self._socket_server.secure()
            await self._socket_server.look_up_hosts(is_start=True)
            metadata.on_config_changed.append(self._config_changed)
            for _ in logs.start_in_steps(metadata.lookup):
                await asyncio.sleep(0)  # who has the start given up meanwhile does not wait for all of a long recovery
            metadata.create_missing_logs()
            self._start_telemetry(undo)
            self._start_coordinators(undo)
            logs.run_periodically()
            metadata.run_periodically()
            self._start_monitor(undo)
            self._socket_server.start(self._dispatcher)
            self._make_console()
        except BaseException:
            self._end_start()
            self._socket_server.close()
            self._socket_server.stop()
            for step in reversed(undo):
                attempt(step)
            raise
        self._end_start()
        self._registry.start()
        broker.groups.know_connected(self._registry.has_member)
        if self._monitor is not None:
            self._monitor.is_ready()
        elapsed_ms = (time.monotonic_ns() - started_ns) / 1e6
        logger.info("node %d of cluster %s started in %.0f ms", broker.node_id, broker.cluster_id, elapsed_ms)

    def give_up(self) -> None:
        """Have a start that recovers end soon, by CancelledError. For signal handlers and other threads: the loop calls
        nothing while it recovers a partition."""
        if self._is_starting:
            self._is_given_up = True
            if hasattr(self.broker, "logs"):
                self.broker.logs.services.is_given_up = True

    def _end_start(self) -> None:
        self._is_starting = False
        self.broker.logs.services.is_given_up = False

    def _secure(self, undo: list[Callable[[], None]]) -> None:
        """Build the policies and the authorizer, and warn of what is open by mistake. A start without options imports
        nothing for them."""
        broker = self.broker
        protocols = {listener.security_protocol for listener in self._socket_server.listeners}
        acl_count = len(broker.metadata.image.acls)
        if not (broker.config.given or acl_count):
            return
        from kafka_shim.security.warnings import Exposure, security_warnings

        for warning in security_warnings(Exposure(broker.config, protocols, acl_count)):
            logger.warning("%s", warning)
        if broker.config.create_topic_policy_class_name or broker.config.alter_config_policy_class_name:
            from kafka_shim.security.policies import make_policies

            broker.metadata.policies = policies = make_policies(broker.config)
            if policies is not None:
                undo.append(policies.close)
        if broker.config.authorizer_class_name:
            from kafka_shim.security.acl_control import AclControl
            from kafka_shim.security.audit_log import AuditLog
            from kafka_shim.security.authorizers import make_authorizer

            broker.authorizer = authorizer = make_authorizer(broker.config)
            broker.audit_log = AuditLog(authorizer, broker.clock)
            if hasattr(authorizer, "change_acls"):
                broker.acls = AclControl(broker.metadata, broker.clock, authorizer)

    def _issue_tokens(self, undo: list[Callable[[], None]]) -> None:
        """Serve delegation tokens, if there is a key for them. A start without one imports nothing for it."""
        broker = self.broker
        if broker.config.delegation_token_secret_key:
            from kafka_shim.security.delegation_tokens import DelegationTokens

            broker.tokens = DelegationTokens(broker.metadata, broker.config, broker.clock)
            broker.tokens.run_periodically()
            undo.append(broker.tokens.stop)

    async def _limit_clients(self) -> None:
        """Take over the stored client quotas. A start without any imports nothing for them."""
        broker = self.broker
        if broker.metadata.image.quotas:
            from kafka_shim.quota.quotas import quotas_of

            broker.quotas = quotas_of(None, broker.config, broker.clock, broker.metadata.image.quotas)
            if broker.quotas is not None:
                await broker.quotas.look_up_hosts(broker.metadata.image.quotas)

    def _start_telemetry(self, undo: list[Callable[[], None]]) -> None:
        """Make the receivers of clients' metrics. A start without any imports nothing for them. Raises ConfigError."""
        broker = self.broker
        if "metric.reporters" not in broker.config.given:
            return
        from kafka_shim.telemetry.client_metrics import client_metrics_of

        undo.append(client_metrics_of(broker).stop)

    def _config_changed(self, resource_type: int, name: str) -> None:
        if resource_type == RESOURCE_CLIENT_METRICS and self.broker.client_metrics is not None:
            self.broker.client_metrics.reload()
        if resource_type == RESOURCE_BROKER:
            self._socket_server.reload()
            if self._monitor is not None:
                self._monitor.reload(self.broker.config)

    def _start_coordinators(self, undo: list[Callable[[], None]]) -> None:
        """Start the group coordinator first: the markers of a resumed transaction commit or abort pending offsets."""
        broker = self.broker
        broker.groups = GroupCoordinator(
            clock=broker.clock,
            config=broker.config,
            logs=broker.logs,
            metadata=broker.metadata,
            faults=broker.faults,
        )
        broker.share_state = ShareStatePersister(
            clock=broker.clock,
            config=broker.config,
            logs=broker.logs,
            metadata=broker.metadata,
            faults=broker.faults,
        )
        broker.share_state.start()
        broker.groups.share.persister = broker.share_state
        undo.append(broker.share_state.stop)
        broker.groups.count_errors(broker.metrics.error_unexpected)
        broker.groups.start()
        undo.append(broker.groups.stop)
        broker.producer_ids = ProducerIds(broker.metadata.next_producer_id_block)
        broker.transactions = TransactionCoordinator(
            clock=broker.clock,
            config=broker.config,
            logs=broker.logs,
            metadata=broker.metadata,
            faults=broker.faults,
            producer_ids=broker.producer_ids,
        )
        broker.transactions.start()
        undo.append(broker.transactions.stop)

    def _start_monitor(self, undo: list[Callable[[], None]]) -> None:
        """Serve metrics and health over HTTP, if that is asked for. A start without it imports nothing for them."""
        broker = self.broker
        if broker.config.kafka_shim_http_listener:
            try:
                from kafka_shim.monitoring.monitor import Monitor
            except ImportError as error:
                needed = "kafka.shim.http.listener needs the package prometheus-client: pip install prometheus-client"
                raise ConfigError(needed) from error
            from kafka_shim.monitoring.request_times import MeasuringDispatcher

            self._dispatcher = dispatcher = MeasuringDispatcher(broker, TABLE)
            self._monitor = monitor = Monitor(broker, dispatcher)
            monitor.start()
            undo.append(monitor.stop)
            broker.http_address = monitor.listener.address

    def _make_console(self) -> None:
        """Serve the console where metrics are served, if that is asked for."""
        broker = self.broker
        config = broker.config
        if not config.kafka_shim_http_console:
            for name in ("changes", "public_url"):
                if getattr(config, f"kafka_shim_http_console_{name}"):
                    option = f"kafka.shim.http.console.{name.replace('_', '.')}"
                    raise ConfigError(f"{option} needs kafka.shim.http.console")
            return
        if self._monitor is None:
            raise ConfigError("kafka.shim.http.console needs kafka.shim.http.listener, which says where")
        from kafka_shim.console.built_in import console_of

        self._console = console = console_of(
            broker.listeners,
            self._monitor.listener.metrics,
            self._monitor.listener.may_read,
            public_url=config.kafka_shim_http_console_public_url,
            allows_changes=config.kafka_shim_http_console_changes,
        )
        self._monitor.listener.pages = console.handle

    @property
    def ready_line(self) -> str:
        """The line that `serve` prints once connections are accepted. The controller's listeners come last."""
        broker = self.broker
        addresses = ",".join(printable(listener) for listener in self._socket_server.listeners)
        directories = ",".join(directory.path for directory in broker.logs.dirs)
        http = f" http={broker.http_address}" if broker.http_address else ""
        return f"ready {addresses} node={broker.node_id} cluster={broker.cluster_id}{http} data={directories}"

    # --- stop

    async def stop(self) -> None:
        """Stop accepting, respond to requests in progress, close everything, and sync the logs."""
        self.broker.stopping = True
        self._stopping_ns = started_ns = time.monotonic_ns()
        logger.info("stopping, connections: %d", len(self._registry.connections))
        for step in self._stop_steps():
            try:
                if (waits := step()) is not None:
                    await waits
            except Exception:  # as in Kafka, what fails at a stop ends none of the rest
                log_failed_step()
        state = "all logs are closed" if _is_clean(self.broker.logs) else "the next start recovers the logs named above"
        logger.info("stopped in %.0f ms, %s", (time.monotonic_ns() - started_ns) / 1e6, state)

    def _stop_steps(self) -> Iterator[Callable[[], Any]]:
        """Yield what a stop does, in order. What a step returns, if anything, is to be awaited. Only steps may fail: an
        error between two of them would end the rest."""
        broker = self.broker
        if self._monitor is not None:
            yield self._monitor.leaves
        if broker.faults.armed:
            yield self._reach_stopping
        yield broker.faults.end
        yield self._socket_server.close
        yield self._socket_server.opened  # `_drain` closes connections
        yield self._registry.stop
        yield self._wake_parked
        yield broker.groups.stop
        if broker.share_partitions is not None:
            yield broker.share_partitions.release_ended
            yield broker.share_partitions.stop
        yield broker.share_state.stop
        yield self._drain
        yield self._settle
        yield broker.transactions.stop
        yield broker.batch_checks.stop
        yield broker.large_requests.stop
        yield self._socket_server.stop
        if broker.client_metrics is not None:
            yield broker.client_metrics.stop
        if broker.tokens is not None:
            yield broker.tokens.stop
        yield broker.metadata.stop
        if broker.metadata.policies is not None:
            yield broker.metadata.policies.close
        if self._monitor is not None:
            yield self._monitor.close
        if self._console is not None:
            yield self._console.close
        yield broker.logs.stop

    def _reach_stopping(self) -> None:
        self.broker.faults.reach("server.stopping")

    async def _settle(self) -> None:
        left_s = DRAIN_SECONDS - (time.monotonic_ns() - self._stopping_ns) / 1e9
        await settle(self.broker.transactions, max(left_s, FLUSH_SECONDS))

    def _wake_parked(self) -> None:
        for waiter in list(self.broker.parked):
            waiter.wake()

    async def end(self) -> None:
        """As `stop`, on a loop that nobody else uses. Memory may have ended when a task was to be woken: nothing wakes
        that one any more, and the loop would wait for its end for ever."""
        await self.stop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            _, lost = await asyncio.wait(left, timeout=FLUSH_SECONDS)
            for task in lost:
                logger.warning("left behind at the stop: %r", task)
                asyncio.tasks._unregister_task(task)

    async def _drain(self) -> None:
        connections = self._registry.connections
        # Delayed joins and syncs, which the coordinator has ended, are answered on this turn.
        await asyncio.sleep(0)
        busy = [one.task for one in connections if one.task is not None and not one.session.is_logging_in]
        if busy:
            await asyncio.wait(busy, timeout=DRAIN_SECONDS)
        # Closing a connection sends what is buffered first. A client that does not read it is cut off.
        gone = [connection.watch() for connection in list(connections)]
        for connection in list(connections):
            connection.close()
        if gone:
            _, pending = await asyncio.wait(gone, timeout=FLUSH_SECONDS)
            if pending:
                for connection in list(connections):
                    connection.abort()
                await asyncio.wait(pending, timeout=FLUSH_SECONDS)


def _is_clean(logs: Logs) -> bool:
    """Whether the stop could mark every directory as closed."""
    return all(os.path.exists(f"{one.path}/{CLEAN_SHUTDOWN}") for one in logs.dirs)  # noqa: PTH110 pathlib costs a start
