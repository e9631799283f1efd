"""ConsumerGroupHeartbeat: finds, creates or converts the group, and applies the rules (KIP-848)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group import consumer_heartbeat, migration
from kafka_shim.group.classic import ClassicGroup
from kafka_shim.group.consumer import ConsumerGroup
from kafka_shim.group.decision import SESSION
from kafka_shim.group.request_context import RequestContext
from kafka_shim.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.group.client import Client
    from kafka_shim.group.decision import Decision
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
    from kafka_shim.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse


class ConsumerRequests:
    """Owned by the coordinator."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, version: int, client: Client
    ) -> Outcome[ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat. Raises the error of the response."""
        runtime = self._runtime
        consumer_heartbeat.check_request(request, version, runtime.config.group_consumer_assignors)
        group_id = request.group_id
        partition = runtime.partition_for(group_id)
        groups = runtime.loader.groups(partition)
        now_ms = runtime.clock.now_ms()
        group = groups.by_id.get(group_id)
        if isinstance(group, ConsumerGroup) and consumer_heartbeat.says_nothing_new(group, request, client, now_ms):
            timeout_ms, interval_ms = runtime.image.consumer_times_ms(group_id)
            runtime.timers.schedule((group_id, SESSION, request.member_id), timeout_ms)
            return Outcome(consumer_heartbeat.still_there(request, interval_ms))
        if request.member_epoch < 0:
            if not isinstance(group, ConsumerGroup):
                reason = "not found" if group is None else "is not a consumer group"
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
            decision = consumer_heartbeat.leave(group, request, runtime.image, now_ms)
        else:
            context = RequestContext(client, runtime.image, now_ms)
            decision = context.decision
            if request.member_epoch == 0 and isinstance(group, ClassicGroup) and not group.is_empty:
                return self._upgrade(groups, group, request, context)
            group = self._find(groups, group_id, request.member_epoch == 0, decision)
            consumer_heartbeat.heartbeat(group, request, context)
        return Outcome(decision.response, runtime.carry_out(partition, groups, decision, now_ms))

    def stays(self, group_id: str, member_id: str, member_epoch: int, client_id: str, peer_host: str) -> int:
        """Keep a member alive by a heartbeat that says nothing but these. Returns the interval of its heartbeats in ms;
        or -1 if there is more to decide, and does nothing."""
        runtime = self._runtime
        try:
            groups = runtime.groups_of(group_id)
        except KafkaError:
            return -1
        group = groups.by_id.get(group_id)
        now_ms = runtime.clock.now_ms()
        if not isinstance(group, ConsumerGroup) or not consumer_heartbeat.stays(
            group, member_id, member_epoch, client_id, f"/{peer_host}", now_ms
        ):
            return -1
        timeout_ms, interval_ms = runtime.image.consumer_times_ms(group_id)
        runtime.timers.schedule((group_id, SESSION, member_id), timeout_ms)
        return interval_ms

    def _find(self, groups: Groups, group_id: str, create: bool, decision: Decision) -> ConsumerGroup:
        """Returns the group to join. If `create`, it may be new, or take the place of an empty classic one."""
        group = groups.by_id.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not create or not isinstance(group, ClassicGroup | None):
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        if group is not None:
            decision.records += group.tombstones()
        return ConsumerGroup(group_id)

    def _upgrade(
        self,
        groups: Groups,
        group: ClassicGroup,
        request: ConsumerGroupHeartbeatRequest,
        context: RequestContext,
    ) -> Outcome[ConsumerGroupHeartbeatResponse]:
        """Have a member join a classic group, which is converted. Who waits in it is answered also if that fails: the
        members do not fit, the newcomer is refused, or the records cannot be written."""
        runtime, decision, now_ms = self._runtime, context.decision, context.now_ms
        migration.check_upgrade(group, runtime.config)
        partition = runtime.partition_for(group.group_id)
        with groups:
            ended = migration.end_waits(group)
            try:
                consumer_heartbeat.heartbeat(migration.upgrade(group, runtime.image, decision), request, context)
                flushes = runtime.carry_out_within(partition, groups, decision, now_ms)
                ended.timers.clear()  # its members have those of the upgrade, and some are not there any more
            finally:
                # As the last, because an answer may let the next request of its connection in.
                runtime.carry_out_within(partition, groups, ended, now_ms)
        return Outcome(decision.response, flushes)
