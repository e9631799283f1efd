"""The order in which a capture's requests are sent again.

Two things that happened by chance when it was recorded are made certain, so that another broker is asked the same:

- A request that the broker refused because it was getting ready, and that its client sent again until it got through,
  is sent once: where it got through. A broker that is ready at once would otherwise do it twice.
- Appends of several connections to one partition go in the order of the offsets that they got.
"""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass

from kafka_shim.cext.wire import WireError
from kafka_shim.wiretap.capture import Entry, Kind
from kafka_shim.wiretap.compare import PASSING, batches_of
from kafka_shim.wiretap.frames import Request, build_request, error_codes, parse_request, parse_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from typing import Any

PRODUCE, FETCH, METADATA, JOIN_GROUP, SYNC_GROUP, CREATE_TOPICS, END_TXN = 0, 1, 3, 11, 14, 19, 26
# How long the answer of what a broker may hold back is expected to come at once; other answers come soon.
HOLDS_BACK_US = {FETCH: 0, JOIN_GROUP: 200_000, SYNC_GROUP: 200_000}
# How many appends before one are looked at: more are hardly under way at a time.
CROSSING = 50

Partition = tuple[str | bytes, int]


@dataclass
class Call:
    """A request and its answer, by their places in the capture."""

    sent: int
    answered: int
    request: Request
    response: Any
    identity: bytes


def arranged(
    entries: list[Entry], owed: Mapping[int, int] | None = None, names: dict[bytes, str] | None = None
) -> list[tuple[int, Entry]]:
    """Entries with their numbers, in the order to send them. `owed` counts by connection the answers whose requests
    came before `entries`; `names` are those of topic ids, and are added to."""
    calls = list(calls_of(entries, owed))
    dropped = {at for call in _sent_again(calls) for at in (call.sent, call.answered)}
    names = {} if names is None else names
    names |= _named(calls)
    after = _appends_in_order(entries, calls, dropped, names)
    answer_of = {call.sent: call.answered for call in calls}
    return [(number, entries[number]) for number in _Order(entries, dropped, after, answer_of).run()]


class _Order:
    """Entries as they were recorded, but for requests that wait for answers (`after`), with all that follows on their
    connections. Whatever else was recorded behind the answer of one that waits does not pass it: what it waits for is
    awaited then."""

    def __init__(
        self, entries: list[Entry], dropped: set[int], after: dict[int, list[int]], answer_of: dict[int, int]
    ) -> None:
        self._entries = entries
        self._after = after
        self._answer_of = answer_of
        self._request_of = {answered: (sent,) for sent, answered in answer_of.items()}
        self._order: list[int] = []
        self._done = set(dropped)
        # By connection: what is kept back, the request that waits first.
        self._held: dict[int, deque[int]] = {}
        self._awaiting: set[int] = set()

    def run(self) -> list[int]:
        for number, entry in enumerate(self._entries):
            if number in self._done:
                continue
            held = self._held.get(entry.connection)
            if held is None:
                self._pass(number)
                continue
            held.append(number)
            # What a late marker has to wait for comes only later.
            needed = self._after[held[0]]
            if number == self._answer_of.get(held[0]) and all(self._request_of[each][0] < number for each in needed):
                self._await(entry.connection)
        while self._held:
            self._release(next(iter(self._held)))
        return self._order

    def _pass(self, number: int) -> None:
        """Puts an entry into the order, or keeps its connection back."""
        connection = self._entries[number].connection
        if not self._done.issuperset(self._after.get(number, ())):
            self._held[connection] = deque([number])
            return
        self._done.add(number)
        self._order.append(number)
        if self._entries[number].kind == Kind.RESPONSE:
            for other, held in list(self._held.items()):
                if held and self._done.issuperset(self._after[held[0]]):
                    self._release(other)

    def _await(self, connection: int) -> None:
        """Puts the answers that a connection waits for here, and lets it go on."""
        if connection in self._awaiting:
            return  # two that wait for each other
        self._awaiting.add(connection)
        for answer in self._after[self._held[connection][0]]:
            self._pull(answer)
        self._awaiting.remove(connection)
        self._release(connection)

    def _pull(self, answer: int) -> None:
        """Every answer up to this one on its connection, for as far as their requests are there."""
        connection = self._entries[answer].connection
        if connection in self._held:
            self._await(connection)
        for number in range(answer + 1):
            entry = self._entries[number]
            is_here = entry.connection == connection and entry.kind == Kind.RESPONSE
            if is_here and number not in self._done:
                if connection in self._held or not self._done.issuperset(self._request_of.get(number, ())):
                    return
                self._pass(number)

    def _release(self, connection: int) -> None:
        """Lets a connection go on, whether or not it got what it waited for."""
        held = self._held.pop(connection, deque())
        if held:
            first = held.popleft()
            self._done.add(first)
            self._order.append(first)
        while held:
            if connection in self._held:  # it waits again
                self._held[connection] += held
                return
            self._pass(held.popleft())


