"""What the fast paths of OffsetCommit and TxnOffsetCommit ask of the rules (`cext.plain_commits`,
`cext.plain_txn_commits`), and their errors."""

from __future__ import annotations

from kafka_shim.errors import KafkaError
from kafka_shim.group.offset_rules import check_commit, check_transactional
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from kafka_shim.broker import Broker
    from kafka_shim.cext.plain_commits import Commit
    from kafka_shim.cext.plain_txn_commits import TxnCommit
    from kafka_shim.group.decision import TimerMoves
    from kafka_shim.group.groups import Groups
    from kafka_shim.storage.log import PartitionLog


def prepare(
    broker: Broker, partition: int, commit: Commit, version: int
) -> tuple[Groups, PartitionLog, TimerMoves, int] | None:
    """Returns the groups of this partition of `__consumer_offsets`, its log, the timers to move once the offsets are
    written, and the most bytes of metadata. None, and nothing has happened, if the group is not loaded or may refuse
    the commit, or one of its partitions."""
    config = broker.config
    groups = broker.groups.by_partition.get(partition)
    log = broker.logs.partitions.loaded.get((GROUP_METADATA_TOPIC, partition))
    if groups is None or not groups.is_current or log is None or config.offsets_topic_compression_codec:
        return None
    moves: TimerMoves = []
    try:
        check = check_commit(groups, commit, version, moves)
    except KafkaError:
        return None
    return None if check is not None else (groups, log, moves, config.offset_metadata_max_bytes)


def prepare_transactional(broker: Broker, partition: int, commit: TxnCommit) -> tuple[Groups, PartitionLog, int] | None:
    """Returns the groups of this partition of `__consumer_offsets`, its log, and the most bytes of metadata. None, and
    nothing has happened, if the group is not loaded or may refuse the commit, or one of its partitions."""
    config = broker.config
    groups = broker.groups.by_partition.get(partition)
    log = broker.logs.partitions.loaded.get((GROUP_METADATA_TOPIC, partition))
    if groups is None or not groups.is_current or log is None or config.offsets_topic_compression_codec:
        return None
    try:
        check = check_transactional(groups, commit)
    except KafkaError:
        return None
    return None if check is not None else (groups, log, config.offset_metadata_max_bytes)


def not_committed(
    broker: Broker, groups: Groups, log: PartitionLog, base_offset: int | None, error: Exception
) -> Exception:
    """Take over the error of an append at this offset, or, without one, of what follows an append. Returns the error
    that `OffsetRequests.commit` raises then."""
    try:
        with groups:
            _refuse(broker, log, base_offset, error)
    except Exception as raised:
        return raised


def _refuse(broker: Broker, log: PartitionLog, base_offset: int | None, error: Exception) -> NoReturn:
    if base_offset is not None and isinstance(error, (OSError, MemoryError)):
        raise broker.groups.refusal_of(log.not_appended(base_offset, error)) from error
    raise error
