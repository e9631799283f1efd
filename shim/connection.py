"""One client connection. It passes the frames that `frame_receiver` splits off to `dispatch` one at a time, and sends
the responses in request order.

Flow control. While a request is being handled, the connection handles no other: received bytes are kept and reading
pauses. The same applies until the last byte of a response is handed to the socket (Kafka mutes the channel). Stored
batches stay in their files until there is room to send them; the limits are in `network_send`.
"""

from __future__ import annotations

import asyncio
import logging

from kafka_shim.config import ConfigError
from kafka_shim.errors import DisconnectError
from kafka_shim.frame_receiver import FrameReceiver
from kafka_shim.network_send import FULL_SOCKET_BYTES, HAS_SENDFILE, NetworkSend, shows_files
from kafka_shim.session import Session, plain_host
from kafka_shim.storage.file_records import read_ahead
from kafka_shim.waiters import pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from ssl import SSLObject
    from typing import Any

    from kafka_shim.cext.request_end import Reply
    from kafka_shim.dispatch import Dispatcher
    from kafka_shim.memory_pool import ReceiveMemory
    from kafka_shim.registry import Registry
    from kafka_shim.security.listener_security import ListenerSecurity
    from kafka_shim.session import Listener

    Parts = list[Any]

logger = logging.getLogger("kafka_shim.connection")

# The most that one connection sends per turn of the event loop: about a millisecond of work.
TURN_BYTES = 2 * 1024 * 1024
# The least that a system call counts: a response may have thousands of small parts.
CALL_BYTES = 16 * 1024


