"""Records as a consumer sees them: the bytes of a Fetch response, decoded, with control records named as such."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kafka_shim.cext.batch import BatchError, Verdict, scan
from kafka_shim.cext.records import iterate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from kafka_shim.cext.batch import Batch

# The type of a control record is in its key, behind two bytes of version (Kafka: ControlRecordType).
CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
# How much of a value that is no JSON its error shows.
MAX_SHOWN = 80
CUT_OFF = (Verdict.SHORT, Verdict.TRUNCATED)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a partition. `control` names a control record, and is None for every other. `is_aborted` is known
    only of reads that asked for aborted transactions (read_committed). `producer_id` is -1 without one."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    is_log_append_time: bool
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    control: str | None
    is_aborted: bool = False

    @property
    def text(self) -> str | None:
        """The value as UTF-8; what is none is shown as escapes."""
        return None if self.value is None else self.value.decode(errors="backslashreplace")

    def json(self) -> Any:
        """The value, parsed as JSON. Raises ValueError for other values, TypeError for a tombstone."""
        if self.value is None:
            raise TypeError(f"{self.topic}-{self.partition}, offset {self.offset}: a tombstone has no value")
        try:
            return json.loads(self.value)
        except ValueError as error:
            shown = repr(self.value[:MAX_SHOWN]) + ("..." if len(self.value) > MAX_SHOWN else "")
            error.add_note(f"{self.topic}-{self.partition}, offset {self.offset} has the value {shown}")
            raise


def decode_records(
    topic: str, partition: int, data: Any, aborted: Iterable[tuple[int, int]] = (), from_offset: int = 0
) -> Iterator[Record]:
    """Decode the record batches in `data` (bytes, or None). A batch that is cut off at the end is left out. `aborted`
    has (producer id, first offset) of transactions (KIP-98). Records below `from_offset` are left out: a broker returns
    whole batches. Raises BatchError for bytes that are no batches."""
    waiting = sorted(aborted, key=lambda one: one[1])
    ended_badly: set[int] = set()
    raw = bytes(data or b"")
    for batch in batches(raw):
        while waiting and waiting[0][1] <= batch.last_offset:
            ended_badly.add(waiting.pop(0)[0])
        is_aborted = batch.is_transactional and not batch.is_control and batch.producer_id in ended_badly
        for found in iterate(raw, batch.position, batch.end_position):
            control = _control(found.key) if batch.is_control else None
            if control == "ABORT":
                ended_badly.discard(batch.producer_id)
            if found.offset >= from_offset:
                yield Record(
                    topic=topic,
                    partition=partition,
                    offset=found.offset,
                    timestamp_ms=batch.max_timestamp if batch.is_log_append_time else found.timestamp,
                    key=found.key,
                    value=found.value,
                    headers=found.headers,
                    is_log_append_time=batch.is_log_append_time,
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    is_transactional=batch.is_transactional,
                    control=control,
                    is_aborted=is_aborted,
                )


def batches(raw: bytes) -> Iterator[Batch]:
    """The batches in `raw`, up to one that is cut off. Raises BatchError."""
    position = 0
    while position < len(raw):
        try:
            batch = scan(raw, position)
        except BatchError as error:
            if error.verdict in CUT_OFF:
                return
            raise
        yield batch
        position = batch.end_position


def _control(key: bytes | None) -> str:
    kind = int.from_bytes((key or b"")[2:4], signed=True)
    return CONTROL_TYPES.get(kind, f"UNKNOWN_{kind}")
