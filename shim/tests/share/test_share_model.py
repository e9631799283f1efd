"""A share partition over real logs against a small model: any interleaving of appends, fetches, acknowledgements, ends
of locks and sessions, deleted records, snapshots, stops, crashes.

The model knows for each offset its state, its delivery count, who has it and until when, and the delivery count that
was stored. From these follows who may get which offset, and which acknowledgement fails.
"""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka_shim import memory_dir
from kafka_shim.errors import ErrorCode
from kafka_shim.share.record_state import RecordState
from kafka_shim.share.share_partition_acknowledge import release_members
from kafka_shim.tests.share.share_node import ShareNode

MEMBERS = ("ann", "bob")
LIMIT = 3
LOCK_MS = 15_000
MOST_LOCKS = 100
SNAPSHOT_INTERVAL_MS = 300_000
AVAILABLE, ACQUIRED, DONE = "available", "acquired", "done"

members = st.sampled_from(MEMBERS)


class Offset:
    """One record of the model."""

    def __init__(self) -> None:
        self.state = AVAILABLE
        self.count = 0
        self.stored_count = 0
        self.member = ""
        self.until_ms = 0

    def release(self) -> None:
        self.stored_count = self.count
        self.state = DONE if self.count >= LIMIT else AVAILABLE
        self.member = ""


