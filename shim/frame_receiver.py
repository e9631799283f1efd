"""Splits the bytes of a client into frames.

Memory. An idle connection holds no buffer. All connections of a loop share one probe buffer for reads. Only a frame
that did not arrive whole gets its own buffer, and the rest of the frame is read directly into it. That buffer grows
with the bytes received, not with the value of the length field. A client whose frames are somewhat larger than the
probe, and which sends one at a time, is read with more of it, so that they are copied no more than smaller ones.

Turns. libuv reads a connection again, up to 32 times, as long as each read fills its buffer. A buffer in which the rest
of a frame just fits would be filled by every frame, and a client that sends the next request at once would be
served sixteen times while others wait. So there is room for a byte of the next frame, which a client that waits for its
response has not sent. One that does not wait is read again on the next turn only, if its requests fill a read, if one
begins where a larger one ends, or after 32 of them.
"""

from __future__ import annotations

import asyncio
from struct import Struct

from kafka_shim.cext.frame_base import PROBE_BYTES, WIDE_PROBE_BYTES, FrameBase
from kafka_shim.memory_pool import LARGE_BYTES, uncounted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.cext.replies import DelayedBase
    from kafka_shim.clock import Clock
    from kafka_shim.dispatch import Dispatcher
    from kafka_shim.memory_pool import ReceiveMemory
    from kafka_shim.registry import Registry
    from kafka_shim.session import Listener

# The length of a frame, which stands before it.
_LENGTH = Struct(">i")
LENGTH_BYTES = _LENGTH.size
_read_length = _LENGTH.unpack_from
# Room in a frame's buffer for what follows the frame.
NEXT_BYTES = 1


