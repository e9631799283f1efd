"""Where the OffsetFetch requests of a capture stand among the ends of transactions that committed offsets.

Kafka writes the marker that makes a transaction's offsets visible while it answers EndTxn, or later. An OffsetFetch of
another connection that was in flight at that time returned what was there before, or what was there after. The offset
that it returned says which.
"""

from __future__ import annotations

from collections import defaultdict

from kafka_shim.wiretap.calls import topic_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_shim.wiretap.calls import Call
    from kafka_shim.wiretap.capture import Entry

OFFSET_COMMIT, OFFSET_FETCH, END_TXN, TXN_OFFSET_COMMIT = 8, 9, 26, 28

# What OffsetFetch returns where nothing was committed.
NOTHING = -1

# Group id, topic name or id, partition.
Committed = tuple[str, str | bytes, int]


def offset_fetches_in_order(
    entries: Sequence[Entry], calls: Sequence[Call], names: Mapping[bytes, str]
) -> Iterator[tuple[int, int]]:
    """Yields (request, response): the index of a request, and the index of a response that must come before it. An
    OffsetFetch comes behind the EndTxn whose offset it returned and before the next EndTxn that committed this offset.
    """
    ends, written_plainly = _committing_ends(calls, names)
    for fetch in calls:
        if fetch.request.api_key != OFFSET_FETCH or fetch.response is None:
            continue
        for where, offset in _returned(fetch, names):
            known = [(end, value) for end, value in ends.get(where, ()) if end.sent < fetch.answered]
            seen = max((at for at, (_, value) in enumerate(known) if value == offset), default=-1)
            # An offset that no transaction wrote, or that others may have committed, says only what was in flight.
            is_certain = (seen >= 0 or offset == NOTHING) and where not in written_plainly
            for at, (end, _) in enumerate(known[: seen + 2]):
                if entries[end.sent].connection == entries[fetch.sent].connection:
                    continue
                if at <= seen and end.answered > fetch.sent:
                    yield fetch.sent, end.answered
                elif at == seen + 1 and (is_certain or end.answered > fetch.sent):
                    yield end.sent, fetch.answered


def _committing_ends(
    calls: Sequence[Call], names: Mapping[bytes, str]
) -> tuple[dict[Committed, list[tuple[Call, int]]], set[Committed]]:
    """Returns the EndTxn calls that committed an offset, in the order of their requests, each with the offset; and
    where offsets were committed outside of transactions.
    """
    pending: dict[int, dict[Committed, int]] = defaultdict(dict)
    ends: dict[Committed, list[tuple[Call, int]]] = defaultdict(list)
    written_plainly: set[Committed] = set()
    for call in sorted(calls, key=lambda each: each.sent):
        message = call.request.message
        if call.response is None:
            continue
        if call.request.api_key == OFFSET_COMMIT:
            written_plainly |= {where for where, _ in _asked(call, names)}
        elif call.request.api_key == TXN_OFFSET_COMMIT:
            pending[message.producer_id] |= dict(_asked(call, names))
        elif call.request.api_key == END_TXN and not call.response.error_code:
            for where, offset in pending.pop(message.producer_id, {}).items():
                if message.committed:
                    ends[where].append((call, offset))
    return ends, written_plainly


def _asked(call: Call, names: Mapping[bytes, str]) -> Iterator[tuple[Committed, int]]:
    for topic in call.request.message.topics:
        for part in topic.partitions:
            yield (call.request.message.group_id, topic_name(topic, names), part.partition_index), part.committed_offset


def _returned(call: Call, names: Mapping[bytes, str]) -> Iterator[tuple[Committed, int]]:
    """Yields what an OffsetFetch returned: from version 8 on by group, before that for the one group."""
    groups = [(group.group_id, group) for group in call.response.groups]
    for group_id, group in groups or [(call.request.message.group_id, call.response)]:
        for topic in group.topics:
            for part in topic.partitions:
                if not part.error_code:
                    yield (group_id, topic_name(topic, names), part.partition_index), part.committed_offset
