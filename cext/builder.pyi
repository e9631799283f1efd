"""Write record batches: from tuples, as transaction markers, under another codec."""

from collections.abc import Iterable, Sequence

from typing_extensions import Buffer

from kafka_shim.cext.batch import Batch

def build(
    records: Iterable[tuple[bytes | None, bytes | None, int, Sequence[tuple[str | bytes, bytes | None]]]],
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
    codec: int = 0,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = 0,
    append_time_ms: int = -1,
) -> bytearray:
    """Return one batch of (key, value, timestamp_ms, headers) tuples at consecutive offsets.

    `timestamp_type` 1 is LogAppendTime: every record has `append_time_ms`. Raises ValueError if there are no records,
    the codec is unknown, or the batch is too large.
    """

def build_marker(
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    commit: bool,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = 0,
) -> bytearray:
    """Return the control batch that ends a transaction (Kafka: EndTransactionMarker). It is the same for TV0, TV1 and
    TV2."""

def parse_marker(key: bytes, value: bytes) -> tuple[bool, int]:
    """Return (commit, coordinator epoch) of an end-transaction control record. Raises ValueError for any other
    record."""

def recompress(buffer: Buffer, batch: Batch, codec: int, level: int | None = None, limit_bytes: int = ...) -> bytearray:
    """Return a copy of the batch with its records compressed by another codec. All other fields stay. `validate` must
    have accepted the batch."""
