"""The group coordinator, one shell around all kinds of groups: decide, append to `__consumer_offsets`, apply, answer.

The rules are in the other modules of this package and know neither log nor clock. Nothing is awaited between a decision
and its apply: that is the lock. A partition's groups are read from its log when one of them is asked for, or soon after
the start; so start-up does not pay for them.
"""

from __future__ import annotations

import logging

from cext import records as cext_records
from shim.errors import ErrorCode, KafkaError
from shim.group import records
from shim.group.decision import CANCEL, JOIN, REBALANCE, REGEX, SESSION, SYNC, Decision
from shim.group.stored import Stored
from shim.group.timers import Timers
from shim.java_hash import internal_partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from typing import Any

    from shim.clock import Clock
    from shim.config import BrokerConfig
    from shim.faults import Faults
    from shim.group.classic import ClassicGroup
    from shim.group.client import Client
    from shim.group.consumer import ConsumerGroup
    from shim.group.groups import Group, Groups
    from shim.group.offset_rules import Changes
    from shim.group.parked import Parked
    from shim.group.surroundings import Surroundings
    from shim.group.timers import Key
    from shim.metadata.image import Topic
    from shim.metadata.store import MetadataStore
    from shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
    from shim.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
    from shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from shim.protocol.messages.heartbeat_response import HeartbeatResponse
    from shim.protocol.messages.join_group_request import JoinGroupRequest
    from shim.protocol.messages.join_group_response import JoinGroupResponse
    from shim.protocol.messages.leave_group_request import LeaveGroupRequest
    from shim.protocol.messages.leave_group_response import LeaveGroupResponse
    from shim.protocol.messages.offset_commit_request import OffsetCommitRequest
    from shim.protocol.messages.offset_commit_response import OffsetCommitResponse
    from shim.protocol.messages.offset_delete_request import OffsetDeleteRequest
    from shim.protocol.messages.offset_delete_response import OffsetDeleteResponse
    from shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
    from shim.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
    from shim.protocol.messages.sync_group_request import SyncGroupRequest
    from shim.protocol.messages.sync_group_response import SyncGroupResponse
    from shim.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
    from shim.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
    from shim.storage.log import PartitionLog
    from shim.storage.logs import Logs
    from shim.storage.verification import Verification

logger = logging.getLogger("shim.group")

TOPIC = "__consumer_offsets"
# A timer whose records could not be written is tried again.
RETRY_MS = 1000
# Records of one batch, where there may be many (expiry, deleted topics).
RECORDS_PER_BATCH = 500

