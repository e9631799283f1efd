"""One client connection. It passes the frames that `frame_receiver` splits off to `dispatch` one at a time, and has
`response_sender` send the responses in request order.

Flow control. While a request is being handled, the connection handles no other: received bytes are kept and reading
pauses. The same applies until the last byte of a response is handed to the socket (Kafka mutes the channel). Stored
batches stay in their files until there is room to send them; the limits are in `network_send`.
"""

from __future__ import annotations

import asyncio
import logging

from kafka_shim.cext.replies import DelayedBase
from kafka_shim.config import ConfigError
from kafka_shim.errors import DisconnectError
from kafka_shim.java_address import java_address, plain_host
from kafka_shim.ports import end_for_all
from kafka_shim.response_sender import ResponseSender
from kafka_shim.session import Session
from kafka_shim.waiters import pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from ssl import SSLObject
    from typing import Any

    from kafka_shim.cext.replies import Reply
    from kafka_shim.dispatch import Dispatcher
    from kafka_shim.memory_pool import ReceiveMemory
    from kafka_shim.registry import Registry
    from kafka_shim.security.listener_security import ListenerSecurity
    from kafka_shim.session import Listener

    Parts = list[Any]

logger = logging.getLogger("kafka_shim.connection")


class Connection(ResponseSender):
    """The protocol object of one accepted socket. A listener creates it and the transport owns it. Event-loop thread
    only."""

    __slots__ = (
        "_gone",
        "is_muted",
    )

    if TYPE_CHECKING:
        session: Session

    def __init__(self, dispatcher: Dispatcher, listener: Listener, memory: ReceiveMemory, registry: Registry) -> None:
        super().__init__(dispatcher, listener, memory, registry)
        # Whether the task is the throttle time of the client, during which no request is handled.
        self.is_muted = False
        self._gone: asyncio.Future[None] | None = None

    # --- life

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        try:
            self._begin(self._transport)
        except BaseException:
            self.abort()  # what follows would be served as if the client need not log in
            raise

    def _begin(self, transport: asyncio.Transport) -> None:
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        local = transport.get_extra_info("sockname") or (self._listener.host, self._listener.port)
        client, own = (java_address(peer[0]), peer[1]), (plain_host(local[0]), local[1])
        self.session = Session(self._listener, client, own)
        self.last_active_ms = self._clock.monotonic_ms()
        transport.set_write_buffer_limits(high=0)
        if not self._registry.admit(self):
            self.abort()
        elif self._listener.security is not None:
            self._registry.await_login(self)
            if not self._listener.security.uses_tls:
                self._meet(self._listener.security)

    def secured(self, tls: SSLObject) -> None:
        """The TLS handshake is complete."""
        security = self._listener.security
        assert security is not None
        try:
            self._meet(security, tls.getpeercert(binary_form=True))
        except BaseException:
            self.abort()  # as in `connection_made`
            raise

    def _meet(self, security: ListenerSecurity, certificate: bytes | None = None) -> None:
        """Begin with a client on a listener with security. With SASL it has to log in before anything else. Without,
        its certificate and connection make the principal; the connection is closed if they make none."""
        from kafka_shim.security.principals import AuthenticationContext, subject_of
        from kafka_shim.security.sasl.authenticator import Authenticator

        session = self.session
        broker = self._dispatcher.broker
        try:
            name = None if certificate is None else subject_of(certificate)
        except ConfigError as error:
            self.close(str(error))
            return
        context = AuthenticationContext(
            self._listener.name, security.protocol, session.peer_host, certificate=certificate, certificate_name=name
        )
        if not security.uses_sasl:
            try:
                principal = security.principal_of(context)
            except Exception as error:  # whatever a class of the operator raises
                self.close(f"{security.protocol} makes no principal: {type(error).__name__}: {error}")
            else:
                self._authenticated(principal)
            return
        self._must_log_in = True
        session.authenticator = authenticator = Authenticator(security, context, broker.clock)
        authenticator.on_begin, authenticator.on_complete = self._limit_login, self._authenticated
        self._limit_login()

    def _limit_login(self) -> None:
        """From the handshake to the end of a login, the first one or another, frames have at most
        `sasl.server.max.receive.size`."""
        authenticator = self.session.authenticator
        assert authenticator is not None
        self._max_frame_bytes = min(self._max_frame_bytes, authenticator.max_receive_bytes)

    def _authenticated(self, principal: str) -> None:
        self._must_log_in = False
        self.session.principal = principal
        self._max_frame_bytes = self._dispatcher.broker.config.socket_request_max_bytes
        self._registry.logged_in(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        self._held = None
        self._network_send = None
        try:
            self._memory.waiting.pop(self, None)
            self._account(0)
            self._drop_frame()
        finally:
            try:
                self._registry.remove(self)
            finally:
                if self.session is not None:  # else memory ended before it had one
                    self._leave_session()
        if self._dispatcher.broker.stopping:
            end_for_all(self._transport)

    def _leave_session(self) -> None:
        if self.session.authenticator is not None:
            self.session.authenticator.forget_connection()
        self.session.is_closed = True
        task = self.task
        if task is None or self._may_abandon:
            self._end_session()
        else:
            task.add_done_callback(self._end_session)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        # A disconnected client needs no delayed read, so an abandonable request is cancelled. Other requests run to
        # their end.
        if task is not None and self._may_abandon:
            # On the next turn: a task that is cancelled before it begins leaves its coroutine never awaited.
            asyncio.get_running_loop().call_soon(task.cancel)

    def _end_session(self, task: asyncio.Task[None] | None = None) -> None:
        if self.session.on_closed is not None:
            self.session.on_closed(self.session)

    @property
    def _may_abandon(self) -> bool:
        """Whether the request under way may be left when its client is gone."""
        return self._is_abandonable or self.session.is_abandonable

    def eof_received(self) -> bool:
        """The client sends nothing more. As from Kafka it gets the rest of a response under way, and the answer to a
        request that is being handled; one that is parked ends with its connection. Returns whether the transport must
        stay open until then, or until a turn of the loop that closes fewer."""
        self.send_held()
        if self._network_send is not None:
            self.is_closing = True
            return True
        if self._task is not None and not self.is_muted and not self._is_delayed and not self.session.is_abandonable:
            self._closing_reason, self.session.is_ending = "", True
            return True
        closing = self._registry.closing
        if closing.take():
            return False
        closing.later(self.close)
        return True

    def close(self, reason: str | None = None) -> None:
        """Close without a response. Logs the reason, if one is given, once."""
        if self.is_closing:
            return
        self.send_held()
        self.is_closing = True
        if reason is not None:
            self._registry.log_lines.write("closing %s: %s", self, reason)
            self._dispatcher.broker.metrics.frames_refused += 1
        if self._network_send is None:
            self._transport.close()  # else it is closed once its last part is handed over

    def close_after_answer(self, reason: str) -> None:
        """Close, but let a request of an administrator that is being handled have its answer first: it may be the
        reason why the connection is closed."""
        if self._task is None or self._may_abandon:
            self.close(reason)
        else:
            self._closing_reason, self.session.is_ending = reason, True

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits: for what it needs, for others, or because the client is throttled."""
        return self._task is not None

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task of the request that waits, if it has one: one that is delayed until others have joined has none."""
        return None if isinstance(self._task, DelayedBase) else self._task

    def watch(self) -> asyncio.Future[None]:
        """Returns a future that completes when the connection is closed. There is one: a later call takes its place."""
        self._gone = asyncio.get_running_loop().create_future()
        return self._gone

    def __str__(self) -> str:
        return f"{self.session.peer_host}:{self.session.peer_port} on {self._listener.name}"

    # --- handling

    def _failed(self, error: Exception) -> None:
        """A frame was not handled."""
        try:
            if isinstance(error, DisconnectError):
                self.close(str(error) or None)
                return
            # A bug: not even an error response could be made. It must affect no other connection.
            self._dispatcher.broker.metrics.errors_unexpected += 1
            logger.error("closing %s", self, exc_info=error)
            self.close()
            if isinstance(error, MemoryError):
                self.abort()  # a transport may hold an answer that it will not send, and close only after that
        except Exception:  # no memory is left to say so: who calls may be a timer, or another connection
            self.abort()

    def _wait_for(self, reply: Reply) -> None:
        assert reply.waiting is not None
        self._is_abandonable = reply.is_abandonable
        self._is_delayed = reply.is_delayed
        self._task = asyncio.get_running_loop().create_task(self._finish(reply.waiting))

    async def _finish(self, waiting: Coroutine[Any, Any, Parts | None]) -> None:
        try:
            answer = await waiting
        except Exception as error:
            self._task = None
            self._failed(error)
            return
        except BaseException:
            self._task = None
            raise
        self._task = None
        try:
            self._finished(answer)
        except Exception as error:
            self._failed(error)  # the answer is lost: another request's must not stand in its place

    def _mute(self) -> None:
        """Handle no request for the session's throttle time (KIP-219). The response under way is sent meanwhile."""
        metrics = self._dispatcher.broker.metrics
        metrics.throttled_responses += 1
        metrics.throttled_ms += self.session.muted_ms
        if not self.is_closing:
            self._is_abandonable = True
            self.is_muted = True
            self._task = asyncio.get_running_loop().create_task(self._stay_muted(self.session.muted_ms))
        self.session.muted_ms = 0

    async def _stay_muted(self, muted_ms: int) -> None:
        broker = self._dispatcher.broker
        try:
            if not broker.stopping:
                await pause(broker.clock, broker.parked, muted_ms)
            self.last_active_ms = broker.clock.monotonic_ms()
        except Exception as error:
            self._failed(error)  # it would be muted for ever
        finally:
            self.is_muted = False
            self._task = None
        self.proceed()
