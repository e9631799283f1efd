"""Metadata (key 3), versions 0-13.

Returns the brokers, the controller and the topics: all of them (null list; in v0 an empty one), the named ones, or
those with the given ids (v12; if any id is given, names are ignored, as in Kafka). An unknown topic is created if the
client and `auto.create.topics.enable` allow it. Its result is UNKNOWN_TOPIC_OR_PARTITION all the same, because Kafka
creates it after the response, and kafka-go's tests rely on that. The broker's address is the advertised one, else the
one that the client dialled. v1 rack, controller, internal. v2 cluster id. v4 auto-creation flag. v5 offline replicas: a
partition whose disk failed has no leader. v7 leader epoch. v8-10 cluster operations. v8 topic operations. v9 is
flexible. v10 topic ids. v13 a top-level error.
"""

from __future__ import annotations

from copy import copy
from itertools import chain

from kafka_shim.api.partitions import (
    cluster_operations,
    led_by,
)
from kafka_shim.authorization import authorized_in_steps, authorized_operations, may_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.metadata.topics import check_name
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Partition, Topic
    from kafka_shim.turns import Steps


KEY, MIN, MAX = 3, 0, 13
REQUEST, RESPONSE = MetadataRequest, MetadataResponse
ABANDONABLE = True

FIRST_WITH_TOPIC_IDS = 12
PARTITIONS_PER_STEP = 32


def handle(context: Context, request: MetadataRequest) -> Steps[MetadataResponse]:
    broker, version = context.broker, context.api_version
    host, port = context.session.advertised()
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=context.node_id, host=host, port=port, rack=broker.config.broker_rack)],
        cluster_id=broker.cluster_id,
        controller_id=context.node_id,
    )
    asked = request.topics
    if asked is None or (version == 0 and not asked):
        response.topics = yield from _all(context)
    else:
        ids: dict[bytes, None] = {}
        names: dict[str, None] = {}
        names_nothing = False
        for wanted in asked:
            _check_name(wanted, version)
            names_nothing = names_nothing or (wanted.name is None and wanted.topic_id == ZERO_UUID)
            if wanted.topic_id != ZERO_UUID:
                ids[wanted.topic_id] = None
            names[wanted.name or ""] = None
            yield
        if ids:
            response.topics = yield from _by_id(context, ids)
        elif names_nothing:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # neither name nor id: Kafka fails with this
        else:
            creates = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
            response.topics = yield from _by_names(context, names, creates)
    if request.include_cluster_authorized_operations and 8 <= version <= 10:
        response.cluster_authorized_operations = cluster_operations(context)
    if request.include_topic_authorized_operations:
        for at, described_topic in enumerate(response.topics):
            if described_topic.error_code not in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID):
                response.topics[at] = _with_operations(context, described_topic)
            yield
    return response


def _with_operations(context: Context, topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """Returns a copy, because responses share these objects."""
    topic = copy(topic)
    topic.topic_authorized_operations = authorized_operations(context, ResourceType.TOPIC, topic.name or "")
    return topic


def failed(request: MetadataRequest, version: int, code: ErrorCode, message: str | None) -> Steps[MetadataResponse]:
    """Returns the error in every requested topic, and from v13 on at the top level."""
    response = MetadataResponse(error_code=code)
    for topic in request.topics or ():
        response.topics.append(MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id))
        yield
    return response


def _check_name(topic: MetadataRequestTopic, version: int) -> None:
    by_id = version >= FIRST_WITH_TOPIC_IDS
    if topic.name is None and not by_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
    if topic.topic_id != ZERO_UUID and not by_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}")


def _all(context: Context) -> Steps[list[MetadataResponseTopic]]:
    """Returns the topics that there are now. One that is deleted before its turn is left out."""
    image = context.broker.metadata.image
    topics = list(image.topics.values())
    names = (topic.name for topic in topics)
    described = yield from authorized_in_steps(
        context, AclOperation.DESCRIBE, ResourceType.TOPIC, names, logs_denied=False
    )
    answers = []
    for topic in topics:
        if topic.name in described and image.topics_by_id.get(topic.topic_id) is topic:
            answers.append((yield from _describe(context, topic)))
        yield
    return answers


