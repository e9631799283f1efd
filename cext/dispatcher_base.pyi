"""The way of a request on which nothing is out of the ordinary: make its context, decode it, call its handler."""

from collections.abc import Callable, Iterator
from typing import Any

from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.held_answers import HeldAnswers
from kafka_shim.cext.plain_api import PlainApi
from kafka_shim.cext.replies import DelayedBase, Reply

class RequestCounts:
    """How many requests were handled, by API key. `dict` makes a dictionary of it. Counting takes no memory."""

    def __getitem__(self, api_key: int) -> int:
        """Raises KeyError for what no API key can be."""

    def keys(self) -> list[int]:
        """Those with a request."""

    def __iter__(self) -> Iterator[int]: ...

class ApiBase:
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

class DispatcherBase:
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

    def completed(self, delayed: DelayedBase) -> Reply:
        """Returns the reply to a request that was delayed and is complete. Raises DisconnectError."""

    def _note(self, context: Any, api: Any, request: Any, frame_bytes: int) -> None:
        """A request is decoded: the log, the client's quota and the metrics hear of it."""

    def _answered(self, api_key: int, codes: int, code: int) -> None:
        """A request was answered by `Api.plain`, with so many error codes, all of them NONE. Called where a class has
        its own `_encode`, which has not seen that answer."""

    def _encode(self, context: Any, response: Any) -> list[Any]:
        """Returns the frame of a response, for which the client's quotas are charged."""
