"""A small synchronous client of Kafka's protocol: one connection, one request at a time, all messages of the tables.

For the command line, the benchmarks and tests. It knows no rules of the broker. `Connection.request` sends a message
and returns the decoded response; `send` and `receive` allow pipelining.
"""

from __future__ import annotations

import socket

from kafka_shim.cext.messages import decode
from kafka_shim.cext.wire import EncodeError
from kafka_shim.errors import ErrorCode
from kafka_shim.ports import HIGHEST_PORT, parse_port
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.headers import encode_request_frame, parse_response_header, response_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from kafka_shim.protocol.message import Message

    class Requests(Protocol):
        """What a login needs of a connection."""

        host: str

        def request(self, message: Message, version: int | None = None) -> Any: ...

    class Security(Protocol):
        """How a connection is made to a listener that is not PLAINTEXT (`kafka_shim.client_security`)."""

        def wrap(self, plain: socket.socket, host: str) -> socket.socket:
            """Return the socket to speak through. Raises WireClientError."""

        def log_in(self, connection: Requests) -> None:
            """Authenticate before the first request. Raises WireClientError."""


DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
MAX_FRAME_BYTES = 1 << 30
LENGTH_BYTES = 4
# The first bytes of an answer in another protocol: a status line, an alert, a handshake. None is the length of an
# answer to ApiVersions or to a login.
OTHERS = {b"HTTP": "HTTP", b"\x15\x03": "TLS", b"\x16\x03": "TLS"}


_CLOSED = "the broker closed the connection"


class WireClientError(Exception):
    """The broker cannot be reached, closed the connection, or does not support the request. The message is for
    people."""


class CannotConnectError(WireClientError):
    """Nothing takes connections at the address."""


class NoAnswerError(WireClientError):
    """An answer did not come in the time for it. It may come yet: the connection is of no further use."""


class SilentPeerError(NoAnswerError):
    """What listens there has not sent one answer in the time for it."""


class ConnectionLostError(WireClientError):
    """The peer closed the connection, or it broke."""

    def __init__(self, text: str, *, is_unanswered: bool = False, is_after_versions: bool = False) -> None:
        """`is_unanswered`: it had sent nothing; `is_after_versions`: its versions and nothing else."""
        self.is_unanswered = is_unanswered
        self.is_after_versions = is_after_versions
        super().__init__(text)


class HandshakeLostError(ConnectionLostError):
    """The peer did so in the handshake of TLS. The message says what to check."""


class OtherProtocolError(WireClientError):
    """What listens there speaks another protocol, `name`: HTTP or TLS."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        super().__init__(text)


class RequestError(WireClientError):
    """The broker returned an error code. `code` is an ErrorCode, `reason` is the broker's message or None."""

    def __init__(self, code: int, reason: str | None = None, subject: str = "") -> None:
        self.code = ErrorCode(code)
        self.reason = reason
        text = f"{self.code.name}: {reason}" if reason else self.code.name
        super().__init__(f"{subject}: {text}" if subject else text)


def check(code: int, reason: str | None = None, subject: str = "") -> None:
    """Raises RequestError unless `code` is 0."""
    if code:
        raise RequestError(code, reason, subject)


def parse_address(text: str, default_port: int = 9092) -> tuple[str, int]:
    """("host", port) from `host:port`, `host` or `[v6]:port`; of a list of several, the first. A listener's name before
    it, as in the ready line, is left out, as Kafka's clients do. WireClientError."""
    first = text.split(",", maxsplit=1)[0].strip()
    address = first.rpartition("://")[2]
    host, colon, number = address.rpartition(":")
    if not colon or number.endswith("]"):
        host, number = address, str(default_port)
    port = parse_port(number)
    if not host or port is None:
        raise WireClientError(f"not an address: {first!r}: give HOST:PORT")
    if port > HIGHEST_PORT:
        raise WireClientError(f"not an address: {first!r}: a port is a number from 0 to {HIGHEST_PORT}")
    return host.strip("[]"), port


def read_answer(api_key: int, version: int, frame: bytes, wanted_id: int | None = None) -> tuple[int, Any]:
    """Returns (correlation id, response) of a frame without its length, no response if another id is wanted. Raises
    WireClientError for what is no answer to this API, as of a peer that is no broker."""
    try:
        correlation_id, start = parse_response_header(api_key, version, frame)
        if wanted_id is not None and correlation_id != wanted_id:
            return correlation_id, None
        return correlation_id, decode(response_class(api_key), version, frame, start)
    except ValueError as err:
        raise WireClientError(f"the answer to {API_KEYS[api_key][0]} v{version} cannot be read: {err}") from err


