"""The open connections of one server: limits of their number, idle timeouts, and those that have not authenticated yet
(Kafka: ConnectionQuotas).

| Limit | Beyond it |
| --- | --- |
| `max.connections`, of all listeners or of one; `max.connection.creation.rate`, likewise | accepting waits |
| `max.connections.per.ip` with its overrides | the connection is closed |
| `kafka.shim.login.timeout.ms`, `LOGIN_LIMIT_BYTES` before authentication | the connection is closed |

The inter-broker listener, if there are others, is not counted against the limits of all listeners; it has the same
numbers for itself. A connection to it may cost the longest idle one of another listener its place.
"""

from __future__ import annotations

import logging
from functools import partial

from kafka_shim.closing import Closing
from kafka_shim.host_names import HostNames
from kafka_shim.line_limit import LineLimit
from kafka_shim.login_turns import LoginTurns
from kafka_shim.plurals import counted
from kafka_shim.quota.rate import Rate
from kafka_shim.security.printable import MAX_NAME, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

    from kafka_shim.connection import Connection
    from kafka_shim.frame_receiver import FrameReceiver
    from kafka_shim.session import Listener

logger = logging.getLogger("kafka_shim.connection")

# The most that all connections together hold of requests before authentication.
LOGIN_LIMIT_BYTES = 64 * 1024 * 1024
# The value of max.connection.creation.rate that sets no limit.
NO_RATE = 0x7FFFFFFF


