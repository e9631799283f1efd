"""DeleteTopics (key 20), versions 1-6.

Deletes topics by name, from v6 also by topic id. Synchronous: once the response is sent, the names are free and the ids
unknown. v5 adds the error message. With `delete.topic.enable=false`: TOPIC_DELETION_DISABLED (below v3
INVALID_REQUEST). A timeout of 0 or less is REQUEST_TIMED_OUT, and nothing is deleted, unless no topic is looked for.
Kafka shuffles the results; here they are in order. From v5 a topic over the partition mutation quota (KIP-599) is
THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps, may_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.topics import UNKNOWN_TOPIC_ID_MESSAGE, UNKNOWN_TOPIC_MESSAGE
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kafka_shim.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

    # A requested topic, by its name or by its id, and the topic to delete or the error.
    Resolved = tuple[str | None, bytes, str | KafkaError]

KEY, MIN, MAX = 20, 1, 6
REQUEST, RESPONSE = DeleteTopicsRequest, DeleteTopicsResponse


async def handle(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    response = await context.broker.turns.run(_delete(context, request), context.throttle)
    metadata = context.broker.metadata
    await metadata.await_log_changes()
    await metadata.flushed()
    return response


def _delete(context: Context, request: DeleteTopicsRequest) -> Steps[DeleteTopicsResponse]:
    response = DeleteTopicsResponse()
    metadata = context.broker.metadata
    wanted: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    if not context.broker.config.delete_topic_enable:
        disabled = _deletion_disabled(context.api_version)
        response.responses = [_failed(name, topic_id, disabled) for name, topic_id in wanted]
        return response
    quota = None if context.throttle is None else context.throttle.mutation_quota(is_strict=context.api_version >= 5)
    resolved = yield from _resolve(context, wanted, is_late=request.timeout_ms <= 0)
    for name, topic_id, outcome in resolved:
        yield
        if isinstance(outcome, KafkaError):
            response.responses.append(_failed(name, topic_id, outcome))
            continue
        try:
            # Another request may have deleted it meanwhile, and created another of this name.
            topic = metadata.topic_by_id(topic_id)
            if quota is not None:
                quota.record(len(topic.partitions))
            metadata.delete_topic(outcome, later=True, by=context.session)
        except KafkaError as err:
            response.responses.append(_failed(outcome, topic_id, err))
        else:
            response.responses.append(DeletableTopicResult(name=outcome, topic_id=topic_id))
    return response


def _resolve(context: Context, wanted: list[tuple[str | None, bytes]], *, is_late: bool) -> Steps[list[Resolved]]:
    """Returns (name, id, topic to delete or the error) for each different requested topic, as
    ControllerApis.deleteTopics does. The name is None if the topic was requested by its id. The client cannot learn of
    a topic that it may not describe: neither that it exists, nor its name, nor its id. Raises KafkaError
    REQUEST_TIMED_OUT if the request `is_late` and its metadata has to be asked for a topic."""
    image = context.broker.metadata.image
    answers: list[Resolved] = []
    names: dict[str, bool] = {}  # True: requested more than once
    ids: dict[bytes, bool] = {}
    for name, topic_id in wanted:
        yield
        if name is not None and topic_id != ZERO_UUID:
            answers.append((name, topic_id, _invalid("You may not specify both topic name and topic id.")))
        elif name is not None:
            names[name] = name in names
        elif topic_id != ZERO_UUID:
            ids[topic_id] = topic_id in ids
        else:
            answers.append((None, ZERO_UUID, _invalid("Neither topic name nor id were specified.")))
    answers += [(name, ZERO_UUID, _invalid("Duplicate topic name.")) for name, twice in names.items() if twice]
    answers += [(None, topic_id, _invalid("Duplicate topic id.")) for topic_id, twice in ids.items() if twice]
    # Also of a topic that the client may not delete: its metadata is asked for first.
    if is_late and not all((*names.values(), *ids.values())):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, None)
    by_id: dict[bytes, str] = {}
    for topic_id, twice in ids.items():
        yield
        topic = image.topics_by_id.get(topic_id)
        if twice:
            continue
        if topic is None:
            answers.append((None, topic_id, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_ID_MESSAGE)))
        else:
            by_id[topic_id] = topic.name
    once = [name for name, twice in names.items() if not twice]
    described, deleted = yield from _allowed(context, {*once, *by_id.values()})
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    for topic_id, name in list(by_id.items()):
        yield
        if name not in deleted:
            answers.append((name if name in described else None, topic_id, denied))
            del by_id[topic_id]
    for name in once:
        yield
        topic = image.topics.get(name)
        if name not in described:  # whether or not it may be deleted
            answers.append((name, ZERO_UUID, denied))
        elif topic is None:
            answers.append((name, ZERO_UUID, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_MESSAGE)))
        elif name not in deleted:
            answers.append((name, ZERO_UUID, denied))
        elif topic.topic_id in by_id or ids.get(topic.topic_id):
            by_id.pop(topic.topic_id, None)
            reason = "The provided topic name maps to an ID that was already supplied."
            answers.append((name, topic.topic_id, _invalid(reason)))
        else:
            by_id[topic.topic_id] = name
    return answers + [(None if topic_id in ids else name, topic_id, name) for topic_id, name in by_id.items()]


def _allowed(context: Context, names: Collection[str]) -> Steps[tuple[Collection[str], Collection[str]]]:
    """Returns the topics that the client may describe, and those that it may delete."""
    if may_on_cluster(context, AclOperation.DELETE, logs_denied=False):
        return names, names
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    deleted = yield from authorized_in_steps(context, AclOperation.DELETE, ResourceType.TOPIC, names)
    return described, deleted


def _deletion_disabled(version: int) -> KafkaError:
    """Returns the error. Kafka sends no message with it."""
    return KafkaError(ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED)


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _failed(name: str | None, topic_id: bytes, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=error.code,
        error_message=error.message,
    )
