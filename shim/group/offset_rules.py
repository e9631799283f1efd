"""The rules of OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete: who may call them, what they write and
return (keys 8, 28, 9, 47).

Handlers check that topics and partitions exist before they call these. An error of one partition is its code in the
response; an error of the group is raised.
"""

from __future__ import annotations

from kafka_shim.cext.offset_records import Committed, PlainCommits, fetched
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.kinds import KINDS
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kafka_shim.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_shim.protocol.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka_shim.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from kafka_shim.cext.plain_commits import Commit
    from kafka_shim.cext.plain_txn_commits import TxnCommit
    from kafka_shim.group.decision import TimerMoves
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.kind import Check, Group
    from kafka_shim.group.records import Changes
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_delete_request import OffsetDeleteRequest
    from kafka_shim.protocol.messages.offset_delete_response import OffsetDeleteResponse
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from kafka_shim.turns import Steps

# An OffsetFetch of more is answered in steps.
PARTITIONS_AT_ONCE = 1000
MANY_OFFSETS = 1000
NONE = ErrorCode.NONE
PLAIN_COMMITS = PlainCommits(
    OffsetCommitRequestTopic, OffsetCommitRequestPartition, OffsetCommitResponseTopic, OffsetCommitResponsePartition
)


def utf16_length(text: str) -> int:
    """Returns the length of a string in Java: its number of UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_too_long(metadata: str, limit: int) -> bool:
    return len(metadata) * 2 > limit and utf16_length(metadata) > limit


def _java_sum(first: int, second: int) -> int:
    """Returns the sum of two longs in Java, which is negative beyond the largest."""
    return (first + second + (1 << 63)) % (1 << 64) - (1 << 63)


def commit(
    groups: Groups,
    request: OffsetCommitRequest,
    version: int,
    metadata_limit: int,
    now_ms: int,
    check_count: Callable[[int, int], None],
) -> tuple[Changes, OffsetCommitResponse, TimerMoves]:
    """One OffsetCommit. Returns (the offsets to write, the response to send after the write, the timers to move then).
    Raises the group's error. `check_count` is asked about very many offsets and the length of their names, and raises
    if no batch could hold them."""
    moves: TimerMoves = []
    check = check_commit(groups, request, version, moves)
    expire_ms = -1 if request.retention_time_ms == -1 else _java_sum(now_ms, request.retention_time_ms)
    plain = PLAIN_COMMITS.take(request.topics, metadata_limit, now_ms, expire_ms, MANY_OFFSETS)
    if plain is not None:
        if check is not None:
            for name, index, committed in plain[0]:
                check(name, committed.topic_id, index)
        return plain[0], OffsetCommitResponse(topics=plain[1]), moves
    changes: Changes = []
    response = OffsetCommitResponse()
    names_bytes = 0
    for topic in request.topics:
        names_bytes += len(topic.partitions) * (len(request.group_id) + len(topic.name))
        if len(changes) + len(topic.partitions) > MANY_OFFSETS:
            check_count(len(changes) + len(topic.partitions), names_bytes)
        answers = []
        name, topic_id = topic.name, bytes(topic.topic_id)
        for partition in topic.partitions:
            code, index, metadata = NONE, partition.partition_index, partition.committed_metadata
            if metadata and _is_too_long(metadata, metadata_limit):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if check is not None:
                    check(name, topic_id, index)
                committed = Committed(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata or "",
                    now_ms,
                    expire_ms,
                    topic_id,
                )
                changes.append((name, index, committed))
            answers.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))
        response.topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answers))
    return changes, response, moves


def check_commit(
    groups: Groups, request: OffsetCommitRequest | Commit, version: int, moves: TimerMoves
) -> Check | None:
    """Returns the check of each partition, or None, and adds the timers that the commit moves to `moves`. Raises the
    group's error."""
    group_id = request.group_id
    group = groups.by_id.get(group_id)
    if group is not None:
        return KINDS[group.TYPE].check_commit(group, request, version, moves)
    if request.generation_id_or_member_epoch < 0:
        return None  # its record creates a simple group
    code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    raise KafkaError(code, f"Group {group_id} not found.")


