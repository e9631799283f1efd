"""DescribeConfigs (key 32), versions 1-4.

Returns options of topics, of this broker, of all brokers (name ""), of its loggers, of groups and of client metrics:
all options, or the named ones. v1 adds synonyms, v3 types and documentation (the texts are the shim's own). Passwords
have no value. A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION; a group or a subscription need not exist. An
unknown resource type fails the request with INVALID_REQUEST.
"""

from __future__ import annotations

from kafka_shim.api.broker_loggers import levels
from kafka_shim.authorization import require, require_on_cluster
from kafka_shim.errors import MALFORMED_REQUEST, ErrorCode, KafkaError
from kafka_shim.metadata import config_entries
from kafka_shim.metadata.config_checks import node_id_of
from kafka_shim.metadata.config_entries import FROM_LOGGER, Entry
from kafka_shim.metadata.image import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from kafka_shim.metadata.topics import check_name
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafka_shim.security.acl import DENIED, AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

    # All options of the resources of one request by type and name: a request of a few bytes may name the same resource
    # thousands of times, and the options of a broker take milliseconds.
    Known = dict[tuple[int, str], list[DescribeConfigsResourceResult]]

KEY, MIN, MAX = 32, 1, 4
REQUEST, RESPONSE = DescribeConfigsRequest, DescribeConfigsResponse
ABANDONABLE = True

_TYPES = (RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP)


def handle(context: Context, request: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    for resource in request.resources:
        if resource.resource_type not in _TYPES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
        yield
    known: Known = {}
    results: list[DescribeConfigsResult] = []
    denied: list[DescribeConfigsResult] = []  # Kafka lists them last
    for resource in request.resources:
        result = _describe(context, request, resource, known)
        (denied if result.error_code in DENIED.values() else results).append(result)
        yield
    results += denied
    return DescribeConfigsResponse(results=results)


def _authorize(context: Context, kind: int, name: str) -> None:
    if kind == RESOURCE_TOPIC:
        require(context, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)
    elif kind == RESOURCE_GROUP:
        require(context, AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP, name)
    else:
        require_on_cluster(context, AclOperation.DESCRIBE_CONFIGS)


def _describe(
    context: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource, known: Known
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    wanted = set(resource.configuration_keys or ())
    try:
        _authorize(context, resource.resource_type, resource.resource_name)
        configs = _all(context, request, resource, known)
        result.configs = [one for one in configs if one.name in wanted] if wanted else configs
    except KafkaError as err:
        result.error_code = err.code
        # Kafka sends no message for a topic that does not exist.
        result.error_message = "" if err.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else err.message
        result.configs = []
    return result


def _all(
    context: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource, known: Known
) -> list[DescribeConfigsResourceResult]:
    kind, name = resource.resource_type, resource.resource_name
    if kind in (RESOURCE_BROKER, RESOURCE_BROKER_LOGGER) and name:
        _check_node(context, name, " or empty string," if kind == RESOURCE_BROKER else "")
        name = str(context.node_id)  # "01" is the same broker
    configs = known.get((kind, name))
    if configs is None:
        configs = known[kind, name] = [_entry(entry, request) for entry in _entries(context, kind, name)]
    return configs


def _entries(context: Context, kind: int, name: str) -> Iterable[Entry]:
    metadata = context.broker.metadata
    if kind == RESOURCE_TOPIC:
        check_name(name)
        metadata.topic(name)
        return config_entries.topic_entries(metadata, name)
    if kind == RESOURCE_BROKER:
        if not name:
            return config_entries.cluster_entries(metadata)
        return config_entries.broker_entries(metadata)
    if kind == RESOURCE_BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        return _logger_entries()
    if kind == RESOURCE_CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return config_entries.client_metrics_entries(metadata, name)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return config_entries.group_entries(metadata, name)


def _check_node(context: Context, name: str, alternative: str) -> None:
    try:
        node_id = node_id_of(name)
    except ValueError:
        reason = f"Broker id must be an integer, but it is: {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason) from None
    if node_id != context.node_id:
        reason = f"Unexpected broker id, expected {context.node_id}{alternative} but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _logger_entries() -> Iterable[Entry]:
    for name, level in levels().items():
        entry = Entry(name, None, [], None)
        entry.is_sensitive = False
        entry.value = level
        entry.source = FROM_LOGGER
        entry.documentation = ""
        yield entry


def _entry(entry: Entry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.type_id,
        # For a logger, Kafka leaves this field at the message's default.
        documentation=entry.documentation if request.include_documentation or entry.source == FROM_LOGGER else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source) for one in entry.synonyms
        ]
    return result
