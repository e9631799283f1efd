"""What a handler gets and returns, and what the connection sends."""

from collections.abc import Callable, Coroutine
from typing import Any

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

class Outcome:
    """What `outcome.Outcome` is; it has the types."""

    response: Any
    flushes: Any
    follow_up: Callable[[], None] | None

    def __init__(self, response: Any, flushes: Any = (), follow_up: Callable[[], None] | None = None) -> None: ...
    def __class_getitem__(cls, of: object) -> type[Outcome]: ...

class DelayedBase:
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
    """Complete these requests, each with its response (`DelayedBase.complete`), and have all who wait go on together.
    If memory ends behind the responses, those who do not go on are still in the purgatory."""

def complete_all(replies: list[tuple[Any, Any]], flushes: Any) -> list[Any]:
    """Complete these requests, each with its response. Returns those that were not complete already."""

def wake_first(completed: Any, most: int) -> None:
    """Wake so many of these requests together, and remove them from the front once they are scheduled."""

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
    def delayed(self) -> DelayedBase | None: ...
    def __init__(
        self,
        parts: list[Any] | None,
        follow_up: Callable[[], None] | None = None,
        waiting: Coroutine[Any, Any, list[Any] | None] | None = None,
        is_abandonable: bool = False,
        is_delayed: bool = False,
    ) -> None: ...
