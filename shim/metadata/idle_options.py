"""The options of each kind of resource, and which of those that somebody alters have no effect here."""

from __future__ import annotations

from contextlib import suppress

from kafka_shim.config import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    QUOTA_OPTIONS,
    TOPIC_OPTIONS,
    ConfigError,
)
from kafka_shim.metadata.image import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_shim.config import Option
    from kafka_shim.protocol.records.config_record import ConfigRecord

TABLES: dict[int, dict[str, Option]] = {
    RESOURCE_TOPIC: TOPIC_OPTIONS,
    RESOURCE_BROKER: BROKER_OPTIONS,
    RESOURCE_CLIENT_METRICS: CLIENT_METRICS_OPTIONS,
    RESOURCE_GROUP: GROUP_OPTIONS,
}
_RESOURCES = {
    RESOURCE_TOPIC: "topic",
    RESOURCE_BROKER: "broker",
    RESOURCE_CLIENT_METRICS: "client metrics",
    RESOURCE_GROUP: "group",
}


def idle_options(records: Iterable[ConfigRecord]) -> Iterator[str]:
    """Yield one line for each resource whose changed options have no effect here, unless they have their default."""
    idle: dict[tuple[int, str], list[str]] = {}
    for record in records:
        row = TABLES[record.resource_type].get(record.name) or QUOTA_OPTIONS.get(record.name)
        if row is None or record.value is None or not row.idle_reason:
            continue
        with suppress(ConfigError):  # a value that Kafka stores and no broker can read
            if not row.is_default(record.value):
                idle.setdefault((record.resource_type, record.resource_name), []).append(record.name)
    for (kind, name), options in idle.items():
        yield f"without effect here: {', '.join(sorted(options))} of {_RESOURCES[kind]} {name}".rstrip()
