"""Commits and deletions of thousands of offsets, which are prepared in steps (docs/adr/0045-large-requests.md).

What takes long is made before anything is decided: values, records, the response. The last step asks the group again,
appends one batch and applies it, as a small request does at once. Nobody sees a part of it, as in Kafka.
"""

from __future__ import annotations

from kafka_shim.group.records import NO_PRODUCER_ID, offset_entries
from kafka_shim.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kafka_shim.storage.batch_sizes import BATCH_OVERHEAD_BYTES, RECORD_OVERHEAD_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any, TypeVar

    from kafka_shim.cext.offset_records import Committed
    from kafka_shim.errors import ErrorCode, KafkaError
    from kafka_shim.group.records import Changes, Entry
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from kafka_shim.turns import Steps

    ByTopic = dict[str, dict[int, Committed]]
    Request = TypeVar("Request", bound=Any)

PARTITIONS_PER_STEP = 64


def parts(request: Request) -> Iterator[tuple[Request, Any, int]]:
    """The partitions of a request as smaller requests: yields the request with a part of one topic in the place of its
    topics, that topic, and where the part begins. The request has its topics again at the end, or on `close`."""
    topics = request.topics
    try:
        for topic in topics:
            partitions = topic.partitions
            try:
                for start in range(0, len(partitions) or 1, PARTITIONS_PER_STEP):
                    topic.partitions = partitions[start : start + PARTITIONS_PER_STEP]
                    request.topics = [topic]
                    yield request, topic, start
            finally:
                topic.partitions = partitions
    finally:
        request.topics = topics


def merge(response: Any, answer: Any, start: int) -> None:
    """Add the answer to the part of a topic that begins at `start`."""
    if start:
        response.topics[-1].partitions += answer.topics[0].partitions
    else:
        response.topics += answer.topics


def drop_deleted(prepared: PreparedCommit, response: Any, deleted: Collection[str], code: ErrorCode) -> None:
    """Commit nothing of topics that were deleted while the commit was prepared: their offsets were removed before, and
    these would be those of a later topic of the name."""
    if not deleted:
        return
    prepared.drop(deleted)
    for topic in response.topics:
        if topic.name in deleted:
            for partition in topic.partitions:
                partition.error_code = code


def counted(request: Any, check_count: Callable[[int, int], None], most: int) -> Steps[None]:
    """Raises what `check_count` raises of the number of offsets and the length of their names, if there are more than
    `most`."""
    count = names_bytes = 0
    for topic in request.topics:
        count += len(topic.partitions)
        names_bytes += len(topic.partitions) * (len(request.group_id) + len(topic.name))
        yield
    if count > most:
        check_count(count, names_bytes)


class PreparedCommit:
    """The records of one commit, in the order of the request. With a producer id the offsets will be pending."""

    __slots__ = ("changes", "entries", "group_id", "now_ms", "opened", "pending", "producer_id", "stored")

    def __init__(self, group_id: str, now_ms: int, producer_id: int = NO_PRODUCER_ID) -> None:
        self.group_id = group_id
        self.now_ms = now_ms
        self.producer_id = producer_id
        self.entries: list[Entry] = []
        # (topic, partition, what is committed): those that are not refused.
        self.changes: list[tuple[str, int, Committed]] = []
        # As `Offsets` keeps them.
        self.stored: dict[str, dict[int, Committed]] = {}
        self.pending: dict[tuple[str, str, int], Committed] = {}
        self.opened: dict[tuple[str, int], set[int]] = {}

    def add(self, changes: Changes) -> None:
        """Encode more offsets. Raises UNKNOWN_SERVER_ERROR for one that no record can hold."""
        self.entries += offset_entries(self.group_id, changes, self.now_ms)
        for topic, partition, committed in changes:
            assert committed is not None
            self.changes.append((topic, partition, committed))
            if self.producer_id == NO_PRODUCER_ID:
                self.stored.setdefault(topic, {})[partition] = committed
            else:
                self.pending[self.group_id, topic, partition] = committed
                self.opened[topic, partition] = {self.producer_id}

    def drop(self, topics: Collection[str]) -> None:
        """Commit nothing of these topics."""
        kept = [number for number, (topic, *_) in enumerate(self.changes) if topic not in topics]
        self.entries = [self.entries[number] for number in kept]
        self.changes = [self.changes[number] for number in kept]
        for topic in topics:
            self.stored.pop(topic, None)
        self.pending = {key: committed for key, committed in self.pending.items() if key[1] not in topics}
        self.opened = {key: producers for key, producers in self.opened.items() if key[0] not in topics}

    def written(self, base_offset: int) -> None:
        """The batch is in the log at this offset."""
        for record_offset, (_, _, committed) in enumerate(self.changes, base_offset):
            committed.record_offset = record_offset


class PreparedTxnCommit(PreparedCommit):
    """With the response that is sent once it is written, or the error that kept it from being prepared, and the ids
    that its topics had."""

    __slots__ = ("error", "response", "topic_ids")

    def __init__(self, request: TxnOffsetCommitRequest, now_ms: int) -> None:
        super().__init__(request.group_id, now_ms, request.producer_id)
        self.response = TxnOffsetCommitResponse()
        self.topic_ids: dict[str, bytes] = {}
        self.error: KafkaError | None = None


class PreparedDeletion:
    """The tombstones of all partitions whose offsets are to be deleted, by topic."""

    __slots__ = ("_entries", "group_id", "most_bytes", "now_ms")

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.now_ms = now_ms
        # What one batch of all of them takes at most.
        self.most_bytes = BATCH_OVERHEAD_BYTES
        self._entries: dict[str, dict[int, Entry]] = {}

    def add(self, topic: str, partitions: Iterable[int]) -> None:
        """Encode more tombstones. Raises UNKNOWN_SERVER_ERROR for one that no record can hold."""
        numbers = list(partitions)
        made = offset_entries(self.group_id, [(topic, number, None) for number in numbers], self.now_ms)
        self.most_bytes += sum(RECORD_OVERHEAD_BYTES + len(entry[0]) for entry in made)
        self._entries.setdefault(topic, {}).update(zip(numbers, made, strict=True))

    def drop(self, topic: str) -> None:
        """Delete nothing of this topic."""
        self._entries.pop(topic, None)

    def of_stored(self, stored: ByTopic, pending: dict[str, set[int]]) -> tuple[list[Entry], list[tuple[str, int]]]:
        """Returns the tombstones of those that have an offset now, stored or pending, and their partitions."""
        entries: list[Entry] = []
        partitions: list[tuple[str, int]] = []
        for topic, prepared in self._entries.items():
            there = prepared.keys() & stored.get(topic, {}).keys()
            if topic in pending:
                there |= prepared.keys() & pending[topic]
            for partition in sorted(there):
                entries.append(prepared[partition])
                partitions.append((topic, partition))
        return entries, partitions
