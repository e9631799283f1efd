"""Arranges the requests of a capture in the order in which a replay sends them.

Three results of timing in the recording are made deterministic, so that another broker gets the same requests:

- A request that failed with a transient error, and that the client retried until it succeeded, is sent once, at the
  place of the successful attempt. Otherwise a broker that is ready at once would execute it twice.
- Appends from several connections to one partition are sent in the order of their base offsets.
- An OffsetFetch is sent before or behind the end of a transaction, as the offset that it returned says
  (``offset_order``).
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict, deque
from contextlib import suppress

from kafka_shim.cext.wire import WireError
from kafka_shim.wiretap.calls import Call, calls_of, identity, topic_name, topic_names
from kafka_shim.wiretap.capture import Entry, Kind
from kafka_shim.wiretap.compare import PASSING, batches_of
from kafka_shim.wiretap.frames import Request, error_codes, parse_request, parse_response
from kafka_shim.wiretap.offset_order import offset_fetches_in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP, DELETE_TOPICS, ADD_PARTITIONS_TO_TXN, END_TXN = 0, 1, 11, 14, 20, 24, 26
# APIs whose responses the broker may delay (purgatory), with the time in microseconds after which a pending request
# counts as parked. Other responses are expected soon.
HOLDS_BACK_US = {FETCH: 0, JOIN_GROUP: 200_000, SYNC_GROUP: 200_000}
# How many earlier appends of a partition are checked. More than that are rarely in flight at the same time.
CROSSING = 50

Partition = tuple[str | bytes, int]
# The last number is how often the topic was deleted before: its offsets started over.
Place = tuple[str | bytes, int, int]


def arranged(
    entries: list[Entry], owed: Mapping[int, int] | None = None, names: dict[bytes, str] | None = None
) -> list[tuple[int, Entry]]:
    """Returns (index, entry) pairs in the order to send them. `owed` is, by connection, the number of responses whose
    requests came before `entries`. `names` maps topic ids to names; new ones are added to it.
    """
    calls = list(calls_of(entries, owed))
    dropped = {at for call in _sent_again(calls) for at in (call.sent, call.answered)}
    names = {} if names is None else names
    names |= topic_names(calls)
    after = _appends_in_order(entries, calls, dropped, names)
    kept = [call for call in calls if call.sent not in dropped]
    for request, response in offset_fetches_in_order(entries, kept, names):
        after[request].append(response)
    answer_of = {call.sent: call.answered for call in calls}
    return [(number, entries[number]) for number in _Order(entries, dropped, after, answer_of).run()]


class _Order:
    """Keeps the recorded order, except that a request in `after` waits until the responses listed there have been
    placed. Requests behind a waiting request on its connection wait too. When the recorded order reaches the waiting
    request's own response, the responses that it waits for are moved to this place, so no later entry of another
    connection overtakes it.
    """

    def __init__(
        self, entries: list[Entry], dropped: set[int], after: dict[int, list[int]], answer_of: dict[int, int]
    ) -> None:
        self._entries = entries
        self._after = after
        self._answer_of = answer_of
        self._request_of = {answered: (sent,) for sent, answered in answer_of.items()}
        self._order: list[int] = []
        self._done = set(dropped)
        # Held entries by connection. The first is the request that waits.
        self._held: dict[int, deque[int]] = {}
        self._awaiting: set[int] = set()

    def run(self) -> list[int]:
        for number, entry in enumerate(self._entries):
            if number in self._done:
                continue
            held = self._held.get(entry.connection)
            if held is None or (entry.kind == Kind.RESPONSE and self._is_sent(number)):
                self._pass(number)
                continue
            held.append(number)
            # An EndTxn with a late marker may wait for requests that were recorded later. Do not pull those forward.
            needed = self._after[held[0]]
            if number == self._answer_of.get(held[0]) and all(self._request_of[each][0] < number for each in needed):
                self._await(entry.connection)
        while self._held:
            self._release(next(iter(self._held)))
        return self._order

    def _is_sent(self, answer: int) -> bool:
        """Returns whether the request of a response is placed, or was before these entries."""
        return self._done.issuperset(self._request_of.get(answer, ()))

    def _pass(self, number: int) -> None:
        """Places an entry, or holds its connection if the entry has to wait."""
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
        """Places the responses that a held connection waits for, then releases the connection."""
        if connection in self._awaiting:
            return  # two connections wait for each other
        self._awaiting.add(connection)
        for answer in self._after[self._held[connection][0]]:
            self._pull(answer)
        self._awaiting.remove(connection)
        self._release(connection)

    def _pull(self, answer: int) -> None:
        """Places all responses of a connection up to `answer`. Stops at one whose request has not been placed."""
        connection = self._entries[answer].connection
        if connection in self._held and not self._is_sent(answer):
            self._await(connection)
        for number in range(answer + 1):
            entry = self._entries[number]
            is_here = entry.connection == connection and entry.kind == Kind.RESPONSE
            if is_here and number not in self._done:
                if not self._is_sent(number):
                    return
                self._pass(number)

    def _release(self, connection: int) -> None:
        """Releases a held connection, whether or not the responses that it waited for were placed."""
        held = self._held.pop(connection, deque())
        if held:
            first = held.popleft()
            self._done.add(first)
            self._order.append(first)
        while held:
            number = held.popleft()
            is_response = self._entries[number].kind == Kind.RESPONSE
            if connection in self._held and not (is_response and self._is_sent(number)):  # held again
                self._held[connection].append(number)
            else:
                self._pass(number)


async def windows(
    entries: AsyncIterator[Entry], patience_us: int = 30_000_000
) -> AsyncIterator[list[tuple[int, Entry]]]:
    """Arranges entries while a recording is still running, and yields them in pieces of (index, entry) pairs. A piece
    ends when every request in it has a response, apart from requests that the broker may delay, and when no request
    with a transient error still awaits its retry. A piece also ends after `patience_us` microseconds.
    """
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
                    queue.append((request, identity(entry.frame), entry.time_us))
        elif entry.kind == Kind.RESPONSE and queue:
            request, same, _ = queue.popleft()
            errors = set(error_codes(parse_response(request, entry.frame))) if request.api_key != FETCH else set()
            (refused.add if errors and errors <= PASSING else refused.discard)(same)
        elif entry.kind == Kind.CLOSED:
            queue.clear()
        is_complete = not refused and all(
            entry.time_us - sent_us >= HOLDS_BACK_US.get(asked.api_key, patience_us)
            for each in waiting.values()
            for asked, _, sent_us in each
        )
        if is_complete or entry.time_us - piece[0].time_us > patience_us:
            yield [(first + number, each) for number, each in arranged(piece, owed, names)]
            first += len(piece)
            owed = {connection: len(each) for connection, each in waiting.items()}
            piece = []
            refused.clear()
    if piece:
        yield [(first + number, each) for number, each in arranged(piece, owed, names)]


def _sent_again(calls: list[Call]) -> Iterator[Call]:
    """Yields the calls that failed with a transient error and whose retry, an equal request, did not."""
    got_through: set[bytes] = set()
    for call in sorted(calls, key=lambda each: -each.sent):
        if call.request.api_key == FETCH:
            continue  # each Fetch advances the session epoch
        errors = set(error_codes(call.response))
        if not errors or not errors <= PASSING:
            got_through.add(call.identity)
        elif call.identity in got_through:
            yield call


def _appends_in_order(
    entries: list[Entry], calls: list[Call], dropped: set[int], names: Mapping[bytes, str]
) -> dict[int, list[int]]:
    """Returns, by the index of a request, the indexes of the responses that must come before it is sent. This concerns
    requests that were in flight at the same time, and EndTxn requests whose markers were written late. All others have
    a definite order already.
    """
    appends: dict[Place, dict[int, Call]] = defaultdict(dict)
    ends: dict[int, list[Call]] = defaultdict(list)
    added: dict[int, list[tuple[int, Place]]] = defaultdict(list)
    markers: set[tuple[Place, int, int]] = set()
    deletions = _deletions(calls, names)

    def place(call: Call, where: Partition) -> Place:
        return (*where, bisect(deletions.get(where[0], ()), call.sent))

    for call in calls:
        if call.sent in dropped or call.response is None:
            continue
        for producer_id, where in _added(call, names):
            added[producer_id].append((call.sent, place(call, where)))
        if call.request.api_key == PRODUCE:
            for where, base_offset in _bases(call, names):
                appends[place(call, where)].setdefault(base_offset, call)
        elif call.request.api_key == END_TXN and not call.response.error_code:
            ends[call.request.message.producer_id].append(call)
        elif call.request.api_key == FETCH:
            for topic in call.response.responses:
                for part in topic.partitions:
                    here = place(call, (topic_name(topic, names), part.partition_index))
                    markers |= {
                        (here, batch.producer_id, batch.base_offset)
                        for _, batch in batches_of(part.records)
                        if batch.is_control
                    }
    ends_of = _ends_by_partition(ends, added)
    former: dict[tuple[Place, int], int] = {}
    for here, producer_id, offset in sorted(markers, key=lambda each: (repr(each[0]), *each[1:])):
        key = here, producer_id
        end = _end_of(appends[here], ends_of[key], offset, producer_id, former.get(key))
        if end is not None:
            appends[here][offset] = end
            former[key] = end.sent
    after: dict[int, list[int]] = defaultdict(list)
    for by_offset in appends.values():
        inline = [by_offset[offset] for offset in sorted(by_offset)]
        for at, call in enumerate(inline):
            for back, one in enumerate(reversed(inline[max(0, at - CROSSING) : at])):
                # Kafka responds to EndTxn before it writes the markers, so an EndTxn may depend on a request sent
                # later.
                is_possible = one.sent < call.answered or call.request.api_key == END_TXN
                is_open = one.answered > call.sent or back == 0
                if is_possible and is_open and entries[one.sent].connection != entries[call.sent].connection:
                    after[call.sent].append(one.answered)
    return after


def _bases(call: Call, names: Mapping[bytes, str]) -> Iterator[tuple[Partition, int]]:
    """Yields (partition, base offset) for each successful append of a Produce call."""
    for topic in call.response.responses:
        for part in topic.partition_responses:
            if not part.error_code and part.base_offset >= 0:
                yield (topic_name(topic, names), part.index), part.base_offset


def _deletions(calls: list[Call], names: Mapping[bytes, str]) -> dict[str | bytes, list[int]]:
    """Returns, by topic, the indexes of the requests that deleted it."""
    found: dict[str | bytes, list[int]] = defaultdict(list)
    for call in sorted(calls, key=lambda each: each.sent):
        if call.request.api_key == DELETE_TOPICS and call.response is not None:
            for topic in call.response.responses:
                if not topic.error_code:
                    found[topic_name(topic, names)].append(call.sent)
    return found


def _added(call: Call, names: Mapping[bytes, str]) -> Iterator[tuple[int, Partition]]:
    """Yields (producer id, partition) for each partition that a call may have added to a transaction."""
    message = call.request.message
    if message is None:
        return
    if call.request.api_key == PRODUCE:
        for topic in message.topic_data:
            for part in topic.partition_data:
                for _, batch in batches_of(part.records):
                    yield batch.producer_id, (topic_name(topic, names), part.index)
    elif call.request.api_key == ADD_PARTITIONS_TO_TXN:
        for topic in message.v3_and_below_topics:
            for index in topic.partitions:
                yield message.v3_and_below_producer_id, (topic.name, index)


def _ends_by_partition(
    ends: Mapping[int, list[Call]], added: Mapping[int, list[tuple[int, Place]]]
) -> dict[tuple[Place, int], list[Call]]:
    """Returns, by partition and producer id, the EndTxn calls that wrote a marker there, in the order of their
    requests."""
    found: dict[tuple[Place, int], list[Call]] = defaultdict(list)
    for producer_id, calls in ends.items():
        inline = sorted(calls, key=lambda call: call.sent)
        for sent, where in sorted(added.get(producer_id, ()), key=lambda each: each[0]):
            at = bisect(inline, sent, key=lambda call: call.sent)
            known = found[where, producer_id]
            if at < len(inline) and not (known and known[-1] is inline[at]):
                known.append(inline[at])
    return found


def _end_of(
    appends: dict[int, Call], ends: list[Call], offset: int, producer_id: int, former: int | None
) -> Call | None:
    """Returns the EndTxn call that wrote the marker at `offset`: the first after the producer's last batch below
    `offset`, and after the one at `former`, which wrote its marker before. A transaction may have none but a marker.
    """
    written = [call.sent for base, call in appends.items() if base < offset and _writes(call, producer_id)]
    if former is not None:
        written.append(former)
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