def commit_transactional(
    groups: Groups,
    request: TxnOffsetCommitRequest,
    topic_id_of: Callable[[str], bytes],
    metadata_limit: int,
    now_ms: int,
    check_count: Callable[[int, int], None],
) -> tuple[Changes, TxnOffsetCommitResponse]:
    """One TxnOffsetCommit of a verified transaction. Raises the group's error. `check_count` as for `commit`.

    The request names topics only. Kafka keeps no topic id of them, and depends on their removal with the topic alone.
    """
    check = check_transactional(groups, request)
    changes: Changes = []
    response = TxnOffsetCommitResponse()
    names_bytes = 0
    for topic in request.topics:
        names_bytes += len(topic.partitions) * (len(request.group_id) + len(topic.name))
        if len(changes) + len(topic.partitions) > MANY_OFFSETS:
            check_count(len(changes) + len(topic.partitions), names_bytes)
        topic_id = topic_id_of(topic.name)
        answers = []
        for partition in topic.partitions:
            code = NONE
            metadata = partition.committed_metadata or ""
            if _is_too_long(metadata, metadata_limit):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if check is not None:
                    check_epoch(check, topic.name, topic_id, partition.partition_index)
                committed = Committed(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    now_ms,
                    topic_id=topic_id,
                )
                changes.append((topic.name, partition.partition_index, committed))
            answers.append(TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code))
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
    return changes, response


def check_epoch(check: Check, topic: str, topic_id: bytes, partition: int) -> None:
    """Ask the check of one partition for a transaction. Raises ILLEGAL_GENERATION."""
    if topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    # This API has no STALE_MEMBER_EPOCH.
    try:
        check(topic, topic_id, partition)
    except KafkaError as error:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error


def check_transactional(groups: Groups, request: TxnOffsetCommitRequest | TxnCommit) -> Check | None:
    """Returns the check of each partition, or None. Raises the group's error."""
    group = groups.by_id.get(request.group_id)
    if group is None:
        if request.generation_id < 0:
            return None
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return KINDS[group.TYPE].check_transactional_commit(group, request)


def fetch(
    groups: Groups,
    request: OffsetFetchRequestGroup,
    require_stable: bool,
    topic_id_of: Callable[[str], bytes] | None = None,
) -> OffsetFetchResponseGroup:
    """As `fetch_in_steps`, at once."""
    return at_once(fetch_in_steps(groups, request, require_stable, topic_id_of))


def fetch_in_steps(
    groups: Groups,
    request: OffsetFetchRequestGroup,
    require_stable: bool,
    topic_id_of: Callable[[str], bytes] | None = None,
) -> Steps[OffsetFetchResponseGroup]:
    """Returns the offsets of one group, for the named partitions or (topics None) for all. With `require_stable`, a
    partition with a pending offset in an open transaction gets UNSTABLE_OFFSET_COMMIT (KIP-447). In the form for all
    topics, a partition with only a pending offset is absent (B16, D14). Raises the group's error; an unknown group has
    no offsets. All offsets are those of the first step: half of a transaction must not be seen."""
    group = groups.by_id.get(request.group_id)
    is_known = group is not None and KINDS[group.TYPE].check_fetch(group, request)
    group_id = request.group_id
    offsets = groups.offsets
    by_topic = offsets.of_group(group_id) if is_known else {}
    response = OffsetFetchResponseGroup(group_id=group_id)
    if request.topics is None:
        wanted = [(topic, ZERO_UUID, list(found)) for topic, found in by_topic.items()]
    else:
        wanted = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
    pending: set[tuple[str, int]] | None = None
    is_large = sum(len(partitions) for _, _, partitions in wanted) > PARTITIONS_AT_ONCE
    if not is_large and topic_id_of is None and not (require_stable and offsets.has_any_pending(group_id)):
        response.topics = fetched(by_topic, wanted, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
        return response
    if is_large:
        by_topic = {name: dict(found) for name, found in by_topic.items()}
        pending = set(offsets.pending_partitions(group_id))
    for name, topic_id, partitions in wanted:
        found = by_topic.get(name, {})
        # A zero topic id means unknown, also in what was committed; another is that of a deleted topic of this name.
        meant_id = topic_id
        if topic_id_of is not None and topic_id == ZERO_UUID:
            # Something of deleted topics is left, and who asks by name means the topic that has it now.
            meant_id = topic_id_of(name)
        is_any_topic, same_topic = meant_id == ZERO_UUID, (ZERO_UUID, meant_id)
        answers = []
        for partition in partitions:
            if is_large:
                yield
            if require_stable and (
                offsets.has_pending(group_id, name, partition) if pending is None else (name, partition) in pending
            ):
                answers.append(_no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
                continue
            committed = found.get(partition)
            if committed is None or not (is_any_topic or committed.topic_id in same_topic):
                answers.append(_no_offset(partition, ErrorCode.NONE))
                continue
            answers.append(
                OffsetFetchResponsePartitions(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                )
            )
        response.topics.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=answers))
    return response


