"""Carries out group decisions (Kafka's CoordinatorRuntime): decide, append to `__consumer_offsets`, apply, respond.

The rules are in other modules of this package and use neither log nor clock. Nothing is awaited between a decision and
its apply; this takes the place of a lock.
"""

from __future__ import annotations

import logging
from struct import error as StructError

from kafka_shim.cext import records as cext_records
from kafka_shim.cext.replies import answer_all
from kafka_shim.cext.wire import EncodeError
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.announcements import announce, announcements
from kafka_shim.group.late_responses import REPLIES_PER_TURN, LateResponses
from kafka_shim.group.loader import CoordinatorLoader
from kafka_shim.group.partitions import GroupPartitions
from kafka_shim.group.records import NO_PRODUCER_ID, offset_entries
from kafka_shim.group.timers import Timers
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC
from kafka_shim.line_limit import LineLimit
from kafka_shim.outcome import Outcome
from kafka_shim.plurals import counted
from kafka_shim.scheduler import Scheduler
from kafka_shim.storage.batch_sizes import divided
from kafka_shim.storage.results import COORDINATOR_ERRORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from typing import Any, NoReturn

    from kafka_shim.cext.log_base import Appended, Verification
    from kafka_shim.clock import Clock
    from kafka_shim.config import BrokerConfig
    from kafka_shim.faults import Faults
    from kafka_shim.group.decision import Decision, TimerMoves
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.kind import Group
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.purgatory import DelayedResponse
    from kafka_shim.group.records import Changes, Entry
    from kafka_shim.group.timers import Key
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.outcome import Flush, Flushes
    from kafka_shim.storage.logs import Logs

logger = logging.getLogger("kafka_shim.group")

# Records per batch where there may be many (expiry, deleted topics).
RECORDS_PER_BATCH = 500
# The delay after which a timer is retried if its records could not be written.
RETRY_MS = 1000
# The least that one committed offset takes in a batch.
LEAST_OFFSET_BYTES = 40
# Groups per step when all groups are visited: a few milliseconds.
GROUPS_PER_STEP = 200
# How often the runtime looks for what found no memory, and none to be tried again either.
RECOVER_EVERY_MS = 30_000


