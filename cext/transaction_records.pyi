"""The state of a transactional id, its record in `__transaction_state`, and what each transition of it does."""

from collections.abc import Callable
from typing import Any, Self

class TransactionBase:
    """The fields of a transactional id; the base of `txn.transaction.Transaction`, which says what they are. `state` is
    an IntEnum, `partitions` holds (topic, partition). Raises OverflowError for a number beyond its field."""

    transactional_id: str
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: Any
    partitions: frozenset[tuple[str, int]]
    start_ms: int
    last_update_ms: int
    client_version: int

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        previous_producer_id: int,
        next_producer_id: int,
        producer_epoch: int,
        last_producer_epoch: int,
        timeout_ms: int,
        state: Any,
        partitions: frozenset[tuple[str, int]],
        start_ms: int,
        last_update_ms: int,
        client_version: int,
    ) -> None: ...
    def moved(self, state: Any, partitions: frozenset[tuple[str, int]], now_ms: int, client_version: int) -> Self:
        """Return another value with these, updated at `now_ms`, of the same producer, which is its previous one, too.
        What else the transition changes the rule sets before it returns it."""

def encode_value(txn: TransactionBase, version: int, partitions: bytes) -> bytes:
    """Return the record value of a version (Kafka: TransactionLogValue). Version 0 has no tagged fields. `partitions`
    is the array of partitions in the form of that version. Raises ValueError for what no record can hold."""

def encode_batch(txn: TransactionBase, version: int, partitions: bytes, key: bytes) -> bytearray:
    """Return the batch that `records.build` makes of one record: this key, and the value of `encode_value`, at the time
    of the last update."""

class Batches:
    """Makes the batches of transitions. `form_of(txn, version)` returns what `encode_batch` takes as partitions; it is
    asked once of a set of at most `most_partitions`."""

    def __init__(self, form_of: Callable[[Any, int], bytes], most_partitions: int) -> None: ...
    def encode(self, key: bytes, txn: TransactionBase, version: int) -> bytearray:
        """Return what `encode_batch` does."""

def note_plain(events_by_id: Any, txn: TransactionBase, most_partitions: int) -> bool:
    """Add a transition to the history of its id, which becomes the last of `events_by_id`; one of a transaction that
    grows takes the place of the one before. Returns False, and has done nothing, if the id has no history or the
    transaction more than `most_partitions`."""
