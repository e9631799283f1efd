"""The `sticky` task assignor of streams groups (Kafka: StickyTaskAssignor, ProcessState), equal to Kafka's down to the
order of its maps and heaps.

Active tasks stay with the member that had them, then go to one that had them as standby, then to the process with the
least load. Standby tasks go to another process than the active task and its other standbys. Racks and tags of clients
reach the assignor and do not change its result, as in 4.3.1; it assigns no warm-up tasks.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.streams.heap import JavaHeap
from kafka_shim.group.streams.tasks import Tasks
from kafka_shim.java_order import order_strings, table_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.group.streams.tasks import Numbers


class TaskId(NamedTuple):
    """One task."""

    subtopology: str
    partition: int


class MemberSpec(NamedTuple):
    """One member: its process and the tasks that it was to have."""

    process_id: str
    tasks: Tasks


class SubtopologySpec(NamedTuple):
    """One subtopology: the number of its tasks, and whether they have state."""

    tasks: int
    is_stateful: bool


class _Process:
    """The tasks of one process, and of its members."""

    __slots__ = ("_heap", "active", "counts", "load", "standby", "task_count", "tasks")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self.tasks: set[TaskId] = set()
        self.task_count = 0
        self.load = 0.0
        # [member id, its number of tasks]; None if it has to be made again
        self._heap: JavaHeap[tuple[str, int]] | None = None

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0
        self.load = self.task_count / len(self.counts)

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member. Returns its number of tasks."""
        self._heap = None
        return self._add(member_id, task, is_active)

    def _add(self, member_id: str, task: TaskId, is_active: bool) -> int:
        self.task_count += 1
        self.tasks.add(task)
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        self.counts[member_id] += 1
        self.load = self.task_count / len(self.counts)
        return self.counts[member_id]

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest. Returns its number of tasks."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active)
        if self._heap is None:
            self._heap = JavaHeap(_count)
            for member_id in order_strings(self.counts):
                self._heap.add((member_id, self.counts[member_id]))
        member_id, _ = self._heap.poll()
        count = self._add(member_id, task, is_active)
        self._heap.add((member_id, count))
        return count


def _count(entry: tuple[str, int]) -> int:
    return entry[1]


def _load(process: _Process) -> float:
    return process.load


