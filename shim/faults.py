"""Named fault points at which a test may act: crash the process, fail a write, hold a request, or call a function.

In normal use no point is armed, and a point costs one attribute test: hot paths write `if faults.armed:
faults.reach("log.after_write", topic=...)`. In a child process the environment variable KAFKA_SHIM_FAULTS arms points
before the broker starts. Its format is `point=action[:argument][@nth]`, with commas between entries. Actions: `kill`
(SIGKILL to this process), `exit` (status 70, no clean-up), `error[:CODE]` (raise KafkaError), `oserror[:ERRNO]` (raise
OSError, by default ENOSPC), `drop` (close this client's connection, so that the response is lost), `hold[:MS]` (wait
until `release`, or for so many milliseconds; only at `gate`). `@3` acts once, at the third time that the point is
reached. Without it the action applies every time.

    KAFKA_SHIM_FAULTS="txn.after_prepare=kill@3,log.before_write=oserror:ENOSPC" kafka-shim serve
"""

from __future__ import annotations

import errno
import os
import signal
import sys

from kafka_shim.cext.plain_api import FaultsBase
from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

ENVIRONMENT = "KAFKA_SHIM_FAULTS"

# point -> when it is reached. Every point in the code is listed here; arming an unknown one is an error.
POINTS = {
    "log.before_write": "an append passed every check, nothing is written yet",
    "log.after_write": "the batch is with the operating system, memory does not know it yet; an error takes it back",
    "log.after_append": "an append is complete, its answer has not left; an error takes back what is the broker's own",
    "log.before_roll": "a segment is full, the next one is not made yet",
    "log.after_roll": "the new segment exists",
    "log.before_fsync": "a group of fsyncs is about to start",
    "log.before_delete": "a partition's directory is about to be renamed to -delete",
    "move.before_assign": "a partition is copied to another directory, the metadata does not know it yet",
    "move.after_assign": "the metadata names the new directory, the old one still has the partition's name",
    "move.between_renames": "the old directory is renamed to -delete, the new one is still a -future",
    "metadata.before_commit": "metadata records are decided, not appended",
    "metadata.after_append": "metadata records are appended, not applied",
    "group.before_append": "a group's records are decided, not appended",
    "group.after_append": "a group's records are appended, not applied",
    # All points of the transaction coordinator pass the transactional_id.
    "txn.before_begin": "the first partition is about to make a transaction Ongoing",
    "txn.after_begin": "Ongoing is appended",
    "txn.before_prepare": "EndTxn is decided, Prepare* is not appended",
    "txn.after_prepare": "Prepare* is appended, no marker is out",
    "txn.after_marker": "one marker is appended (facts: topic, partition)",
    "txn.before_markers": "a resumed or retried end asked for Prepare*'s fsync, which flush.messages wants first",
    "txn.before_complete": "all markers are out, Complete* is not appended",
    "txn.after_complete": "Complete* is appended, the answer has not left",
    "txn.answered": "EndTxn's answer has left, a marker or Complete* is about to be appended; armed alone",
    "share.before_read": "a ShareFetch found stored batches, it has read and acquired none yet",
    "share.before_append": "a share partition's state is decided, not appended",
    "share.after_append": "a share partition's state is appended, not applied",
    "produce.verified": "a transactional batch passed verification, it is not appended",
    "request.received": "a request is decoded, not handled (facts: api_key, client_id); may hold",
    "response.ready": "an answer is made, not sent (facts: api_key, client_id); an error closes the connection",
    "server.stopping": "a clean stop has begun",
}

# The facts that a point tells to `where` and to functions, by its name or else by the part before the dot.
FACTS: dict[str, tuple[str, ...]] = {
    "log": ("topic", "partition"),
    "log.before_fsync": ("path",),
    "move": ("topic", "partition"),
    "metadata": (),
    "group": ("partition",),
    "txn": ("transactional_id",),
    "txn.after_marker": ("transactional_id", "topic", "partition"),
    "share": ("partition",),
    "share.before_read": ("topic", "partition"),
    "produce": ("transactional_id",),
    "request": ("api_key", "client_id"),
    "response": ("api_key", "client_id"),
    "server": (),
}
# The facts that are numbers; the others are text, or None.
NUMBERS = frozenset({"api_key", "partition"})
# Where a caller can wait.
HOLDS = frozenset(
    {
        "request.received",
        "produce.verified",
        "txn.before_prepare",
        "txn.after_prepare",
        "txn.after_marker",
        "txn.before_markers",
        "txn.before_complete",
        "txn.after_complete",
    }
)


