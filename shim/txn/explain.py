"""Why a transactional request was refused: a bounded history per transactional id, and a log line.

The history stores values and formats text only on request, because every commit adds to it.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict, deque

from kafka_shim.cext.transaction_records import note_plain
from kafka_shim.txn.records import first_in_order
from kafka_shim.txn.transaction import FIELDS, ONGOING, STATE_NAMES, Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from kafka_shim.errors import KafkaError
    from kafka_shim.line_limit import LineLimit

logger = logging.getLogger("kafka_shim.txn")

EVENTS_PER_ID = 32
IDS = 1024
# Ids that do not exist, of which nothing but refusals is known.
REFUSED_IDS = 128
SHOWN_TRANSITIONS = 3
SHOWN_PARTITIONS = 100
# A reason may quote client input.
REASON_CHARACTERS = 500
HIDDEN = "(names topics that you may not describe)"
# What a topic may be called, and that with a partition.
_find_words = re.compile(r"[A-Za-z0-9._-]+").findall
_match_partition = re.compile(r"(.+)-[0-9]+").fullmatch


class Refusal:
    """One request that got an error response."""

    __slots__ = ("api", "code", "now_ms", "reason")

    def __init__(self, now_ms: int, api: str, code: str, reason: str) -> None:
        self.now_ms = now_ms
        self.api = api
        self.code = code
        self.reason = reason


class Note:
    """Another event: a fenced marker, a resumed transaction."""

    __slots__ = ("now_ms", "text")

    def __init__(self, now_ms: int, text: str) -> None:
        self.now_ms = now_ms
        self.text = text


class Shortened(Transaction):
    """A state transition with more partitions than a line shows. It keeps the first ones, and the number of all: the
    histories of a thousand ids with ten thousand partitions each would take gigabytes."""

    __slots__ = ("count",)
    if TYPE_CHECKING:
        count: int


Event = Transaction | Refusal | Note


class Explanations:
    """The newest `EVENTS_PER_ID` events of each of the `IDS` transactional ids that were seen last, and of the
    `REFUSED_IDS` others of which nothing but refusals was seen: ids that a client makes up drop no other. `ids` are
    those that exist; `TransactionLog` sets it."""

    __slots__ = ("_refusals", "events", "ids")

    def __init__(self) -> None:
        # The one that was seen last is the last. `TransactionLogBase` adds ordinary transitions.
        self.events: OrderedDict[str, deque[Event]] = OrderedDict()
        self._refusals: OrderedDict[str, deque[Event]] = OrderedDict()
        self.ids: Container[str] = frozenset()

    def _of(self, transactional_id: str) -> deque[Event]:
        events = self.events.get(transactional_id)
        if events is None:
            events = self._refusals.pop(transactional_id, None)
            return _added(self.events, IDS, transactional_id, events)
        self.events.move_to_end(transactional_id)
        return events

    def _of_refused(self, transactional_id: str) -> deque[Event]:
        # An id that a start has read may not have moved since.
        if transactional_id in self.events or transactional_id in self.ids:
            return self._of(transactional_id)
        events = self._refusals.get(transactional_id)
        if events is None:
            return _added(self._refusals, REFUSED_IDS, transactional_id, None)
        self._refusals.move_to_end(transactional_id)
        return events

    def moved(self, txn: Transaction) -> None:
        """Record a state transition. A transaction that grows is one event, whatever the number of its partitions."""
        if note_plain(self.events, txn, SHOWN_PARTITIONS):
            return
        events = self._of(txn.transactional_id)
        if len(txn.partitions) > SHOWN_PARTITIONS:
            txn = _shortened(txn)
        if txn.state is ONGOING and events:
            last = events[-1]
            if isinstance(last, Transaction) and last.state is ONGOING:
                events.pop()
        events.append(txn)

    def noted(self, transactional_id: str, now_ms: int, text: str, lines: LineLimit | None = None) -> None:
        """Record any other event that helps to find a cause. `lines`: those of its kind, which may be many."""
        self._of(transactional_id).append(Note(now_ms, text))
        (logger.info if lines is None else lines.write)("%s: %s", transactional_id, text)

    def refused(
        self,
        api: str,
        transactional_id: str | None,
        error: KafkaError,
        now_ms: int,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Record that a request was refused. `producer` is its (producer id, epoch). The reason is `error.message`, or
        `error.reason` if Kafka sends no message with the code. Without a transactional id (idempotent producers) the
        event goes only to the log."""
        reason = str(getattr(error, "reason", None) or error.message or "")[:REASON_CHARACTERS]
        if producer is not None:
            reason = f"producer id {producer[0]} epoch {producer[1]}: {reason}"
        code = error.code.name
        if not transactional_id:
            logger.info("%s refused with %s: %s", api, code, reason)
            return
        last = ", ".join(self._last_transitions(transactional_id)) or "none"
        self._of_refused(transactional_id).append(Refusal(now_ms, api, code, reason))
        logger.info("%s of %s refused with %s: %s; last transitions: %s", api, transactional_id, code, reason, last)

    def _last_transitions(self, transactional_id: str) -> list[str]:
        moves = [event for event in self.events.get(transactional_id) or () if isinstance(event, Transaction)]
        return [f"{STATE_NAMES[txn.state]} epoch {txn.producer_epoch}" for txn in moves[-SHOWN_TRANSITIONS:]]

    def forget(self, transactional_id: str) -> None:
        """Drop the history: the transactional id expired."""
        self.events.pop(transactional_id, None)
        self._refusals.pop(transactional_id, None)

    def forget_all(self) -> None:
        """Drop every history: the ids were deleted with their topic."""
        self.events.clear()
        self._refusals.clear()

    def lines(
        self,
        transactional_id: str,
        may_describe: Callable[[str], bool] | None = None,
        existing: Container[str] = frozenset(),
    ) -> list[str]:
        """Returns the history, oldest first, one event per line. Each line begins with its time in ms since the Unix
        epoch. `may_describe` says of a topic whether the reader may know of it (None: of any): partitions of others are
        left out, and a text that names one is hidden. `existing`: the names of all topics."""
        events = self.events.get(transactional_id) or self._refusals.get(transactional_id) or ()
        if may_describe is None:
            return [_line(event, lambda topic: True, lambda text: text, knows_all=True) for event in events]
        known: dict[str, bool] = {}

        def is_seen(topic: str) -> bool:
            seen = known.get(topic)
            if seen is None:
                seen = known[topic] = may_describe(topic)
            return seen

        def shown(text: str) -> str:
            return text if all(is_seen(name) for name in _topics_in(text, existing)) else HIDDEN

        return [_line(event, is_seen, shown) for event in events]


