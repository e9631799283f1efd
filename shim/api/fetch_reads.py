"""Reads the partitions of one fetch (Kafka: ReplicaManager.readFromLog and its LogReadResults).

The fetch context decides which partitions are read, and in which order: `FetchContext.partitions`, or those of a
session that may have news: `FetchSession.in_order`.
"""

from __future__ import annotations

from kafka_shim.api.partitions import OTHER_LEADER, check_leader_epoch, name_leader
from kafka_shim.authorization import is_authorized, may_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.fetch_response import AbortedTransaction, EpochEndOffset, PartitionData
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api.fetch_sessions import CachedPartition, FetchContext
    from kafka_shim.context import Context
    from kafka_shim.protocol.messages.fetch_request import FetchRequest
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps

# The number of stored bytes that a response holds in memory. Further bytes are read from the files as the response is
# sent.
COPY_BYTES = 64 * 1024
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
FIRST_WITH_DIVERGING_EPOCH, FIRST_WITH_ENDPOINTS = 12, 16
# Partitions that are read and answered in one turn without looking at the time: about three milliseconds.
MANY = 512
# Errors that are found before a log is read.
_UNKNOWN = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)


class PartitionRead:
    """One partition of a fetch: the result of the last read, and the log's offsets at that time."""

    __slots__ = ("answer", "asked", "end_offset", "log", "log_bytes", "segment_base", "size_bytes", "start_offset")

    def __init__(self, asked: CachedPartition) -> None:
        self.asked = asked
        self.answer = PartitionData(partition_index=asked.partition)
        self.size_bytes = 0
        self.log: PartitionLog | None = None
        self.end_offset = -1
        self.start_offset = -1
        # Only set if `min_bytes` may make the fetch wait; the second is the base offset of the segment of the first
        # record to read.
        self.log_bytes = 0
        self.segment_base = -1

    def has_changed(self) -> bool:
        """Returns whether another read could give a different result. Transaction markers take offsets, so they count
        as changes."""
        log = self.log
        return log is not None and (
            log.log_end_offset != self.end_offset
            or log.log_start_offset != self.start_offset
            or log.is_closed
            or log.is_offline
        )

    def is_in_another_segment(self, isolation_level: int) -> bool:
        """Returns whether the reader was in another segment than what it may read ends in now. Then Kafka's reader does
        not wait (DelayedFetch.tryComplete: onOlderSegment)."""
        log = self.log
        if self.segment_base < 0 or log is None or log.is_closed or log.is_offline:
            return False
        end = end_for(log, isolation_level)
        return self.asked.fetch_offset != end and segment_base(log, end) != self.segment_base

    def is_at_end(self, isolation_level: int) -> bool:
        """Returns whether another read gives nothing until the log changes or the reader moves."""
        answer = self.answer
        if answer.error_code or answer.diverging_epoch.epoch >= 0 or self.has_changed():
            return False
        end = answer.last_stable_offset if isolation_level == READ_COMMITTED else answer.high_watermark
        return self.asked.fetch_offset >= end


class FetchReads:
    """One pass over the partitions of a fetch: the result of each, and whether the response can be sent now."""

    __slots__ = ("entries", "erroneous", "has_news", "is_again", "leader_id", "size_bytes", "withheld_bytes")

    def __init__(self) -> None:
        self.entries: list[PartitionRead] = []
        self.size_bytes = 0
        # What partitions have whose first batch exceeds a limit, each up to its own limit. A wait makes no room for it,
        # so it counts for `min_bytes`, as in Kafka (DelayedFetch.tryComplete). Only set if `min_bytes` may make the
        # fetch wait.
        self.withheld_bytes = 0
        # The partitions with errors that were found before any log was read, and their entries, which stay as they are
        # while the fetch waits for the others, if there are any. They come last in the response and have an empty list
        # of aborted transactions; entries with other errors have null.
        self.erroneous: dict[CachedPartition, PartitionRead] = {}
        # Whether the fetch has waited.
        self.is_again = False
        # True after another error or a diverging epoch, or if `min_bytes` are not in the segment that is read: the
        # fetch does not wait.
        self.has_news = False
        # The node id of the leader that an answer names, or -1.
        self.leader_id = -1


