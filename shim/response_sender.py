"""Sends the responses of one connection, in their order.

A response without stored batches goes to the transport at once. Stored batches are read from their files as the client
takes them: `network_send` has the limits of what is read ahead, and a turn of the event loop sends a bounded part.
"""

from __future__ import annotations

import asyncio
import errno
import logging

from kafka_shim.frame_receiver import FrameReceiver
from kafka_shim.network_send import FULL_SOCKET_BYTES, HAS_SENDFILE, NetworkSend, shows_files
from kafka_shim.storage.file_records import read_ahead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kafka_shim.dispatch import Dispatcher
    from kafka_shim.memory_pool import ReceiveMemory
    from kafka_shim.registry import Registry
    from kafka_shim.session import Listener

    Parts = list[Any]

logger = logging.getLogger("kafka_shim.connection")

# The most that one connection sends from files per turn of the event loop; what must be copied, as with TLS, goes by
# the chunk. On loopback the call that sends is also the one that receives: about 0.1 ms of work, for which every other
# connection waits. Half as many take a tenth more CPU a byte.
TURN_BYTES = 512 * 1024
# The least that a system call counts: a response may have thousands of small parts.
CALL_BYTES = 16 * 1024
# What sendfile raises because of the network, besides ConnectionErrors: a client that is silently gone, or cut off.
NETWORK_ERRORS = frozenset(
    {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.ENOBUFS}
)


class ResponseSender(FrameReceiver):
    """The part of `Connection` that sends. Reading stays paused until the transport has the whole response. Event-loop
    thread only."""

    __slots__ = ("_network_send", "_send_memory", "_unsent_seen_bytes", "_untaken_bytes")

    def __init__(self, dispatcher: Dispatcher, listener: Listener, memory: ReceiveMemory, registry: Registry) -> None:
        super().__init__(dispatcher, listener, memory, registry)
        self._send_memory = dispatcher.broker.send_memory
        # The response that is read from its files as the client takes it; the number of unsent bytes; their number
        # when the idle timer last looked.
        self._network_send: NetworkSend | None = None
        self._untaken_bytes = 0
        self._unsent_seen_bytes = 0

    def has_taken_some(self) -> bool:
        """Returns whether the client received part of its responses since the last call."""
        unsent_bytes = self._transport.get_write_buffer_size()
        before, self._unsent_seen_bytes = self._unsent_seen_bytes, unsent_bytes
        return unsent_bytes < before

    # --- one response

    def _send(self, parts: Parts) -> None:
        if len(parts) == 1:
            self._transport.write(parts[0])
        elif shows_files(parts):
            self._network_send = NetworkSend(parts)
            if not self._write_paused:  # else `resume_writing` begins: the transport says only once that it is paused
                self._write_paused = True
                self._send_more()
        else:
            self._transport.writelines(parts)

    def _send_more(self) -> None:
        """Write the response in progress until the transport cannot send at once or `TURN_BYTES` are used up."""
        try:
            self._send_part()
        except (OSError, MemoryError) as error:
            if not isinstance(error, ConnectionError) and getattr(error, "errno", None) not in NETWORK_ERRORS:
                reason = "no memory is left" if isinstance(error, MemoryError) else error
                logger.warning("closing %s: records of its response cannot be read from the disk: %s", self, reason)
            self.is_closing = True
            self._end_soon(self._transport.abort)

    def _send_part(self) -> None:
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
        try:
            asyncio.get_running_loop().call_soon(end)
        except MemoryError:
            end()

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
        try:
            reading = self._dispatcher.broker.logs.services.workers.begin(read_ahead, fd, position, size_bytes)
        except RuntimeError:
            return False
        reading.add_done_callback(self._was_read_ahead)
        return True

    def _was_read_ahead(self, reading: asyncio.Future[None]) -> None:
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
        try:
            self.last_active_ms = self._clock.monotonic_ms()
            self._account(0)
        except MemoryError:  # the transport says it once: nothing would be sent any more
            self.is_closing = True
            self._end_soon(self._transport.abort)
            return
        self._write_paused = self._network_send is not None
        self._send_more()
        self.proceed()
