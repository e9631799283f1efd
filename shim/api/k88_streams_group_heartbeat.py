"""StreamsGroupHeartbeat (key 88), version 0.

The only request of the streams protocol's membership (KIP-1071). Epoch 0 joins with the application's topology, a
positive epoch is a heartbeat, -1 leaves. The response carries the member's tasks if they changed, statuses of the
group, and where the application's instances answer queries. Internal topics that are missing are created with the
client's rights; why one could not be created is part of the status for two heartbeat intervals. They count against the
client's quota of partition mutations as in a CreateTopics, but do not throttle the heartbeat. UNSUPPORTED_VERSION if
`group.coordinator.rebalance.protocols` does not include the protocol, or if streams.version is 0. As in 4.3.1, static
members, source topics by expression, offsets of tasks and warm-up tasks of members are INVALID_REQUEST.
"""

from __future__ import annotations

from kafka_shim.api import k19_create_topics as create_topics
from kafka_shim.authorization import authorized, may_on_cluster, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.group.client import Client
from kafka_shim.group.streams.configured import MISSING_INTERNAL_TOPICS
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.metadata.topics import check_name
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafka_shim.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_shim.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.group.streams.configured import InternalTopic
    from kafka_shim.outcome import Outcome
    from kafka_shim.protocol.messages.streams_group_heartbeat_request import Topology

    Answer = Outcome[StreamsGroupHeartbeatResponse]

KEY, MIN, MAX = 88, 0, 0
REQUEST, RESPONSE = StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

# A status names at most so many topics that could not be created.
MOST_ERRORS = 3
# The longest detail of a status: no string may be longer than 32 KB, and a topology may have thousands of topics.
MOST_DETAIL_CHARACTERS = 8000
# Any that is not zero will do: nothing waits for it.
TIMEOUT_MS = 30_000
# Kafka's text of an error that has none in a CreateTopicsResponse.
TEXTS = {ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The throttling quota has been exceeded."}


def handle(context: Context, request: StreamsGroupHeartbeatRequest) -> Answer | Coroutine[Any, Any, Answer]:
    context.note_member(request.group_id, request.member_id)
    check_protocol(context.broker)
    require(context, AclOperation.READ, ResourceType.GROUP, request.group_id)
    streams = context.broker.groups.streams
    if request.topology is not None:
        streams.check_size(request.topology)
        _check_topics(context, request.topology)
    outcome, missing = streams.heartbeat(request, Client(context.client_id or "", f"/{context.peer_host}"))
    if not missing:
        return outcome
    refused: set[str] = set()
    if not may_on_cluster(context, AclOperation.CREATE, logs_denied=False):
        refused = set(missing).difference(authorized(context, AclOperation.CREATE, ResourceType.TOPIC, set(missing)))
    if refused:
        names = ", ".join(name for name in missing if name in refused)
        _add_detail(outcome.response, f"Unauthorized to CREATE on topics {names}.")
        return outcome
    now_ms = context.broker.clock.now_ms()
    errors = {name: streams.topic_errors.get(name, now_ms) for name in missing}
    shown = [f"{name} ({reason})" for name, reason in errors.items() if reason is not None]
    if shown:
        rest = len(shown) - MOST_ERRORS
        text = ", ".join(shown[:MOST_ERRORS]) + (f" and {rest} more" if rest > 0 else "")
        _add_detail(outcome.response, f"Creation failed: {text}.")
    topics = [topic for name, topic in missing.items() if errors[name] is None]
    return _with_topics(context, request.group_id, topics, outcome) if topics else outcome


def check_protocol(broker: Broker) -> None:
    """Raises UNSUPPORTED_VERSION, with no text as in Kafka, if the streams protocol is not enabled here."""
    is_enabled = "streams" in broker.config.group_coordinator_rebalance_protocols
    if not is_enabled or broker.metadata.feature("streams.version") < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _check_topics(context: Context, topology: Topology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY, TOPIC_AUTHORIZATION_FAILED."""
    names: dict[str, None] = {}
    for subtopology in topology.subtopologies:
        names.update(dict.fromkeys(subtopology.source_topics))
        names.update(dict.fromkeys(subtopology.repartition_sink_topics))
        names.update((topic.name, None) for topic in subtopology.repartition_source_topics)
        names.update((topic.name, None) for topic in subtopology.state_changelog_topics)
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise _invalid(f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.")
    invalid = [name for name in names if not _is_valid(name)]
    if invalid:
        raise _invalid(f"Topic names {','.join(invalid)} are not valid topic names.")
    if len(authorized(context, AclOperation.DESCRIBE, ResourceType.TOPIC, set(names))) < len(names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)


def _is_valid(name: str) -> bool:
    try:
        check_name(name)
    except KafkaError:
        return False
    return True


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)


def _add_detail(response: StreamsGroupHeartbeatResponse, text: str) -> None:
    if len(text) > MOST_DETAIL_CHARACTERS:
        text = f"{text[:MOST_DETAIL_CHARACTERS]}..."
    for status in response.status or ():
        if status.status_code == MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {text}"
            return


async def _with_topics(context: Context, group_id: str, topics: list[InternalTopic], outcome: Answer) -> Answer:
    """Create the topics; an error of one is for the next heartbeats, as in Kafka, where they follow the response."""
    request = CreateTopicsRequest(
        timeout_ms=TIMEOUT_MS,
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor or -1,
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in topics
        ],
    )
    quota = None if context.throttle is None else context.throttle.quota_of_topic_on_demand()
    try:
        created = (await create_topics.create(context, request, quota)).topics
    except KafkaError as error:
        created = at_once(create_topics.failed(request, create_topics.MAX, error.code, error.message)).topics
    groups = context.broker.groups
    now_ms = context.broker.clock.now_ms()
    keep_ms = 2 * groups.image.streams_heartbeat_interval_ms(group_id)
    reasons = {result.name: result.error_message or _text(result.error_code) for result in created if result.error_code}
    groups.streams.topic_errors.put_all(reasons, now_ms, keep_ms)
    return outcome


def _text(code: int) -> str:
    error = ErrorCode(code)
    return TEXTS.get(error, error.name)
