"""Bugs of groups and offsets."""

from __future__ import annotations

from typing import Any

from kafka_shim.compat.tests.compat.planted import caught_by


@caught_by("b16-pending-offsets-are-unstable", "after the commit: {0: ('NONE', 1, 'plain')")
def pending_offsets_are_lost() -> None:
    from kafka_shim.group.offsets import Offsets

    right = Offsets.complete
    Offsets.complete = lambda offsets, producer_id, commit: right(offsets, producer_id, False)  # type: ignore[method-assign]


@caught_by("b16-pending-offsets-are-unstable", "where {0: ('UNSTABLE_OFFSET_COMMIT'")
def require_stable_is_ignored() -> None:
    from kafka_shim.group.offsets import Offsets

    Offsets.has_pending = lambda offsets, group_id, topic, partition: False  # type: ignore[method-assign]


@caught_by(
    "c2-strangers-and-old-generations", "Heartbeat v4 answer.error_code: 'UNKNOWN_MEMBER_ID' where the other has 'NONE'"
)
def strangers_are_members() -> None:
    from kafka_shim.group.classic import ClassicGroup

    right = ClassicGroup.check_member

    def anyone(group: ClassicGroup, member_id: str, instance_id: str | None) -> Any:
        return group.members.get(member_id) or next(iter(group.members.values()), None) or right(group, member_id, None)

    ClassicGroup.check_member = anyone  # type: ignore[method-assign]


@caught_by("c16-offsets-come-back-after-a-kill", "offsets: [(-1, ''), (-1, '')] where")
def offsets_are_only_in_memory() -> None:
    from kafka_shim.group import replay

    replay._apply = lambda *_: None


# --- KIP-848


@caught_by("c10-requests-in-every-state-of-a-consumer-group", "FENCED_MEMBER_EPOCH' where the other has 'NONE'")
def any_member_epoch_is_taken() -> None:
    from kafka_shim.group import consumer_heartbeat

    consumer_heartbeat.check_epoch = lambda member, epoch, owned: None


@caught_by("c11-a-second-modern-member-gets-its-share", "answer.member_epoch: 2 where the other has 3")
def nobody_waits_for_a_revocation() -> None:
    from kafka_shim.group import consumer_reconcile

    consumer_reconcile._holds_any = lambda owned, revoked: False


@caught_by("c12-modern-static-members", "FENCED_INSTANCE_ID' where the other has")
def a_replaced_static_member_goes_on() -> None:
    from kafka_shim.group import consumer_heartbeat

    right = consumer_heartbeat.known_static

    def anyone(group: Any, member_id: str, instance_id: str) -> Any:
        return group.static_member(instance_id) or right(group, member_id, instance_id)

    consumer_heartbeat.known_static = anyone


# --- share groups


@caught_by("c19-each-record-has-one-member", "what was released: [(1, 1, 1)] where [(1, 1, 2)] is right")
def deliveries_are_not_counted() -> None:
    from kafka_shim.share.in_flight_batch import InFlightState

    right = InFlightState.acquire

    def uncounted(state: Any, member_id: str, lock_until_ms: int) -> None:
        right(state, member_id, lock_until_ms)
        state.delivery_count = 1

    InFlightState.acquire = uncounted  # type: ignore[method-assign]


@caught_by("c19-malformed-acknowledgements-are-refused", "nothing of these was carried out: 'INVALID_RECORD_STATE'")
def what_is_refused_is_half_done() -> None:
    from kafka_shim.share.share_partition_acknowledge import _Plan

    right = _Plan.add

    def at_once(plan: Any, first_offset: int, last_offset: int, state: Any, event: Any) -> None:
        right(plan, first_offset, last_offset, state, event)
        state.enter(plan.changes[-1].target)

    _Plan.add = at_once  # type: ignore[method-assign]