class _Login:
    """A connection that has not authenticated: until when it must, and what it holds of a request."""

    __slots__ = ("deadline_ms", "held_bytes")

    def __init__(self, deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self.held_bytes = 0


class Registry:
    """Owned by the server. Event-loop thread only."""

    __slots__ = (
        "_broker",
        "_by_listener",
        "_freed",
        "_host_names",
        "_limits",
        "_login_bytes",
        "_login_timer",
        "_logins",
        "_looked_up",
        "_overrides",
        "_protected",
        "_rates",
        "_timer",
        "closing",
        "connections",
        "log_lines",
        "login_turns",
        "per_ip",
    )

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._timer: Any = None
        # Log lines about connections that are closed or refused.
        self.log_lines = LineLimit(logger, broker.clock)
        # Bounds how many connections close in one turn.
        self.closing = Closing(broker.clock)
        self.connections: set[Connection] = set()
        self.per_ip: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        # Acceptors that wait for a place.
        self._freed: list[Callable[[], None]] = []
        # Connections per second by listener; None: of all together. Only of those that have a limit.
        self._rates: dict[str | None, Rate] = {}
        # Connections that have not authenticated, and the bytes that all of them hold.
        self._logins: dict[FrameReceiver, _Login] = {}
        self._login_bytes = 0
        self._login_timer: Any = None
        self.login_turns = LoginTurns()
        # From one change of options to the next.
        self._overrides: dict[str, int] = {}
        self._host_names = HostNames()
        # The overrides whose hosts these are.
        self._looked_up = ""
        self._limits: dict[str, tuple[int | None, int | None]] = {}
        self._protected: str | None = None
        self.reconfigure()

    def reconfigure(self) -> None:
        """Take over changed options."""
        config = self._broker.config
        overrides = config.max_connections_per_ip_overrides
        if not overrides:
            self._host_names = HostNames()
        if overrides != self._looked_up:
            self._looked_up = ""  # also if they are soon what they were: each change is looked up
        address_of = self._host_names.address_of
        self._overrides = {address_of(host): count for host, count in self._counts_by_host()}
        listeners = self._broker.listeners
        inter_broker = config.inter_broker_listener_name or config.security_inter_broker_protocol
        self._protected = inter_broker.upper() if len(listeners) > 1 else None
        self._limits = {}
        if self._protected is not None:
            limit = config.max_connection_creation_rate
            self._limits[self._protected] = config.max_connections, limit if limit < NO_RATE else None
        if any(name.startswith("listener.name.") for name in (*config.given, *config.dynamic)):
            from kafka_shim.config import ListenerOptions

            for listener in listeners:
                options = ListenerOptions(config, listener.name)
                most, rate = options.own_text("max.connections"), options.own_text("max.connection.creation.rate")
                all_most, all_rate = self._limits.get(listener.name, (None, None))
                self._limits[listener.name] = (int(most) if most else all_most, int(rate) if rate else all_rate)
        self._wake()

    def _counts_by_host(self) -> Iterator[tuple[str, int]]:
        for entry in self._broker.config.max_connections_per_ip_overrides.split(","):
            host, colon, count = entry.strip().rpartition(":")
            if colon:
                yield host.strip(), int(count)

    async def look_up_hosts(self) -> list[str]:
        """Find the addresses of the hosts in `max.connections.per.ip.overrides`: until then their limits do not hold.
        Return those that have none."""
        config = self._broker.config
        text = config.max_connections_per_ip_overrides
        # Changed, all are looked up again. Meanwhile, and where the resolver fails, those that are known hold.
        host_names = self._host_names if text == self._looked_up else HostNames(self._host_names)
        lost, kept = await host_names.look_up(dict(self._counts_by_host()))
        if kept:
            hosts = ", ".join(f"{name} ({address})" for name, address in kept.items())
            logger.warning(
                "max.connections.per.ip.overrides: no address is found of %s: the limit holds for the former one", hosts
            )
        if text == config.max_connections_per_ip_overrides:  # else it was changed meanwhile
            self._host_names, self._looked_up = host_names, text
            self.reconfigure()
        return lost

    # --- the end of sessions whose credentials are gone (`kafka.shim.disconnect.changed.users`)

    def disconnect(self, mechanism: str, users: Collection[str], listener: Listener | None = None) -> None:
        """Close the connections that these users have made with this mechanism, on one listener or on all. Their
        clients must authenticate again."""
        for connection in list(self.connections):
            authenticator = connection.session.authenticator
            if authenticator is None or authenticator.mechanism_name != mechanism or authenticator.user not in users:
                continue
            if listener is None or connection.session.listener is listener:
                user = printable(authenticator.user, MAX_NAME)
                self.close(connection, f"the {mechanism} credentials of {user} have changed")

    def disconnect_tokens(self, token_ids: Collection[str]) -> None:
        """Close the connections that were made by these delegation tokens."""
        for connection in list(self.connections):
            authenticator = connection.session.authenticator
            if authenticator is not None and authenticator.token_id in token_ids:
                self.close(connection, f"the delegation token {authenticator.token_id} is gone")

    def disconnect_tls(self, listener: Listener) -> None:
        """Close all connections of a TLS listener: their clients must shake hands again, by the stores in force."""
        for connection in list(self.connections):
            if connection.session.listener is listener:
                self.close(connection, "the truststore or ssl.client.auth of its listener has changed")

    def close(self, connection: Connection, reason: str) -> None:
        """Close one of perhaps very many connections. A request of an administrator that is being handled has its
        answer first."""
        self.closing.run(partial(connection.close_after_answer, reason))

    # --- before a connection is served

    def has_place(self, listener: Listener, pending: int = 0) -> bool:
        """Whether one more connection may be served on this listener."""
        most, _ = self._limits.get(listener.name, (None, None))
        if most is not None and self._by_listener.get(listener.name, 0) + pending >= most:
            return False
        return listener.name == self._protected or len(self.connections) + pending < self._broker.config.max_connections

    def call_when_freed(self, callback: Callable[[], None]) -> None:
        """Call it once when a place may be free."""
        self._freed.append(callback)

    def throttle_ms(self, listener: Listener) -> int:
        """Count an accepted connection, also without a limit: one that is set later counts it, as in Kafka. Return for
        how many milliseconds it must wait to be served."""
        now_ms = self._broker.clock.monotonic_ms()
        wait_ms = 0
        if listener.name != self._protected:
            wait_ms = self._wait_ms(None, self._broker.config.max_connection_creation_rate, now_ms)
        _, own = self._limits.get(listener.name, (None, None))
        return max(wait_ms, self._wait_ms(listener.name, NO_RATE if own is None else own, now_ms))

    def _wait_ms(self, name: str | None, limit: int, now_ms: int) -> int:
        """Count a connection of this listener. Return for how long it waits, at most one window."""
        rate = self._rates.get(name)
        if rate is None:
            rate = self._rates[name] = self._new_rate(limit)
        rate.record(1, now_ms)
        if limit >= NO_RATE:
            return 0
        rate.bound = limit
        window_ms: int = self._broker.config.quota_window_size_seconds * 1000
        return min(rate.throttle_time_ms(now_ms), window_ms)

    def _new_rate(self, limit: int) -> Rate:
        config = self._broker.config
        return Rate(limit, config.quota_window_num, config.quota_window_size_seconds * 1000)

    def forget_rate(self, listener: Listener) -> None:
        """A listener was removed: one that gets its name is a new one."""
        self._rates.pop(listener.name, None)

    def hold_ms(self, address: str) -> int:
        """Count an accepted connection of this address. Return for how many milliseconds it is held before it is
        closed, 0 if it may be served."""
        quotas = self._broker.quotas
        return 0 if quotas is None else quotas.connections.hold_ms(address)

    def admit(self, connection: Connection) -> bool:
        """Register a new connection. Returns False and logs one line if its address has too many, or without a line if
        its listener was removed since the socket was accepted."""
        config, metrics = self._broker.config, self._broker.metrics
        listener = connection.session.listener
        if listener not in self._broker.listeners and not listener.is_controller:
            return False
        host = connection.session.peer_host
        count = self.per_ip.get(host, 0)
        if count >= self._overrides.get(host, config.max_connections_per_ip):
            self.log_lines.write(
                "refusing %s: its address has as many connections as max.connections.per.ip allows", connection
            )
            metrics.connections_refused += 1
            return False
        name = listener.name
        of_listener = self._by_listener.get(name, 0)
        opened = metrics.connections_opened + 1
        try:
            self._by_listener[name] = of_listener + 1
            self.per_ip[host] = count + 1
            self.connections.add(connection)
        except MemoryError:
            self.connections.discard(connection)  # a set that cannot grow has it; now `remove` takes nothing back
            self._by_listener[name] = of_listener
            if count:
                self.per_ip[host] = count
            else:
                self.per_ip.pop(host, None)
            raise
        metrics.connections_opened = opened
        if name == self._protected and len(self.connections) > config.max_connections:
            others = [one for one in self.connections if one.session.listener.name != name]
            if others:
                min(others, key=lambda one: one.last_active_ms).abort()
        return True

    def remove(self, connection: Connection) -> None:
        """Unregister a connection."""
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        host = connection.session.peer_host
        self.per_ip[host] -= 1
        if not self.per_ip[host]:
            del self.per_ip[host]
        self._by_listener[connection.session.listener.name] -= 1
        self._broker.metrics.connections_closed += 1
        # Behind what counts: they may find no memory.
        try:
            self.logged_in(connection)
            if connection.session.client_instance_id is not None:
                self._broker.client_metrics.disconnected(connection.session)
        finally:
            self._wake()

    def _wake(self) -> None:
        freed, self._freed = self._freed, []
        try:
            while freed:
                freed.pop(0)()
        finally:
            self._freed += freed  # of one that fails, as for lack of memory: the others are called the next time

    # --- before a connection has authenticated

    def await_login(self, connection: Connection) -> None:
        """The connection must authenticate within `kafka.shim.login.timeout.ms`."""
        timeout_ms = self._broker.config.kafka_shim_login_timeout_ms
        self._logins[connection] = _Login(self._broker.clock.monotonic_ms() + timeout_ms)
        if self._login_timer is None:
            self._login_timer = self._broker.clock.every(max(timeout_ms / 4, 10), self._close_late_logins)

    def awaits_login(self, connection: FrameReceiver) -> bool:
        """Whether the connection has not authenticated yet."""
        return connection in self._logins

    def hold(self, connection: FrameReceiver, size_bytes: int) -> bool:
        """Note how much of a request the connection holds now. Returns whether it may: always, once it has
        authenticated."""
        login = self._logins.get(connection)
        if login is None:
            return True
        self._login_bytes += size_bytes - login.held_bytes
        login.held_bytes = size_bytes
        return self._login_bytes <= LOGIN_LIMIT_BYTES

    def logged_in(self, connection: Connection) -> None:
        """The connection has authenticated, or is gone."""
        login = self._logins.pop(connection, None)
        if login is not None:
            self._login_bytes -= login.held_bytes
            if not self._logins and self._login_timer is not None:
                self._login_timer.cancel()
                self._login_timer = None

    def _close_late_logins(self) -> None:
        now_ms = self._broker.clock.monotonic_ms()
        late = [connection for connection, login in self._logins.items() if login.deadline_ms <= now_ms]
        for connection in late:
            self.closing.run(partial(self._abort_late_login, connection))
        if late:
            logger.warning(
                "closing %s, the first from %s: no authentication within kafka.shim.login.timeout.ms (%d); check "
                "security.protocol and sasl.mechanism of the clients",
                counted(len(late), "connection"),
                late[0],
                self._broker.config.kafka_shim_login_timeout_ms,
            )

    def _abort_late_login(self, connection: FrameReceiver) -> None:
        if connection in self._logins:  # else it has authenticated since
            connection.abort()

    # --- groups

    def has_member(self, group_id: str, member_id: str) -> bool:
        """Whether an open connection spoke for this member of a group."""
        member = (group_id, member_id)
        return any(member in connection.session.members for connection in self.connections)

    # --- idle connections

    def start(self) -> None:
        """Start the timer that closes connections idle for longer than `connections.max.idle.ms`."""
        idle_ms = self._broker.config.connections_max_idle_ms
        if idle_ms > 0:
            self._timer = self._broker.clock.every(max(min(idle_ms / 4, 30_000), 10), self._close_idle)

    def _close_idle(self) -> None:
        clock = self._broker.clock
        oldest_ms = clock.monotonic_ms() - self._broker.config.connections_max_idle_ms
        if clock.heard_until_ms() >= oldest_ms:
            return  # a virtual clock was moved for clients that are alive
        for connection in list(self.connections):
            if connection.has_taken_some():
                connection.last_active_ms = self._broker.clock.monotonic_ms()
            elif _is_idle(connection, oldest_ms):
                self.closing.run(partial(_abort_idle, connection, oldest_ms))

    def stop(self) -> None:
        """Stop the timers. The server closes the connections."""
        self.closing.stop()
        for lines in (self.log_lines, *(one.security.failures for one in self._broker.listeners if one.security)):
            lines.close()
        for timer in (self._timer, self._login_timer):
            if timer is not None:
                timer.cancel()


def _is_idle(connection: Connection, oldest_ms: int) -> bool:
    return connection.last_active_ms < oldest_ms and (not connection.is_waiting or connection.is_muted)


def _abort_idle(connection: Connection, oldest_ms: int) -> None:
    """Close a connection, unless it has sent a request since it was found idle: its answer would be lost."""
    if _is_idle(connection, oldest_ms):
        logger.debug("closing %s: idle", connection)
        # `close` would wait for a client that never reads its responses, and hold them that long.
        connection.abort()