async def windows(
    entries: AsyncIterator[Entry], patience_us: int = 30_000_000
) -> AsyncIterator[list[tuple[int, Entry]]]:
    """Entries that arrive while a recording goes on, with their numbers, arranged piece by piece: a piece ends when
    every request in it is answered, but for those that the broker holds back, and none was refused for the time being
    that its client has not sent again; or when that has lasted for `patience_us`."""
    waiting: dict[int, deque[tuple[Request, bytes, int]]] = defaultdict(deque)
    refused: set[bytes] = set()
    owed: dict[int, int] = {}
    names: dict[bytes, str] = {}
    piece: list[Entry] = []
    first = 0
    async for entry in entries:
        piece.append(entry)
        queue = waiting[entry.connection]
        if entry.kind == Kind.REQUEST:
            with suppress(WireError):
                request = parse_request(entry.frame)
                if request.is_answered:
                    queue.append((request, _identity(entry.frame), entry.time_us))
        elif entry.kind == Kind.RESPONSE and queue:
            request, identity, _ = queue.popleft()
            errors = set(error_codes(parse_response(request, entry.frame))) if request.api_key != FETCH else set()
            (refused.add if errors and errors <= PASSING else refused.discard)(identity)
        elif entry.kind == Kind.CLOSED:
            queue.clear()
        is_settled = not refused and all(
            entry.time_us - sent_us >= HOLDS_BACK_US.get(asked.api_key, patience_us)
            for each in waiting.values()
            for asked, _, sent_us in each
        )
        if is_settled or entry.time_us - piece[0].time_us > patience_us:
            yield [(first + number, each) for number, each in arranged(piece, owed, names)]
            first += len(piece)
            owed = {connection: len(each) for connection, each in waiting.items()}
            piece = []
            refused.clear()
    if piece:
        yield [(first + number, each) for number, each in arranged(piece, owed, names)]


def calls_of(entries: list[Entry], owed: Mapping[int, int] | None = None) -> Iterator[Call]:
    """Every request that was answered, in the order of the answers; `owed` as of ``arranged``."""
    waiting: dict[int, deque[tuple[int, Request]]] = defaultdict(deque)
    before = dict(owed or {})
    for number, entry in enumerate(entries):
        if entry.kind == Kind.REQUEST:
            try:
                request = parse_request(entry.frame)
            except WireError:
                continue  # it ends its connection
            if request.is_answered:
                waiting[entry.connection].append((number, request))
        elif entry.kind == Kind.RESPONSE and before.get(entry.connection, 0):
            before[entry.connection] -= 1
        elif entry.kind == Kind.RESPONSE and waiting[entry.connection]:
            sent, request = waiting[entry.connection].popleft()
            yield Call(sent, number, request, parse_response(request, entry.frame), _identity(entries[sent].frame))


def _identity(frame: bytes) -> bytes:
    """What is the same when a client sends a request again: all but its number, and its words of why it joins again."""
    if int.from_bytes(frame[:2], "big") == JOIN_GROUP:
        request = parse_request(frame)
        if request.message is not None:
            request.message.reason = None
            frame = build_request(request)
    return frame[:4] + frame[8:]


