"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup for groups of any kind. The rules of the group's kind decide."""

from __future__ import annotations

from kafka_shim.cext.classic_requests import ClassicRequestsBase
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import classic_join, classic_sync
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.consumer import ConsumerGroup
from kafka_shim.group.decision import JOIN, SESSION, SYNC, Decision
from kafka_shim.group.kinds import KINDS
from kafka_shim.group.member_turns import MemberTurns
from kafka_shim.group.purgatory import DelayedResponse
from kafka_shim.group.request_context import JoinContext
from kafka_shim.group.requests import check_join, join_failure, sync_failure
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.heartbeat_response import HeartbeatResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_shim.group.client import Client
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.protocol.messages.heartbeat_request import HeartbeatRequest
    from kafka_shim.protocol.messages.join_group_request import JoinGroupRequest
    from kafka_shim.protocol.messages.join_group_response import JoinGroupResponse
    from kafka_shim.protocol.messages.leave_group_request import LeaveGroupRequest
    from kafka_shim.protocol.messages.leave_group_response import LeaveGroupResponse
    from kafka_shim.protocol.messages.sync_group_request import SyncGroupRequest
    from kafka_shim.protocol.messages.sync_group_response import SyncGroupResponse
    from kafka_shim.turns import Steps


class ClassicRequests(ClassicRequestsBase):
    """Owned by the coordinator. Methods are named after their API. Requests that only wait, and those whose answer is
    there, are served by the base, in C, where a fast path reads them (`cext.plain_joins`, `cext.plain_syncs`)."""

    __slots__ = ("_runtime", "_turns")

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        super().__init__(runtime, (JOIN, SESSION, SYNC), classic_join)
        self._runtime = runtime
        self._turns = MemberTurns(runtime.clock)

    def join_group(
        self, request: JoinGroupRequest, version: int, client: Client
    ) -> Outcome[JoinGroupResponse] | DelayedResponse:
        """JoinGroup. Waits as long as the rebalance does."""
        runtime = self._runtime
        refused = check_join(request, runtime.config)
        if refused is not None:
            return Outcome(refused)
        if version == 0:
            # Version 0 has one timeout for both.
            request.rebalance_timeout_ms = request.session_timeout_ms
        delayed = DelayedResponse(join_failure)
        self._turns.serve(delayed, self._join, request, version, client)
        return runtime.answer(delayed, request.group_id)

    def _join(self, delayed: DelayedResponse, request: JoinGroupRequest, version: int, client: Client) -> None:
        runtime = self._runtime
        group_id = request.group_id
        partition = runtime.partition_for(group_id)
        groups = runtime.loader.groups(partition)
        with groups:  # rules change at once what no record holds
            group = groups.by_id.get(group_id)
            if group.__class__ is ClassicGroup and classic_join.waits(
                group, request, client, delayed, runtime.config.group_max_size
            ):
                self.has_joined(group, group_id, request.member_id)
                return
            now_ms = runtime.clock.now_ms()
            context = JoinContext(request, version, delayed, client, runtime.image, now_ms)
            decision = self._decide_join(groups, context)
            runtime.carry_out_within(partition, groups, decision, now_ms)

    def _decide_join(self, groups: Groups, context: JoinContext) -> Decision:
        request = context.request
        group = groups.by_id.get(request.group_id)
        if group is not None and group.__class__ is ClassicGroup:
            return classic_join.join(group, context, is_new_group=False)
        ending = Decision()
        if group is not None:
            if not (group.is_empty and KINDS[group.TYPE].gives_way):
                return KINDS[group.TYPE].join(group, context)
            # The tombstones of an empty group of another kind precede the records of the new group.
            ending = KINDS[group.TYPE].delete(group)
        if request.member_id != "":
            # As in Kafka, a stranger too ends the empty group. Kafka forgets its tombstones, and has it again after a
            # restart.
            refusal = join_failure(ErrorCode.UNKNOWN_MEMBER_ID)
            refusal.member_id = request.member_id
            ending.reply(context.token, refusal)
            if group is not None and groups.offsets.are_there(request.group_id):
                # They stay, and a start finds a group without members for them. Kafka hides them until then, from its
                # next write on.
                ending.replacements.append(ClassicGroup(request.group_id, context.now_ms))
            return ending
        group = ClassicGroup(request.group_id, context.now_ms)
        decision = classic_join.join(group, context, is_new_group=True)
        decision.records[:0] = ending.records
        decision.timers[:0] = ending.timers
        decision.replacements.append(group)
        return decision

    def sync_group(self, request: SyncGroupRequest) -> Outcome[SyncGroupResponse] | DelayedResponse:
        """SyncGroup. A follower waits for the leader's assignment."""
        delayed = DelayedResponse(sync_failure)
        self._turns.serve(delayed, self._sync, request)
        return self._runtime.answer(delayed, request.group_id)

    def _sync(self, delayed: DelayedResponse, request: SyncGroupRequest) -> None:
        runtime = self._runtime
        partition, groups, group = runtime.known_group(request.group_id)
        if group.__class__ is ClassicGroup and classic_sync.waits(group, request, delayed):
            return
        if group.is_empty:
            delayed.fail(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        now_ms = runtime.clock.now_ms()
        with groups:
            try:
                decision = KINDS[group.TYPE].sync(group, request, delayed, runtime.image, now_ms)
                flushes = runtime.carry_out_within(partition, groups, decision, now_ms)
            except KafkaError as error:
                refusal = runtime.refusal_of(error)
                if group.__class__ is ClassicGroup:
                    rebalance = classic_sync.assignment_refused(group, request, refusal.code, now_ms)
                    runtime.carry_out_within(partition, groups, rebalance, now_ms)
                if refusal is error:
                    raise
                raise refusal from error
        if decision.response is not None:
            delayed.answer(decision.response, flushes)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Heartbeat of a classic member, also of one in a consumer group."""
        runtime = self._runtime
        group_id = request.group_id
        try:
            group = runtime.known_group(group_id)[2]
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # As in Kafka: while the group is being loaded a heartbeat succeeds, because the session restarts after
                # the load.
                return HeartbeatResponse()
            raise
        code, timers = KINDS[group.TYPE].heartbeat(group, request)
        self._move(request, timers)
        return HeartbeatResponse(error_code=code)

    def stays(self, beat: HeartbeatRequest) -> bool:
        """Keep a member alive by its Heartbeat, or what has its fields, if the answer is one without an error. Returns
        False if it is not, and does nothing."""
        try:
            group = self._runtime.known_group(beat.group_id)[2]
            code, timers = KINDS[group.TYPE].heartbeat(group, beat)
        except KafkaError:
            return False
        if code:
            return False
        self._move(beat, timers)
        return True

    def _move(self, request: HeartbeatRequest, timers: Iterable[tuple[str, int, bool]]) -> None:
        for kind, delay_ms, only_if_absent in timers:
            in_ms = delay_ms if delay_ms > 0 else 0
            self._runtime.timers.schedule((request.group_id, kind, request.member_id), in_ms, only_if_absent)

    def leave_group(self, request: LeaveGroupRequest) -> Outcome[LeaveGroupResponse]:
        """LeaveGroup in the v3 form: a list of members."""
        runtime = self._runtime
        partition, groups, group = runtime.known_group(request.group_id)
        now_ms = runtime.clock.now_ms()
        with groups:
            decision = KINDS[group.TYPE].leave(group, request, runtime.image, now_ms)
            flushes = runtime.carry_out_within(partition, groups, decision, now_ms)
        return Outcome(decision.response, flushes)

    def leaving_order(self, request: LeaveGroupRequest, most: int) -> Steps[tuple[Sequence[int], dict[int, int]]]:
        """Returns in which order the members of a LeaveGroup leave if they do on several turns, as places in the
        request, of which `most` are looked at in a step: those of the consumer protocol last. As long as one is there
        the group is not converted for classic members that are about to leave too. Places that name a member of a
        consumer group again are not among them: they come second, with the place of the first, whose error is theirs,
        as if all left at once."""
        from kafka_shim.group import consumer_classic

        every = range(len(request.members))
        try:
            group = self._runtime.known_group(request.group_id)[2]
        except KafkaError:
            return every, {}  # the first to leave have the error
        if not isinstance(group, ConsumerGroup):
            return every, {}
        is_mixed = 0 < group.classic_count < len(group.members)
        first: list[int] = []
        last: list[int] = []
        places: dict[str, int] = {}
        again: dict[int, int] = {}
        for place in every:
            member = consumer_classic.leaving(group, request.members[place])
            if member is not None and places.setdefault(member.member_id, place) != place:
                again[place] = places[member.member_id]
            else:
                is_last = is_mixed and member is not None and not member.uses_classic
                (last if is_last else first).append(place)
            if place % most == most - 1:
                yield
        return first + last, again