def _no_offset(partition: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=-1, error_code=code)


def is_of_unknown_topic(committed: Committed, known: Container[bytes]) -> bool:
    """Returns whether the topic that the offset was committed for is not known. Without an id it may be any."""
    return committed.topic_id != ZERO_UUID and committed.topic_id not in known


def delete(groups: Groups, request: OffsetDeleteRequest) -> tuple[Changes, OffsetDeleteResponse]:
    """One OffsetDelete (KIP-496). Topics to which the group is subscribed are refused. Raises the group's error."""
    from kafka_shim.protocol.messages.offset_delete_response import (
        OffsetDeleteResponse,
        OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    )

    group = check_deletion(groups, request)
    changes: Changes = []
    response = OffsetDeleteResponse()
    for topic in request.topics:
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic.name) else ErrorCode.NONE
        answers = []
        for partition in topic.partitions:
            index = partition.partition_index
            answers.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            is_there = groups.offsets.get(request.group_id, topic.name, index) is not None
            if code is ErrorCode.NONE and (is_there or groups.offsets.has_pending(request.group_id, topic.name, index)):
                changes.append((topic.name, index, None))
        response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
    return changes, response


def check_deletion(groups: Groups, request: OffsetDeleteRequest) -> Group:
    """Returns the group whose offsets are to be deleted. Raises the group's error."""
    group = groups.by_id.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    group.check_offset_delete()
    return group


# --- expiry


def expired(groups: Groups, group: Group, topic: str, retention_ms: int, now_ms: int) -> Changes:
    """Returns the expired offsets of a topic in a group. Those of subscribed topics and of open transactions do not
    expire (KIP-211)."""
    group_id, offsets = group.group_id, groups.offsets
    if group.is_subscribed(topic):
        return []
    return [
        (topic, partition, None)
        for partition, committed in offsets.of_group(group_id).get(topic, {}).items()
        if _is_expired(group.offset_expiry_base(committed.commit_ms), committed, retention_ms, now_ms)
        and not offsets.has_pending(group_id, topic, partition)
    ]


def _is_expired(base_ms: int | None, committed: Committed, retention_ms: int, now_ms: int) -> bool:
    if base_ms is None:
        return False
    if committed.expire_ms != -1:
        return now_ms >= committed.expire_ms
    return now_ms - base_ms >= retention_ms


def of_deleted_topic(
    groups: Groups, group_id: str, topic: str, topic_id: bytes, *, may_lack_id: bool
) -> tuple[Changes, bool]:
    """Returns (the offsets of a group to remove with a deleted topic, whether others have to stay for now). With
    `may_lack_id`, those of its name without a topic id are removed too.

    A tombstone removes all that a partition has, committed and pending. One with an offset of the next topic of the
    name keeps both until the open transaction has ended: then one of them is left.
    """
    ids = (ZERO_UUID, topic_id) if may_lack_id else (topic_id,)
    deleted: set[int] = set()
    others: set[int] = set()
    for partition, committed in groups.offsets.of_group(group_id).get(topic, {}).items():
        (deleted if committed.topic_id in ids else others).add(partition)
    for partition, committed in groups.offsets.pending_of(group_id, topic):
        (deleted if committed.topic_id in ids else others).add(partition)
    return [(topic, partition, None) for partition in sorted(deleted - others)], not deleted.isdisjoint(others)