class Connection:
    """One connection to one broker; a context manager. Not thread-safe."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        client_id: str = "kafka-shim-cli",
        timeout_s: float = 30.0,
        security: Security | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """`security`: how to reach a listener with TLS or SASL; `max_frame_bytes`: the largest answer that is read.
        Raises WireClientError."""
        host, port = parse_address(bootstrap)
        self.host = host
        self._max_frame_bytes = max_frame_bytes
        self._client_id = client_id
        self._next_id = 0
        self._ranges: dict[int, tuple[int, int]] | None = None
        self._buffer = bytearray()
        self._was_answered = False
        self._answers = 0
        self._address = f"{host}:{port}"
        self._timeout_s = timeout_s
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as err:
            raise CannotConnectError(f"cannot connect to {host}:{port}: {err.strerror or err}") from err
        except UnicodeError as err:  # of what can be no name: `a..b`
            raise CannotConnectError(f"cannot connect to {host}:{port}: no host has such a name") from err
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if security is not None:
            try:
                self._socket = security.wrap(self._socket, host)
                security.log_in(self)
            except BaseException:
                self._socket.close()
                raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket. May be called again."""
        self._socket.close()

    def detach(self) -> socket.socket:
        """Return the socket, which is the caller's from now on. Nothing may be under way."""
        return self._socket

    # --- one request

    def request(self, message: Message, version: int | None = None, timeout_s: float | None = None) -> Any:
        """Send `message` and return its decoded response. `version` None: the highest that both sides support;
        `timeout_s`: for an answer that takes longer than others."""
        if timeout_s is not None:
            usual_s, self._timeout_s = self._timeout_s, timeout_s
            self._socket.settimeout(timeout_s)
            try:
                return self.request(message, version)
            finally:
                self._timeout_s = usual_s
                self._socket.settimeout(usual_s)
        if version is None:
            version = self.version_of(message.API_KEY)
        correlation_id = self.send(message, version)
        while True:
            frame = self.receive_frame()
            answered, response = read_answer(message.API_KEY, version, frame, correlation_id)
            if answered == correlation_id:
                return response
            # The answer to a request that was interrupted (Ctrl-C) may come before.
            if not 0 < answered < correlation_id:
                raise WireClientError(f"the broker answered request {answered} instead of {correlation_id}")

    def send(self, message: Message, version: int) -> int:
        """Send one request. Returns its correlation id."""
        self._next_id += 1
        try:
            frame = encode_request_frame(message, version, self._next_id, self._client_id)
        except EncodeError as err:
            raise WireClientError(f"the request cannot be written: {err}") from None
        self.send_bytes(frame)
        return self._next_id

    def receive(self, api_key: int, version: int) -> tuple[int, Any]:
        """Returns (correlation id, response) of the next response, which must belong to this API and version."""
        return read_answer(api_key, version, self.receive_frame())

    # --- bytes

    def send_bytes(self, data: bytes) -> None:
        """Send raw bytes, such as a recorded frame."""
        try:
            self._socket.sendall(data)
        except OSError as err:
            raise self._broken(err) from err

    def receive_frame(self) -> bytes:
        """Returns the next response frame without its four-byte length."""
        # Ctrl-C may end a read anywhere: what was received stays in the buffer until the frame is whole.
        buffer = self._buffer
        is_first = not self._was_answered
        self._fill(LENGTH_BYTES)
        head = bytes(buffer[:LENGTH_BYTES])
        if is_first and (other := next((name for begin, name in OTHERS.items() if head.startswith(begin)), None)):
            raise OtherProtocolError(f"{self._address} answers in {other}, not in Kafka's protocol", other)
        length = int.from_bytes(head, signed=True)
        if not 0 <= length <= self._max_frame_bytes:
            raise WireClientError(f"the broker announced an answer of {length} bytes")
        end = LENGTH_BYTES + length
        self._fill(end)
        frame = bytes(memoryview(buffer)[LENGTH_BYTES:end])
        del buffer[:end]
        self._answers += 1
        return frame

    def _fill(self, count: int) -> None:
        """Receive until so many bytes are in the buffer."""
        buffer = self._buffer
        while len(buffer) < count:
            try:
                data = self._socket.recv(max(65536, count - len(buffer)))
            except OSError as err:
                raise self._broken(err) from err
            if not data:
                if not self._was_answered:
                    raise ConnectionLostError(f"{_CLOSED} before its first answer", is_unanswered=True)
                if self._answers == 1 and self._ranges is not None:
                    raise ConnectionLostError(f"{_CLOSED} after its list of versions", is_after_versions=True)
                raise ConnectionLostError(_CLOSED)
            self._was_answered = True
            buffer += data

    def _broken(self, err: OSError) -> WireClientError:
        if isinstance(err, TimeoutError):
            within = f"from {self._address} within {self._timeout_s:g} s"
            return (
                NoAnswerError(f"no answer {within}")
                if self._was_answered
                else SilentPeerError(f"not one answer {within}")
            )
        return ConnectionLostError(f"the connection broke: {err.strerror or err}")

    # --- versions

    def version_of(self, api_key: int) -> int:
        """Returns the highest version of an API that both sides support. Raises WireClientError if there is none."""
        low, high = self.ranges().get(api_key, (0, -1))
        name, first, last, _, last_is_unstable, *_ = API_KEYS[api_key]
        version = min(high, last - last_is_unstable)
        if version < max(low, first):
            raise WireClientError(f"the broker does not speak {name} in a version known here")
        return version

    def ranges(self) -> dict[int, tuple[int, int]]:
        """Returns the (first, last) version of each API that the broker advertises."""
        if self._ranges is None:
            from kafka_shim.protocol.messages.api_versions_request import ApiVersionsRequest

            answer = self.request(ApiVersionsRequest(client_software_name="kafka-shim", client_software_version="0"), 3)
            check(answer.error_code, subject="ApiVersions")
            self._ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        return self._ranges