def facts_of(point: str) -> tuple[str, ...]:
    """Returns the names of what a point tells."""
    return FACTS.get(point) or FACTS[point.partition(".")[0]]


class _Armed:
    """One armed point: its action, when it applies, and which callers it holds."""

    __slots__ = ("action", "argument", "count", "held", "nth", "where")

    def __init__(
        self,
        action: str | Callable[..., object],
        argument: str | None,
        nth: int | None,
        where: Mapping[str, object],
    ) -> None:
        self.action = action
        self.argument = argument
        self.nth = nth
        self.where = where
        self.count = 0
        self.held: list[asyncio.Future[None]] = []

    def is_due(self, facts: Mapping[str, object]) -> bool:
        for name, wanted in self.where.items():
            if facts.get(name) != wanted:
                return False
        self.count += 1
        return self.nth is None or self.count == self.nth


class Faults(FaultsBase):
    """The armed points of one broker. Event-loop thread only, except `arm` before the start."""

    __slots__ = ("_holds_nobody", "_owns_process", "_points")

    def __init__(self, specification: str | None = None, *, owns_process: bool = True) -> None:
        """`owns_process`: whether the process is the broker's, so that it may end here."""
        self._owns_process = owns_process
        self._holds_nobody = False
        # Hot paths read it before they call `reach`.
        self.armed = False
        self._points: dict[str, _Armed] = {}
        self.arm_all(specification)

    @classmethod
    def from_environment(cls) -> Faults:
        """Returns the points that KAFKA_SHIM_FAULTS arms. Raises ValueError, which names it and a bad entry."""
        try:
            return cls(os.environ.get(ENVIRONMENT))
        except ValueError as err:
            raise ValueError(f"{ENVIRONMENT}: {err}") from err

    def arm(
        self,
        point: str,
        action: str | Callable[..., object],
        argument: str | None = None,
        *,
        nth: int | None = None,
        where: Mapping[str, object] | None = None,
    ) -> None:
        """Act at `point` from now on, or only at its `nth` time, or only if the facts match `where`. `action` is the
        name of an action in the module's docstring, or a function that gets the facts as keyword arguments. An
        exception of that function is raised at the point. Raises ValueError for what could never act: an unknown point,
        action, error or fact, or a hold where nobody can wait; and for the end of a process that is the caller's."""
        _check(point, action, argument, nth, where or {})
        if action in ("kill", "exit") and not self._owns_process:
            raise ValueError(
                f"{action} at {point} would end this process: the broker is a thread of it unless process=True"
            )
        armed = _Armed(action, argument, nth, where or {})
        if (former := self._points.get(point)) is not None:
            armed.held = former.held  # else nobody could release them any more
        self._points[point] = armed
        self.armed = True

    def arm_all(self, specification: str | None) -> None:
        """Arm what a text in the format of KAFKA_SHIM_FAULTS names. Raises ValueError, which names a bad entry."""
        for part in (specification or "").split(","):
            if part.strip():
                self._arm_text(part.strip())

    def begin(self) -> None:
        """A broker begins to use these points."""
        self._holds_nobody = False

    def end(self) -> None:
        """The broker stops, and would wait for callers that are held: they go on, and no other is held. The points stay
        armed."""
        self._holds_nobody = True
        for point in list(self._points):
            self.release(point)

    def disarm(self, point: str | None = None) -> None:
        """Disarm one point, or all. Held callers continue."""
        for name in [point] if point is not None else list(self._points):
            self.release(name)
            self._points.pop(name, None)
        self.armed = bool(self._points)

    def is_armed_besides(self, point: str) -> bool:
        """Returns whether any other point is armed."""
        return self.armed and (len(self._points) > 1 or point not in self._points)

    def holds(self, point: str) -> bool:
        """Returns whether `gate` may hold a caller at `point`. Such a caller must be able to wait."""
        armed = self._points.get(point)
        return armed is not None and armed.action == "hold" and not self._holds_nobody

    def reached(self, point: str) -> int:
        """Returns how often an armed point was reached since it was armed."""
        armed = self._points.get(point)
        return armed.count if armed is not None else 0

    def reach(self, point: str, **facts: Any) -> None:
        """Carry out the action armed at `point`. Raises what the action raises."""
        if not self.armed:
            return
        armed = self._points.get(point)
        if armed is None or not armed.is_due(facts):
            return
        if callable(armed.action):
            armed.action(**facts)
        elif armed.action != "hold":
            _ACTIONS[armed.action](armed.argument)

    async def gate(self, point: str, **facts: Any) -> None:
        """As `reach`, for a caller that can wait: `hold` keeps it here until `release` or `disarm`."""
        if not self.armed:
            return
        armed = self._points.get(point)
        if armed is None or not self.holds(point):
            self.reach(point, **facts)
        elif armed.is_due(facts):
            import asyncio
            import contextlib

            future = asyncio.get_running_loop().create_future()
            armed.held.append(future)
            if armed.argument is None:
                await future
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(future, int(armed.argument) / 1000)

    def release(self, point: str) -> int:
        """Release all callers held at `point`. Returns their number."""
        armed = self._points.get(point)
        if armed is None:
            return 0
        held, armed.held = armed.held, []
        for future in held:
            if not future.done():
                future.set_result(None)
        return len(held)

    def _arm_text(self, text: str) -> None:
        point, equals, rest = text.partition("=")
        if not equals:
            raise ValueError(f"expected point=action[:argument][@nth], got {text!r}")
        rest, _, nth = rest.partition("@")
        action, _, argument = rest.partition(":")
        if nth and not nth.isdecimal():
            raise ValueError(f"the count after @ is not a number in {text!r}")
        self.arm(point, action, argument or None, nth=int(nth) if nth else None)