class CoordinatorRuntime:
    """Owned by the coordinator. Event-loop thread only. `on_timer` is called with each due timer."""

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        logs: Logs,
        metadata: MetadataStore,
        faults: Faults,
        on_timer: Callable[[Key], None],
    ) -> None:
        # Constant for the life of the broker.
        self.clock = clock
        self.config = config
        self.logs = logs
        self.metadata = metadata
        self.faults = faults
        self.timers = Timers(clock, on_timer)
        # Log lines about records over `max.message.bytes`.
        self._too_large = LineLimit(logger, clock)
        self._image: CoordinatorMetadataImage | None = None
        # Which partition of `__consumer_offsets` holds a group, and the groups that were loaded from it.
        self.partitions = GroupPartitions(metadata, GROUP_METADATA_TOPIC, config.offsets_topic_num_partitions)
        self.partition_for = self.partitions.of
        self.loader = CoordinatorLoader(clock, logs, GROUP_METADATA_TOPIC, self._resume)
        self.loader.on_dropped = self._forget
        self.loader.on_read.append(self.partitions.leave_out_others)
        # Delayed joins and syncs, and their groups.
        self.purgatory: dict[DelayedResponse, str] = {}
        # Periodic work, and work in slices.
        self.scheduler = Scheduler(clock)
        # The responses to the members of large groups.
        self._late_responses = LateResponses(self.timers, self.scheduler)

    def start(self) -> None:
        """Start the periodic work."""
        self.scheduler.every("recovery", RECOVER_EVERY_MS, self._recover)

    def _recover(self) -> None:
        self.timers.recover()
        self.loader.recover()
        self._late_responses.go_on()

    def stop(self) -> None:
        """Stop the timers and complete delayed requests with NOT_COORDINATOR, so that clients look it up again."""
        self.loader.stop()
        self.scheduler.stop()
        self.dismiss()

    def dismiss(self) -> None:
        """Drop the timers of removed groups, and complete the delayed requests."""
        self.timers.stop()
        self._late_responses.send_all()
        for delayed in list(self.purgatory):
            self._end(delayed)
        self.purgatory.clear()

    def _forget(self, partition: int) -> None:
        """The groups of the partition are loaded again: as `dismiss`, of those alone."""
        self.timers.cancel_those(lambda group_id: self.partition_for(group_id) == partition)
        waiting = self.purgatory.items()
        for delayed in [one for one, group_id in waiting if self.partition_for(group_id) == partition]:
            self._end(delayed)

    @staticmethod
    def _end(delayed: DelayedResponse) -> None:
        delayed.fail(ErrorCode.NOT_COORDINATOR)
        delayed.wake()  # one that has its response, and found no memory on its way

    @property
    def image(self) -> CoordinatorMetadataImage:
        """Options and topics, for the rules."""
        if self._image is None:
            from kafka_shim.group.metadata_image import CoordinatorMetadataImage

            self._image = CoordinatorMetadataImage(self.config, self.metadata.image, self.clock)
        return self._image

    # --- groups

    def groups_of(self, group_id: str) -> Groups:
        """Returns the groups of this group's partition. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        return self.loader.groups(self.partition_for(group_id))

    def known_group(self, group_id: str) -> tuple[int, Groups, Group]:
        """Returns the partition that holds a group, the groups there, and the group. Raises INVALID_GROUP_ID or
        UNKNOWN_MEMBER_ID, the errors for requests of members."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        partition = self.partition_for(group_id)
        groups = self.loader.groups(partition)
        group = groups.by_id.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return partition, groups, group

    def _resume(self, partition: int, groups: Groups) -> Generator[None, None, None]:
        """Start the timers of the groups that were loaded."""
        from kafka_shim.group.kinds import KINDS

        since_stop = 0
        for group_id in list(groups.by_id):
            if (group := groups.by_id.get(group_id)) is not None:
                now_ms = self.clock.now_ms()
                decision = KINDS[group.TYPE].resume(group, self.image, now_ms)
                self.carry_out(partition, groups, decision, now_ms)
                since_stop += 1 + len(decision.timers)  # each takes as long as a group without members
            if since_stop >= GROUPS_PER_STEP:
                since_stop = 0
                yield

    # --- writing

    def _append(
        self,
        partition: int,
        pairs: Iterable[tuple[bytes, bytes | None]],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> Appended:
        """Append records. Raises KafkaError with the code for the response."""
        try:
            entries: list[Entry] = [(key, value, now_ms, ()) for key, value in pairs]
        except (EncodeError, StructError) as error:  # names may be longer in requests than in records
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        return self.append_entries(partition, entries, now_ms, producer, verification)

    def append_entries(
        self,
        partition: int,
        entries: list[Entry],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> Appended:
        """Append encoded records as one batch. Raises KafkaError with the code for the response."""
        producer_id, producer_epoch = producer or (-1, -1)
        batch = cext_records.build(
            entries,
            codec=self.config.offsets_topic_compression_codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,  # of every batch of a CoordinatorRuntime, with a producer or without
            transactional=producer_id != NO_PRODUCER_ID,
        )
        appended = self._append_batch(partition, batch, now_ms, verification)
        if self.faults.armed:
            self._reach_after_append(partition)
        return appended

    def _append_batch(self, partition: int, batch: bytearray, now_ms: int, guard: Verification | None) -> Appended:
        try:  # in a function of its own, which is short: `QuickCompletion.quick_steps`
            if self.faults.armed:
                self.faults.reach("group.before_append", partition=partition)
            return self.logs.get(GROUP_METADATA_TOPIC, partition).append_batch(batch, now_ms=now_ms, verification=guard)
        except KafkaError as error:
            refusal = self.refusal_of(error)
            if refusal is error:
                raise
            raise refusal from error
        except Exception as error:
            _fail_at_fault(error, self.faults)

    def _reach_after_append(self, partition: int) -> None:
        try:
            self.faults.reach("group.after_append", partition=partition)
        except Exception as error:
            _fail_at_fault(error, self.faults)

    def refusal_of(self, error: KafkaError) -> KafkaError:
        """Returns the error for the response to a request whose records the log refused with this one."""
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:
            self._too_large.write("%s", error.message)
        code = COORDINATOR_ERRORS.get(error.code)
        return error if code is None else KafkaError(code)  # as in Kafka without its message

    def max_batch_bytes(self) -> int:
        """Returns the most bytes that one batch of `__consumer_offsets` may have."""
        return self.metadata.topic_config(GROUP_METADATA_TOPIC).max_message_bytes

    def check_offset_count(self, count: int, names_bytes: int) -> None:
        """Raises the error of a batch that is too large, without building it, if no batch could hold so many offsets,
        whose records have names of so many bytes in all: a request of a few bytes each may name the same partition
        hundreds of thousands of times."""
        least_bytes = count * LEAST_OFFSET_BYTES + names_bytes
        most_bytes = self.max_batch_bytes()
        if least_bytes > most_bytes and not self.config.offsets_topic_compression_codec:
            self._too_large.write(
                "refused a commit of %s: it takes at least %d bytes, a batch of %s has %d at most",
                counted(count, "offset"),
                least_bytes,
                GROUP_METADATA_TOPIC,
                most_bytes,
            )
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka without a message

    def decide(self, group_id: str, decision: Decision, now_ms: int) -> Outcome[Any]:
        """Carry out a group's decision. Returns the decision's response and the fsyncs that must finish before it is
        sent."""
        partition = self.partition_for(group_id)
        flushes = self.carry_out(partition, self.loader.groups(partition), decision, now_ms)
        return Outcome(decision.response, flushes)

    def carry_out(self, partition: int, groups: Groups, decision: Decision, now_ms: int) -> Flushes:
        """Append the records, apply them, move timers, respond. Returns the fsyncs that must finish before any response
        is sent; the delayed responses wait for them. Raises KafkaError if the append failed; then all delayed requests
        fail with it."""
        with groups:
            return self.carry_out_within(partition, groups, decision, now_ms)

    def carry_out_within(self, partition: int, groups: Groups, decision: Decision, now_ms: int) -> Flushes:
        """As `carry_out`, for who is in `with groups`, because the rule changed something already."""
        flushes: Flushes = ()
        if decision.records:
            flushes = self._record(partition, groups, decision, now_ms)
        elif decision.replacements or decision.changes:
            self._change(groups, decision)
        if decision.refreshes or decision.describers:
            self._set_resolutions(groups, decision)
        replies = decision.replies
        if len(replies) > REPLIES_PER_TURN:
            self.move_timers(self.timers.defer_sessions(decision.timers))
            self._late_responses.complete(replies, flushes)
            return flushes
        if decision.timers:
            self.move_timers(decision.timers)
        answer_all(replies, flushes)
        return flushes

    def _record(self, partition: int, groups: Groups, decision: Decision, now_ms: int) -> Flushes:
        """Append the records of a decision, and apply them."""
        lines = announcements(decision.records, groups.has_member)
        try:
            flushed = self._append(partition, (record.encode() for record in decision.records), now_ms).flushed
        except KafkaError as error:
            for key in decision.retries:
                self.timers.schedule(key, RETRY_MS)
            for token, _ in decision.replies:
                token.fail(error.code)
            raise
        if decision.replayed:
            for record in decision.records:
                groups.apply(record)
        self._change(groups, decision)
        if lines:
            announce(lines)
        return () if flushed is None else (flushed,)

    @staticmethod
    def _change(groups: Groups, decision: Decision) -> None:
        for group in decision.replacements:
            groups.by_id[group.group_id] = group
        for change in decision.changes:
            change()

    def move_timers(self, moves: TimerMoves) -> None:
        """Start, move and stop these timers."""
        self.timers.move(moves)

    @staticmethod
    def _set_resolutions(groups: Groups, decision: Decision) -> None:
        from kafka_shim.group.kinds import KINDS

        for group_id, deadline_ms, epoch in decision.refreshes:
            if (group := groups.by_id.get(group_id)) is not None:
                KINDS[group.TYPE].set_refresh(group, deadline_ms, epoch)
        for group_id, may_describe in decision.describers:
            if (group := groups.by_id.get(group_id)) is not None:
                KINDS[group.TYPE].set_describer(group, may_describe)

    def commit_offsets(
        self,
        partition: int,
        groups: Groups,
        group_id: str,
        changes: Changes,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> Flushes:
        """Append and apply the offsets of one commit, which are one batch, whatever its size. Returns the fsyncs that
        must finish before the response."""
        if not changes:
            return ()
        entries = offset_entries(group_id, changes, now_ms)
        with groups:
            appended = self.append_entries(partition, entries, now_ms, producer, verification)
            if producer is None:
                groups.commit_all(group_id, changes, now_ms, appended.base_offset)
            else:
                groups.commit_pending(group_id, changes, producer[0], appended.base_offset)
        return () if appended.flushed is None else (appended.flushed,)

    def remove_offsets(self, groups: Groups, by_group: dict[str, Changes], now_ms: int) -> list[Flush]:
        """Append and apply tombstones of offsets of groups of one partition. Returns what the response waits for."""
        flushes: list[Flush] = []
        entries: list[Entry] = []
        removed: list[tuple[str, str, int]] = []
        for group_id, changes in by_group.items():
            entries += offset_entries(group_id, changes, now_ms)
            removed += [(group_id, topic, number) for topic, number, _ in changes]
        if not entries:
            return flushes
        partition = self.partition_for(removed[0][0])
        pairs = [(key, value) for key, value, *_ in entries]
        with groups:
            for taken in divided(pairs, RECORDS_PER_BATCH, self.max_batch_bytes()):
                appended = self.append_entries(partition, entries[taken], now_ms)
                if appended.flushed is not None:
                    flushes.append(appended.flushed)
                for group_id, topic, number in removed[taken]:
                    groups.offsets.remove(group_id, topic, number)
        return flushes

    # --- responses

    def answer(self, delayed: DelayedResponse, group_id: str) -> Outcome[Any] | DelayedResponse:
        """Returns the outcome, or what has it later and is in the purgatory until then."""
        if delayed.outcome is not None:
            outcome: Outcome[Any] = delayed.result()
            return outcome
        delayed.park(self.purgatory, group_id)
        return delayed


def _fail_at_fault(error: Exception, faults: Faults) -> NoReturn:
    """Raise what has the partition read again, if it may be of a fault point at an append."""
    from kafka_shim.group.groups import UNAPPLIED, NotAppliedError

    if isinstance(error, UNAPPLIED) or not faults.armed:
        raise error
    if isinstance(error, KafkaError):
        raise NotAppliedError(error.code, error.message) from error
    logger.error("a function at a fault point failed", exc_info=error)
    raise NotAppliedError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
