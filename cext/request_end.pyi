"""What every request passes: its frame is cut off, it gets a context and a reply."""

from collections.abc import Callable, Coroutine
from typing import Any

class FrameEnd:
    """The base of `frame_receiver.FrameReceiver`, which explains the fields: what nearly every read is, one frame or
    some whole ones."""

    _dispatcher: Any
    _clock: Any
    _memory: Any
    _frame: memoryview | None
    _held: bytes | bytearray | None
    _task: Any
    _max_frame_bytes: int
    last_active_ms: int
    _must_log_in: bool
    _write_paused: bool
    is_closing: bool

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns where the next read goes: the buffer that all connections share, or what `_get_rest` says while a
        frame is incomplete."""

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes were read into it: `_consume`, or `_rest_updated` while a frame is incomplete."""

    def _consume(self, data: memoryview, size_bytes: int) -> None:
        """Handle every complete frame of `data` and keep the rest: calls `_handle_now` (`_handle` until the client has
        authenticated) with each frame, `close` with what `_frame_refusal` says of a length that is refused, and `_keep`
        with what is left, also while a request waits or a response is not sent."""

class Reply:
    """The result of one request, which the connection sends.

    `parts` are the response's buffers, including the length prefix. If they are None the request waits: `waiting`
    returns them, or None if no response is sent. `is_abandonable` says whether the request may be cancelled with its
    connection, `is_delayed` whether its answer waits for other clients or a deadline. `follow_up` is work that remains
    after the parts were passed to the transport, even if that failed: call `run` of the dispatcher with it before any
    other request is served."""

    parts: list[Any] | None
    follow_up: Callable[[], None] | None
    waiting: Coroutine[Any, Any, list[Any] | None] | None
    is_abandonable: bool
    is_delayed: bool

    def __init__(
        self,
        parts: list[Any] | None,
        follow_up: Callable[[], None] | None = None,
        waiting: Coroutine[Any, Any, list[Any] | None] | None = None,
        is_abandonable: bool = False,
        is_delayed: bool = False,
    ) -> None: ...

class ContextEnd:
    """The base of `context.Context`, which explains the fields."""

    broker: Any
    session: Any
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_ms: int
    is_large: bool
    throttle: Any

    def __init__(
        self,
        broker: Any,
        session: Any,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        received_ms: int,
    ) -> None: ...