def _check(
    point: str, action: str | Callable[..., object], argument: str | None, nth: int | None, where: Mapping[str, object]
) -> None:
    if point not in POINTS:
        raise ValueError(f"unknown fault point {point!r}{_nearest(point, POINTS)}; there are {', '.join(POINTS)}")
    if isinstance(action, str):
        if action not in _ACTIONS and action != "hold":
            raise ValueError(f"unknown fault action {action!r}; there are {', '.join(_ACTIONS)}, hold")
        if action == "hold" and point not in HOLDS:
            raise ValueError(f"{point} cannot be held: hold is for {', '.join(sorted(HOLDS))}")
        if argument is not None:
            _check_argument(action, argument)
    elif argument is not None:
        raise ValueError(f"a function takes no argument, {argument!r} was given: bind it with functools.partial")
    if nth is not None and nth < 1:
        raise ValueError(f"nth counts from 1, it is {nth}")
    unknown = sorted(set(where) - set(facts_of(point)))
    if unknown:
        known = ", ".join(facts_of(point)) or "nothing"
        raise ValueError(f"{point} has these facts: {known}; `where` cannot name {', '.join(unknown)}")
    strange = [name for name, wanted in where.items() if not isinstance(wanted, int if name in NUMBERS else str | None)]
    if strange:
        kind = "a number" if strange[0] in NUMBERS else "text"
        raise ValueError(f"{point} tells {strange[0]} as {kind}: {where[strange[0]]!r} would never match")


def _check_argument(action: str, argument: str) -> None:
    if type(argument) is not str:
        raise ValueError(f'the argument of {action} is text, as "500", not {argument!r}')
    if action == "error" and argument not in ErrorCode.__members__:
        near = _nearest(argument, ErrorCode.__members__)
        raise ValueError(f"unknown error {argument!r}{near}: name one of Kafka's, as NOT_ENOUGH_REPLICAS")
    if action == "oserror" and not isinstance(getattr(errno, argument, None), int):
        raise ValueError(f"unknown error of the system {argument!r}: name one of errno, as ENOSPC")
    if action in ("hold", "exit") and not argument.isdecimal():
        raise ValueError(f"{action} takes a number, not {argument!r}")
    if action in ("kill", "drop"):
        raise ValueError(f"{action} takes no argument, {argument!r} was given")


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(known), 1)
    return f", do you mean {near[0]!r}?" if near else ""


def _kill(argument: str | None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit(argument: str | None) -> None:
    sys.stderr.flush()
    os._exit(int(argument or 70))


def _error(argument: str | None) -> None:
    code = ErrorCode[argument or "UNKNOWN_SERVER_ERROR"]
    raise KafkaError(code, "a fault was injected here")


def _oserror(argument: str | None) -> None:
    number = getattr(errno, argument or "ENOSPC")
    raise OSError(number, os.strerror(number))


def _drop(argument: str | None) -> None:
    raise DisconnectError("a fault dropped the answer here")


_ACTIONS: dict[str, Callable[[str | None], None]] = {
    "kill": _kill,
    "exit": _exit,
    "error": _error,
    "oserror": _oserror,
    "drop": _drop,
}