class Connection(FrameReceiver):
    """The protocol object of one accepted socket. A listener creates it and the transport owns it. Event-loop thread
    only."""

    __slots__ = (
        "_gone",
        "_network_send",
        "_send_memory",
        "_unsent_seen_bytes",
        "_untaken_bytes",
        "is_muted",
    )

    if TYPE_CHECKING:
        session: Session

    def __init__(self, dispatcher: Dispatcher, listener: Listener, memory: ReceiveMemory, registry: Registry) -> None:
        super().__init__(dispatcher, listener, memory, registry)
        # Whether the task is the throttle time of the client, during which no request is handled.
        self.is_muted = False
        # Sending: the response that is read from its files as the client takes it; the number of unsent bytes; their
        # number when the idle timer last looked.
        self._send_memory = dispatcher.broker.send_memory
        self._network_send: NetworkSend | None = None
        self._untaken_bytes = 0
        self._unsent_seen_bytes = 0
        self._gone: asyncio.Future[None] | None = None

    # --- life

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        local = transport.get_extra_info("sockname") or (self._listener.host, self._listener.port)
        self.session = Session(self._listener, (plain_host(peer[0]), peer[1]), (plain_host(local[0]), local[1]))
        self.last_active_ms = self._clock.monotonic_ms()
        self._transport.set_write_buffer_limits(high=0)
        if not self._registry.admit(self):
            self.is_closing = True
            self._transport.abort()
        elif self._listener.security is not None:
            self._registry.await_login(self)
            if not self._listener.security.uses_tls:
                self._meet(self._listener.security)

    def secured(self, tls: SSLObject) -> None:
        """The TLS handshake is complete."""
        security = self._listener.security
        assert security is not None
        self._meet(security, tls.getpeercert(binary_form=True))

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
        authenticator.on_complete = self._authenticated
        self._max_frame_bytes = min(self._max_frame_bytes, authenticator.max_receive_bytes)

    def _authenticated(self, principal: str) -> None:
        self._must_log_in = False
        self.session.principal = principal
        self._max_frame_bytes = self._dispatcher.broker.config.socket_request_max_bytes
        self._registry.logged_in(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        self._memory.waiting.pop(self, None)
        self._drop_frame()
        self._held = None
        self._network_send = None
        self._account(0)
        # A disconnected client needs no delayed read, so an abandonable request is cancelled. Other requests run to
        # their end.
        if self._task is not None and self._is_abandonable:
            self._task.cancel()
        self._registry.remove(self)
        if self.session.authenticator is not None:
            self.session.authenticator.forget_connection()
        if self.session.on_closed is not None:
            self.session.on_closed(self.session)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def eof_received(self) -> bool:
        """The client sends nothing more. As from Kafka it gets the rest of a response under way, and the answer to a
        request that is being handled; one that is parked ends with its connection. Returns whether the transport must
        stay open until then, or until a turn of the loop that closes fewer."""
        if self._network_send is not None:
            self.is_closing = True
            return True
        if self._task is not None and not self.is_muted and not self._is_delayed:
            self._closing_reason = ""
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
        self.is_closing = True
        if reason is not None:
            self._registry.closings.write("closing %s: %s", self, reason)
            self._dispatcher.broker.metrics.frames_refused += 1
        if self._network_send is None:
            self._transport.close()  # else it is closed once its last part is handed over

    def close_after_answer(self, reason: str) -> None:
        """Close, but let a request of an administrator that is being handled have its answer first: it may be the
        reason why the connection is closed."""
        if self._task is None or self._is_abandonable:
            self.close(reason)
        else:
            self._closing_reason = reason

    def has_taken_some(self) -> bool:
        """Returns whether the client received part of its responses since the last call."""
        unsent_bytes = self._transport.get_write_buffer_size()
        before, self._unsent_seen_bytes = self._unsent_seen_bytes, unsent_bytes
        return unsent_bytes < before

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task of the request that is waiting, or None."""
        return self._task

    @property
    def gone(self) -> asyncio.Future[None]:
        """A future that completes when the connection is closed. Each access replaces the one before."""
        self._gone = asyncio.get_running_loop().create_future()
        return self._gone

    def __str__(self) -> str:
        return f"{self.session.peer_host}:{self.session.peer_port} on {self._listener.name}"

    # --- handling

    def _failed(self, error: Exception) -> None:
        """A frame was not handled."""
        if isinstance(error, DisconnectError):
            self.close(str(error) or None)
            return
        # A bug: not even an error response could be made. It must affect no other connection.
        self._dispatcher.broker.metrics.errors_unexpected += 1
        logger.error("closing %s", self, exc_info=error)
        self.close()

    def _wait_for(self, reply: Reply) -> None:
        assert reply.waiting is not None
        self._is_abandonable = reply.is_abandonable
        self._is_delayed = reply.is_delayed
        self._task = asyncio.get_running_loop().create_task(self._finish(reply.waiting))

    async def _finish(self, waiting: Coroutine[Any, Any, Parts | None]) -> None:
        try:
            answer = await waiting
        except DisconnectError as error:
            self._task = None
            self.close(str(error) or None)
            return
        except Exception:
            self._task = None
            self._dispatcher.broker.metrics.errors_unexpected += 1
            logger.exception("closing %s", self)
            self.close()
            return
        except BaseException:
            self._task = None
            raise
        self._task = None
        self.last_active_ms = self._clock.monotonic_ms()
        if self.is_closing:
            return
        if answer is not None:
            self._send(answer)
        if self._closing_reason is not None:
            self.close(self._closing_reason or None)
        elif self.session.authenticator is not None and self.session.authenticator.is_refused:
            self.close()
        if self.session.muted_ms:
            self._mute()
        else:
            self.proceed()

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
        finally:
            self.is_muted = False
            self._task = None
        self.last_active_ms = broker.clock.monotonic_ms()
        self.proceed()

    # --- sending

    def _send(self, parts: Parts) -> None:
        if len(parts) == 1:
            self._transport.write(parts[0])
        elif shows_files(parts):
            self._network_send = NetworkSend(parts)
            self._write_paused = True
            self._send_more()
        else:
            self._transport.writelines(parts)

    def _send_more(self) -> None:
        """Write the response in progress until the transport cannot send at once or `TURN_BYTES` are used up."""
        send = self._network_send
        if send is None:
            return
        memory = self._send_memory
        left_bytes = TURN_BYTES
        while not send.is_done:
            if self._transport.is_closing():
                return
            if left_bytes <= 0:
                asyncio.get_running_loop().call_soon(self._go_on_sending)
                return
            try:
                cold = send.cold_range(left_bytes)
                if cold is not None and self._read_ahead(*cold):
                    return
                if send.must_copy or (socket_fd := self._sendfile_fd()) < 0:
                    buffers = send.take(memory.chunk_bytes)
                elif not (buffers := send.take_buffers()):
                    if sent_bytes := send.send_file(socket_fd, left_bytes):
                        left_bytes -= max(sent_bytes, CALL_BYTES)
                        continue
                    buffers = send.take(FULL_SOCKET_BYTES)
            except OSError as error:
                if not isinstance(error, ConnectionError):
                    logger.warning("closing %s: records of its response cannot be read from the disk: %s", self, error)
                self.is_closing = True
                self._end_soon(self._transport.abort)
                return
            handed_bytes = sum(map(len, buffers))
            left_bytes -= handed_bytes
            self._account(handed_bytes)
            self._write_paused = False
            self._transport.writelines(buffers)
            if self._write_paused:
                break
            self._account(0)
            self._write_paused = True
        if send.is_done:
            self._network_send = None
            self._write_paused = self._untaken_bytes > 0
            if self.is_closing:
                self._end_soon(self._transport.close)

    @staticmethod
    def _end_soon(end: Callable[[], None]) -> None:
        """End the transport on a later turn of the loop: asyncio's loses the connection twice if it is ended while it
        calls `resume_writing`."""
        asyncio.get_running_loop().call_soon(end)

    def _sendfile_fd(self) -> int:
        """Returns the descriptor of the socket, or -1 if stored bytes must go through the transport: because of TLS, or
        behind bytes that the transport has not sent yet."""
        if not HAS_SENDFILE or self._transport.get_write_buffer_size():
            return -1
        bare = self._transport.get_extra_info("socket")
        return -1 if bare is None else bare.fileno()

    def _read_ahead(self, fd: int, position: int, size_bytes: int) -> bool:
        """Have a thread read what is on the disk alone, then go on sending. Returns False if there is no thread for
        it: the loop then waits for the disk itself."""
        clock = self._dispatcher.broker.clock
        try:
            reading = asyncio.get_running_loop().run_in_executor(None, read_ahead, fd, position, size_bytes)
        except RuntimeError:
            return False
        clock.begin_work()
        reading.add_done_callback(self._was_read_ahead)
        return True

    def _was_read_ahead(self, reading: asyncio.Future[None]) -> None:
        self._dispatcher.broker.clock.end_work()
        if not reading.cancelled() and (error := reading.exception()) is not None:
            logger.warning("reading ahead for the response to %s failed: %s", self, error)
        self._go_on_sending()

    def _go_on_sending(self) -> None:
        self._send_more()
        self.proceed()

    def _account(self, held_bytes: int) -> None:
        self._send_memory.used_bytes += held_bytes - self._untaken_bytes
        self._untaken_bytes = held_bytes

    # --- flow

    def pause_writing(self) -> None:
        """The transport has bytes that could not be sent at once. The limit is 0, so one byte is enough."""
        self._write_paused = True
        self._account(max(self._untaken_bytes, self._transport.get_write_buffer_size()))

    def resume_writing(self) -> None:
        """The transport has no unsent bytes any more."""
        self.last_active_ms = self._clock.monotonic_ms()
        self._account(0)
        self._write_paused = self._network_send is not None
        self._send_more()
        self.proceed()
