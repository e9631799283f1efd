"""CreateTopics (key 19), versions 2-7.

Each topic succeeds or fails by itself. All that succeed are one batch of the metadata log, which is fsynced before the
response. v5 returns the effective options, v7 the topic id. `validate_only` returns the same and changes nothing.
Duplicate names, and `__cluster_metadata`, are INVALID_REQUEST. A timeout of 0 or less is REQUEST_TIMED_OUT for every
topic, and nothing is created, unless all are refused before. Any other timeout is long enough, because nothing waits.
From v6 a topic over the partition mutation quota (KIP-599) is THROTTLING_QUOTA_EXCEEDED. What
`create.topic.policy.class.name` forbids is POLICY_VIOLATION; it is asked with `validate_only` too. More than 10,000
records for all topics are POLICY_VIOLATION for each of them, also with `validate_only`: a topic is one, and so is each
of its partitions and options.
"""

from __future__ import annotations

from collections import Counter

from kafka_shim.authorization import authorized_in_steps, may_on_cluster
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.internal_topics import CLUSTER_METADATA_TOPIC
from kafka_shim.metadata import topics
from kafka_shim.metadata.config_entries import effective_topic_entries
from kafka_shim.metadata.configs import creation_configs
from kafka_shim.metadata.large_changes import check_count, decide, let_go
from kafka_shim.protocol.message import ZERO_UUID
from kafka_shim.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_shim.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kafka_shim.security.acl import AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from kafka_shim.context import Context
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.quota.request_throttle import MutationQuota
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 19, 2, 7
REQUEST, RESPONSE = CreateTopicsRequest, CreateTopicsResponse


async def handle(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    throttle = context.throttle
    quota = None if throttle is None else throttle.mutation_quota(is_strict=context.api_version >= 6)
    return await create(context, request, quota)


async def create(context: Context, request: CreateTopicsRequest, quota: MutationQuota | None) -> CreateTopicsResponse:
    """Create the topics, counted against this quota, with the rights of the client of any request."""
    response = await context.broker.turns.run(_create(context, request, quota), context.throttle)
    if not request.validate_only:
        metadata = context.broker.metadata
        await metadata.await_log_changes()
        await metadata.flushed()
    return response


def _create(context: Context, request: CreateTopicsRequest, quota: MutationQuota | None) -> Steps[CreateTopicsResponse]:
    names = Counter(topic.name for topic in request.topics)
    accepted = [topic for topic in request.topics if names[topic.name] == 1 and topic.name != CLUSTER_METADATA_TOPIC]
    metadata = context.broker.metadata
    allowed = {topic.name for topic in accepted}
    shown = yield from authorized_in_steps(
        context, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, allowed, logs_denied=False
    )
    denied = set[str]()
    if not may_on_cluster(context, AclOperation.CREATE, logs_denied=False):
        may_create = yield from authorized_in_steps(context, AclOperation.CREATE, ResourceType.TOPIC, allowed)
        denied = allowed.difference(may_create)
        accepted = [topic for topic in accepted if topic.name not in denied]
    if request.timeout_ms <= 0 and accepted:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, None)
    counts = [len(topic.assignments) or topic.num_partitions for topic in accepted]
    topics.check_request_size(counts, context.broker.config.num_partitions)
    counted: set[str] = set()
    answers: list[CreatableTopicResult] = []
    made: dict[str, bytes] = {}

    def decided() -> Steps[list[Any]]:
        records: list[Any] = []
        count = 0
        answers.clear()
        made.clear()
        for topic in accepted:
            yield
            try:
                replicas, options = _decide(metadata, topic)
                if quota is not None and topic.name not in counted:
                    quota.record(len(replicas))
                    counted.add(topic.name)
            except KafkaError as err:
                answers.append(_failed(topic.name, err.code, err.message))
                continue
            count += 1 + len(options) + len(replicas)
            check_count(count)
            created = _created(context, topic.name, replicas, options)
            answers.append(created if topic.name in shown else _without_configs(created))
            if not request.validate_only:
                of_topic = yield from metadata.creation_records(topic.name, replicas, options)
                made[topic.name] = of_topic[0].topic_id
                records += of_topic
        return records

    records, prepared = yield from decide(metadata, decided)
    if records:
        yield from metadata.commit_topics_in_steps(list(made), records, prepared, context.session)
        for result in answers:
            result.topic_id = made.get(result.name, ZERO_UUID)
            yield
        yield from let_go(records)
    return CreateTopicsResponse(topics=answers + _refused(names, denied))


def _refused(names: Counter[str], denied: Collection[str]) -> list[CreatableTopicResult]:
    """Returns the results of the topics that are not looked at: those that are named more than once, the metadata log,
    and those that the client may not create."""
    answers = []
    for name, times in names.items():
        if times > 1:
            answers.append(_failed(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif name == CLUSTER_METADATA_TOPIC:
            reason = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
            answers.append(_failed(name, ErrorCode.INVALID_REQUEST, reason))
        elif name in denied:
            answers.append(_failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
    return answers


def _decide(metadata: MetadataStore, topic: CreatableTopic) -> tuple[list[list[int]], dict[str, str]]:
    """Returns (replicas of each partition, checked options) of one topic. Raises KafkaError."""
    topics.check_new_name(metadata.image, topic.name)
    options = creation_configs(metadata, topic.name, [(config.name, config.value) for config in topic.configs])
    assignments = [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments]
    replicas = metadata.decide_replicas(topic.num_partitions, topic.replication_factor, assignments)
    if metadata.policies is not None:
        metadata.policies.check_new_topic(topic.name, replicas, options, is_assigned=bool(assignments))
    return replicas, options


def _created(
    context: Context, name: str, replicas: list[list[int]], options: Mapping[str, str]
) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        # Kafka makes up an id for a validated topic too.
        topic_id=context.broker.clock.random.uuid(),
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=None if entry.is_sensitive else entry.value,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in effective_topic_entries(context.broker.metadata, options)
        ],
    )


def _without_configs(created: CreatableTopicResult) -> CreatableTopicResult:
    """Remove the options, for a client that may create the topic but not describe its configs."""
    created.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    created.num_partitions = created.replication_factor = -1
    created.configs = []
    return created


def failed(
    request: CreateTopicsRequest, version: int, code: ErrorCode, message: str | None
) -> Steps[CreateTopicsResponse]:
    """Returns the error for each requested topic, without the details of the request."""
    response = CreateTopicsResponse()
    for topic in request.topics:
        response.topics.append(_failed(topic.name, code, message))
        yield
    return response


def _failed(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)