class FrameReceiver(FrameBase, asyncio.BufferedProtocol):
    """The base of `Connection`: receives, and pauses while a request is being handled or a response is not sent.
    Event-loop thread only."""

    __slots__ = (
        "_awaits_turn",
        "_filled_bytes",
        "_frame_bytes",
        "_is_uncounted",
        "_listener",
        "_memory",
        "_registry",
    )

    if TYPE_CHECKING:
        _transport: asyncio.Transport

    def __init__(self, dispatcher: Dispatcher, listener: Listener, memory: ReceiveMemory, registry: Registry) -> None:
        # Constant for the life of the connection.
        self._dispatcher: Dispatcher = dispatcher
        self._clock: Clock = dispatcher.broker.clock
        self._held_answers = dispatcher.held_answers
        self._listener = listener
        self._memory = memory
        self._probe = memory.probe
        self._wide_probe = memory.wide_probe
        self._registry = registry
        # Lower until the client has authenticated.
        self._max_frame_bytes = dispatcher.broker.config.socket_request_max_bytes
        # Bytes that were received and not handled yet, and the incomplete frame, with its length prefix.
        self._held = None
        self._frame = None
        self._frame_bytes = 0
        self._filled_bytes = 0
        # Whether the frame began before authentication: `memory` does not count its buffer.
        self._is_uncounted = False
        # Whether the next frame is expected to be larger than the probe, and not too large for the wide one.
        self._is_wide = False
        # Whether the client must authenticate by SASL first: until then its requests are handled in their turn.
        self._must_log_in = False
        # Flow control: the request that is waiting, and whether a response is in progress or the transport has unsent
        # bytes.
        self._task: asyncio.Task[None] | DelayedBase | None = None
        # Whether that request may be cancelled when the client disconnects; whether its answer waits for other clients
        # or a deadline.
        self._is_abandonable = False
        self._is_delayed = False
        # Why the connection is closed once that request is answered; empty: the client sends nothing more.
        self._closing_reason = None
        self._write_paused = False
        # Whether what was received waits for the next turn of the loop.
        self._awaits_turn = False
        self._is_paused = False
        self.is_closing = False
        self.last_active_ms = 0

    def _handle(self, frame: memoryview) -> None:
        """Handle the frame of one request, without its length prefix, or have it wait for its turn."""
        if not self._must_log_in or self._registry.login_turns.take():
            self._handle_now(frame)
        elif not self._registry.hold(self, len(frame)):
            self.close("too many connections hold requests before authentication")
        else:
            self._is_abandonable, self._is_delayed = True, False
            turn = self._registry.login_turns.next_turn()
            self._task = asyncio.get_running_loop().create_task(self._handle_in_turn(turn, bytes(frame)))

    async def _handle_in_turn(self, turn: asyncio.Future[None], frame: bytes) -> None:
        try:
            await turn
        finally:
            self._task = None
            self._registry.hold(self, 0)
        if self.is_closing:
            return
        try:
            self._handle_now(memoryview(frame))
            if self._task is None and self._closing_reason is not None:
                self.close(self._closing_reason or None)
        except Exception as error:
            self._failed(error)
        self.proceed()

    def close(self, reason: str | None = None) -> None:
        """Close without a response."""
        raise NotImplementedError

    def _failed(self, error: Exception) -> None:
        """Close because what was received could not be handled."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close at once. Unsent bytes are lost."""
        self.is_closing = True
        self._transport.abort()

    # --- receiving

    def _get_rest(self) -> memoryview:
        """Returns where the rest of an incomplete frame or length prefix goes."""
        frame = self._frame
        if frame is not None:
            return frame[self._filled_bytes : self._frame_bytes + NEXT_BYTES]
        held = self._held
        assert held is not None
        # A part of a length prefix. More bytes are held only while reading is paused.
        probe = self._probe
        probe[: len(held)] = held
        return probe[len(held) :]

    def _rest_updated(self, nbytes: int) -> None:
        """So many bytes of the rest were read."""
        frame = self._frame
        if frame is not None:
            self._filled_bytes += nbytes
            if self._filled_bytes >= self._frame_bytes:
                if self._is_busy:
                    self._pause()
                else:
                    self._handle_whole(frame)
            elif self._filled_bytes == len(frame):
                self._grow(frame)
            return
        held = self._held
        assert held is not None
        self._held = None
        size_bytes = len(held) + nbytes
        self._consume(self._probe, size_bytes)
        if size_bytes == PROBE_BYTES:
            self._let_others()  # as in `buffer_updated`

    def _keep(self, rest: memoryview) -> None:
        is_login = self._registry.awaits_login(self)
        must_wait = self._memory.is_full and len(rest) >= LENGTH_BYTES and not is_login
        if self._is_busy or must_wait:
            if not self._is_busy:
                self._memory.waiting[self] = None
            self._held = bytearray(rest)
            self._pause()
        elif len(rest) < LENGTH_BYTES:
            self._held = bytes(rest)
        else:
            length = _read_length(rest)[0]
            if not 0 <= length <= self._max_frame_bytes:
                self.close(self._frame_refusal(rest, 0))
                return
            self._frame_bytes = LENGTH_BYTES + length
            if is_login and not self._registry.hold(self, self._frame_bytes):
                self.close("too many connections hold requests before authentication")
                return
            self._is_uncounted = is_login
            self._frame = frame = self._take(min(self._frame_bytes + NEXT_BYTES, LARGE_BYTES))
            self._filled_bytes = len(rest)
            frame[: len(rest)] = rest

    def foreign(self, start: bytes) -> None:
        """The client does not begin with TLS where it should."""
        speaks = foreign_protocol(start) or "Kafka's protocol without TLS"
        if speaks == "TLS":
            self.close("the client ended TLS before it began")
            return
        protocol = self._listener.security_protocol
        # A client of HTTP has no such property.
        advice = "" if speaks == "HTTP" else f": set security.protocol={protocol} there"
        self.close(f"the client speaks {speaks}, this listener is {protocol}{advice}")

    def _frame_refusal(self, data: memoryview, at: int) -> str:
        """Returns why a frame with this beginning is not read. Says so if it is of another protocol."""
        speaks = foreign_protocol(bytes(data[at : at + LENGTH_BYTES]))
        if speaks is not None:
            return f"the client speaks {speaks}, this listener is {self._listener.security_protocol}"
        most = self._max_frame_bytes  # lower than for others until the end of a login
        is_of_all = most == self._dispatcher.broker.config.socket_request_max_bytes
        limit = "socket.request.max.bytes" if is_of_all else "sasl.server.max.receive.size"
        return f"frame of {_read_length(data, at)[0]} bytes, {limit} is {most}"

    def _take(self, size_bytes: int) -> memoryview:
        return uncounted(size_bytes) if self._is_uncounted else self._memory.take(size_bytes)

    def _grow(self, frame: memoryview) -> None:
        self._frame = larger = self._take(min(self._frame_bytes + NEXT_BYTES, 4 * len(frame)))
        try:
            larger[: self._filled_bytes] = frame[: self._filled_bytes]
        finally:
            if not self._is_uncounted:
                self._memory.give_back(frame)

    def _handle_whole(self, frame: memoryview) -> None:
        self._frame = None
        is_uncounted = self._is_uncounted
        try:
            end = self._frame_bytes
            following = bytes(frame[end : self._filled_bytes]) if self._filled_bytes > end else b""
            self._is_wide = PROBE_BYTES < end < WIDE_PROBE_BYTES and not is_uncounted and not following
            self._handle(frame[LENGTH_BYTES:end])
        finally:
            if not is_uncounted:
                self._memory.give_back(frame)
        if following and not self.is_closing:
            self._let_others()
            self._consume(memoryview(following), len(following))

    def _drop_frame(self) -> None:
        frame = self._frame
        if frame is not None:
            self._frame = None
            if not self._is_uncounted:
                self._memory.give_back(frame)

    # --- flow

    @property
    def _is_busy(self) -> bool:
        """Whether no frame may be handled now."""
        return self._task is not None or self._write_paused or self._awaits_turn

    def _let_others(self) -> None:
        """Read and handle no more in this turn of the loop: the client does not wait for its responses, and would be
        served for as long as it sends."""
        if self._awaits_turn or self.is_closing:
            return
        self._clock.soon()(self._take_turn)
        self._awaits_turn = True
        self._pause()

    def _take_turn(self) -> None:
        self._awaits_turn = False
        self.proceed()

    def _pause(self) -> None:
        if not self._is_paused and not self.is_closing:
            self._is_paused = True
            self._transport.pause_reading()

    def proceed(self) -> None:
        """Handle the bytes that were received while this connection had to wait, then resume reading. If that fails,
        this connection is closed: who calls may be another one, that gives back the memory this one waits for."""
        if not self._is_paused or self._is_busy or self.is_closing:
            return
        try:
            self._handle_received()
        except Exception as error:
            self._failed(error)

    def _handle_received(self) -> None:
        frame = self._frame
        if frame is not None and self._filled_bytes >= self._frame_bytes:
            self._handle_whole(frame)
        held = self._held
        if held is not None and not self._is_busy:
            self._held = None
            self._consume(memoryview(held), len(held))
        if not self._is_busy and not self.is_closing and self not in self._memory.waiting:
            self._is_paused = False
            self._transport.resume_reading()


def foreign_protocol(start: bytes) -> str | None:
    """Returns the name of another protocol than Kafka's that begins with these four bytes, or None."""
    if start[:2] in (b"\x16\x03", b"\x15\x03"):  # a handshake; an alert, of a client that has given up
        return "TLS"
    if start in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"CONN", b"DELE", b"PRI "):
        return "HTTP"
    return None