def read_again(
    context: Context, request: FetchRequest, fetch: FetchContext, reads: FetchReads, changed: list[PartitionRead]
) -> Steps[FetchReads]:
    """Returns the current result of the fetch. Reads only the changed partitions, unless a partition had data before:
    then all are read, because the size limits may cut elsewhere. A partition that is gone since ends the wait, and its
    entry stays in its place."""
    has_news = request.min_bytes > 1 and any(one.is_in_another_segment(request.isolation_level) for one in changed)
    if reads.size_bytes:
        reads = yield from read_in_steps(context, request, fetch, reads.erroneous)
        reads.has_news = reads.has_news or has_news
        return reads
    reads.is_again = True
    left_bytes = _limit_bytes(context, request)
    for entry in changed:
        if entry.log is None:  # it changed while the fetch waited
            reads.entries.append(entry)
        entry.answer = PartitionData(partition_index=entry.asked.partition)
        _read_entry(context, request, entry, reads, left_bytes)
        yield
    reads.has_news = reads.has_news or has_news
    reads.entries.sort(key=_turn_of)
    return reads


def read_partitions(context: Context, request: FetchRequest, fetch: FetchContext) -> FetchReads:
    """Returns the current result of the partitions that may have news, within the fetch's size limits."""
    reads = FetchReads()
    left_bytes = _limit_bytes(context, request)
    session = fetch.session
    for asked in fetch.partitions.values() if session is None else session.in_order():
        entry = PartitionRead(asked)
        reads.entries.append(entry)
        _read_entry(context, request, entry, reads, left_bytes)
    return reads


def read_in_steps(
    context: Context,
    request: FetchRequest,
    fetch: FetchContext,
    erroneous: dict[CachedPartition, PartitionRead] | None = None,
) -> Steps[FetchReads]:
    """As `read_partitions`, in steps. What changes behind them stays among the changed of the session. `erroneous` are
    the partitions that were found to be so before the fetch waited."""
    reads = FetchReads()
    if erroneous is not None:
        reads.erroneous, reads.is_again = erroneous, True
    left_bytes = _limit_bytes(context, request)
    session = fetch.session
    for asked in list(fetch.partitions.values()) if session is None else session.in_order():
        if asked in reads.erroneous and reads.is_again:
            reads.entries.append(reads.erroneous[asked])
            continue
        entry = PartitionRead(asked)
        reads.entries.append(entry)
        _read_entry(context, request, entry, reads, left_bytes)
        yield
    return reads


def segment_base(log: PartitionLog, offset: int) -> int:
    """Returns the base offset of the segment in which the offset is."""
    return log.segments[max(log.segment_at(offset), 0)].base_offset


def end_for(log: PartitionLog, isolation_level: int) -> int:
    """Returns the offset (exclusive) up to which a reader of this isolation level may read."""
    return log.last_stable_offset if isolation_level == READ_COMMITTED else log.high_watermark


def _turn_of(entry: PartitionRead) -> int:
    return entry.asked.turn


def is_from_follower(request: FetchRequest) -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


def _limit_bytes(context: Context, request: FetchRequest) -> int:
    return _at_most(request.max_bytes, context.broker.config.fetch_max_bytes)


def _at_most(wanted_bytes: int, limit_bytes: int) -> int:
    """Returns what is wanted, within [0, limit_bytes]. Comparisons cost a fraction of nested calls of `min` and `max`,
    and this runs for every partition of every fetch."""
    least_bytes = wanted_bytes if wanted_bytes < limit_bytes else limit_bytes
    return least_bytes if least_bytes > 0 else 0


def _read_entry(
    context: Context, request: FetchRequest, entry: PartitionRead, reads: FetchReads, limit_bytes: int
) -> None:
    try:
        entry.size_bytes = _read_one(context, request, entry, reads, limit_bytes - reads.size_bytes)
        reads.size_bytes += entry.size_bytes
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise  # of the response as a whole
        _fail(entry.answer, error.code, context.api_version)
        if error.code in OTHER_LEADER and context.api_version >= FIRST_WITH_ENDPOINTS:
            leader_id = name_leader(context.broker, entry.asked.topic, entry.answer)  # type: ignore[arg-type]
            if not is_from_follower(request):
                reads.leader_id = leader_id
        if error.code in _UNKNOWN and not reads.is_again:
            reads.erroneous[entry.asked] = entry
        if entry.asked not in reads.erroneous:
            entry.answer.aborted_transactions = None
            reads.has_news = True


