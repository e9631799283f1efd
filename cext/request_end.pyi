"""The path of every request: cut its frame off, make its context, decode it, call its handler, send the reply."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.held_answers import Answering, HeldAnswers
from kafka_shim.cext.plain_api import PlainApi

PROBE_BYTES: int
"""The size of the buffer that all connections share for their reads."""
WIDE_PROBE_BYTES: int
"""For a client whose last frame was larger than the probe and smaller than this: the next one is read and handled in
the shared buffer too, instead of copied out of it and read on. Of a frame beyond it too much would be copied."""

class FrameEnd(Answering):
    """The base of `frame_receiver.FrameReceiver`, which explains the fields: what nearly every read is, one frame or
    some whole ones."""

    session: Any
    _dispatcher: Any
    _clock: Any
    _transport: Any
    _probe: memoryview
    _wide_probe: memoryview
    _frame: memoryview | None
    _held: bytes | bytearray | None
    _task: Any
    _max_frame_bytes: int
    last_active_ms: int
    _is_abandonable: bool
    _is_delayed: bool
    _closing_reason: str | None
    _must_log_in: bool
    _write_paused: bool
    _held_answers: HeldAnswers | None
    is_closing: bool
    _is_wide: bool
    _is_paused: bool

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns where the next read goes: the buffer that all connections share, more of it if the client's last
        frame was larger than PROBE_BYTES, nothing came behind it and nothing of it waits, or what
        `_get_rest` says while a frame is incomplete."""

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes were read into it: `_consume`, or `_rest_updated` while a frame is incomplete. Calls
        `_let_others` if a read was filled by frames of which some are whole."""

    def _handle_now(self, frame: memoryview) -> None:
        """Have the dispatcher handle one frame, and send its answer. Calls `_failed` with what it raises, `_wait_for`
        with a reply that is not there yet, `_send` with an answer of several parts, and `_mute` if the session is to
        be muted."""

    def _finished(self, parts: list[Any] | None) -> None:
        """Send the answer to a request that waited, which may be None, or hold it with those of other connections, and
        go on with the next request."""

    def _consume(self, data: memoryview, size_bytes: int) -> None:
        """Handle every complete frame of `data` and keep the rest: as `_handle_now` with each frame (`_handle` until
        the client has authenticated), `close` with what `_frame_refusal` says of a length that is refused, and `_keep`
        with what is left, also while a request waits or a response is not sent. Behind 32 frames `_let_others` is
        called, and the others are left. An answer that a whole request to produce follows leaves with the answer to
        that one, up to 16 KB of them: a write for each would wake the client for each. That of a fast path may
        leave with those of other connections (`HeldAnswers`)."""

    def send_held(self) -> None:
        """Send the answer that waits for those of others, unless the connection is closing. Calls `_failed` with what
        that raises."""

class Reply:
    """The result of one request, which the connection sends.

    `parts` are the response's buffers, including the length prefix. If they are None the request waits: `waiting`
    returns them, or None if no response is sent; or `delayed` says when to call `completed` of the dispatcher, which
    has the reply then. `is_abandonable` says whether the request may be cancelled with its connection, `is_delayed`
    whether its answer waits for other clients or a deadline; `is_plain` whether it is that of a fast path, which may be
    held (`HeldAnswers`). `follow_up` is work that remains after the parts were passed to the transport, even if that
    failed: call `run` of the dispatcher with it before any other request is served."""

    parts: list[Any] | None
    follow_up: Callable[[], None] | None
    waiting: Coroutine[Any, Any, list[Any] | None] | None
    is_abandonable: bool
    is_delayed: bool
    is_plain: bool

    @property
    def delayed(self) -> DelayedEnd | None: ...
    def __init__(
        self,
        parts: list[Any] | None,
        follow_up: Callable[[], None] | None = None,
        waiting: Coroutine[Any, Any, list[Any] | None] | None = None,
        is_abandonable: bool = False,
        is_delayed: bool = False,
    ) -> None: ...

class Outcome:
    """What `outcome.Outcome` is; it has the types."""

    response: Any
    flushes: Any
    follow_up: Callable[[], None] | None

    def __init__(self, response: Any, flushes: Any = (), follow_up: Callable[[], None] | None = None) -> None: ...
    def __class_getitem__(cls, of: object) -> type[Outcome]: ...

class DelayedEnd:
    """The base of `group.purgatory.DelayedResponse`, which says what it is for."""

    edit: Callable[[Any], Any] | None
    """What the handler does to the outcome. An answer of `late_answers` is written without it: it may change only what
    these leave to the codec."""
    measured: Any
    """What `monitoring.request_times` keeps of the request, which is not over yet."""

    def __init__(self, failure: Callable[[Any], Any]) -> None:
        """`failure` returns the response with an error code."""

    @property
    def outcome(self) -> Any:
        """The outcome of a complete request, or None."""

    def answer(self, response: Any, flushes: Any = ()) -> None:
        """Complete the request with a response, and with the fsyncs that must finish before it is sent."""

    def complete(self, response: Any, flushes: Any = ()) -> bool:
        """As `answer`, but who waits goes on at `wake`. Returns False if the request is complete already."""

    def wake(self) -> None:
        """Have who waits for a complete request go on. If memory ends here, call it again."""

    def fail(self, code: int) -> None:
        """Complete the request with an error: the records could not be written, or the broker stops."""

    def fail_unexpectedly(self, error: Exception) -> None:
        """Have `result`, for which somebody waits, raise an error of this program."""

    def park(self, purgatory: dict[Any, str], group_id: str) -> None:
        """The request is in the purgatory until it is complete and who waits goes on."""

    def then(self, go_on: Callable[[], None], soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        """Call `go_on` once `result` has something: by `soon`, of the clock, on the next turn of the event loop;
        without it at once."""

    def result(self) -> Any:
        """Returns the outcome of a complete request. Raises what `fail_unexpectedly` was given."""

def answer_all(replies: list[tuple[Any, Any]], flushes: Any) -> None:
    """Complete these requests, each with its response (`DelayedEnd.complete`), and have all who wait go on together. If
    memory ends behind the responses, those who do not go on are still in the purgatory."""

def complete_all(replies: list[tuple[Any, Any]], flushes: Any) -> list[Any]:
    """Complete these requests, each with its response. Returns those that were not complete already."""

def wake_first(completed: Any, most: int) -> None:
    """Wake so many of these requests together, and remove them from the front once they are scheduled."""

class Context:
    """What `context.Context` is; it has the types, and explains the fields."""

    broker: Any
    session: Any
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    received_ms: int
    is_large: bool
    throttle: Any
    done: Any

    def __init__(
        self,
        broker: Any,
        session: Any,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str,
        received_ms: int,
    ) -> None: ...
    def note_member(self, group_id: str, member_id: str) -> None: ...
    @property
    def node_id(self) -> int: ...
    @property
    def listener(self) -> Any: ...
    @property
    def principal(self) -> str: ...
    @property
    def peer_host(self) -> str: ...

class RequestCounts:
    """How many requests were handled, by API key. `dict` makes a dictionary of it. Counting takes no memory."""

    def __getitem__(self, api_key: int) -> int:
        """Raises KeyError for what no API key can be."""

    def keys(self) -> list[int]:
        """Those with a request."""

    def __iter__(self) -> Iterator[int]: ...

class ApiEnd:
    """The base of `api.Api`, which explains the fields."""

    key: int
    first: int
    last: int
    is_loaded: bool
    cluster_operations: tuple[Any, ...]
    plain: PlainApi | None
    handle: Any
    request: Any
    response: Any

class DispatcherEnd:
    """The base of `dispatch.Dispatcher`: the way of a request on which nothing is out of the ordinary. What else may
    happen is a method of that class."""

    broker: Any
    _table: dict[int, Any]

    @property
    def held_answers(self) -> HeldAnswers: ...
    def __init__(
        self,
        broker: Any,
        table: dict[int, Any],
        headers: RequestHeaderParser,
        shows: Callable[[int], bool],
        shown: dict[int, bool],
    ) -> None:
        """`shows` says whether messages of a level are logged; `shown` has what it said, as long as it is true. The
        broker has its clock, faults and metrics."""

    def handle(self, session: Any, frame: memoryview) -> Reply | None:
        """Serve one request. `frame` is what follows its length prefix, and may be reused as soon as this returns.
        Returns None if no response is sent.

        Raises DisconnectError if the connection must be closed instead.
        """

    def completed(self, delayed: DelayedEnd) -> Reply:
        """Returns the reply to a request that was delayed and is complete. Raises DisconnectError."""

    def _note(self, context: Any, api: Any, request: Any, frame_bytes: int) -> None:
        """A request is decoded: the log, the client's quota and the metrics hear of it."""

    def _answered(self, api_key: int, codes: int, code: int) -> None:
        """A request was answered by `Api.plain`, with so many error codes, all of them NONE. Called where a class has
        its own `_encode`, which has not seen that answer."""

    def _encode(self, context: Any, response: Any) -> list[Any]:
        """Returns the frame of a response, for which the client's quotas are charged."""
