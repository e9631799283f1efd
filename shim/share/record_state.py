"""The states of one record of a share partition, and what an event makes of them (Kafka: RecordState, AcknowledgeType,
KIP-932)."""

from __future__ import annotations

from enum import Enum, IntEnum


class RecordState(IntEnum):
    """The numbers are those of `__share_group_state`. ACQUIRED is never stored, so that it is AVAILABLE after a crash.
    ARCHIVING is written by no broker of 4.3."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """What a member says of an acquired offset. GAP: there is no record (compaction, a control record)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class RecordEvent(Enum):
    """What happens to a record. RELEASE is also the end of its lock and of its member's share session; ARCHIVE is the
    start offset of the log passing it, or the abort of its transaction."""

    ACQUIRE = "acquire"
    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"
    ARCHIVE = "archive"


# What is not in a row is not allowed.
TRANSITIONS: dict[RecordEvent, dict[RecordState, RecordState]] = {
    RecordEvent.ACQUIRE: {RecordState.AVAILABLE: RecordState.ACQUIRED},
    RecordEvent.ACCEPT: {RecordState.ACQUIRED: RecordState.ACKNOWLEDGED},
    RecordEvent.RELEASE: {RecordState.ACQUIRED: RecordState.AVAILABLE},
    RecordEvent.REJECT: {RecordState.ACQUIRED: RecordState.ARCHIVED},
    RecordEvent.ARCHIVE: {RecordState.AVAILABLE: RecordState.ARCHIVED, RecordState.ACQUIRED: RecordState.ARCHIVED},
}
# No event follows these.
TERMINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})

EVENT_OF_TYPE: dict[int, RecordEvent] = {
    AcknowledgeType.GAP: RecordEvent.REJECT,
    AcknowledgeType.ACCEPT: RecordEvent.ACCEPT,
    AcknowledgeType.RELEASE: RecordEvent.RELEASE,
    AcknowledgeType.REJECT: RecordEvent.REJECT,
}
