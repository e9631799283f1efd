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
    """One batch of (key, value, timestamp_ms, headers) tuples at consecutive offsets.

    `timestamp_type` 1 is LogAppendTime: every record has `append_time_ms`. ValueError for no records, an unknown codec,
    or more bytes than a batch can hold.
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
    """The control batch that ends a transaction, as Kafka's EndTransactionMarker; the same for TV0, TV1 and TV2."""

def parse_marker(key: bytes, value: bytes) -> tuple[bool, int]:
    """(commit, coordinator epoch) of an end-transaction control record. ValueError for any other record."""

def recompress(buffer: Buffer, batch: Batch, codec: int, level: int | None = None, limit_bytes: int = ...) -> bytearray:
    """A copy of the batch, which `validate` has passed, with its records under another codec; all other facts stay."""