def _added(
    histories: OrderedDict[str, deque[Event]], most: int, transactional_id: str, events: deque[Event] | None
) -> deque[Event]:
    if len(histories) >= most:
        histories.popitem(last=False)
    if events is None:
        events = deque(maxlen=EVENTS_PER_ID)
    histories[transactional_id] = events
    return events


def _topics_in(text: str, existing: Container[str]) -> set[str]:
    """Returns what may be a topic's name: words that topics are called by, and words that look like a partition, whose
    topic may be deleted or never have been."""
    names = set()
    for found in _find_words(text):
        for word in {found, found.rstrip(".")}:
            partition = _match_partition(word)
            if partition is not None:
                names.add(partition[1])
            if word in existing:
                names.add(word)
    return names


def _shortened(txn: Transaction) -> Shortened:
    fields = {name: getattr(txn, name) for name in FIELDS}
    fields["partitions"] = frozenset(first_in_order(txn.partitions, SHOWN_PARTITIONS))
    short = Shortened(**fields)
    short.count = len(txn.partitions)
    return short


def _line(event: Event, is_seen: Callable[[str], bool], show: Callable[[str], str], *, knows_all: bool = False) -> str:
    if isinstance(event, Transaction):
        seen = sorted(each for each in event.partitions if is_seen(each[0]))
        partitions = ", ".join(f"{topic}-{partition}" for topic, partition in seen)
        if isinstance(event, Shortened) and seen:
            # Some that are not kept may be of topics that the reader may not know of.
            partitions += f" and {event.count - len(seen)} more" if knows_all else " and more"
        return (
            f"{event.last_update_ms} -> {STATE_NAMES[event.state]} producer id {event.producer_id} "
            f"epoch {event.producer_epoch} version {event.client_version}" + (f" [{partitions}]" if partitions else "")
        )
    if isinstance(event, Refusal):
        return f"{event.now_ms} {event.api} refused with {event.code}: {show(event.reason)}"
    return f"{event.now_ms} {show(event.text)}"
