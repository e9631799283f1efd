"""FindCoordinator (key 10), versions 0-6.

Returns the coordinator of a group (key type 0), a transactional id (1) or a partition of a share group (2, v6): always
this node. The internal topic is created before the response; Kafka responds with COORDINATOR_NOT_AVAILABLE and creates
it afterwards (B1). A key whose partition of that topic is offline has no coordinator. v1 key type and a message. v3 is
flexible. v4 several keys at once (KIP-699). v5 is for clients that know TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from kafka_shim.authorization import require, require_on_cluster
from kafka_shim.errors import MALFORMED_REQUEST, ErrorCode, KafkaError
from kafka_shim.internal_topics import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from kafka_shim.java_hash import internal_partition
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.turns import Steps


KEY, MIN, MAX = 10, 0, 6
REQUEST, RESPONSE = FindCoordinatorRequest, FindCoordinatorResponse
ABANDONABLE = True

GROUP, TRANSACTION, SHARE = 0, 1, 2
_TOPICS = {GROUP: GROUP_METADATA_TOPIC, TRANSACTION: TRANSACTION_STATE_TOPIC, SHARE: SHARE_GROUP_STATE_TOPIC}
_RESOURCES = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
FIRST_WITH_KEYS = 4
FIRST_WITH_SHARE = 6


def handle(context: Context, request: FindCoordinatorRequest) -> Steps[FindCoordinatorResponse]:
    if request.key_type not in (GROUP, TRANSACTION, SHARE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
    if context.api_version < FIRST_WITH_KEYS:
        _check(context, request.key_type, request.key)
        host, port = context.session.advertised()
        # Kafka sends the name of the code if there is no error.
        return FindCoordinatorResponse(error_message="NONE", node_id=context.node_id, host=host, port=port)
    host, port = context.session.advertised()
    node_id = context.node_id
    response = FindCoordinatorResponse()
    for key in request.coordinator_keys:
        try:
            _check(context, request.key_type, key)
        except KafkaError as error:
            answer = Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code)
        else:
            answer = Coordinator(key=key, node_id=node_id, host=host, port=port)
        response.coordinators.append(answer)
        yield
    return response


def failed(
    request: FindCoordinatorRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[FindCoordinatorResponse]:
    """Returns no node, and the error at the top level or in each key."""
    if version < FIRST_WITH_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)
    response = FindCoordinatorResponse()
    for key in request.coordinator_keys:
        response.coordinators.append(
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
        )
        yield
    return response


def _check(context: Context, key_type: int, key: str) -> None:
    broker = context.broker
    if key_type == SHARE:
        if context.api_version >= FIRST_WITH_SHARE:
            require_on_cluster(context, AclOperation.CLUSTER_ACTION)
        if context.api_version < FIRST_WITH_SHARE or not _is_share_key(key):
            raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
    else:
        require(context, AclOperation.DESCRIBE, _RESOURCES[key_type], key)
    name = _TOPICS[key_type]
    try:
        topic = broker.metadata.ensure_internal_topic(name)
    except KafkaError as error:  # a policy forbids it, or no disk takes it: the client asks again
        broker.logs.services.refusals.write("the topic %s is not created on demand: %s", name, error)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.") from error
    if key_type == GROUP:
        partition = broker.groups.partition_for(key)
    elif key_type == SHARE:
        partition = broker.share_state.coordinator.partition_of(key)
    else:
        partition = internal_partition(key, len(topic.partitions))
    if broker.logs.is_offline(name, partition):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")


def _is_share_key(key: str) -> bool:
    """Returns whether the key is `group:topic id:partition` as Kafka's SharePartitionKey parses it. The group id may
    contain colons."""
    if key.count(":") < 2:
        return False
    group, topic_id, number = key.rsplit(":", 2)
    letters = topic_id.removesuffix("==").replace("-", "0").replace("_", "0")
    digits = number[1:] if number[:1] in ("+", "-") else number
    return bool(group.strip()) and len(letters) == 22 and letters.isalnum() and digits.isdecimal()
