"""DeleteShareGroupOffsets (key 92), version 0.

Deletes the states of whole topics from a share group without members, so that it reads them as if for the first time.
NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND if it is not there or of another kind, UNKNOWN_TOPIC_OR_PARTITION
for each topic without a state.
"""

from __future__ import annotations

from kafka_shim.api.k76_share_group_heartbeat import check_protocol
from kafka_shim.authorization import authorized_in_steps, require
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.outcome import Outcome
from kafka_shim.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kafka_shim.protocol.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 92, 0, 0
REQUEST, RESPONSE = DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse

UNAUTHORIZED = "Topic authorization failed."


async def handle(context: Context, request: DeleteShareGroupOffsetsRequest) -> Outcome[DeleteShareGroupOffsetsResponse]:
    check_protocol(context.broker)
    require(context, AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    turns = context.broker.turns
    names = [topic.topic_name for topic in request.topics]
    checking = authorized_in_steps(context, AclOperation.READ, ResourceType.TOPIC, names)
    allowed = await turns.run(checking, context.throttle)
    refused, done, flushes = await context.broker.groups.share.delete_offsets(
        request.group_id, [name for name in names if name in allowed]
    )
    denied = [name for name in names if name not in allowed]
    response = await turns.run(_answer(denied, done, refused), context.throttle)
    return Outcome(response, flushes)


def _answer(
    denied: list[str], done: list[tuple[bytes, str, KafkaError | None]], refused: list[tuple[str, KafkaError]]
) -> Steps[DeleteShareGroupOffsetsResponse]:
    response = DeleteShareGroupOffsetsResponse()
    unauthorized = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNAUTHORIZED)
    for name in denied:
        response.responses.append(_topic(name, unauthorized))
        yield
    for topic_id, name, failure in sorted(done, key=lambda one: one[2] is not None):
        answer = _topic(name, failure)
        answer.topic_id = topic_id
        response.responses.append(answer)
        yield
    for name, error in refused:
        response.responses.append(_topic(name, error))
        yield
    return response


def _topic(name: str, error: KafkaError | None) -> DeleteShareGroupOffsetsResponseTopic:
    answer = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
    if error is not None:
        answer.error_code = error.code
        answer.error_message = error.message
    return answer
