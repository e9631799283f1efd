"""ShareAcknowledge (key 79), versions 1-2.

A member of a share group gives acquired records back: accepted, released, rejected, or as gaps, for each offset or a
range of them. Each partition succeeds or fails as a whole; what succeeded is persisted before the response. The session
epoch counts with that of ShareFetch; -1 ends the session and releases what is still acquired. v2 renews locks
(KIP-1222), and says how long they last.
"""

from __future__ import annotations

from kafka_shim.api.share_acknowledgements import (
    acknowledge,
    check_member,
    end_session,
    readable_topics,
    shares_of,
    tell_leader,
)
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kafka_shim.protocol.messages.share_acknowledge_response import (
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafka_shim.share.share_sessions import FINAL_EPOCH, INITIAL_EPOCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 79, 1, 2
REQUEST, RESPONSE = ShareAcknowledgeRequest, ShareAcknowledgeResponse


def handle(
    context: Context, request: ShareAcknowledgeRequest
) -> Steps[Outcome[ShareAcknowledgeResponse] | Coroutine[Any, Any, Outcome[ShareAcknowledgeResponse]]]:
    broker = context.broker
    group_id, member_id = check_member(context, request)
    sessions = shares_of(broker).sessions
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if epoch == FINAL_EPOCH:
        sessions.get((group_id, member_id))
    else:
        sessions.advance((group_id, member_id), epoch)
    topics_by_id = broker.metadata.image.topics_by_id
    names = {topics_by_id[topic.topic_id].name for topic in request.topics if topic.topic_id in topics_by_id}
    readable = readable_topics(context, names)
    acknowledged = yield from acknowledge(context, request, group_id, member_id, readable)
    response = ShareAcknowledgeResponse()
    response.acquisition_lock_timeout_ms = broker.share_state.record_lock_duration_ms(group_id)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, partition), error in acknowledged.errors.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareAcknowledgeTopicResponse(topic_id=topic_id)
            response.responses.append(topic)
        answer = PartitionData(partition_index=partition)
        if error is not None:
            answer.error_code, answer.error_message = error.code, error.message
            tell_leader(context, response, topic_id, answer, NodeEndpoint)
        topic.partitions.append(answer)
        yield
    outcome = Outcome(response, acknowledged.flushes)
    return end_session(context, group_id, member_id, outcome) if epoch == FINAL_EPOCH else outcome


def failed(
    request: ShareAcknowledgeRequest, version: int, code: ErrorCode, message: str | None
) -> ShareAcknowledgeResponse:
    """Returns the error alone: Kafka gives no text."""
    return ShareAcknowledgeResponse(error_code=code)
