"""The states of a classic group, and what each returns.

Empty: no members; offsets may remain.
    JoinGroup starts a rebalance. SyncGroup, Heartbeat, LeaveGroup: UNKNOWN_MEMBER_ID. OffsetCommit without a generation
    is accepted from any client.
PreparingRebalance: waits for all members to join.
    JoinGroup waits in purgatory. SyncGroup, Heartbeat: REBALANCE_IN_PROGRESS. OffsetCommit is accepted from members.
    LeaveGroup removes the member, which may end the wait.
CompletingRebalance: waits for the leader's assignment.
    JoinGroup returns the generation again, or starts a new rebalance if the member's metadata changed. SyncGroup waits
    in purgatory; the leader's ends the wait. Heartbeat is accepted. OffsetCommit: REBALANCE_IN_PROGRESS. LeaveGroup
    removes the member and starts a new rebalance.
Stable: every member can get its assignment.
    JoinGroup of the leader, or with changed metadata, starts a rebalance; others get the generation again. SyncGroup
    returns the assignment. Heartbeat and OffsetCommit are accepted. LeaveGroup as above.
Dead: deleted.
    Every request gets COORDINATOR_NOT_AVAILABLE.

In each state: UNKNOWN_MEMBER_ID for an unknown member, FENCED_INSTANCE_ID if another member has its instance id,
ILLEGAL_GENERATION for another generation.

Source: KIP-62, KIP-345, KIP-394 and `org.apache.kafka.coordinator.group.classic`.
"""

from __future__ import annotations

from enum import Enum

from kafka_shim.cext.classic_members import know_states


class State(Enum):
    """The states, by the names that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    # That of Enum is in Python, and each change of a state asks for it several times.
    __hash__ = object.__hash__


# The rules, which every heartbeat asks, use these: Python 3.11 takes some 800 instructions to find a member of an enum.
EMPTY, PREPARING, COMPLETING, STABLE, DEAD = State
know_states(EMPTY, PREPARING, COMPLETING, STABLE, DEAD)


ALLOWED_FROM = {
    EMPTY: (PREPARING,),
    PREPARING: (STABLE, COMPLETING, EMPTY),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
    DEAD: tuple(State),
}
