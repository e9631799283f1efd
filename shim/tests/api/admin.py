"""Admin requests in short, for tests."""

from __future__ import annotations

from kafka_shim.protocol.messages.alter_configs_request import AlterableConfig as Replacement
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsRequest
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsResource as Replaced
from kafka_shim.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafka_shim.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafka_shim.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def new_topic(name, partitions=1, factor=1, assignments=(), **options):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in options.items()],
    )


def create(client, *topics, validate_only=False, version=7):
    """name -> result of CreateTopics."""
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    return {result.name: result for result in client.request(request, version).topics}


def delete(client, *names, ids=(), version=6):
    """(name, error code) of each answer of DeleteTopics."""
    if version < 6:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=5000)
    else:
        states = [DeleteTopicState(name=name) for name in names] + [DeleteTopicState(topic_id=one) for one in ids]
        request = DeleteTopicsRequest(topics=states, timeout_ms=5000)
    return [(result.name, result.error_code) for result in client.request(request, version).responses]


def grow(client, name, count, assignments=None, validate_only=False, version=3):
    """The result of CreatePartitions for one topic."""
    if assignments is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=one) for one in assignments]
    topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=5000, validate_only=validate_only)
    return client.request(request, version).results[0]


def purge(client, name, partition, offset, version=2):
    """(low watermark, error code) of DeleteRecords."""
    part = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=5000)
    result = client.request(request, version).topics[0].partitions[0]
    return result.low_watermark, result.error_code


def describe(client, kind, name, keys=None, version=4, synonyms=True, documentation=False):
    """The result of DescribeConfigs for one resource."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    return client.request(request, version).results[0]


def option(client, kind, name, key):
    """One option as DescribeConfigs shows it: (value, source)."""
    (entry,) = describe(client, kind, name, [key]).configs
    return entry.value, entry.config_source


def alter(client, kind, name, *changes, validate_only=False, version=1):
    """(error code, message) of IncrementalAlterConfigs; a change is (option, operation, value)."""
    configs = [AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    result = client.request(request, version).responses[0]
    return result.error_code, result.error_message


def replace(client, kind, name, options, version=2):
    """(error code, message) of AlterConfigs."""
    configs = [Replacement(name=key, value=value) for key, value in options.items()]
    request = AlterConfigsRequest(resources=[Replaced(resource_type=kind, resource_name=name, configs=configs)])
    result = client.request(request, version).responses[0]
    return result.error_code, result.error_message
