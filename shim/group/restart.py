"""What a group does when it was read from the log. Sessions begin anew: nobody knows how long the broker was away.

A member that has asked for something since then has its timer already.
"""

from __future__ import annotations

from kafka_shim.group.classic import ClassicGroup, State
from kafka_shim.group.classic_join import prepare_rebalance
from kafka_shim.group.consumer_member import UNREVOKED
from kafka_shim.group.decision import REBALANCE, SESSION, Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.groups import Group
    from kafka_shim.group.surroundings import Surroundings


def resume(group: Group, surroundings: Surroundings, now_ms: int) -> Decision:
    """The timers of its members; a classic group over `group.max.size` rebalances, so that members can commit."""
    decision = Decision()
    group_id = group.group_id
    if isinstance(group, ClassicGroup):
        decision.replayed = False
        for member in group.members.values():
            decision.schedule_if_absent(group_id, SESSION, member.member_id, member.session_timeout_ms)
        if group.state is State.STABLE and len(group.members) > surroundings.config.group_max_size:
            prepare_rebalance(group, surroundings.config, decision, now_ms)
        return decision
    for each in group.members.values():
        decision.schedule_if_absent(group_id, SESSION, each.member_id, surroundings.session_timeout_ms(group_id))
        if each.state == UNREVOKED:
            decision.schedule_if_absent(group_id, REBALANCE, each.member_id, each.rebalance_timeout_ms)
    return decision
