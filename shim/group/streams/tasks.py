"""Tasks of a streams group: a task is a partition number of a subtopology. Active tasks process, standby tasks keep a
copy of the state, warm-up tasks build one; 4.3.1 has warm-up tasks in its messages and assigns none.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

# subtopology id -> partition numbers. Never changed in place.
Numbers = dict[str, set[int]]
# subtopology id -> partition number -> epoch in which the member got the task
EpochNumbers = dict[str, dict[int, int]]


class Tasks(NamedTuple):
    """What a member should have, or says that it has (Kafka: TasksTuple)."""

    active: Numbers
    standby: Numbers
    warmup: Numbers

    def holds_any(self, held: HeldTasks) -> bool:
        """Returns whether one of these tasks is among the others."""
        return (
            _overlap(self.active, held.active)
            or _overlap(self.standby, held.standby)
            or _overlap(self.warmup, held.warmup)
        )


class HeldTasks(NamedTuple):
    """What a member has, or has to give up (Kafka: TasksTupleWithEpochs)."""

    active: EpochNumbers
    standby: Numbers
    warmup: Numbers


NO_TASKS = Tasks({}, {}, {})
NONE_HELD = HeldTasks({}, {}, {})


def _overlap(one: Numbers, other: Mapping[str, Collection[int]]) -> bool:
    return any(not partitions.isdisjoint(other.get(subtopology, ())) for subtopology, partitions in one.items())


def numbers_of(entries: Iterable[Any]) -> Numbers:
    """Returns the tasks of a list of TaskIds. Raises UNKNOWN_SERVER_ERROR for a subtopology that is listed twice."""
    found: Numbers = {}
    for entry in entries:
        if entry.subtopology_id in found:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        found[entry.subtopology_id] = set(entry.partitions)
    return found


def epochs_of(entries: Iterable[Any], member_epoch: int) -> EpochNumbers:
    """Returns the tasks of a member's record. Without epochs for all of them, the member's own epoch is used."""
    found: EpochNumbers = {}
    for entry in entries:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [member_epoch] * len(entry.partitions)
        found[entry.subtopology_id] = dict(zip(entry.partitions, epochs, strict=True))
    return found


def entries_of(struct: Any, tasks: Mapping[str, Collection[int]], order: Iterable[str] | None = None) -> list[Any]:
    """Returns TaskIds, sorted unless the order of the subtopologies is given."""
    return [
        struct(subtopology_id=subtopology, partitions=sorted(tasks[subtopology]))
        for subtopology in (sorted(tasks) if order is None else order)
    ]
