"""The records of `__share_group_state`: a two-byte type before the key, a two-byte version before the value."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from kafka_shim.cext import messages
from kafka_shim.protocol.records.share_snapshot_key import ShareSnapshotKey
from kafka_shim.protocol.records.share_snapshot_value import ShareSnapshotValue
from kafka_shim.protocol.records.share_snapshot_value import StateBatch as SnapshotBatch
from kafka_shim.protocol.records.share_update_key import ShareUpdateKey
from kafka_shim.protocol.records.share_update_value import ShareUpdateValue
from kafka_shim.protocol.records.share_update_value import StateBatch as UpdateBatch
from kafka_shim.share.state import UNINITIALIZED_START_OFFSET, ShareGroupOffset, StateBatch, combine, is_combined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

    # (group id, topic id, partition)
    SharePartitionKey = tuple[str, bytes, int]

VERSION = 0

_SHORT = Struct(">h")
_CLASSES: dict[int, tuple[type[Message], type[Message]]] = {
    ShareSnapshotKey.API_KEY: (ShareSnapshotKey, ShareSnapshotValue),
    ShareUpdateKey.API_KEY: (ShareUpdateKey, ShareUpdateValue),
}


class RecordError(ValueError):
    """A key or value that this version cannot read. Replay skips it with a warning."""


class ShareRecord:
    """One record: a snapshot, an update (`is_update`), or with `state` None the tombstone of a snapshot."""

    __slots__ = ("is_update", "key", "state")

    def __init__(self, key: SharePartitionKey, state: ShareGroupOffset | None, is_update: bool = False) -> None:
        self.key = key
        self.state = state
        self.is_update = is_update

    def encode(self) -> tuple[bytes, bytes | None]:
        """Returns (key bytes, value bytes)."""
        group_id, topic_id, partition = self.key
        key_class = ShareUpdateKey if self.is_update else ShareSnapshotKey
        key_message = key_class(group_id=group_id, topic_id=topic_id, partition=partition)
        key = _SHORT.pack(key_class.API_KEY) + messages.encode(key_message, VERSION)
        state = self.state
        if state is None:
            return key, None
        value: Message
        if self.is_update:
            value = ShareUpdateValue(
                snapshot_epoch=state.snapshot_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
                state_batches=[_fill(UpdateBatch(), batch) for batch in state.state_batches],
            )
        else:
            value = ShareSnapshotValue(
                snapshot_epoch=state.snapshot_epoch,
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
                create_timestamp=state.create_timestamp_ms,
                write_timestamp=state.write_timestamp_ms,
                state_batches=[_fill(SnapshotBatch(), batch) for batch in state.state_batches],
            )
        return key, _SHORT.pack(VERSION) + messages.encode(value, VERSION)


def _fill(target: Any, batch: StateBatch) -> Any:
    target.first_offset = batch.first_offset
    target.last_offset = batch.last_offset
    target.delivery_state = batch.delivery_state
    target.delivery_count = batch.delivery_count
    return target


def decode(key: bytes, value: bytes | None) -> ShareRecord:
    """Decode a record. Raises RecordError for an unknown type or version, and for bytes that do not parse."""
    try:
        record_type = _SHORT.unpack_from(key)[0]
        if record_type not in _CLASSES:
            raise RecordError(f"record type {record_type} is unknown")
        key_class, value_class = _CLASSES[record_type]
        found: Any = messages.decode(key_class, VERSION, key, 2)
        share_key = found.group_id, found.topic_id, found.partition
        if value is None:
            return ShareRecord(share_key, None, is_update=key_class is ShareUpdateKey)
        version = _SHORT.unpack_from(value)[0]
        if version != VERSION:
            raise RecordError(f"version {version} of {value_class.__name__} is unknown")
        body: Any = messages.decode(value_class, version, value, 2)
    except (messages.WireError, StructError) as error:
        raise RecordError(str(error)) from error
    batches = [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in body.state_batches
    ]
    if not is_combined(batches):  # as nobody writes them, but `combine` relies on it
        batches = combine((), batches, UNINITIALIZED_START_OFFSET)
    is_update = key_class is ShareUpdateKey
    state = ShareGroupOffset(
        body.snapshot_epoch,
        0 if is_update else body.state_epoch,
        body.leader_epoch,
        body.start_offset,
        body.delivery_complete_count,
        batches,
        0 if is_update else body.create_timestamp,
        0 if is_update else body.write_timestamp,
    )
    return ShareRecord(share_key, state, is_update)
