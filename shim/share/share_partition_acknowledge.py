"""Members give records of a share partition back: acknowledgements, the end of a share session, the end of a lock
(Kafka: SharePartition.acknowledge, releaseAcquiredRecords, releaseAcquisitionLockOnTimeout).

Everything that a request says of one share partition is decided, then persisted in one record, then applied: all of it,
or nothing and one error.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.share.record_state import EVENT_OF_TYPE, TERMINAL, AcknowledgeType, RecordEvent, RecordState
from kafka_shim.share.state import StateBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from kafka_shim.outcome import Flushes
    from kafka_shim.share.in_flight_batch import InFlightBatch, InFlightState
    from kafka_shim.share.share_partition import SharePartition

    # First offset, last offset, one acknowledge type for all of them or one for each.
    AcknowledgementBatch = tuple[int, int, Sequence[int]]

_NOT_COMPLETED = "The record state is invalid. The acknowledgement of delivery could not be completed."
_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."


class _Change:
    """What becomes of offsets with one state."""

    __slots__ = ("first_offset", "last_offset", "state", "target")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState, target: RecordState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.target = target


class _Plan:
    """Changes that were decided, and are not persisted."""

    __slots__ = ("_share", "_touched", "changes", "done_count")

    def __init__(self, share: SharePartition) -> None:
        self._share = share
        self._touched: set[int] = set()
        self.changes: list[_Change] = []
        # Offsets in the window that become terminal.
        self.done_count = 0

    def is_acquired(self, state: InFlightState) -> bool:
        return state.state is RecordState.ACQUIRED and id(state) not in self._touched

    def add(self, first_offset: int, last_offset: int, state: InFlightState, event: RecordEvent) -> None:
        """The event happens to an acquired record."""
        share = self._share
        target = state.after(event, share.delivery_limit)
        assert target is not None
        if event is RecordEvent.RELEASE and last_offset < share.start_offset:
            target = RecordState.ARCHIVED  # the log does not have it any more
        self._touched.add(id(state))
        self.changes.append(_Change(first_offset, last_offset, state, target))
        if target in TERMINAL:
            self.done_count += share.count_from_start(first_offset, last_offset)

    def stored(self) -> list[StateBatch]:
        """Returns what becomes of the offsets, in order. The offsets of a batch that was split are one again as far as
        the same happens to them: the share coordinator would merge them, for much more than it costs here."""
        batches: list[StateBatch] = []
        end_offset, before = -1, (-1, -1)
        for one in self.changes:
            priority = one.state.delivery_count, one.target
            if one.first_offset == end_offset and priority == before:
                batches[-1].last_offset = one.last_offset
            else:
                batches.append(StateBatch(one.first_offset, one.last_offset, one.target, one.state.delivery_count))
            end_offset, before = one.last_offset + 1, priority
        return batches

    def apply(self) -> None:
        share = self._share
        for one in self.changes:
            one.state.enter(one.target)
            if one.target is RecordState.AVAILABLE:
                share.found_available(one.first_offset)
        share.delivery_complete_count += self.done_count

    def carry_out(self) -> Flushes:
        """Persist, then apply. Returns the fsyncs that must finish before the response. Raises KafkaError: nothing has
        changed then."""
        if not self.changes:
            return ()
        share = self._share
        offset = share.acquirable_offset() if share.readers else None
        flushes = share.persist(self.stored(), self.done_count)
        self.apply()
        share.advance()
        # Most give nobody a record: each of a thousand that wait would look in vain.
        if share.readers and (
            any(one.target is RecordState.AVAILABLE for one in self.changes) or share.acquirable_offset() != offset
        ):
            share.wake()
        return flushes


# --- acknowledgements


def acknowledge(share: SharePartition, member_id: str, batches: Sequence[AcknowledgementBatch]) -> Flushes:
    """A member acknowledges acquired records. Returns the fsyncs that must finish before the response. Raises
    INVALID_RECORD_STATE, INVALID_REQUEST, and the errors of the share coordinator; a renewed lock stays renewed."""
    plan = _Plan(share)
    for first_offset, last_offset, types in batches:
        if last_offset < share.start_offset:
            continue  # the log does not have them any more
        for batch in _acquired_batches(share, first_offset, last_offset):
            if batch.last_offset >= share.start_offset:
                _acknowledge_batch(share, plan, member_id, batch, first_offset, last_offset, types)
    return plan.carry_out()


def _acquired_batches(share: SharePartition, first_offset: int, last_offset: int) -> list[InFlightBatch]:
    """Returns the batches that hold these offsets. Raises INVALID_RECORD_STATE or INVALID_REQUEST if they were never
    acquired."""
    at = share.floor(first_offset)
    if at < 0:
        if first_offset < share.start_offset <= last_offset:
            at = share.floor(share.start_offset)
        if at < 0:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
    batches = share.between(share.batches[at].first_offset, last_offset)
    if batches[-1].last_offset < first_offset:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The first offset in request is past acquired records.",
        )
    if batches[-1].last_offset < last_offset:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The last offset in request is past acquired records.",
        )
    return batches


def _acknowledge_batch(
    share: SharePartition,
    plan: _Plan,
    member_id: str,
    batch: InFlightBatch,
    first_offset: int,
    last_offset: int,
    types: Sequence[int],
) -> None:
    state = batch.state
    if state is not None:
        if not state.member_id:
            raise _invalid_state(_NOT_ACQUIRED)
        if state.member_id != member_id:
            raise _invalid_state("Member is not the owner of batch record")
        if not plan.is_acquired(state):
            raise _invalid_state(_NOT_COMPLETED)
        is_whole = batch.is_within(first_offset, last_offset)
        if is_whole and len(types) == 1 and not share.begins_within(batch):
            _acknowledge_piece(share, plan, (batch.first_offset, batch.last_offset, state), types[0])
            return
        batch.split()
    for offset, _, one in batch.pieces(max(first_offset, share.start_offset), last_offset):
        if one.state is not RecordState.ACQUIRED or not plan.is_acquired(one):
            raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
        if one.member_id != member_id:
            raise _invalid_state("Member is not the owner of offset")
        type_id = types[offset - first_offset] if len(types) > 1 else types[0]
        _acknowledge_piece(share, plan, (offset, offset, one), type_id)


def _acknowledge_piece(share: SharePartition, plan: _Plan, piece: tuple[int, int, InFlightState], type_id: int) -> None:
    first_offset, last_offset, state = piece
    if type_id == AcknowledgeType.RENEW:
        if not share.may_renew:
            raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
        state.lock_until_ms = share.lock(first_offset, last_offset)
        return
    plan.add(first_offset, last_offset, state, EVENT_OF_TYPE[type_id])


def _invalid_state(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)


# --- releases


def release_members(share: SharePartition, member_ids: Container[str]) -> Flushes:
    """The members' share sessions are over: release what they have acquired. Returns the fsyncs that must finish before
    the responses. Raises the errors of the share coordinator; the records are then released when their locks end."""
    plan = _Plan(share)
    for batch in share.batches:
        state = batch.state
        if state is not None and state.member_id in member_ids and share.begins_within(batch):
            batch.split()
        for first_offset, last_offset, one in batch.pieces(batch.first_offset, batch.last_offset):
            if one.state is RecordState.ACQUIRED and one.member_id in member_ids:
                plan.add(first_offset, last_offset, one, RecordEvent.RELEASE)
    return plan.carry_out()


def release_expired(share: SharePartition, locks: Iterable[tuple[int, int]], now_ms: int) -> None:
    """Locks on these offsets may have ended: release what was not renewed or given back. The records are released even
    if that cannot be persisted; then a crash loses this delivery from their delivery count."""
    plan = _Plan(share)
    for lock_first_offset, lock_last_offset in locks:
        at = max(share.floor(lock_first_offset), 0)
        for batch in share.batches[at : share.floor(lock_last_offset) + 1]:
            if batch.last_offset < lock_first_offset:
                continue
            state = batch.state
            if state is not None and state.lock_until_ms <= now_ms and share.begins_within(batch):
                batch.split()
            for first_offset, last_offset, one in batch.pieces(lock_first_offset, lock_last_offset):
                if plan.is_acquired(one) and one.lock_until_ms <= now_ms:
                    plan.add(first_offset, last_offset, one, RecordEvent.RELEASE)
    if not plan.changes:
        return
    try:
        plan.carry_out()
    except KafkaError:  # logged where it was raised
        plan.apply()
        share.advance()
        share.wake()