def _sent_again(calls: list[Call]) -> Iterator[Call]:
    """Those that were refused for the time being, and of which a later equal one was not."""
    got_through: set[bytes] = set()
    for call in sorted(calls, key=lambda each: -each.sent):
        if call.request.api_key == FETCH:
            continue  # its session counts it
        errors = set(error_codes(call.response))
        if not errors or not errors <= PASSING:
            got_through.add(call.identity)
        elif call.identity in got_through:
            yield call


def _named(calls: list[Call]) -> dict[bytes, str]:
    """What clients were told: the names of topic ids. A producer may say a name where a consumer says the id."""
    return {
        bytes(topic.topic_id): topic.name
        for call in calls
        if call.response is not None and call.request.api_key in (METADATA, CREATE_TOPICS)
        for topic in call.response.topics
        if topic.name and any(topic.topic_id)
    }


def _appends_in_order(
    entries: list[Entry], calls: list[Call], dropped: set[int], names: Mapping[bytes, str]
) -> dict[int, list[int]]:
    """By the place of a request: the places of answers that must be there before it is sent. Only requests that were
    under way at the same time need this, and ends of transactions whose markers came late; between others the order is
    clear."""
    appends: dict[Partition, dict[int, Call]] = defaultdict(dict)
    ends: dict[int, list[Call]] = defaultdict(list)
    markers: set[tuple[Partition, int, int]] = set()
    for call in calls:
        if call.sent in dropped or call.response is None:
            continue
        if call.request.api_key == PRODUCE:
            for where, base_offset in _bases(call, names):
                appends[where].setdefault(base_offset, call)
        elif call.request.api_key == END_TXN and not call.response.error_code:
            ends[call.request.message.producer_id].append(call)
        elif call.request.api_key == FETCH:
            for topic in call.response.responses:
                for part in topic.partitions:
                    where = (topic.topic or _name_of(topic, names), part.partition_index)
                    markers |= {
                        (where, batch.base_offset, batch.producer_id)
                        for _, batch in batches_of(part.records)
                        if batch.is_control
                    }
    for where, offset, producer_id in sorted(markers, key=repr):
        end = _end_of(appends[where], ends[producer_id], offset, producer_id)
        if end is not None:
            appends[where][offset] = end
    after: dict[int, list[int]] = defaultdict(list)
    for by_offset in appends.values():
        inline = [by_offset[offset] for offset in sorted(by_offset)]
        for at, call in enumerate(inline):
            for back, one in enumerate(reversed(inline[max(0, at - CROSSING) : at])):
                # Kafka answers an end before its markers are written: it may have to wait for what was sent later.
                is_possible = one.sent < call.answered or call.request.api_key == END_TXN
                is_open = one.answered > call.sent or back == 0
                if is_possible and is_open and entries[one.sent].connection != entries[call.sent].connection:
                    after[call.sent].append(one.answered)
    return after


def _name_of(topic: Any, names: Mapping[bytes, str]) -> str | bytes:
    topic_id = bytes(topic.topic_id)
    return names.get(topic_id, topic_id)


def _bases(call: Call, names: Mapping[bytes, str]) -> Iterator[tuple[Partition, int]]:
    """(partition, base offset) of what a Produce has appended."""
    for topic in call.response.responses:
        for part in topic.partition_responses:
            if not part.error_code and part.base_offset >= 0:
                yield (topic.name or _name_of(topic, names), part.index), part.base_offset


def _end_of(appends: dict[int, Call], ends: list[Call], offset: int, producer_id: int) -> Call | None:
    """The EndTxn that wrote the marker at `offset`: the first after the producer's last batch below it."""
    written = [call.sent for base, call in appends.items() if base < offset and _writes(call, producer_id)]
    return next((call for call in ends if call.sent > max(written)), None) if written else None


def _writes(call: Call, producer_id: int) -> bool:
    if call.request.api_key != PRODUCE:
        return False
    return any(
        batch.producer_id == producer_id
        for topic in call.request.message.topic_data
        for part in topic.partition_data
        for _, batch in batches_of(part.records)
    )
