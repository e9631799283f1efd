"""The lines of the log that tell an operator what changed in the metadata: topics, options, features; in
access_announcements.py ACLs, users, quotas and delegation tokens."""

from __future__ import annotations

import logging
from contextlib import suppress

from kafka_shim.metadata.authors import said_of
from kafka_shim.plurals import counted
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.protocol.records.partition_record import PartitionRecord
from kafka_shim.protocol.records.remove_topic_record import RemoveTopicRecord
from kafka_shim.protocol.records.topic_record import TopicRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from kafka_shim.metadata.authors import Author
    from kafka_shim.metadata.image import Image


logger = logging.getLogger("kafka_shim.metadata")
# The name whose level AlterConfigs of QuorumController sets.
store_logger = logging.getLogger("kafka_shim.metadata.store")

TOPIC, BROKER = 2, 4
KINDS = {TOPIC: "topic", BROKER: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
HIDDEN = "[hidden]"
# The record types of access_announcements.py, which few changes have: its import waits for the first.
ACCESS = frozenset((10, 11, 14, 18, 19, 22))
# What every first start stores: it needs not the table of all options, whose import takes time.
STORED_AT_START = "min.insync.replicas"


def announcements(records: Sequence[Any], image: Image) -> list[str]:
    """Returns one line for each topic and each resource whose options change. `image` is the one before the records."""
    return list(_lines(records, image)) if logger.isEnabledFor(logging.INFO) else []


def announce(lines: Sequence[str], by: Author | None = None) -> None:
    """Write the lines of a change that is made. It stays, so its request does not fail for want of a line."""
    with suppress(MemoryError):
        who = said_of(by) if lines and by is not None else ""
        for line in lines:
            logger.info("%s%s", line, who)


def warn_of_idle(records: Sequence[Any]) -> None:
    """Write a line for each resource whose options, as these records change them, have no effect here."""
    options = [record for record in records if isinstance(record, ConfigRecord)]
    if options:
        from kafka_shim.metadata.idle_options import idle_options

        for line in idle_options(options):
            store_logger.warning("%s", line)


def _lines(records: Sequence[Any], image: Image) -> Iterator[str]:
    created: dict[bytes, str] = {}
    added: dict[bytes, int] = {}
    options: dict[tuple[int, str], list[str]] = {}
    levels: list[str] = []
    access: list[Any] = []
    for record in records:
        if isinstance(record, TopicRecord):
            created[record.topic_id] = record.name
        elif isinstance(record, PartitionRecord):
            added[record.topic_id] = added.get(record.topic_id, 0) + 1
        elif isinstance(record, ConfigRecord):
            resource = record.resource_type, record.resource_name
            options.setdefault(resource, []).append(_option(record))
        elif isinstance(record, RemoveTopicRecord):
            topic = image.topics_by_id.get(record.topic_id)
            if topic is not None:
                options.pop((TOPIC, topic.name), None)  # unset with it
                yield f"topic {topic.name} is deleted"
        elif isinstance(record, FeatureLevelRecord):
            levels.append(f"{record.name}={record.feature_level}")
        elif record.API_KEY in ACCESS:
            access.append(record)
    if levels:
        yield f"levels of features change: {', '.join(levels)}"
    for topic_id, count in added.items():
        if topic_id in created:
            name = created[topic_id]
            given = options.pop((TOPIC, name), [])
            yield f"topic {name} is created with {counted(count, 'partition')}{''.join(f', {one}' for one in given)}"
        elif topic_id in image.topics_by_id:
            topic = image.topics_by_id[topic_id]
            former = len(topic.partitions)
            yield f"topic {topic.name} has {counted(former + count, 'partition')}, it had {former}"
    for (kind, name), changes in options.items():
        whose = f"{KINDS.get(kind, f'resource type {kind}')} {name}" if name else "all brokers"
        yield f"options of {whose} change: {', '.join(changes)}"
    if access:
        from kafka_shim.metadata.access_announcements import access_lines

        yield from access_lines(access, image)


def _option(record: ConfigRecord) -> str:
    if record.value is None:
        return f"{record.name} is unset"
    return f"{record.name}={HIDDEN if _is_secret(record) else record.value}"


def _is_secret(record: ConfigRecord) -> bool:
    """Options of brokers alone have secrets."""
    if record.resource_type != BROKER or record.name == STORED_AT_START:
        return False
    from kafka_shim.config import is_secret

    return is_secret(record.name)
