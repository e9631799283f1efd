"""Collects what the fetches of a recording and of its replay returned, by partition: records and aborted
transactions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from kafka_shim.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kafka_shim.wiretap.compare import Pairs, records_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Set
    from typing import Any

READ_COMMITTED = 1
BY_NAME, BY_ID = 12, 16
MAX_BYTES = 1 << 24

Partition = tuple[str | bytes, int]


@dataclass
class Seen:
    """What one side fetched from one partition. `records` are the records by offset. `aborted` holds (producer id,
    first offset) of each aborted transaction that a read_committed fetch listed. `committed` holds the offsets that
    read_committed fetches returned.
    """

    records: dict[int, tuple[object, ...]] = field(default_factory=dict)
    aborted: set[tuple[int, int]] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)

    def add(self, part: Any, *, committed: bool) -> None:
        found = records_of(part.records)
        self.records |= found
        if committed:
            self.committed |= found.keys()
            self.aborted |= {(row.producer_id, row.first_offset) for row in part.aborted_transactions or ()}


class Fetched:
    """What both sides fetched. `pairs` maps recorded ids to live ids."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._before: dict[Partition, Seen] = defaultdict(Seen)
        self._now: dict[Partition, Seen] = defaultdict(Seen)
        # How much of the recorded was known when it was last asked for.
        self._asked: dict[Partition, tuple[int, int]] = {}

    def add(self, request: Any, recorded: Any, live: Any) -> None:
        """Adds the recorded and the live response to one Fetch request. Recorded topic ids are
        translated to live ones.
        """
        committed = request.isolation_level == READ_COMMITTED
        for side, answer in ((self._before, recorded), (self._now, live)):
            for topic in answer.responses:
                name = topic.topic or bytes(topic.topic_id)
                if side is self._before and not topic.topic:
                    name = self._pairs.live("topic_id", name)
                for part in topic.partitions:
                    side[name, part.partition_index].add(part, committed=committed)

    def missing(self, *, again: bool = True) -> Iterator[Question]:
        """Yields the additional fetches that the live broker must serve so that every recorded record
        can be compared. Unless `again`, none of a partition that lacks nothing and of which nothing was recorded
        since the last call.
        """
        for where, before in self._before.items():
            recorded = len(before.records), len(before.aborted) and len(before.committed)
            now = self._now[where]
            missed = before.records.keys() - now.records.keys()
            if not again and not missed and self._asked.get(where) == recorded:
                continue
            self._asked[where] = recorded
            if missed:
                yield Question(where, now, missed, committed=False)
            if before.aborted:
                yield Question(where, now, before.committed, committed=True)

    def end(self, topic: str) -> tuple[int, list[list[str]]]:
        """Compares as `compare`, and forgets, what was fetched by name of a topic that is deleted: the offsets of the
        next one of this name start over.
        """
        ended = Fetched(self._pairs)
        for mine, its in ((self._before, ended._before), (self._now, ended._now)):
            for where in [where for where in mine if where[0] == topic]:
                its[where] = mine.pop(where)
                self._asked.pop(where, None)
        return ended.compare()

    def compare(self, *, is_whole: bool = True) -> tuple[int, list[list[str]]]:
        """Returns (number of records compared, differences). The differences are a list of lines for each partition. If
        `is_whole` is false, compares only the offsets that both sides have fetched, because how far each side fetched
        is a matter of timing.
        """
        count, found = 0, []
        for where, before in self._before.items():
            now, lines = self._now[where], []
            for offset, record in sorted(before.records.items()):
                if not is_whole and offset not in now.records:
                    continue
                count += 1
                other = now.records.get(offset, "nothing")
                if other != record:
                    lines.append(f"{_shown(where)} offset {offset}: {record!r} recorded, {other!r} now")
            both = before.committed & now.committed
            said = {(self._pairs.live("producer_id", producer_id), first) for producer_id, first in before.aborted}
            for mine, theirs, words in (
                (said, now.aborted, "recorded, not now"),
                (now.aborted, said, "now, not recorded"),
            ):
                # The list of aborted transactions may reach beyond the fetched range.
                lines += [
                    f"{_shown(where)}: aborted from {first} {words}"
                    for _, first in sorted(mine - theirs)
                    if first in both
                ]
            if lines:
                found.append(lines[:1])
        return count, found


class Question:
    """A series of fetches of one partition, from the lowest to the highest of `offsets`. The caller sends `message` and
    passes the response to `take`, until `message` is None.
    """

    def __init__(self, where: Partition, seen: Seen, offsets: Set[int], *, committed: bool) -> None:
        self._where = where
        self._seen = seen
        self._next, self._last = min(offsets), max(offsets)
        self._committed = committed
        self.version = BY_NAME if isinstance(where[0], str) else BY_ID

    @property
    def message(self) -> FetchRequest | None:
        if self._next > self._last:
            return None
        name, index = self._where
        part = FetchPartition(partition=index, fetch_offset=self._next, partition_max_bytes=MAX_BYTES)
        topic = FetchTopic(partitions=[part])
        if isinstance(name, str):
            topic.topic = name
        else:
            topic.topic_id = name
        isolation = READ_COMMITTED if self._committed else 0
        return FetchRequest(max_bytes=MAX_BYTES, isolation_level=isolation, session_epoch=-1, topics=[topic])

    def take(self, answer: Any) -> None:
        parts = [part for topic in answer.responses for part in topic.partitions] if answer is not None else []
        found = records_of(parts[0].records) if parts and not parts[0].error_code else {}
        if found:
            self._seen.add(parts[0], committed=self._committed)
        self._next = max(found) + 1 if found else self._last + 1


def _shown(where: Partition) -> str:
    name, index = where
    return f"{name if isinstance(name, str) else name.hex()}-{index}"
