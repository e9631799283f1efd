"""`kafka-shim topics`: list, describe, create, delete, alter. The output format is that of Kafka's tool."""

from __future__ import annotations

import click

from kafka_shim.commands.options import (
    advising_to_repeat,
    bootstrap_option,
    connected,
    each_in_turn,
    joined,
    json_option,
    parse_pairs,
    show_rows,
    wants_json,
)
from kafka_shim.errors import ErrorCode
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import Connection, RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOPIC = 2
DEFAULT_CONFIG = 5


@click.group(name="topics", help="List, describe, create, delete and grow topics.")
def group() -> None:
    pass


@group.command(name="list", help="Print the names of all topics.")
@bootstrap_option
@click.option("--exclude-internal", is_flag=True, help="leave out topics of the broker's own")
@json_option
def list_topics(bootstrap_server: str, exclude_internal: bool) -> None:
    with connected(bootstrap_server) as connection:
        topics = sorted(_metadata(connection, None), key=_name)
        rows = [(topic.name,) for topic in topics if not (exclude_internal and topic.is_internal)]
        show_rows(("Topic",), rows, lambda: click.echo("".join(f"{name}\n" for (name,) in rows), nl=False))


TOPIC_COLUMNS = ("Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs", "Partitions")


def _row(topic: Any, partitions: list[Any], options: list[str]) -> tuple[object, ...]:
    """What `describe` says of a topic, for JSON."""
    configs = dict(one.split("=", 1) for one in options)
    shown = [
        {
            "partition": one.partition_index,
            "leader": None if one.leader_id < 0 else one.leader_id,
            "replicas": one.replica_nodes,
            "isr": one.isr_nodes,
        }
        for one in partitions
    ]
    replicas = len(partitions[0].replica_nodes)
    return topic.name, uuid_text(topic.topic_id), len(partitions), replicas, configs, shown


def _print_nothing() -> None:
    pass


@group.command(help="Print partitions and options of topics; of all topics when none is named.")
@click.argument("names", nargs=-1)
@bootstrap_option
@click.option("--exclude-internal", is_flag=True, help="leave out topics of the broker's own")
@json_option
def describe(names: tuple[str, ...], bootstrap_server: str, exclude_internal: bool) -> None:
    with connected(bootstrap_server) as connection:
        topics = sorted(_metadata(connection, names or None), key=_name)
        for topic in topics:
            check(topic.error_code, subject=topic.name)
        topics = [topic for topic in topics if not (exclude_internal and topic.is_internal)]
        options = _options(connection, [topic.name for topic in topics])
        replicas_of = _elr(connection, [topic.name for topic in topics])
        for topic in topics:
            partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
            if wants_json():
                show_rows(TOPIC_COLUMNS, [_row(topic, partitions, options[topic.name])], _print_nothing)
                continue
            click.echo(
                f"Topic: {topic.name}\tTopicId: {uuid_text(topic.topic_id)}\tPartitionCount: {len(partitions)}\t"
                f"ReplicationFactor: {len(partitions[0].replica_nodes)}\tConfigs: {','.join(options[topic.name])}"
            )
            for partition in partitions:
                elr, last_known_elr = replicas_of.get((topic.name, partition.partition_index), ("N/A", "N/A"))
                leader = "none" if partition.leader_id < 0 else partition.leader_id
                click.echo(
                    f"\tTopic: {topic.name}\tPartition: {partition.partition_index}\tLeader: {leader}\t"
                    f"Replicas: {joined(partition.replica_nodes)}\tIsr: {joined(partition.isr_nodes)}\t"
                    f"Elr: {elr}\tLastKnownElr: {last_known_elr}"
                )


