"""TLS between a socket's transport and a `Connection`: decrypts what arrives, encrypts what leaves.

asyncio's own TLS transport reports the size of its buffers and its pauses in a way that loses the limits of
`network_send`: a slow consumer could hold many megabytes (docs/adr/0041-tls-beneath-the-connection.md). Here every
encrypted byte goes straight to the socket's transport, whose limits then hold as they do without TLS. The primitives
are those of the module `ssl`. Handshakes are a thread's (`tls_handshakes`): the socket is not read meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress

from kafka_shim.ports import SOCKET_BENEATH_TLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from kafka_shim.connection import Connection
    from kafka_shim.tls_handshakes import TlsHandshakes

logger = logging.getLogger("kafka_shim.connection")

# Smaller buffers are joined, so that they share a TLS record.
RECORD_BYTES = 16384
# Before each record stand its type, two bytes of the version, the first of which is 3, and two of its length.
HEAD_BYTES, HANDSHAKE, MAJOR_VERSION = 5, 0x16, 3


class TlsTransport(asyncio.BufferedProtocol):
    """The protocol of one socket and the transport of its `Connection`. Event-loop thread only.

    `received` is where reads from the socket go. All connections of a loop share it, also for what is decrypted:
    OpenSSL has a copy of the encrypted bytes by then. Another loop must have its own: `recv` runs without the GIL.
    """

    def __init__(
        self, connection: Connection, context: ssl.SSLContext, handshakes: TlsHandshakes, received: memoryview
    ) -> None:
        self._connection = connection
        self._handshakes = handshakes
        self._received = received
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._socket: asyncio.Transport
        self._is_secured = False
        # During the handshake: what has arrived of a record's head, how many bytes are to come of the record, and
        # whether the thread has the buffers: nothing else may touch them then.
        self._head = b""
        self._record_bytes = 0
        self._has_begun = False
        self._is_shaking = False
        # Why the socket is not read beside that: the connection says so; the client has said that nothing follows;
        # it has yet to take what TLS itself answers.
        self._is_paused = False
        self._has_ended = False
        self._has_unsent = False
        self._is_reading = False

    # --- as the socket's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = transport  # type: ignore[assignment]
        try:
            self._connection.connection_made(self)  # type: ignore[arg-type]
        except BaseException:
            self.abort()  # nobody knows of it whose time could end
            raise

    def connection_lost(self, exc: Exception | None) -> None:
        connection = self._connection
        del self._connection  # which has this transport: a cycle, which would wait for the garbage collector
        connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        if not self._has_begun:
            self._has_begun = True
            if self._received[0] != HANDSHAKE:
                self._connection.foreign(bytes(self._received[:4]))
                return
        received = self._received[:nbytes]
        self._incoming.write(received)
        if self._is_secured:
            self._read()
        elif self._ends_record(received):
            self._is_shaking = True
            self._socket.pause_reading()
            self._handshakes.take_step(self._tls, self)

    def eof_received(self) -> bool:
        return self._is_secured and self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        if self._has_unsent:
            self._has_unsent = False
            try:
                self._follow_pauses()
            except BaseException:
                self.abort()  # as in `_read`
                raise
        self._connection.resume_writing()

    # --- TLS

    def _ends_record(self, data: memoryview) -> bool:
        """Whether a record of the handshake is whole with these bytes: a client that sends byte by byte costs no step
        of the handshake for each. Of what is no record OpenSSL says why."""
        ends = False
        while data:
            if not self._record_bytes:
                missing = HEAD_BYTES - len(self._head)
                self._head += data[:missing]
                data = data[missing:]
                if len(self._head) < HEAD_BYTES:
                    break
                self._record_bytes = int.from_bytes(self._head[3:])
                ends = ends or self._head[1] != MAJOR_VERSION or not 0 < self._record_bytes <= RECORD_BYTES
                self._head = b""
            taken = min(self._record_bytes, len(data))
            data = data[taken:]
            self._record_bytes -= taken
            ends = ends or not self._record_bytes
        return ends

    def step_taken(self, error: Exception | None) -> None:
        """The thread has taken the handshake a step further."""
        try:
            self._go_on(error)
        except BaseException:
            self.abort()  # as in `_read`
            raise

    def _go_on(self, error: Exception | None) -> None:
        self._is_shaking = False
        if self._socket.is_closing():
            return
        if error is None:
            self._flush()
            self._is_secured = True
            self._follow_pauses()
            self._connection.secured(self._tls)
            self._read()
        elif isinstance(error, ssl.SSLWantReadError):
            self._flush()
            self._follow_pauses()
        else:
            self._connection.close(f"the TLS handshake failed: {_reason(error)}")
            self._fail()

    def _read(self) -> None:
        """Hand over what is decrypted until the connection pauses or there is no more."""
        if self._is_reading:
            return
        self._is_reading = True
        try:
            self._hand_over()
            if self._outgoing.pending:  # what TLS itself answers, as to a KeyUpdate: nobody counts it
                self._flush()
                self._has_unsent = self._socket.get_write_buffer_size() > 0
                self._follow_pauses()
        except BaseException:
            self.abort()  # a request may be lost, and the loop that calls tells nobody: its client would wait for ever
            raise
        finally:
            self._is_reading = False

    def _hand_over(self) -> None:
        while not self._is_paused and not self._has_ended and not self._socket.is_closing():
            buffer = self._connection.get_buffer(-1)
            try:
                # Typeshed has the form without a buffer alone.
                size_bytes: int = self._tls.read(len(buffer), buffer)  # type: ignore[assignment]
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                size_bytes = 0
            except ssl.SSLError as err:
                self._connection.close(f"TLS failed: {_reason(err)}")
                self._fail()
                break
            if not size_bytes:  # the client's close_notify: as with its FIN, an answer under way is sent
                self._has_ended = True
                self._follow_pauses()
                if not self._connection.eof_received():
                    self.close()
                break
            self._connection.buffer_updated(size_bytes)

    def _follow_pauses(self) -> None:
        """Read the socket unless there is a reason not to."""
        if self._socket.is_closing() or self._is_shaking:
            return
        if self._is_paused or self._has_ended or self._has_unsent:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()

    def _fail(self) -> None:
        """Send OpenSSL's alert and read no more: nothing can be encrypted after an error, also no answer under way."""
        self._flush()
        self._socket.close()

    def _flush(self) -> None:
        if not self._is_shaking and self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    # --- as the connection's transport

    def write(self, data: Any) -> None:
        """Encrypt and send. Whoever calls is told by `pause_writing` before this returns, as without TLS."""
        self._encrypt(data)
        self._flush()

    def writelines(self, parts: Sequence[Any]) -> None:
        """Encrypt and send several buffers."""
        if sum(map(len, parts)) <= RECORD_BYTES:
            self.write(b"".join(parts))
            return
        small: list[Any] = []
        for part in parts:
            if len(part) < RECORD_BYTES // 4:
                small.append(part)
                continue
            self._encrypt(b"".join(small))
            small.clear()
            self._encrypt(part)
        self._encrypt(b"".join(small))
        self._flush()

    def _encrypt(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        try:
            while view and not self._socket.is_closing():
                view = view[self._tls.write(view) :]
        except ssl.SSLError as err:
            self._connection.close(f"TLS failed: {_reason(err)}")
            self._fail()

    def pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._follow_pauses()

    def resume_reading(self) -> None:
        if self._is_paused and not self._socket.is_closing():
            self._is_paused = False
            self._follow_pauses()
            # The event loop reports no bytes that are decrypted already.
            asyncio.get_running_loop().call_soon(self._read)

    def close(self) -> None:
        """Say that nothing follows, then close once everything is sent."""
        if self._is_secured and not self._socket.is_closing():
            with suppress(ssl.SSLError, ValueError):  # the client has yet to say so too; nobody waits for it
                self._tls.unwrap()
        self._flush()
        self._socket.close()

    def abort(self) -> None:
        self._socket.abort()

    def is_closing(self) -> bool:
        return self._socket.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As of the socket's transport, except for the socket itself: whoever asks for it would write to it."""
        if name == "socket":
            return default
        if name == SOCKET_BENEATH_TLS:
            name = "socket"
        return self._socket.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()


def _reason(err: Exception) -> str:
    """Returns what OpenSSL says, with what to do where that is known; of any other error what it says itself."""
    name = getattr(err, "reason", None)
    if not name:
        return str(err) or type(err).__name__
    advice = _ADVICE.get(name)
    text = getattr(err, "verify_message", None) or name.lower().replace("_", " ")
    return f"{text}; {advice}" if advice else text


_ADVICE = {
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not signed by a certificate of ssl.truststore",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "ssl.client.auth is required: give the client a keystore",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust this broker's certificate: see ssl.truststore of the client",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client refuses this broker's certificate: see its truststore and the host",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client refuses this broker's certificate: compare the host name with it",
    "NO_SHARED_CIPHER": "the client has none of ssl.cipher.suites",
    "UNSUPPORTED_PROTOCOL": "the client has none of ssl.enabled.protocols",
}