# What trouble with the log is called in answers.
_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class GroupCoordinator:
    """Owned by the broker; event-loop thread only. `start()` comes before the transaction coordinator resumes what was
    prepared (its markers decide offsets); `stop()` ends timers and answers what is parked.

    Methods are named after their API and answer its response; those of one group as a whole raise KafkaError, which the
    handler turns into the answer.
    """

    def __init__(
        self, *, clock: Clock, config: BrokerConfig, logs: Logs, metadata: MetadataStore, faults: Faults
    ) -> None:
        # For the life of the broker.
        self._clock = clock
        self._config = config
        self._logs = logs
        self._metadata = metadata
        self._faults = faults
        self._timers = Timers(clock, self._on_timer)
        self._own_timers: dict[str, Any] = {}
        self._surroundings: Surroundings | None = None
        # What has been read of `__consumer_offsets`.
        self._stored = Stored(clock, logs, TOPIC, self._resume)
        # Requests that wait.
        self._parked: set[Parked] = set()

    # --- life

    def start(self) -> None:
        """Hang on to markers and topics, start the timers; stored groups are read when they are needed."""
        self._logs.on_marker.append(self.on_marker)
        self._metadata.on_topic_created.append(self._on_topic_created)
        self._metadata.on_partitions_added.append(self._on_partitions_added)
        self._metadata.on_topic_deleted.append(self._on_topic_deleted)
        if TOPIC in self._metadata.image.topics:
            self._stored.start(self._partition_count)
        self._schedule_expiry()

    def stop(self) -> None:
        """Stop the timers and answer parked joins and syncs with NOT_COORDINATOR: their clients look for another."""
        for timer in self._own_timers.values():
            timer.cancel()
        self._own_timers.clear()
        self._stored.stop()
        self._dismiss()

    def _dismiss(self) -> None:
        self._timers.stop()
        for parked in list(self._parked):
            parked.fail(ErrorCode.NOT_COORDINATOR)
        self._parked.clear()

    @property
    def surroundings(self) -> Surroundings:
        """Options and topics, for rules."""
        if self._surroundings is None:
            from shim.group.surroundings import Surroundings

            self._surroundings = Surroundings(self._config, self._metadata.image)
        return self._surroundings

    # --- partitions

    def _partition_count(self) -> int:
        topic = self._metadata.image.topics.get(TOPIC)
        return len(topic.partitions) if topic is not None else self._config.offsets_topic_num_partitions

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds this group."""
        return internal_partition(group_id, self._partition_count())

    def groups_of(self, group_id: str) -> Groups:
        """The groups of this one's partition, read from the log on first use."""
        return self._stored.groups(self.partition_for(group_id))

    def _resume(self, partition: int, groups: Groups) -> None:
        """What was read goes on: members' sessions begin anew."""
        from shim.group import restart

        now_ms = self._clock.now_ms()
        for group in list(groups.by_id.values()):
            decision = restart.resume(group, self.surroundings, now_ms)
            self._carry_out(partition, groups, decision, now_ms)

    def _all_groups(self) -> Iterable[tuple[int, Groups]]:
        if TOPIC not in self._metadata.image.topics:
            return
        for partition in range(self._partition_count()):
            yield partition, self._stored.groups(partition)

    def _append(
        self,
        partition: int,
        pairs: Iterable[tuple[bytes, bytes | None]],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> int:
        """Write records; answers the offset of the first. Raises KafkaError as answers call it."""
        entries = [(key, value, now_ms, ()) for key, value in pairs]
        codec = self._config.offsets_topic_compression_codec
        if producer is None:
            batch = cext_records.build(entries, codec=codec)
        else:
            batch = cext_records.build(
                entries, codec=codec, producer_id=producer[0], producer_epoch=producer[1], transactional=True
            )
        try:
            if self._faults.armed:
                self._faults.reach("group.before_append", partition=partition)
            log = self._logs.find(TOPIC, partition)
            if log is None:
                self._metadata.ensure_internal_topic(TOPIC)
                log = self._logs.get(TOPIC, partition)
            base_offset = log.append_batch(batch, now_ms=now_ms, verification=verification).base_offset
        except KafkaError as error:
            code = _APPEND_ERRORS.get(error.code, error.code)
            raise KafkaError(code, error.message) from error
        if self._faults.armed:
            self._faults.reach("group.after_append", partition=partition)
        return base_offset

    # --- carrying out decisions

    def _carry_out(self, partition: int, groups: Groups, decision: Decision, now_ms: int) -> None:
        """Write, apply, move timers, answer. Raises KafkaError when writing failed: then all replies fail with it."""
        if decision.records:
            try:
                self._append(partition, [record.encode() for record in decision.records], now_ms)
            except KafkaError as error:
                for undo in decision.undo:
                    undo()
                for token, _ in decision.replies:
                    token.fail(error.code)
                raise
            if decision.replayed:
                for record in decision.records:
                    groups.apply(record)
        for group in decision.replacements:
            groups.by_id[group.group_id] = group
        for change in decision.changes:
            change()
        for group_id, deadline_ms, epoch in decision.refreshes:
            refreshed = groups.by_id.get(group_id)
            if refreshed is not None and refreshed.TYPE == "consumer":
                refreshed.set_refresh(deadline_ms, epoch)
        for group_id, kind, member_id, delay_ms, only_if_absent in decision.timers:
            if delay_ms == CANCEL:
                self._timers.cancel((group_id, kind, member_id))
            else:
                self._timers.schedule((group_id, kind, member_id), delay_ms, only_if_absent)
        for token, response in decision.replies:
            token.answer(response)

    def _decide(self, group_id: str, decision: Decision, now_ms: int) -> Any:
        """Carry out, and give back the response that the decision has."""
        partition = self.partition_for(group_id)
        self._carry_out(partition, self._stored.groups(partition), decision, now_ms)
        return decision.response

    def _answer(self, parked: Parked) -> Any:
        """The response, or what waits for it."""
        if parked.response is not None:
            return parked.response
        return self._wait(parked)

    async def _wait(self, parked: Parked) -> Any:
        self._parked.add(parked)
        try:
            return await parked.wait()
        finally:
            self._parked.discard(parked)

    def _on_timer(self, key: Key) -> None:
        group_id, kind, member_id = key
        group = self.groups_of(group_id).by_id.get(group_id)
        if group is None:
            return
        now_ms = self._clock.now_ms()
        try:
            if group.TYPE == "classic":
                decision = self._classic_timer(group, kind, member_id, now_ms)
            else:
                decision = self._consumer_timer(group, kind, member_id, now_ms)
            self._decide(group_id, decision, now_ms)
        except KafkaError as error:
            logger.warning("timer %s of group %s: %s; it is tried again", kind, group_id, error)
            self._timers.schedule(key, RETRY_MS)

    def _classic_timer(self, group: ClassicGroup, kind: str, member_id: str, now_ms: int) -> Decision:
        from shim.group import classic_join, classic_sync

        if kind == SESSION:
            return classic_sync.session_over(group, member_id, self._config, now_ms)
        if kind == JOIN and member_id == "":
            return classic_join.join_phase_over(group, self._config, now_ms)
        if kind == SYNC and member_id == "":
            return classic_sync.sync_phase_over(group, now_ms)
        return Decision()

    def _consumer_timer(self, group: ConsumerGroup, kind: str, member_id: str, now_ms: int) -> Decision:
        from shim.group import consumer_leave, consumer_regex

        if kind == REGEX:
            return consumer_regex.resolve(group, self.surroundings, now_ms)
        if kind == REBALANCE:
            return consumer_leave.revocation_over(group, member_id, self.surroundings, now_ms)
        return consumer_leave.session_over(group, member_id, self.surroundings, now_ms)

    # --- classic protocol

    def join_group(
        self, request: JoinGroupRequest, version: int, client: Client
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        """JoinGroup; waits as long as the rebalance does."""
        from shim.group.parked import Parked
        from shim.group.requests import check_join, join_failure

        refused = check_join(request, self._config)
        if refused is not None:
            return refused
        if version == 0:
            # The first version has one timeout for both.
            request.rebalance_timeout_ms = request.session_timeout_ms
        group_id = request.group_id
        groups = self.groups_of(group_id)
        parked = Parked(join_failure)
        now_ms = self._clock.now_ms()
        try:
            decision = self._decide_join(groups, request, version, client, parked, now_ms)
            self._decide(group_id, decision, now_ms)
        except KafkaError as error:
            parked.fail(error.code)
        return self._answer(parked)  # type: ignore[no-any-return]

    def _decide_join(
        self, groups: Groups, request: JoinGroupRequest, version: int, client: Client, parked: Parked, now_ms: int
    ) -> Decision:
        from shim.group import classic_join, consumer_classic
        from shim.group.classic import ClassicGroup
        from shim.group.requests import join_failure

        group_id = request.group_id
        group = groups.by_id.get(group_id)
        stale: list[records.Record] = []
        if group is not None and not isinstance(group, ClassicGroup):
            if not group.is_empty:
                return consumer_classic.join(group, request, version, client, parked, self.surroundings, now_ms)
            # What is left of a consumer group makes way.
            stale = group.tombstones()
            group = None
        is_new = group is None
        if group is None:
            if request.member_id != "":
                decision = Decision()
                refusal = join_failure(ErrorCode.UNKNOWN_MEMBER_ID)
                refusal.member_id = request.member_id
                decision.reply(parked, refusal)
                return decision
            group = ClassicGroup(group_id, now_ms)
        decision = classic_join.join(group, is_new, request, version, client, parked, self.surroundings, now_ms)
        if is_new:
            decision.records[:0] = stale
            decision.replacements.append(group)
        return decision

    def sync_group(self, request: SyncGroupRequest) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        """SyncGroup; a follower waits for its leader."""
        from shim.group import classic_sync, consumer_classic
        from shim.group.parked import Parked
        from shim.group.requests import sync_failure

        if not request.group_id:
            return sync_failure(ErrorCode.INVALID_GROUP_ID)
        group = self.groups_of(request.group_id).by_id.get(request.group_id)
        if group is None or group.is_empty:
            return sync_failure(ErrorCode.UNKNOWN_MEMBER_ID)
        now_ms = self._clock.now_ms()
        parked = Parked(sync_failure)
        try:
            if group.TYPE == "classic":
                decision = classic_sync.sync(group, request, parked, now_ms)
            else:
                decision = consumer_classic.sync(group, request, self.surroundings)
            response = self._decide(request.group_id, decision, now_ms)
            if response is not None:
                parked.answer(response)
        except KafkaError as error:
            parked.fail(error.code)
        return self._answer(parked)  # type: ignore[no-any-return]

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Heartbeat of a classic member, also of one in a consumer group."""
        from shim.group import classic_sync, consumer_classic

        group = self._known_group(request.group_id)
        if group.TYPE == "classic":
            decision = classic_sync.heartbeat(group, request)
        else:
            decision = consumer_classic.heartbeat(group, request)
        return self._decide(request.group_id, decision, 0)  # type: ignore[no-any-return]

    def leave_group(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """LeaveGroup in its form of v3: members in a list."""
        from shim.group import classic_leave, consumer_classic

        group = self._known_group(request.group_id)
        now_ms = self._clock.now_ms()
        if group.TYPE == "classic":
            decision = classic_leave.leave(group, request, self._config, now_ms)
        else:
            decision = consumer_classic.leave(group, request, self.surroundings, now_ms)
        return self._decide(request.group_id, decision, now_ms)  # type: ignore[no-any-return]

    def _known_group(self, group_id: str) -> Group:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self.groups_of(group_id).by_id.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return group

    # --- consumer protocol

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, version: int, client: Client
    ) -> ConsumerGroupHeartbeatResponse:
        """ConsumerGroupHeartbeat."""
        from shim.group import consumer_heartbeat
        from shim.group.consumer import ConsumerGroup

        consumer_heartbeat.check_request(request, version, self._config.group_consumer_assignors)
        group_id = request.group_id
        groups = self.groups_of(group_id)
        now_ms = self._clock.now_ms()
        if request.member_epoch < 0:
            group = groups.by_id.get(group_id)
            if not isinstance(group, ConsumerGroup):
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
            decision = consumer_heartbeat.leave(group, request, self.surroundings, now_ms)
        else:
            decision = Decision()
            group = self._consumer_group(groups, group_id, request.member_epoch == 0, decision)
            consumer_heartbeat.heartbeat(group, request, client, self.surroundings, decision, now_ms)
        return self._decide(group_id, decision, now_ms)  # type: ignore[no-any-return]

    def _consumer_group(self, groups: Groups, group_id: str, create: bool, decision: Decision) -> ConsumerGroup:
        """The group to join: new, or converted from a classic one, when `create`."""
        from shim.group import migration
        from shim.group.consumer import ConsumerGroup

        group = groups.by_id.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not create:
            reason = "not found" if group is None else "is not a consumer group"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        if group is None:
            return ConsumerGroup(group_id)
        if group.is_empty:
            decision.records += group.tombstones()
            return ConsumerGroup(group_id)
        return migration.upgrade(group, self.surroundings, decision)

    # --- offsets

    def commit_offsets(self, request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
        """OffsetCommit of topics and partitions that exist."""
        from shim.group import offset_rules

        groups = self.groups_of(request.group_id)
        now_ms = self._clock.now_ms()
        changes, response, decision = offset_rules.commit(
            groups, request, version, self._config.offset_metadata_max_bytes, now_ms
        )
        self._write_offsets(groups, {request.group_id: changes}, now_ms)
        self._decide(request.group_id, decision, now_ms)
        return response

    def fetch_offsets(self, request: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        """One group of OffsetFetch."""
        from shim.group import offset_rules

        return offset_rules.fetch(self.groups_of(request.group_id), request, require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """OffsetDelete of topics and partitions that exist."""
        from shim.group import offset_rules

        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        groups = self.groups_of(request.group_id)
        changes, response = offset_rules.delete(groups, request)
        self._write_offsets(groups, {request.group_id: changes}, self._clock.now_ms())
        return response

    def _write_offsets(
        self,
        groups: Groups,
        by_group: dict[str, Changes],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> None:
        """Write and apply offsets and tombstones of groups of one partition."""
        entries = []
        for group_id, changes in by_group.items():
            prefix = records.offset_key_prefix(group_id)
            for topic, partition, committed in changes:
                key = records.encode_offset_key(prefix, topic, partition)
                value = None if committed is None else records.encode_offset(committed)
                entries.append((group_id, topic, partition, committed, key, value))
        if not entries:
            return
        producer_id = -1 if producer is None else producer[0]
        log_partition = self.partition_for(entries[0][0])
        # A commit is one batch, whatever its size; only what the broker removes by itself may be split.
        is_whole = any(entry[3] is not None for entry in entries)
        size = len(entries) if is_whole else RECORDS_PER_BATCH
        for start in range(0, len(entries), size):
            part = entries[start : start + size]
            pairs = [(entry[4], entry[5]) for entry in part]
            base_offset = self._append(log_partition, pairs, now_ms, producer, verification)
            for index, (group_id, topic, partition, committed, _, _) in enumerate(part):
                if committed is not None:
                    committed.record_offset = base_offset + index
                groups.commit(group_id, topic, partition, committed, producer_id)

    # --- transactions

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int, verification: Verification | None = None
    ) -> TxnOffsetCommitResponse:
        """TxnOffsetCommit after the transaction was verified or extended (B8): validates the group, appends the offsets
        as transactional records of (producer_id, producer_epoch). They are pending until the marker. Per-partition
        codes are in the answer; raises nothing but bugs."""
        from shim.group import offset_rules
        from shim.group.requests import txn_commit_failure
        from shim.protocol.message import ZERO_UUID

        image = self._metadata.image

        def topic_id_of(name: str) -> bytes:
            topic = image.topics.get(name)
            return ZERO_UUID if topic is None else topic.topic_id

        groups = self.groups_of(request.group_id)
        now_ms = self._clock.now_ms()
        try:
            changes, response = offset_rules.commit_transactional(
                groups, request, topic_id_of, self._config.offset_metadata_max_bytes, now_ms
            )
            producer = request.producer_id, request.producer_epoch
            self._write_offsets(groups, {request.group_id: changes}, now_ms, producer, verification)
        except KafkaError as error:
            return txn_commit_failure(request, error.code)
        return response

    def on_marker(self, log: PartitionLog, producer_id: int, producer_epoch: int, commit: bool, offset: int) -> None:
        """Hook of `logs.on_marker`: a marker in `__consumer_offsets` decides pending offsets. A partition
        that is not read yet will find the marker in its log."""
        if log.topic == TOPIC and self._stored.is_begun(log.partition):
            # One that is being read may be past this marker or not: told twice, it counts once.
            self._stored.groups(log.partition).offsets.complete(producer_id, commit)

    # --- topics

    def _on_topic_created(self, topic: Topic) -> None:
        self.surroundings.newest_topics_version = self._metadata.image.last_offset
        self._on_topic_changed(topic)

    def _on_partitions_added(self, topic: Topic, first_new: int) -> None:
        self._on_topic_changed(topic)

    def _on_topic_changed(self, topic: Topic) -> None:
        self.surroundings.forget_topic_hash(topic.name)
        for groups in self._stored.by_partition.values():
            for group in groups.by_id.values():
                if group.TYPE == "consumer" and group.is_subscribed(topic.name):
                    group.request_refresh()

    def _on_topic_deleted(self, topic: Topic) -> None:
        from shim.group import offset_rules

        if topic.name == TOPIC:
            self._stored.forget()
            self._dismiss()
            return
        self._on_topic_changed(topic)
        now_ms = self._clock.now_ms()
        for _, groups in self._all_groups():
            try:
                found = offset_rules.of_deleted_topic(groups, topic.name, topic.topic_id)
                self._write_offsets(groups, found, now_ms)
            except KafkaError as error:
                logger.warning("cannot remove the offsets of deleted topic %s: %s", topic.name, error)

    # --- administration

    def all_groups(self) -> list[Group]:
        """Every group."""
        return [group for _, groups in self._all_groups() for group in groups.by_id.values()]

    def find(self, group_id: str) -> Group | None:
        """One group."""
        return self.groups_of(group_id).by_id.get(group_id)

    def delete_group(self, group_id: str) -> None:
        """DeleteGroups of one group. Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        groups = self.groups_of(group_id)
        group = groups.by_id.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_delete()
        now_ms = self._clock.now_ms()
        offsets = groups.offsets
        partitions = {(topic, partition) for topic, found in offsets.of_group(group_id).items() for partition in found}
        partitions.update(offsets.pending_partitions(group_id))
        self._write_offsets(
            groups, {group_id: [(topic, partition, None) for topic, partition in sorted(partitions)]}, now_ms
        )
        self._remove(groups, group, now_ms)

    def _remove(self, groups: Groups, group: Group, now_ms: int) -> None:
        decision = Decision()
        decision.records = group.tombstones()
        if group.TYPE == "classic":
            for member_id in group.pending_joins:
                decision.cancel(group.group_id, SESSION, member_id)
        decision.cancel(group.group_id, JOIN)
        decision.cancel(group.group_id, REGEX)
        self._decide(group.group_id, decision, now_ms)

    # --- expiry

    def _schedule_expiry(self) -> None:
        interval_ms = self._config.offsets_retention_check_interval_ms
        self._own_timers["expiry"] = self._clock.call_later(interval_ms, self._expire)

    def _expire(self) -> None:
        self._schedule_expiry()
        self.remove_expired()

    def remove_expired(self) -> None:
        """Remove offsets whose retention is over, and empty groups that have none left (KIP-211)."""
        from shim.group import offset_rules

        now_ms = self._clock.now_ms()
        retention_ms = self._config.offsets_retention_minutes * 60_000
        for partition, groups in self._all_groups():
            gone: dict[str, Changes] = {}
            free = []
            for group_id, group in groups.by_id.items():
                changes, is_free = offset_rules.expired(groups, group_id, retention_ms, now_ms)
                if changes:
                    gone[group_id] = changes
                if is_free and group.is_empty:
                    free.append(group)
            try:
                self._write_offsets(groups, gone, now_ms)
                for group in free:
                    self._remove(groups, group, now_ms)
            except KafkaError as error:
                logger.warning("cannot expire offsets of %s-%d: %s", TOPIC, partition, error)
