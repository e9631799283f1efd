"""Records in flight: what a share partition knows of each offset between its start and end (Kafka: InFlightBatch,
InFlightState)."""

from __future__ import annotations

from kafka_shim.share.record_state import TERMINAL, TRANSITIONS, RecordEvent, RecordState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The owner of what is not acquired.
NOBODY = ""


class InFlightState:
    """The state of one offset, or of all offsets of a batch that was not split."""

    __slots__ = ("delivery_count", "lock_until_ms", "member_id", "state")

    def __init__(
        self, state: RecordState, delivery_count: int, member_id: str = NOBODY, lock_until_ms: int = 0
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        # When the acquisition lock ends, on the monotonic clock.
        self.lock_until_ms = lock_until_ms

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    def after(self, event: RecordEvent, delivery_limit: int) -> RecordState | None:
        """Returns the state after the event, or None if it is not allowed now. A record that was delivered as often as
        it may be is archived and not released."""
        target = TRANSITIONS[event].get(self.state)
        if target is RecordState.AVAILABLE and self.delivery_count >= delivery_limit:
            return RecordState.ARCHIVED
        return target

    def acquire(self, member_id: str, lock_until_ms: int) -> None:
        """Give the record to a member."""
        self.state = TRANSITIONS[RecordEvent.ACQUIRE][self.state]
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_until_ms = lock_until_ms

    def enter(self, target: RecordState) -> None:
        """Take the record from its member."""
        self.state = target
        self.member_id = NOBODY
        self.lock_until_ms = 0


class InFlightBatch:
    """Consecutive offsets that were acquired together. They have one state until a part of them is treated differently
    (`split`); then each offset has its own. `most_delivered` is at least the delivery count of each of those."""

    __slots__ = ("_done_count", "first_offset", "last_offset", "most_delivered", "offset_states", "state")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        # None once the batch is split.
        self.state: InFlightState | None = state
        self.offset_states: list[InFlightState] = []
        self.most_delivered = 0
        # So many offsets at the beginning of a batch that was split are known to be done.
        self._done_count = 0

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    def split(self) -> None:
        """Give each offset its own state. Does nothing if that was done."""
        state = self.state
        if state is not None:
            self.offset_states = [
                InFlightState(state.state, state.delivery_count, state.member_id, state.lock_until_ms)
                for _ in range(len(self))
            ]
            self.state = None
            self.most_delivered = state.delivery_count

    def state_at(self, offset: int) -> InFlightState:
        """Returns the state of one offset of the batch."""
        return self.offset_states[offset - self.first_offset] if self.state is None else self.state

    def is_done_at(self, offset: int) -> bool:
        """Returns whether the offset is done with. Of one behind the batch, which the start of the log has passed:
        whether all of the batch is, as long as it has one state."""
        state = self.state if offset > self.last_offset else self.state_at(offset)
        return state is not None and state.is_terminal

    def last_done(self) -> int:
        """Returns the last offset before the first that is not done; one below the batch if there is none."""
        if self.state is not None:
            return self.last_offset if self.state.is_terminal else self.first_offset - 1
        count = self._done_count
        while count < len(self.offset_states) and self.offset_states[count].is_terminal:
            count += 1
        self._done_count = count  # what is done stays so
        return self.first_offset + count - 1

    def first_available(self, from_offset: int) -> int:
        """Returns the first available offset, or -1. It is known that none before `from_offset` is."""
        if self.state is not None:
            return self.first_offset if self.state.state is RecordState.AVAILABLE else -1
        for at in range(max(from_offset - self.first_offset, 0), len(self.offset_states)):
            if self.offset_states[at].state is RecordState.AVAILABLE:
                return self.first_offset + at
        return -1

    def pieces(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, InFlightState]]:
        """Yields (first offset, last offset, state) of what has one state: the whole batch, or each of the offsets from
        `first_offset` to `last_offset`."""
        if self.state is not None:
            yield self.first_offset, self.last_offset, self.state
            return
        first = max(first_offset, self.first_offset)
        for offset in range(first, min(last_offset, self.last_offset) + 1):
            yield offset, offset, self.offset_states[offset - self.first_offset]

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Returns whether all offsets of the batch are in the range."""
        return self.first_offset >= first_offset and self.last_offset <= last_offset