def _read_one(context: Context, request: FetchRequest, entry: PartitionRead, reads: FetchReads, left_bytes: int) -> int:
    """Fill one partition's response. Returns the size of its records in bytes. Raises KafkaError."""
    broker, asked, answer = context.broker, entry.asked, entry.answer
    topic = asked.topic
    has_gone = False
    if isinstance(topic, bytes):
        found = broker.metadata.image.topics_by_id.get(topic)
        if found is not None:
            asked.name = found.name
        has_gone = found is None
        if asked.name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        topic = asked.name
    # As in Kafka a fetch that waits keeps the rights that it came with. What its session knows to have no news was
    # allowed by the same ACLs (FetchSession.read_by).
    if broker.authorizer is not None and not reads.is_again:
        _require_read(context, request, topic)
    if has_gone:
        _refuse_deleted(context, topic, asked.partition)
    entry.log = log = broker.logs.get(topic, asked.partition)
    entry.end_offset = log.log_end_offset
    entry.start_offset = log.log_start_offset
    if request.min_bytes > 1:
        entry.log_bytes = log.size_bytes
    if asked.current_leader_epoch >= 0:
        check_leader_epoch(log, asked.current_leader_epoch)
    if is_from_follower(request):
        has_epoch = asked.current_leader_epoch >= 0  # then the follower may be ahead of the leader (KIP-903)
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "this partition has one replica, which is here: other brokers cannot fetch it",
        )
    if asked.last_fetched_epoch >= 0 and _diverges(log, asked, answer):
        if context.api_version < FIRST_WITH_DIVERGING_EPOCH:  # of a session that began in a newer one
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the response has no diverging epoch in this version")
        reads.has_news = True
        return 0
    most_bytes = _at_most(asked.max_bytes, left_bytes)
    if not most_bytes and (asked.max_bytes < 0 or (request.max_bytes < 0 and _is_first(asked, reads))):
        _refuse_negative(log, asked.fetch_offset, request.isolation_level)
    fetched = log.read(
        asked.fetch_offset,
        most_bytes,
        isolation_level=request.isolation_level,
        at_least_one=not reads.size_bytes,
        copy_bytes=COPY_BYTES - reads.size_bytes,
    )
    if request.min_bytes > 1:
        entry.segment_base = segment_base(log, asked.fetch_offset)
        if fetched.withheld_bytes:
            reads.withheld_bytes += _at_most(asked.max_bytes, fetched.withheld_bytes)
        if entry.is_in_another_segment(request.isolation_level):
            reads.has_news = True
    answer.high_watermark = fetched.high_watermark
    answer.last_stable_offset = fetched.last_stable_offset
    answer.log_start_offset = fetched.log_start_offset
    answer.records = fetched.records
    if fetched.aborted is None:
        answer.aborted_transactions = None
    elif fetched.aborted:
        answer.aborted_transactions = [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in fetched.aborted
        ]
    return fetched.size_bytes


def _is_first(asked: CachedPartition, reads: FetchReads) -> bool:
    """Whether Kafka reads no partition before this one, which is being read. It reads also those of a session that have
    not changed."""
    if len(reads.entries) - len(reads.erroneous) != 1:
        return False
    session = asked.session
    return session is None or all(
        asked.turn <= one.turn or one in session.changed for one in session.partitions.values()
    )


def _refuse_negative(log: PartitionLog, fetch_offset: int, isolation_level: int) -> None:
    """Raises UNKNOWN_SERVER_ERROR if there is something to read: Kafka reads no negative number of bytes
    (LogSegment.read). Of a negative limit of the request nothing is left for the second partition that is read, which
    is 0."""
    if log.log_start_offset <= fetch_offset < end_for(log, isolation_level):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refuse_deleted(context: Context, name: str, partition: int) -> None:
    """Raises for a partition of a topic that was there when the session, or a fetch that waited, first read it. Kafka
    keeps the name and looks for that."""
    anew = context.broker.metadata.image.topics.get(name)
    is_there = anew is not None and 0 <= partition < len(anew.partitions)
    raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _require_read(context: Context, request: FetchRequest, topic: str) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED if the client may not read the topic. A follower needs CLUSTER_ACTION on the
    cluster instead."""
    if is_from_follower(request):
        may_read = may_on_cluster(context, AclOperation.CLUSTER_ACTION)
    else:
        may_read = is_authorized(context, AclOperation.READ, ResourceType.TOPIC, topic)
    if not may_read:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _fail(answer: PartitionData, code: ErrorCode, version: int) -> None:
    if code is ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # old clients do not know storage errors; they retry this one
    answer.error_code = code
    answer.high_watermark = -1
    answer.records = b""


def _diverges(log: PartitionLog, asked: CachedPartition, answer: PartitionData) -> bool:
    """Returns whether the reader's last fetched epoch ended before its fetch offset. The response then carries the
    epoch's end offset, so that the reader truncates or resets (KIP-595)."""
    epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or asked.fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= asked.last_fetched_epoch and end_offset >= asked.fetch_offset:
        return False
    answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    answer.high_watermark = log.high_watermark
    answer.last_stable_offset = log.last_stable_offset
    answer.log_start_offset = log.log_start_offset
    answer.aborted_transactions = None
    answer.records = b""
    return True
