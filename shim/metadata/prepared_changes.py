"""What `MetadataStore.commit` needs of thousands of records, made in steps: the batch, what it makes, the
lines of the log. It holds while nobody else changes the metadata (`large_changes.decide`)."""

from __future__ import annotations

from contextlib import suppress

from kafka_shim.metadata.after_commit import Rest
from kafka_shim.metadata.announcements import announce, warn_of_idle
from kafka_shim.metadata.image import RESOURCE_TOPIC, Image
from kafka_shim.metadata.replay import APPLY, entity_of
from kafka_shim.metadata.replay_topics import partition_of
from kafka_shim.protocol.records.client_quota_record import ClientQuotaRecord
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.partition_record import PartitionRecord
from kafka_shim.protocol.records.topic_record import TopicRecord
from kafka_shim.protocol.records.user_scram_credential_record import UserScramCredentialRecord
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kafka_shim.metadata.after_commit import AfterCommit
    from kafka_shim.metadata.authors import Author
    from kafka_shim.turns import Steps

LINES_PER_STEP = 16


class PreparedChange:
    """The records of one change. `made` is set if they only add to the state."""

    __slots__ = ("batch", "lines", "made", "now_ms")

    def __init__(self, now_ms: int, batch: bytearray, lines: list[str], made: Image | None) -> None:
        self.now_ms = now_ms
        self.batch = batch
        self.lines = lines
        self.made = made


def state_made(records: Sequence[Any], image: Image) -> Steps[Image | None]:
    """Returns what the records make in an image of their own: new topics, partitions, quotas and credentials. None if
    they do anything else, or take something away."""
    made = Image()
    for record in records:
        if isinstance(record, PartitionRecord) and record.topic_id in image.topics_by_id:
            if not _is_added(made, record, len(image.topics_by_id[record.topic_id].partitions)):
                return None
            yield
            continue
        if isinstance(record, PartitionRecord):
            is_new = record.topic_id in made.topics_by_id
        elif isinstance(record, ConfigRecord):
            is_new = record.resource_type == RESOURCE_TOPIC and record.resource_name in made.topics
        elif isinstance(record, ClientQuotaRecord):
            is_new = not record.remove
            entity = entity_of(record)
            if entity in image.quotas:
                made.quotas.setdefault(entity, image.quotas[entity])
        else:
            is_new = isinstance(record, (TopicRecord, UserScramCredentialRecord))
        if not is_new:
            return None
        APPLY[record.API_KEY](made, record)
        yield
    return made


def _is_added(made: Image, record: PartitionRecord, present: int) -> bool:
    """Add the next partition of a topic that has so many. Returns False if the record is of another one."""
    first, partitions = made.added.setdefault(record.topic_id, (present, []))
    if record.partition_id != first + len(partitions):
        return False
    partitions.append(partition_of(record))
    made.partition_count += 1
    return True


def commit_in_steps(
    commit: Callable[[], object],
    after: AfterCommit,
    prepared: PreparedChange | None,
    follow: Callable[[], Steps[None]],
    options: Sequence[Any] = (),
    by: Author | None = None,
) -> Steps[None]:
    """Commit in the first step, and then do what `follow` does, which can be begun again behind any of its steps. If
    memory ends on the way it is left to `after`. `options` are records whose options may have no effect, `by` is who
    made the change. Callers return this generator and have none around it: memory may end where one is resumed."""
    rest = Rest(lambda: at_once(follow()))
    try:
        commit()
        yield
        if prepared is not None:
            yield from announced_if_memory_suffices(prepared, by)
        warn_of_idle(options)
        yield from follow()
    except MemoryError:
        after.leave(rest)
        raise


def announced_if_memory_suffices(prepared: PreparedChange, by: Author | None) -> Steps[None]:
    """Write the lines of a change that is committed, which somebody made, and whose request does not fail for want of
    a line."""
    lines = prepared.lines
    with suppress(MemoryError):
        for start in range(0, len(lines), LINES_PER_STEP):
            announce(lines[start : start + LINES_PER_STEP], by)
            yield