def release_member(share, member):
    release_members(share, {member})


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.offsets: list[Offset] = []
        self.log_start = 0
        self.directory = memory_dir.make()
        self.node = ShareNode(
            self.directory,
            group_share_delivery_count_limit=LIMIT,
            group_share_record_lock_duration_ms=LOCK_MS,
            group_share_partition_max_record_locks=MOST_LOCKS,
            share_coordinator_state_topic_num_partitions=1,
            share_coordinator_snapshot_update_records_per_snapshot=2,
            share_coordinator_cold_partition_snapshot_interval_ms=SNAPSHOT_INTERVAL_MS,
        )

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.stop()
            memory_dir.remove(self.directory)

    @rule(count=st.integers(1, 8))
    def produce(self, count: int) -> None:
        self.node.produce(count)
        self.offsets += [Offset() for _ in range(count)]

    @rule(member=members, most=st.integers(1, 12), size=st.integers(1, 6), strict=st.booleans())
    def fetch(self, member: str, most: int, size: int, strict: bool) -> None:
        got = self.node.acquire(member, most, size, strict=strict)
        if not got:  # the share partition may just have learnt of deleted records
            got = self.node.acquire(member, most, size, strict=strict)
        taken = [(offset, count) for first, last, count in got for offset in range(first, last + 1)]
        assert len({offset for offset, _ in taken}) == len(taken), "the same offset twice in one answer"
        if strict:
            assert len(taken) <= most
        for offset, count in taken:
            record = self.offsets[offset]
            if offset < self.log_start:
                continue  # the beginning of a stored batch that is half deleted, as from Kafka
            assert record.state == AVAILABLE, f"{offset} is {record.state} of {record.member}"
            record.state, record.member = ACQUIRED, member
            record.count += 1
            record.until_ms = self.node.clock.monotonic_ms() + LOCK_MS
            assert count == record.count <= LIMIT
        if not taken:
            share = self.node.share
            is_full = share.in_flight_count() >= MOST_LOCKS
            free = [offset for offset, one in enumerate(self.offsets) if one.state == AVAILABLE]
            assert all(offset < self.log_start or (is_full and offset > share.end_offset) for offset in free), free

    @rule(
        member=members, first=st.integers(0, 40), kinds=st.lists(st.sampled_from((0, 1, 2, 3)), min_size=1, max_size=6)
    )
    def acknowledge_each(self, member: str, first: int, kinds: list[int]) -> None:
        self._acknowledge(member, first, first + len(kinds) - 1, kinds)

    @rule(member=members, first=st.integers(0, 40), length=st.integers(0, 12), kind=st.sampled_from((1, 2, 3)))
    def acknowledge_range(self, member: str, first: int, length: int, kind: int) -> None:
        self._acknowledge(member, first, first + length, [kind])

    @rule(member=members, kind=st.sampled_from((1, 2, 3)), data=st.data())
    def acknowledge_own(self, member: str, kind: int, data: st.DataObject) -> None:
        own = [offset for offset, one in enumerate(self.offsets) if one.member == member and offset >= self.log_start]
        if own:
            first = data.draw(st.sampled_from(own))
            last = first
            while last + 1 in own and data.draw(st.booleans()):
                last += 1
            self._acknowledge(member, first, last, [kind])

    def _acknowledge(self, member: str, first: int, last: int, kinds: list[int]) -> None:
        start = self.node.share.start_offset
        code = self.node.acknowledge(member, (first, last, kinds))
        if last < start:
            assert code is ErrorCode.NONE
            return
        wanted = range(max(first, start), last + 1)
        may = all(offset < len(self.offsets) and self.offsets[offset].member == member for offset in wanted)
        assert (code is ErrorCode.NONE) == may, code
        if not may:
            assert code in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
            return
        for offset in wanted:
            record = self.offsets[offset]
            kind = kinds[offset - first] if len(kinds) > 1 else kinds[0]
            if kind == 2:
                record.release()
            else:
                record.state, record.member = DONE, ""

    @rule(member=members, data=st.data())
    def renew(self, member: str, data: st.DataObject) -> None:
        start = self.node.share.start_offset
        own = [offset for offset, one in enumerate(self.offsets) if one.member == member and offset >= start]
        if own:
            offset = data.draw(st.sampled_from(own))
            assert self.node.acknowledge(member, (offset, offset, [4])) is ErrorCode.NONE
            self.offsets[offset].until_ms = self.node.clock.monotonic_ms() + LOCK_MS

    @rule(member=members)
    def end_session(self, member: str) -> None:
        release_member(self.node.share, member)
        for record in self.offsets:
            if record.member == member:
                record.release()

    @rule(delay_ms=st.sampled_from((1, 5_000, 14_999, 15_000)))
    def wait(self, delay_ms: int) -> None:
        self.node.clock.advance(delay_ms)
        now_ms = self.node.clock.monotonic_ms()
        for record in self.offsets:
            if record.state == ACQUIRED and record.until_ms <= now_ms:
                record.release()

    @rule(part=st.integers(0, 3))
    def delete_records(self, part: int) -> None:
        log = self.node.logs.get("t", 0)
        offset = min(self.log_start + part, log.log_end_offset)
        if offset > self.log_start:
            log.delete_records_before(offset)
            self.log_start = offset

    @rule()
    def leave_together(self) -> None:
        release_members(self.node.share, set(MEMBERS))
        for record in self.offsets:
            if record.member:
                record.release()

    @rule()
    def snapshot_and_prune(self) -> None:
        self.wait(SNAPSHOT_INTERVAL_MS)
        self.node.state.coordinator.snapshot_cold()
        self.node.state.coordinator.prune()

    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        if is_clean:
            self.node.restart()
        else:
            self.node.crash()
        for record in self.offsets:
            if record.state == ACQUIRED:
                record.state, record.member, record.count = AVAILABLE, "", record.stored_count

    @invariant()
    def states_agree(self) -> None:
        if not hasattr(self, "node"):
            return
        share = self.node.share
        known = {}
        for batch in share.batches:
            for first, last, state in batch.pieces(batch.first_offset, batch.last_offset):
                known.update(dict.fromkeys(range(first, last + 1), state))
        done = 0
        for offset, record in enumerate(self.offsets):
            if offset < share.start_offset:
                assert record.state == DONE or offset < self.log_start or record.state == ACQUIRED
                continue
            state = known.get(offset)
            if state is None:
                assert record.state == AVAILABLE
                continue
            done += state.is_terminal
            if state.state is RecordState.ARCHIVED and offset < self.log_start:
                continue
            names = {RecordState.AVAILABLE: AVAILABLE, RecordState.ACQUIRED: ACQUIRED}
            assert names.get(state.state, DONE) == record.state, offset
            assert state.member_id == record.member
            if record.state != DONE:
                assert state.delivery_count == record.count
        assert share.delivery_complete_count == done


Machine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
)
TestShareModel = Machine.TestCase
