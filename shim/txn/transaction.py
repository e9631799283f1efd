"""The value of one transactional id: its states, their names, and the fields that `__transaction_state` stores (Kafka:
TransactionMetadata, TransactionState). The rules are in `state`."""

from __future__ import annotations

from enum import IntEnum

from kafka_shim.cext.transaction_records import TransactionBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    TopicPartition = tuple[str, int]

NO_PRODUCER_ID = -1
# The timeout of a transaction that never ends by time (KIP-939; TransactionMetadata.isDistributedTwoPhaseCommitTxn).
NO_TIMEOUT_MS = 0x7FFFFFFF
NO_PRODUCER_EPOCH = -1
MAX_PRODUCER_EPOCH = 32767
# The last epoch is reserved for the marker that fences the producer.
EXHAUSTED_PRODUCER_EPOCH = MAX_PRODUCER_EPOCH - 1

# Levels of the feature transaction.version, and of a client's requests. TV1 clients send the same requests as TV0
# clients.
TV0, TV1, TV2 = 0, 1, 2


class State(IntEnum):
    """State ids, as in `TransactionLogValue.TransactionStatus`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, PREPARE_EPOCH_FENCE = State
AT_REST = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})

ALLOWED_FROM: dict[State, frozenset[State]] = {
    EMPTY: AT_REST,
    ONGOING: AT_REST | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: AT_REST | {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: AT_REST,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}

# The names that the Admin API and the tools show.
STATE_NAMES: dict[State, str] = {
    EMPTY: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    PREPARE_ABORT: "PrepareAbort",
    COMPLETE_COMMIT: "CompleteCommit",
    COMPLETE_ABORT: "CompleteAbort",
    DEAD: "Dead",
    PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
STATES_BY_NAME = {name: state for state, name in STATE_NAMES.items()}

NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


FIELDS = (
    "client_version",
    "last_producer_epoch",
    "last_update_ms",
    "next_producer_id",
    "partitions",
    "previous_producer_id",
    "producer_epoch",
    "producer_id",
    "start_ms",
    "state",
    "timeout_ms",
    "transactional_id",
)


class Transaction(TransactionBase):
    """The coordinator's state of one transactional id. It is immutable; a transition creates a new one.

    `last_producer_epoch` is the epoch before the last bump, kept in memory only (KIP-360; B3). Everything else is in
    the record. `next_producer_id` is set only between prepare and complete of a producer whose epochs are exhausted
    (B4). `client_version` is the protocol level of the request that made the transition.
    """

    __slots__ = ()
    if TYPE_CHECKING:
        state: State

    def with_partitions(self, partitions: frozenset[TopicPartition]) -> Transaction:
        """Return the value with other partitions, for display."""
        fields = {name: getattr(self, name) for name in FIELDS}
        fields["partitions"] = partitions
        return Transaction(**fields)

    @property
    def is_prepared(self) -> bool:
        """Whether the decision is written and the markers are being written."""
        return self.state is PREPARE_COMMIT or self.state is PREPARE_ABORT

    @property
    def commits(self) -> bool:
        """Whether a prepared transaction commits."""
        return self.state is PREPARE_COMMIT

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in FIELDS)
        return f"Transaction({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transaction):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in FIELDS)

    __hash__ = None  # type: ignore[assignment]
