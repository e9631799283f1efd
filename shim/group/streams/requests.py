"""StreamsGroupHeartbeat: finds or creates the group, and applies the rules (KIP-1071)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_shim.group.client import Client
    from kafka_shim.group.decision import Decision
    from kafka_shim.group.groups import Groups
    from kafka_shim.group.runtime import CoordinatorRuntime
    from kafka_shim.group.streams.configured import InternalTopic
    from kafka_shim.group.streams.group import StreamsGroup
    from kafka_shim.outcome import Outcome
    from kafka_shim.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Topology
    from kafka_shim.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

# The most topics of which an error is remembered (Kafka: topicErrorCacheCapacity).
MOST_ERRORS = 1000


class TopicErrors:
    """Why internal topics could not be created, for two heartbeat intervals (Kafka: ExpiringErrorCache). Until
    then the responses to heartbeats say so, and no creation is tried again."""

    __slots__ = ("_by_name",)

    def __init__(self) -> None:
        # name -> (error, when it is forgotten)
        self._by_name: dict[str, tuple[str, int]] = {}

    def put_all(self, reasons: Mapping[str, str], now_ms: int, keep_ms: int) -> None:
        """Remember why these topics could not be created. Of too many those are forgotten that would be first."""
        by_name = {name: known for name, known in self._by_name.items() if known[1] > now_ms}
        by_name |= {name: (reason, now_ms + keep_ms) for name, reason in reasons.items()}
        for name in sorted(by_name, key=lambda each: by_name[each][1])[: max(len(by_name) - MOST_ERRORS, 0)]:
            del by_name[name]
        self._by_name = by_name

    def get(self, name: str, now_ms: int) -> str | None:
        """Returns the error of a topic, or None."""
        reason, end_ms = self._by_name.get(name, ("", 0))
        return reason if end_ms > now_ms else None


class StreamsRequests:
    """Owned by the coordinator."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        self.topic_errors = TopicErrors()

    def check_size(self, topology: Topology) -> None:
        """Raises UNKNOWN_SERVER_ERROR, Kafka's answer when the append fails, for names that no record may hold: before
        time is spent on hundreds of thousands of them."""
        from kafka_shim.group.streams.target import check_fits
        from kafka_shim.group.streams.topology import least_bytes

        check_fits(least_bytes(topology), self._runtime.image)

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: Client
    ) -> tuple[Outcome[StreamsGroupHeartbeatResponse], dict[str, InternalTopic]]:
        """StreamsGroupHeartbeat. Returns the outcome and the internal topics that the caller has to create. Raises the
        error of the response."""
        from kafka_shim.group.request_context import RequestContext
        from kafka_shim.group.streams import heartbeat
        from kafka_shim.group.streams.group import StreamsGroup

        runtime = self._runtime
        heartbeat.check_request(request)
        group_id = request.group_id
        groups = runtime.groups_of(group_id)
        now_ms = runtime.clock.now_ms()
        missing: dict[str, InternalTopic] = {}
        if request.member_epoch < 0:
            group = groups.by_id.get(group_id)
            if not isinstance(group, StreamsGroup):
                reason = "not found" if group is None else "is not a streams group"
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
            decision = heartbeat.leave(group, request)
        else:
            context = RequestContext(client, runtime.image, now_ms)
            decision = context.decision
            found = self._find(groups, group_id, request.member_epoch == 0, decision)
            waits = runtime.timers.due_in_ms((group_id, heartbeat.INITIAL_REBALANCE, "")) is not None
            missing = heartbeat.heartbeat(found, group_id in groups.by_id, request, waits, context)
        return runtime.decide(group_id, decision, now_ms), missing

    def _find(self, groups: Groups, group_id: str, create: bool, decision: Decision) -> StreamsGroup:
        """Returns the group to join. If `create`, it may be new, or take the place of an empty classic one."""
        from kafka_shim.group.classic import ClassicGroup
        from kafka_shim.group.streams.group import StreamsGroup

        group = groups.by_id.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if create and isinstance(group, ClassicGroup) and group.is_empty:
            decision.records += group.tombstones()
            return StreamsGroup(group_id)
        if group is not None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
        if not create:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return StreamsGroup(group_id)
