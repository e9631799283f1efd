"""The transitions of ordinary transactions in `__transaction_state`: the bases of `txn.log.Slot` and
`txn.log.TransactionLog`.

For C callers (`plain_end_txn`, `plain_produce`, `plain_txn_commits`). A transition is appended and applied as
`TransactionLog.write` does it. If a rule has to decide, nothing is changed.
"""

from collections.abc import Callable
from typing import Any

from kafka_shim.cext.transaction_records import Batches

class SlotBase:
    """The fields are explained in `Slot`."""

    key: bytes
    partition: int
    transaction: Any
    pending: bool
    is_ending: bool
    stuck: str
    refused: frozenset[Any]
    unmarked: dict[Any, None]
    pause_ms: int
    said: dict[Any, str]
    flush: Any

class TransactionLogBase:
    """`loaded`: the open logs by (topic, partition); of `topic` are those of the coordinator. `metadata` has the level
    of `feature` in `image.features`. `explanations` has the histories by id in `events`, and `moved(txn)` for what
    `note_plain` leaves of transactions with at most `most_shown` partitions. `states`: each by its number.
    `set_of(transactional_id, added, is_first=...)` returns the set of a list of partitions, `union` of two sets."""

    slots: dict[str, Any]
    unloaded: dict[int, str]
    _loaded: dict[tuple[str, int], Any]
    _metadata: Any
    _explanations: Any

    def __init__(
        self,
        loaded: dict[tuple[str, int], Any],
        metadata: Any,
        explanations: Any,
        batches: Batches,
        topic: str,
        feature: str,
        states: tuple[Any, ...],
        most_shown: int,
        set_of: Callable[..., frozenset[Any]],
        union: Callable[[frozenset[Any], frozenset[Any]], frozenset[Any]],
    ) -> None: ...
    def _not_added(
        self,
        api: str,
        transactional_id: str,
        error: Exception,
        now_ms: int,
        producer: tuple[int, int],
        outcomes: list[Any],
    ) -> list[Any]: ...
    def _refusal_of(self, log: Any, base_offset: int, error: Exception) -> Exception: ...
