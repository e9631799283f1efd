"""The state of a transactional id and the value of its record in `__transaction_state`."""

from typing import Any

class TransactionEnd:
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

def encode_value(txn: TransactionEnd, version: int, partitions: bytes) -> bytes:
    """Return the record value of a version (Kafka: TransactionLogValue). Version 0 has no tagged fields. `partitions`
    is the array of partitions in the form of that version. Raises ValueError for what no record can hold."""
