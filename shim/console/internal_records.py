"""Records of the broker's own topics, as `dump-log` shows them."""

from __future__ import annotations

from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.storage import dump_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.cext.records import Record

_READERS = {GROUP_METADATA_TOPIC: dump_records.offsets, TRANSACTION_STATE_TOPIC: dump_records.transactions}


def texts_of(topic: str, record: Record) -> tuple[str | None, str | None] | None:
    """Return key and value as JSON, or None if the topic is not one of the broker's."""
    reader = _READERS.get(topic)
    return None if reader is None else reader(record)
