"""Moves a member of a streams group one step towards its target (Kafka: CurrentAssignmentBuilder).

A task moves in two steps: its holder gives it up and says so, then it is free. An active task is free when no process
has it active and the new process has it in no other form; a standby or warm-up task when the new process does not have
it in any form.
"""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.streams.member import STABLE, UNKNOWN, UNRELEASED, UNREVOKED
from kafka_shim.group.streams.tasks import NONE_HELD, HeldTasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.group.streams.group import StreamsGroup
    from kafka_shim.group.streams.member import StreamsMember
    from kafka_shim.group.streams.tasks import EpochNumbers, Numbers, Tasks


def reconcile(
    group: StreamsGroup, member: StreamsMember, target_epoch: int, target: Tasks, owned: Tasks | None
) -> StreamsMember:
    """Returns the member after this heartbeat, the same object if nothing changed. `owned` is None if the member did
    not say what it has. Raises FENCED_MEMBER_EPOCH."""
    if member.state == STABLE:
        if member.member_epoch == target_epoch:
            return member
        return _next(group, member, member.member_epoch, target_epoch, target, owned)
    if member.state == UNREVOKED:
        if owned is None or owned.holds_any(member.pending_revocation):
            return member
        return _next(group, member, member.member_epoch + 1, target_epoch, target, owned)
    if member.state == UNRELEASED:
        return _next(group, member, member.member_epoch, target_epoch, target, owned)
    assert member.state == UNKNOWN
    if owned is None or any(owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
        )
    return _next(group, member, target_epoch, target_epoch, target, owned)


def _next(
    group: StreamsGroup, member: StreamsMember, epoch: int, target_epoch: int, target: Tasks, owned: Tasks | None
) -> StreamsMember:
    process_id = member.process_id

    def is_copy_here(task: tuple[str, int]) -> bool:
        return process_id in group.standby_owners.get(task, ()) or process_id in group.warmup_owners.get(task, ())

    def is_active_taken(task: tuple[str, int]) -> bool:
        return task in group.active_owners or is_copy_here(task)

    def is_copy_taken(task: tuple[str, int]) -> bool:
        return group.active_owners.get(task) == process_id or is_copy_here(task)

    active = _differences(member.assigned.active, target.active, target_epoch, is_active_taken)
    standby = _differences(_dated(member.assigned.standby), target.standby, 0, is_copy_taken)
    warmup = _differences(_dated(member.assigned.warmup), target.warmup, 0, is_copy_taken)
    revoked = HeldTasks(active.revoked, _undated(standby.revoked), _undated(warmup.revoked))
    kept = HeldTasks(active.kept, _undated(standby.kept), _undated(warmup.kept))
    if any(revoked) and (owned is None or owned.holds_any(revoked)):
        return member.copy(
            state=UNREVOKED,
            previous_epoch=member.member_epoch,
            member_epoch=epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    free = HeldTasks(
        _merged(active.kept, active.free),
        _undated(_merged(standby.kept, standby.free)),
        _undated(_merged(warmup.kept, warmup.free)),
    )
    return member.copy(
        state=UNRELEASED if active.waits or standby.waits or warmup.waits else STABLE,
        previous_epoch=member.member_epoch,
        member_epoch=target_epoch,
        assigned=free,
        pending_revocation=NONE_HELD,
    )


class _Differences:
    """What a member keeps, gives up and gets, and whether it waits for others."""

    __slots__ = ("free", "kept", "revoked", "waits")

    def __init__(self) -> None:
        self.kept: EpochNumbers = {}
        self.revoked: EpochNumbers = {}
        self.free: EpochNumbers = {}
        self.waits = False


def _differences(
    current: EpochNumbers, target: Numbers, epoch: int, is_taken: Callable[[tuple[str, int]], bool]
) -> _Differences:
    found = _Differences()
    for subtopology in target.keys() | current.keys():
        has = current.get(subtopology, {})
        wanted = target.get(subtopology, set())
        kept = {number: since for number, since in has.items() if number in wanted}
        revoked = {number: since for number, since in has.items() if number not in wanted}
        free = {}
        for number in wanted - kept.keys():
            if is_taken((subtopology, number)):
                found.waits = True
            else:
                free[number] = epoch
        for tasks, of_subtopology in ((found.kept, kept), (found.revoked, revoked), (found.free, free)):
            if of_subtopology:
                tasks[subtopology] = of_subtopology
    return found


def _dated(tasks: Numbers) -> EpochNumbers:
    return {subtopology: dict.fromkeys(numbers, 0) for subtopology, numbers in tasks.items()}


def _undated(tasks: EpochNumbers) -> Numbers:
    return {subtopology: set(numbers) for subtopology, numbers in tasks.items()}


def _merged(one: EpochNumbers, other: EpochNumbers) -> EpochNumbers:
    return {name: {**one.get(name, {}), **other.get(name, {})} for name in one.keys() | other.keys()}