def _quota(tasks: int, members: int) -> int:
    return -(-tasks // members) if members > 0 else 0


class _Assignment:
    """One run of the assignor."""

    def __init__(
        self, members: dict[str, MemberSpec], subtopologies: dict[str, SubtopologySpec], standby_replicas: int
    ) -> None:
        self.members = members
        self.subtopologies = subtopologies
        self.replicas = standby_replicas
        # What is left to give to the members that have not reached their quota yet, and the quotas that follow.
        self.active_left = sum(each.tasks for each in subtopologies.values())
        stateful = sum(each.tasks for each in subtopologies.values() if each.is_stateful)
        self.total_left = self.active_left + stateful * standby_replicas
        self.below_active = self.below_total = len(members)
        self.active_quota = _quota(self.active_left, self.below_active)
        self.total_quota = _quota(self.total_left, self.below_total)
        self.processes: dict[str, _Process] = {}
        # task -> member that had it
        self.had_active: dict[TaskId, str] = {}
        self.had_standby: dict[TaskId, list[str]] = {}
        for member_id, member in members.items():
            self.processes.setdefault(member.process_id, _Process()).add_member(member_id)
            for task in _ids(member.tasks.active):
                self.had_active[task] = member_id
            for task in _ids(member.tasks.standby):
                self.had_standby.setdefault(task, []).append(member_id)
        initial = 1
        while initial < len(members):
            initial *= 2
        self.in_order = [
            self.processes[process_id]
            for process_id in order_strings(self.processes, table_size(len(self.processes), initial))
        ]

    def process_of(self, member_id: str) -> _Process:
        return self.processes[self.members[member_id].process_id]

    def task_ids(self, *, stateful_only: bool) -> list[TaskId]:
        return [
            TaskId(name, number)
            for name in sorted(self.subtopologies)
            if self.subtopologies[name].is_stateful or not stateful_only
            for number in range(self.subtopologies[name].tasks)
        ]

    # --- quotas

    def _note_active(self, count: int) -> None:
        if count == self.active_quota:
            self.below_active -= 1
            self.active_left -= count
            self.active_quota = _quota(self.active_left, self.below_active)
        self._note_total(count)

    def _note_total(self, count: int) -> None:
        if count == self.total_quota:
            self.below_total -= 1
            self.total_left -= count
            self.total_quota = _quota(self.total_left, self.below_total)

    # --- active tasks

    def assign_active(self) -> None:
        # Equal partitions of several subtopologies belong together, so the numbers go first.
        left = sorted(self.task_ids(stateful_only=False), key=lambda task: (task.partition, task.subtopology))
        left = [task for task in left if not self._gives_active(task, self.had_active.get(task))]
        left = [task for task in left if not self._gives_active(task, self._least_loaded(self.had_standby.get(task)))]
        left.sort()
        if left and not self.in_order:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        heap: JavaHeap[_Process] = JavaHeap(_load)
        for process in self.in_order:
            heap.add(process)
        for task in left:
            process = heap.poll()
            self._note_active(process.add_to_least_loaded(task, is_active=True))
            heap.add(process)

    def _gives_active(self, task: TaskId, member_id: str | None) -> bool:
        if member_id is None:
            return False
        process = self.process_of(member_id)
        if process.counts[member_id] >= self.active_quota:
            return False
        self._note_active(process.add(member_id, task, is_active=True))
        return True

    def _least_loaded(self, member_ids: list[str] | None, without: TaskId | None = None) -> str | None:
        """Returns the member with the least load, of its process and itself. As in Kafka, whether the process has the
        task `without` is asked of the first member at the end, not of the one that was found."""
        if not member_ids:
            return None
        found = member_ids[0]
        first = self.process_of(found)
        process_load, member_load = first.load, first.counts[found]
        for member_id in member_ids[1:]:
            process = self.process_of(member_id)
            may_have = without is None or without not in process.tasks
            if may_have and process.load < process_load and process.counts[member_id] < member_load:
                process_load, member_load = process.load, process.counts[member_id]
                found = member_id
        return found if without is None or without not in first.tasks else None

    # --- standby tasks

    def assign_standby(self) -> None:
        left: list[tuple[TaskId, int]] = []
        tasks = sorted(
            self.task_ids(stateful_only=True), key=lambda task: (task.partition, task.subtopology), reverse=True
        )
        for task in tasks:
            for number in range(self.replicas):
                if not self._gives_standby(task):
                    left.append((task, self.replicas - number))
                    break
        left.sort(key=lambda each: each[0], reverse=True)
        heap: JavaHeap[_Process] = JavaHeap(_load)
        for process in self.in_order:
            heap.add(process)
        for task, replicas in left:
            for _ in range(replicas):
                # Fewer processes than replicas: the rest of them is not assigned.
                if not self._gives_to_least_loaded(heap, task):
                    break

    def _gives_standby(self, task: TaskId) -> bool:
        candidate = self.had_active.get(task)
        if candidate is not None and task in self.process_of(candidate).tasks:
            candidate = None
        for member_id in (candidate, self._least_loaded(self.had_standby.get(task), task)):
            if member_id is not None:
                process = self.process_of(member_id)
                if process.counts[member_id] < self.total_quota:
                    self._note_total(process.add(member_id, task, is_active=False))
                    return True
        return False

    def _gives_to_least_loaded(self, heap: JavaHeap[_Process], task: TaskId) -> bool:
        taken: list[_Process] = []
        is_given = False
        while heap and not is_given:
            process = heap.poll()
            taken.append(process)
            if task not in process.tasks:
                self._note_total(process.add_to_least_loaded(task, is_active=False))
                is_given = True
        for process in reversed(taken):
            heap.add(process)
        return is_given


def _ids(tasks: Numbers) -> Iterable[TaskId]:
    return (TaskId(name, number) for name, numbers in tasks.items() for number in numbers)


def _numbers(tasks: list[TaskId]) -> Numbers:
    found: Numbers = {}
    for task in tasks:
        found.setdefault(task.subtopology, set()).add(task.partition)
    return found


def assign(
    members: dict[str, MemberSpec], subtopologies: dict[str, SubtopologySpec], standby_replicas: int
) -> dict[str, Tasks]:
    """Returns the tasks of each member. `members` is in the order of Kafka's map. Raises UNKNOWN_SERVER_ERROR if there
    are tasks and no members."""
    run = _Assignment(members, subtopologies, standby_replicas)
    run.assign_active()
    if standby_replicas > 0:
        run.assign_standby()
    found = {}
    for member_id in members:
        process = run.process_of(member_id)
        active, standby = process.active.get(member_id, []), process.standby.get(member_id, [])
        found[member_id] = Tasks(_numbers(active), _numbers(standby), {})
    return found