def _by_id(context: Context, ids: Iterable[bytes]) -> Steps[list[MetadataResponseTopic]]:
    known = context.broker.metadata.image.topics_by_id
    names = (known[topic_id].name for topic_id in ids if topic_id in known)
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    answers = []
    for topic_id in ids:
        topic = known.get(topic_id)
        if topic is not None and topic.name in described:
            answers.append((yield from _describe(context, topic)))
        else:
            code = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answers.append(MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id))
        yield
    return answers


def _by_names(context: Context, names: dict[str, None], creates: bool) -> Steps[list[MetadataResponseTopic]]:
    """Returns each name once, in this order: topics that there are, unknown ones, topics that may not be created,
    topics that may not be described. The response does not show whether a topic that may not be described exists."""
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    existing = context.broker.metadata.image.topics
    new: dict[str, None] = {}
    if creates:
        for name in names:
            if name in described and name not in existing:
                new[name] = None
            yield
    denied: dict[str, None] = {}
    if new and not may_on_cluster(context, AclOperation.CREATE, logs_denied=False):
        may_create = yield from authorized_in_steps(context, AclOperation.CREATE, ResourceType.TOPIC, new)
        denied = {name: None for name in new if name not in may_create}
    answers: list[MetadataResponseTopic] = []
    unknown: list[MetadataResponseTopic] = []
    hidden: list[str] = []
    for name in names:
        if name not in described:
            hidden.append(name)
        elif name not in denied:
            # One that was deleted since is not created: nobody asked whether the client may.
            answer = yield from _by_name(context, name, name in new)
            (unknown if answer.error_code else answers).append(answer)
        yield
    answers += unknown
    for name in chain(denied, hidden):
        answers.append(
            MetadataResponseTopic(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                name=name,
                is_internal=name in denied and name in INTERNAL_TOPICS,
            )
        )
        yield
    return answers


def _by_name(context: Context, name: str, creates: bool) -> Steps[MetadataResponseTopic]:
    metadata = context.broker.metadata
    topic = metadata.image.topics.get(name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            check_name(name)
            if creates:
                _create(context, name)
        except KafkaError as error:
            code = error.code
        return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)
    return (yield from _describe(context, topic))


def _create(context: Context, name: str) -> None:
    """Create a topic on demand. As in Kafka, whose controller is asked while the response is under way, the client
    learns of no failure; the log has it (AutoTopicCreationManager). The client's mutation quota is asked strictly, but
    does not throttle this request."""
    quota = None if context.throttle is None else context.throttle.quota_of_topic_on_demand()
    try:
        metadata = context.broker.metadata
        metadata.auto_create_topic(name, quota=None if quota is None else quota.record, by=context.session)
    except KafkaError as error:
        refusals = context.broker.logs.services.refusals
        refusals.write("the topic %s is not created on demand: %s", name, error)


def _describe(context: Context, topic: Topic) -> Steps[MetadataResponseTopic]:
    """Returns the topic's part of the response, as it is when this begins. It is cached until the metadata changes,
    because it may have thousands of partitions; not while one of any topic is offline: it may be another by now."""
    broker = context.broker
    as_of, is_whole = broker.metadata.image.last_offset, not broker.logs.offline_count
    known = broker.described_topics
    found = known.get(topic.topic_id)
    if found is not None and is_whole and found[0] == as_of:
        return found[1]
    answers: list[MetadataResponsePartition] = []
    partitions = topic.partitions[:]
    for start in range(0, len(partitions), PARTITIONS_PER_STEP):
        if start:
            yield
        some = partitions[start : start + PARTITIONS_PER_STEP]
        answers += [_partition(partition, led_by(broker, topic, partition)) for partition in some]
    if len(known) > 2 * len(broker.metadata.image.topics):
        known.clear()  # most entries are of deleted topics
    described = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=answers,
    )
    if is_whole and not broker.logs.offline_count and as_of == broker.metadata.image.last_offset:
        known[topic.topic_id] = (as_of, described)
    return described


def _partition(partition: Partition, leader: int) -> MetadataResponsePartition:
    answer = MetadataResponsePartition(
        partition_index=partition.partition,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
    )
    if leader >= 0:
        answer.isr_nodes = list(partition.isr)
    else:
        answer.error_code = ErrorCode.LEADER_NOT_AVAILABLE
        answer.offline_replicas = list(partition.replicas)
    return answer
