"""OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit, and the removal of expired offsets. Those of deleted topics
are in `deleted_offsets`.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.deleted_offsets import OFFSETS_PER_STEP, DeletedOffsets
from kafka_shim.group.records import Record
from kafka_shim.group.runtime import GROUPS_PER_STEP
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.offset_commit_response import OffsetCommitResponse
from kafka_shim.storage.batch_sizes import RECORD_OVERHEAD_BYTES, divided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import ModuleType

    from kafka_shim.cext.log_base import Verification
    from kafka_shim.group.decision import Decision, TimerMoves
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.kind import Group
    from kafka_shim.group.large_offsets import PreparedCommit, PreparedDeletion, PreparedTxnCommit
    from kafka_shim.group.records import Changes
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.outcome import Flush
    from kafka_shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from kafka_shim.protocol.messages.offset_delete_request import OffsetDeleteRequest
    from kafka_shim.protocol.messages.offset_delete_response import OffsetDeleteResponse
    from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kafka_shim.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
    from kafka_shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from kafka_shim.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
    from kafka_shim.storage.log import PartitionLog
    from kafka_shim.turns import Steps

logger = logging.getLogger("kafka_shim.group")

FIRST_WITH_TOPIC_IDS = 10

# What the tombstone of an offset takes in a batch beside its names, and what the batch and the tombstones of a group
# without members take beside the group's id.
TOMBSTONE_BYTES, RESERVED_BYTES = RECORD_OVERHEAD_BYTES + 10, 1024


class OffsetRequests:
    """Owned by the coordinator. Handlers check that topics and partitions exist before they call it. An error of the
    group is raised as KafkaError."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        self.deleted = DeletedOffsets(runtime)

    @cached_property
    def _rules(self) -> ModuleType:
        """The module of the rules, for requests that are many: to import it in each takes 7,000 instructions."""
        from kafka_shim.group import offset_rules

        return offset_rules

    def commit(self, request: OffsetCommitRequest, version: int) -> Outcome[OffsetCommitResponse]:
        """Returns the outcome of OffsetCommit, whose response has an error for each offset that is refused."""
        runtime = self._runtime
        partition = runtime.partition_for(request.group_id)
        groups = runtime.loader.groups(partition)
        now_ms = runtime.clock.now_ms()
        limit, check_count = runtime.config.offset_metadata_max_bytes, runtime.check_offset_count
        changes, response, moves = self._rules.commit(groups, request, version, limit, now_ms, check_count)
        flushes = runtime.commit_offsets(partition, groups, request.group_id, changes, now_ms)
        runtime.move_timers(moves)
        return Outcome(response, flushes)

    def commit_in_steps(self, request: OffsetCommitRequest, version: int) -> Steps[Outcome[OffsetCommitResponse]]:
        """As `commit`, for thousands of offsets, which are written as one batch in the last step."""
        from kafka_shim.group import large_offsets, offset_rules

        runtime = self._runtime
        partition = runtime.partition_for(request.group_id)
        offset_rules.check_commit(runtime.loader.groups(partition), request, version, [])
        yield from large_offsets.counted(request, runtime.check_offset_count, offset_rules.MANY_OFFSETS)
        now_ms = runtime.clock.now_ms()
        limit = runtime.config.offset_metadata_max_bytes
        prepared = large_offsets.PreparedCommit(request.group_id, now_ms)
        response = OffsetCommitResponse()
        for part, _, start in large_offsets.parts(request):
            groups = runtime.loader.groups(partition)
            changes, answer, _ = offset_rules.commit(groups, part, version, limit, now_ms, runtime.check_offset_count)
            prepared.add(changes)
            large_offsets.merge(response, answer, start)
            yield
        groups = runtime.loader.groups(partition)
        moves: TimerMoves = []
        check = offset_rules.check_commit(groups, request, version, moves)
        if check is not None:
            for name, index, committed in prepared.changes:
                check(name, committed.topic_id, index)
        deleted = {topic.name for topic in request.topics if self._topic_id_of(topic.name) != bytes(topic.topic_id)}
        code = ErrorCode.UNKNOWN_TOPIC_ID if version >= FIRST_WITH_TOPIC_IDS else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        large_offsets.drop_deleted(prepared, response, deleted, code)
        flushes = self._write(groups, prepared)
        runtime.move_timers(moves)
        return Outcome(response, flushes)

    def commit_transactional(
        self, request: TxnOffsetCommitRequest, verification: Verification | None = None
    ) -> Outcome[TxnOffsetCommitResponse]:
        """TxnOffsetCommit, after the transaction was verified or extended (B8). Validates the group and appends the
        offsets as transactional records of (producer_id, producer_epoch). They are pending until the marker. Error
        codes per partition are in the response; only bugs are raised."""
        try:
            return self._commit_transactional(request, verification)
        except KafkaError as error:
            from kafka_shim.group.requests import txn_commit_failure

            return Outcome(txn_commit_failure(request, error.code))

    def _commit_transactional(
        self, request: TxnOffsetCommitRequest, verification: Verification | None
    ) -> Outcome[TxnOffsetCommitResponse]:
        runtime = self._runtime
        now_ms = runtime.clock.now_ms()
        limit = runtime.config.offset_metadata_max_bytes
        producer = request.producer_id, request.producer_epoch
        partition = runtime.partition_for(request.group_id)
        groups = runtime.loader.groups(partition)
        changes, response = self._rules.commit_transactional(
            groups, request, self._topic_id_of, limit, now_ms, runtime.check_offset_count
        )
        flushes = runtime.commit_offsets(partition, groups, request.group_id, changes, now_ms, producer, verification)
        return Outcome(response, flushes)

    def prepare_transactional(
        self, request: TxnOffsetCommitRequest, topic_ids: dict[str, bytes]
    ) -> Steps[PreparedTxnCommit]:
        """Make the records of a TxnOffsetCommit of thousands of offsets to topics that had these ids when it came. The
        transaction is verified or extended afterwards, then `write_transactional` decides."""
        from kafka_shim.group import large_offsets, offset_rules

        runtime = self._runtime
        now_ms = runtime.clock.now_ms()
        prepared = large_offsets.PreparedTxnCommit(request, now_ms)
        prepared.topic_ids = topic_ids
        try:
            offset_rules.check_transactional(runtime.groups_of(request.group_id), request)
            yield from large_offsets.counted(request, runtime.check_offset_count, offset_rules.MANY_OFFSETS)
            yield from self._prepare(request, prepared, now_ms)
        except KafkaError as error:
            prepared.error = error.without_frames()
        return prepared

    def _prepare(self, request: TxnOffsetCommitRequest, prepared: PreparedTxnCommit, now_ms: int) -> Steps[None]:
        from kafka_shim.group import large_offsets, offset_rules

        runtime = self._runtime
        limit = runtime.config.offset_metadata_max_bytes
        for part, _, start in large_offsets.parts(request):
            groups = runtime.groups_of(request.group_id)
            changes, answer = offset_rules.commit_transactional(
                groups, part, self._topic_id_of, limit, now_ms, runtime.check_offset_count
            )
            prepared.add(changes)
            large_offsets.merge(prepared.response, answer, start)
            yield

    def write_transactional(
        self,
        request: TxnOffsetCommitRequest,
        prepared: PreparedTxnCommit,
        verification: Verification | None,
    ) -> Outcome[TxnOffsetCommitResponse]:
        """As `commit_transactional`, of prepared records. Raises the error of the group or of the log."""
        from kafka_shim.group import large_offsets, offset_rules

        if prepared.error is not None:
            raise prepared.error
        groups = self._runtime.groups_of(request.group_id)
        check = offset_rules.check_transactional(groups, request)
        ids = {topic.name: self._topic_id_of(topic.name) for topic in request.topics}
        if check is not None:
            for name, index, _ in prepared.changes:
                offset_rules.check_epoch(check, name, ids[name], index)
        deleted = {name for name, topic_id in ids.items() if topic_id != prepared.topic_ids.get(name)}
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        large_offsets.drop_deleted(prepared, prepared.response, deleted, code)
        producer = request.producer_id, request.producer_epoch
        flushes = self._write(groups, prepared, producer, verification)
        return Outcome(prepared.response, flushes)

    def _topic_id_of(self, name: str) -> bytes:
        topic = self._runtime.metadata.image.topics.get(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def _write(
        self,
        groups: Groups,
        commit: PreparedCommit,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> list[Flush]:
        """As `CoordinatorRuntime.commit_offsets`, of a commit whose records are made."""
        if not commit.entries:
            return []
        runtime = self._runtime
        partition = runtime.partition_for(commit.group_id)
        with groups:
            appended = runtime.append_entries(partition, commit.entries, commit.now_ms, producer, verification)
            commit.written(appended.base_offset)
            groups.commit_prepared(commit)
        return [] if appended.flushed is None else [appended.flushed]

    def _delete(self, groups: Groups, deletion: PreparedDeletion) -> list[Flush]:
        """As `CoordinatorRuntime.remove_offsets`, of a deletion whose records are made."""
        flushes: list[Flush] = []
        group_id, offsets, runtime = deletion.group_id, groups.offsets, self._runtime
        entries, partitions = deletion.of_stored(offsets.of_group(group_id), offsets.pending_by_topic(group_id))
        most_bytes = runtime.max_batch_bytes()
        parts = [slice(None)] if entries else []
        if deletion.most_bytes > most_bytes:
            pairs = [(key, value) for key, value, *_ in entries]
            parts = list(divided(pairs, len(pairs), most_bytes))
        with groups:
            for taken in parts:
                appended = runtime.append_entries(runtime.partition_for(group_id), entries[taken], deletion.now_ms)
                offsets.remove_many(group_id, partitions[taken])
                if appended.flushed is not None:
                    flushes.append(appended.flushed)
        return flushes

    def fetch(self, request: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        """Returns the answer of OffsetFetch for one group."""
        groups = self._runtime.groups_of(request.group_id)
        topic_id_of = self._topic_id_of if self.deleted.are_left else None
        answer: OffsetFetchResponseGroup = self._rules.fetch(groups, request, require_stable, topic_id_of)
        return answer

    def fetch_in_steps(self, request: OffsetFetchRequestGroup, require_stable: bool) -> Steps[OffsetFetchResponseGroup]:
        """As `fetch`, for very many partitions."""
        from kafka_shim.group import offset_rules

        groups = self._runtime.groups_of(request.group_id)
        return (
            yield from offset_rules.fetch_in_steps(
                groups, request, require_stable, self._topic_id_of if self.deleted.are_left else None
            )
        )

    def delete(self, request: OffsetDeleteRequest) -> Outcome[OffsetDeleteResponse]:
        """Returns the outcome of OffsetDelete. Raises INVALID_GROUP_ID for a request without a group."""
        from kafka_shim.group import offset_rules

        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        runtime = self._runtime
        groups = runtime.groups_of(request.group_id)
        changes, response = offset_rules.delete(groups, request)
        flushes = runtime.remove_offsets(groups, {request.group_id: changes}, runtime.clock.now_ms())
        return Outcome(response, flushes)

    def delete_in_steps(self, request: OffsetDeleteRequest) -> Steps[Outcome[OffsetDeleteResponse]]:
        """As `delete`, for thousands of offsets. Those that the group has in the last step are deleted in it."""
        from kafka_shim.group import large_offsets, offset_rules
        from kafka_shim.protocol.messages.offset_delete_response import OffsetDeleteResponse

        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        runtime = self._runtime
        deletion = large_offsets.PreparedDeletion(request.group_id, runtime.clock.now_ms())
        response = OffsetDeleteResponse()
        for part, topic, start in large_offsets.parts(request):
            _, answer = offset_rules.delete(runtime.groups_of(request.group_id), part)
            deletion.add(topic.name, [each.partition_index for each in topic.partitions])
            large_offsets.merge(response, answer, start)
            yield
        groups = runtime.groups_of(request.group_id)
        group = offset_rules.check_deletion(groups, request)
        for answered in response.topics:
            code = ErrorCode.NONE
            if group.is_subscribed(answered.name):
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                deletion.drop(answered.name)
            if answered.partitions and answered.partitions[0].error_code != code:
                for each in answered.partitions:
                    each.error_code = code
        return Outcome(response, self._delete(groups, deletion))

    def delete_all(self, groups: Groups, group_id: str, deletion: Decision, now_ms: int) -> list[Flush]:
        """Have all offsets of a group, pending ones too, deleted with the group: puts their tombstones before the
        records of its deletion, which is one batch, as in Kafka. What no batch can hold is deleted at once. Returns the
        fsyncs of that."""
        from kafka_shim.protocol.records.offset_commit_key import OffsetCommitKey

        offsets, runtime = groups.offsets, self._runtime
        partitions = {(topic, partition) for topic, found in offsets.of_group(group_id).items() for partition in found}
        partitions.update(offsets.pending_partitions(group_id))
        names_bytes = sum(len(topic.encode()) for topic, _ in partitions)
        most_bytes = runtime.max_batch_bytes() - RESERVED_BYTES - (len(partitions) + 8) * len(group_id.encode())
        if names_bytes + len(partitions) * TOMBSTONE_BYTES > most_bytes:
            changes: Changes = [(topic, partition, None) for topic, partition in sorted(partitions)]
            return runtime.remove_offsets(groups, {group_id: changes}, now_ms)
        keys = (OffsetCommitKey(group=group_id, topic=topic, partition=number) for topic, number in sorted(partitions))
        deletion.records = [*map(Record, keys), *deletion.records]
        return []

    # --- what happens elsewhere

    def on_marker(self, log: PartitionLog, producer_id: int, producer_epoch: int, commit: bool, offset: int) -> None:
        """Hook of `logs.on_marker`: a marker in `__consumer_offsets` commits or aborts pending offsets. A later load of
        the partition may also find the marker in the log; applying it twice has no further effect. A partition that
        was added since the start holds no group, and is not read."""
        if log.partition < self._runtime.partitions.count():
            self._runtime.loader.when_read(log.partition, partial(_complete, producer_id, commit))

    # --- expiry

    def expire(self, remove_group: Callable[[Groups, Group, int], object]) -> Generator[None, None, None]:
        """Remove expired offsets and, with `remove_group`, empty groups without offsets (KIP-211). A generator that
        yields between steps."""
        loader = self._runtime.loader
        for partition in sorted(loader.by_partition):
            groups = loader.current(partition)
            if groups is None:
                continue  # the topic was deleted meanwhile, or the partition is to be read again
            parts = _parts(groups)
            try:
                while loader.current(partition) is groups and self._expire_some(groups, parts, remove_group):
                    yield
            except KafkaError as error:
                logger.warning("cannot expire offsets of %s-%d: %s", GROUP_METADATA_TOPIC, partition, error)

    def _expire_some(
        self,
        groups: Groups,
        parts: Iterator[tuple[str, str | None]],
        remove_group: Callable[[Groups, Group, int], object],
    ) -> bool:
        """Take a step. Returns False if there was nothing left to do."""
        from kafka_shim.group import offset_rules
        from kafka_shim.group.kinds import KINDS

        runtime, offsets = self._runtime, groups.offsets
        now_ms = runtime.clock.now_ms()
        retention_ms = runtime.config.offsets_retention_minutes * 60_000
        looked_at = 0
        gone: dict[str, Changes] = {}
        done: list[Group] = []
        for group_id, topic in parts:
            group = groups.by_id.get(group_id)
            if topic is None:
                looked_at += OFFSETS_PER_STEP // GROUPS_PER_STEP
                if group is not None and group.is_empty and KINDS[group.TYPE].gives_way:
                    done.append(group)
            elif group is not None:
                looked_at += len(offsets.of_group(group_id).get(topic, ()))
                changes = offset_rules.expired(groups, group, topic, retention_ms, now_ms)
                if changes:
                    gone.setdefault(group_id, []).extend(changes)
            if looked_at >= OFFSETS_PER_STEP:
                break
        runtime.remove_offsets(groups, gone, now_ms)
        for group in done:
            if not offsets.of_group(group.group_id) and not offsets.has_any_pending(group.group_id):
                remove_group(groups, group, now_ms)
        return looked_at > 0


def _parts(groups: Groups) -> Iterator[tuple[str, str | None]]:
    """Of each group the topics with offsets, and None as the last; of each what there is when its turn comes."""
    for group_id in list(groups.by_id):
        for topic in list(groups.offsets.of_group(group_id)):
            yield group_id, topic
        yield group_id, None


def _complete(producer_id: int, commit: bool, groups: Groups) -> None:
    with groups:
        groups.offsets.complete(producer_id, commit)
