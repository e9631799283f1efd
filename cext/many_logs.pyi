"""One request's appends to the logs of many partitions, in one pass: the batches of a Produce, the commit markers of a
transaction.

Each partition is served as by `cext.log_base`, with one write. Partitions about which a rule has to decide are left to
the caller, unchanged. An error of one log does not affect the others.
"""

from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import Buffer

from kafka_shim.cext.log_base import Verification

class PartitionBatch:
    """One partition's part of a Produce: what came, the target log and the result. `answer` is its row of the response.

    The producer is that of a transactional batch; `producer_id` is -1 of any other, and of one without a producer id:
    it belongs to no transaction, whatever its attributes say. It is read of the first batch; a second one is refused
    anyway. `expected_bytes` is what the records decompress to, 0 where they are not compressed. `checked` is what a
    thread found of the records; None: the append checks them. `is_internal`: of an internal topic, to which its client
    may not write. `error` is None, the refusal, or what a bug raised."""

    answer: Any
    records: Any
    log: Any
    error: Any
    verification: Verification | None
    checked: Any
    expected_bytes: int
    is_internal: bool

    def __init__(self, answer: object, records: Buffer) -> None: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...

class Produced:
    """The passes over the partitions of a Produce, whose rows in the request and in the response are of these
    classes."""

    def __init__(self, row_class: type[Any], answer_class: type[Any]) -> None: ...
    def locate(
        self,
        rows: Sequence[Any],
        key: str | bytes,
        logs: dict[tuple[str, int], Any],
        name: str | None,
        found: dict[tuple[Any, int], PartitionBatch],
    ) -> list[tuple[PartitionBatch, bool]]:
        """Put a batch into `found`, by (key, index), for each row of a topic; of those with one index the last counts.
        Its log is that of (name, index) if `logs` has it and it is online. Returns the batches without a log, or whose
        records are null, and whether they are. `name` is None if no log may be taken from `logs`. Raises TypeError for
        a row of another class."""

    def append(
        self,
        batches: list[PartitionBatch],
        put: Callable[[int, Sequence[Buffer]], int],
        now_ms: int,
        cached_batches: int,
    ) -> tuple[list[PartitionBatch], int]:
        """Append by `LogBase.append_data` each batch that has no error, was not checked before and is not internal, and
        fill in its answer. Returns the others, and the bytes that were appended. Of those an append failed for, `error`
        is set: what `LogBase.not_appended` made of it, or the exception itself, which is a bug."""

def in_order(answers: dict[Any, list[Any]], found: dict[tuple[Any, int], PartitionBatch]) -> list[PartitionBatch]:
    """Put the batches' answers into the lists of `answers`, by the first of what `found` has them by. Returns the
    batches in the same order."""

def are_plain(batches: list[PartitionBatch]) -> bool:
    """Returns whether no batch takes long to check: none is compressed, nor will be."""

def transactional(batches: list[PartitionBatch]) -> list[PartitionBatch]:
    """Returns those that say to be a part of a transaction."""

def of_one_producer(batches: list[PartitionBatch]) -> list[PartitionBatch] | None:
    """Returns those of a producer that were not refused; None if there are several producers or epochs."""

def refused(batches: list[PartitionBatch]) -> list[PartitionBatch]:
    """Returns those with an error."""

def logs_and_sequences(batches: list[PartitionBatch]) -> list[tuple[Any, int]]:
    """Returns what `verify_each` asks of them."""

def verify_each(
    asked: list[tuple[Any, int]], producer_id: int, producer_epoch: int, adds: bool, now_ms: int
) -> tuple[list[Any], list[tuple[str, int]], list[Any]]:
    """`ProducersBase.verify` for each (log, base sequence) of one producer. Returns the guards, None or refusals of
    all; (topic, partition) of those with a guard; and the refusals."""

def take_guards(batches: list[PartitionBatch], outcomes: list[Any]) -> list[tuple[PartitionBatch, Any]]:
    """Give each batch its guard. Returns those that have a refusal in its place. Raises ValueError if there are not as
    many of the one as of the other."""

def commit_each(
    logs: dict[tuple[str, int], Any],
    unmarked: dict[tuple[str, int], None],
    put: Callable[[int, Sequence[Buffer]], int],
    marker: bytearray,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    transaction_version: int,
    now_ms: int,
    hooks: list[tuple[str | None, Callable[[Any, int, int, bool, int], None]]],
) -> dict[tuple[str, int], Any]:
    """Append the commit marker by `LogBase.commit_plain` to each log of `unmarked`, call the `hooks` of its topic and
    of any (None), and take the partition out. Returns those whose append failed, with what `LogBase.not_appended` made
    of it; they stay. What a hook raises is raised: the partition stays then too, and so do those after it."""