@group.command(help="Create topics.")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--partitions", type=int, default=-1, help="how many; default: the broker's num.partitions")
@click.option("--replication-factor", type=int, default=-1, help="default: the broker's")
@click.option("-c", "--config", "pairs", multiple=True, metavar="NAME=VALUE", help="an option of the topic; repeatable")
@click.option("--if-not-exists", is_flag=True, help="an existing topic is no error")
@click.option("--validate-only", is_flag=True, help="only say whether it would work")
@json_option
def create(
    names: tuple[str, ...],
    bootstrap_server: str,
    partitions: int,
    replication_factor: int,
    pairs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
) -> None:
    from kafka_shim.protocol.messages.create_topics_request import (
        CreatableTopic,
        CreatableTopicConfig,
        CreateTopicsRequest,
    )

    configs = parse_pairs(pairs, "--config")
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                configs=[CreatableTopicConfig(name=option, value=value) for option, value in configs.items()],
            )
            for name in names
        ],
        validate_only=validate_only,
    )
    with connected(bootstrap_server) as connection:
        results = connection.request(request).topics

        def tell(result: Any) -> None:
            if not (if_not_exists and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
                with advising_to_repeat(configs, "--config"):
                    check(result.error_code, result.error_message, result.name)
                _say(result.name, f"{'Would create' if validate_only else 'Created'} topic {result.name}.")

        each_in_turn(results, tell)


@group.command(help="Delete topics with all their records.")
@click.argument("names", nargs=-1, required=True)
@bootstrap_option
@click.option("--if-exists", is_flag=True, help="a missing topic is no error")
@json_option
def delete(names: tuple[str, ...], bootstrap_server: str, if_exists: bool) -> None:
    from kafka_shim.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=30000)
    with connected(bootstrap_server) as connection:
        results = connection.request(request).responses

        def tell(result: Any) -> None:
            if not (if_exists and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                check(result.error_code, result.error_message, result.name)
                _say(result.name, f"Deleted topic {result.name}.")

        each_in_turn(results, tell)


@group.command(help="Grow a topic to a number of partitions.")
@click.argument("name")
@bootstrap_option
@click.option("--partitions", type=int, required=True, help="how many it shall have")
@json_option
def alter(name: str, bootstrap_server: str, partitions: int) -> None:
    from kafka_shim.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic

    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=partitions, assignments=None)], timeout_ms=30000
    )
    with connected(bootstrap_server) as connection:
        result = connection.request(request).results[0]
        check(result.error_code, result.error_message, name)
        _say(name, f"Topic {name} has {partitions} partitions.")


def _say(name: str, text: str) -> None:
    show_rows(("Topic",), [(name,)], lambda: click.echo(text))


def _name(topic: Any) -> str:
    return str(topic.name)


def _metadata(connection: Connection, names: tuple[str, ...] | None) -> list[Any]:
    from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    answer = connection.request(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    found: list[Any] = answer.topics
    return found


def _options(connection: Connection, names: list[str]) -> dict[str, list[str]]:
    """Returns the configs of each topic that are not defaults, as NAME=VALUE."""
    from kafka_shim.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource

    if not names:
        return {}
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None) for name in names
    ]
    found = {}
    for result in connection.request(DescribeConfigsRequest(resources=resources)).results:
        check(result.error_code, result.error_message, result.resource_name)
        changed = [f"{one.name}={one.value}" for one in result.configs if one.config_source != DEFAULT_CONFIG]
        found[result.resource_name] = sorted(changed)
    return found


def _elr(connection: Connection, names: list[str]) -> dict[tuple[str, int], tuple[str, str]]:
    """Returns the eligible leader replicas (KIP-966) by (topic, partition), if the broker supports it."""
    from kafka_shim.protocol.messages.describe_topic_partitions_request import (
        Cursor,
        DescribeTopicPartitionsRequest,
        TopicRequest,
    )

    found: dict[tuple[str, int], tuple[str, str]] = {}
    if not names or DescribeTopicPartitionsRequest.API_KEY not in connection.ranges():
        return found
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names], cursor=cursor)
        try:
            answer = connection.request(request, 0)
        except RequestError:
            return found
        for topic in answer.topics:
            for one in topic.partitions:
                elr = (joined(one.eligible_leader_replicas), joined(one.last_known_elr))
                found[(topic.name, one.partition_index)] = elr
        if answer.next_cursor is None:
            return found
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)
        names = [name for name in sorted(names) if name >= cursor.topic_name]
