"""The listeners of a running broker: their security, their sockets, and what `listeners` adds and removes later
(Kafka: SocketServer)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from kafka_shim.acceptor import Acceptor, ConnectionBudget, budget_line
from kafka_shim.config import ConfigError
from kafka_shim.connection import Connection
from kafka_shim.dispatch import Dispatcher
from kafka_shim.listeners import (
    bind,
    check_listeners,
    endpoints_of,
    reload_listeners,
    secure_listeners,
    warn_of_strange_prefixes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from kafka_shim.broker import Broker
    from kafka_shim.dynamic_listeners import DynamicListeners
    from kafka_shim.listeners import Address
    from kafka_shim.registry import Registry
    from kafka_shim.session import Listener
    from kafka_shim.tls_handshakes import TlsHandshakes
    from kafka_shim.tls_transport import TlsTransport

logger = logging.getLogger("kafka_shim.server")

OVERRIDES = "max.connections.per.ip.overrides"


class SocketServer:
    """Owned by the server; event-loop thread only. `secure`, then `start`, at the end `close`, and `stop` once all
    connections are closed."""

    def __init__(self, broker: Broker, registry: Registry) -> None:
        self._broker = broker
        self._registry = registry
        # From `start` to `close`. By the names of listeners.
        self._acceptors: dict[str, Acceptor] = {}
        self._dispatcher: Dispatcher | None = None
        self._budget: ConnectionBudget | None = None
        self._is_closed = False
        # Made when `listeners` is changed for the first time: a start without that imports nothing for it.
        self._dynamic: DynamicListeners | None = None
        # Made for the first listener with TLS.
        self._handshakes: TlsHandshakes | None = None
        # The latest look-up of hosts that a changed option names.
        self._look_up: asyncio.Task[None] | None = None

    @property
    def listeners(self) -> list[Listener]:
        """Those for clients, and behind them the controller's."""
        return [*self._broker.listeners, *self._broker.controller_listeners]

    def secure(self) -> None:
        """Prepare the security of the listeners. It follows the options stored by AlterConfigs. Raises ConfigError."""
        broker = self._broker
        self._secure(self.listeners, is_start=True)
        warn_of_strange_prefixes(self.listeners, broker.config)
        self._registry.reconfigure()
        if broker.config.kafka_shim_disconnect_changed_users:
            broker.disconnect = self._registry.disconnect
            if broker.tokens is not None:
                broker.tokens.on_removed = self._registry.disconnect_tokens
        broker.metadata.check_broker_options.append(self._check)

    async def look_up_hosts(self, *, is_start: bool = False) -> None:
        """Find the addresses of the hosts that have a limit of their own. Raises ConfigError at the start, as in Kafka,
        for one of the configuration file that has none."""
        config = self._broker.config
        if not config.max_connections_per_ip_overrides:
            return
        if lost := await self._registry.look_up_hosts():
            what = f"{OVERRIDES}: no address is known of {', '.join(lost)}"
            if is_start and OVERRIDES not in config.dynamic:
                raise ConfigError(what)
            logger.warning("%s: no limit of its own holds for it", what)

    def start(self, dispatcher: Dispatcher) -> None:
        """Bind, register, accept. Raises OSError."""
        broker = self._broker
        files = broker.logs.services.files
        self._dispatcher = dispatcher
        self._budget = ConnectionBudget(broker, files, self._registry)
        logger.info("%s", budget_line(files, self._budget))
        sockets = []
        try:
            for listener in self.listeners:
                sockets.append(bind(listener, broker.config))  # noqa: PERF401 closed one by one below
            # Clients may connect as soon as the sockets listen, but nothing is read from them before the registration
            # is recorded.
            broker.metadata.register(endpoints_of(broker.listeners), endpoints_of(broker.controller_listeners))
            for listener, sock in zip(self.listeners, sockets, strict=True):
                self._accept(listener, sock)
            for acceptor in self._acceptors.values():
                acceptor.start()
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        self._follow_options(is_start=True)
        if self._dynamic is not None:
            self._registry.reconfigure()  # for the limits of listeners that AlterConfigs added

    def reload(self) -> None:
        """Take over changed options of the broker."""
        self._follow_options()
        self._registry.reconfigure()
        if self._look_up is not None:
            self._look_up.cancel()  # its names may not be named any more
        if self._broker.config.max_connections_per_ip_overrides:
            self._look_up = asyncio.get_running_loop().create_task(self.look_up_hosts())
            self._look_up.add_done_callback(_log_failure)
        reload_listeners(self.listeners, self._broker.config)

    def close(self) -> None:
        """Stop accepting connections. Those that are open stay. Listeners that one of them asks for now are opened by
        the next start."""
        self._is_closed = True
        if self._look_up is not None:
            self._look_up.cancel()
        if self._dynamic is not None:
            self._dynamic.stop()
        for acceptor in self._acceptors.values():
            acceptor.close()

    async def opened(self) -> None:
        """Return once every accepted socket is a connection of the registry: whoever closes them all waits for it."""
        for acceptor in self._acceptors.values():
            await acceptor.opened()

    def stop(self) -> None:
        """End the thread of handshakes."""
        if self._handshakes is not None:
            self._handshakes.stop()

    # --- while the broker runs

    def _follow_options(self, *, is_start: bool = False) -> None:
        if self._budget is None or self._is_closed:
            return
        if self._dynamic is not None or "listeners" in self._broker.config.dynamic:
            self._dynamic_listeners().apply(may_block=is_start)

    def _check(self, dynamic: Mapping[str, str]) -> None:
        staying = self.listeners
        if self._budget is not None:
            names = self._dynamic_listeners().check(dynamic)
            staying = [one for one in staying if one.name in names]
        from kafka_shim.config import check_limits

        check_limits(self._broker.config, [one.name for one in staying], dynamic)
        check_listeners(staying, self._broker.config, dynamic)

    def _dynamic_listeners(self) -> DynamicListeners:
        if self._dynamic is None:
            from kafka_shim.dynamic_listeners import DynamicListeners

            self._dynamic = DynamicListeners(self._broker, self._open, self._remove, self._registry.reconfigure)
        return self._dynamic

    def _open(self, listener: Listener, addresses: Sequence[Address]) -> None:
        """Serve one more listener, on the first of these addresses if there are any. Raises ConfigError, OSError."""
        self._secure([listener], is_start=False)
        sock = bind(listener, self._broker.config, addresses)
        try:
            self._accept(listener, sock)
        except BaseException:
            sock.close()
            raise
        self._acceptors[listener.name].start()

    def _remove(self, listener: Listener) -> None:
        """Stop serving a listener. A request of an administrator that is being handled has its answer first."""
        self._acceptors.pop(listener.name).close()
        self._registry.forget_rate(listener)
        for connection in list(self._registry.connections):
            if connection.session.listener is listener:
                self._registry.close(connection, f"the listener {listener.name} was removed")

    # --- one listener

    def _secure(self, listeners: Sequence[Listener], *, is_start: bool) -> None:
        broker = self._broker
        secure_listeners(listeners, broker.config, broker.metadata, broker.tokens, broker.clock, is_start=is_start)
        if broker.config.kafka_shim_disconnect_changed_users:
            for listener in listeners:
                if listener.security is not None:
                    listener.security.on_users_changed = partial(self._registry.disconnect, listener=listener)
                    listener.security.on_trust_changed = partial(self._registry.disconnect_tls, listener)

    def _accept(self, listener: Listener, sock: socket.socket) -> None:
        assert self._budget is not None
        clock = self._broker.clock
        acceptor = Acceptor(listener, sock, self._factory(listener), self._budget, self._registry, clock)
        self._acceptors[listener.name] = acceptor

    def _factory(self, listener: Listener) -> Callable[[], Connection | TlsTransport]:
        broker = self._broker
        security = listener.security
        assert self._dispatcher is not None
        dispatcher = self._dispatcher
        if listener.is_controller:
            from kafka_shim.api.controller import CONTROLLER_TABLE

            dispatcher = Dispatcher(broker, CONTROLLER_TABLE)

        def connect() -> Connection:
            return Connection(dispatcher, listener, broker.receive_memory, self._registry)

        if security is None or not security.uses_tls:
            return connect
        from kafka_shim.tls_transport import TlsTransport

        if self._handshakes is None:
            from kafka_shim.tls_handshakes import TlsHandshakes

            self._handshakes = TlsHandshakes(broker.clock)
        handshakes = self._handshakes
        probe = broker.receive_memory.probe
        return lambda: TlsTransport(connect(), security.tls_context(), handshakes, probe)


def _log_failure(look_up: asyncio.Task[None]) -> None:
    if not look_up.cancelled() and (error := look_up.exception()) is not None:
        logger.error("the hosts of %s could not be looked up", OVERRIDES, exc_info=error)
