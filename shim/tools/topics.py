"""`kafka-topics.sh` (Kafka: TopicCommand)."""

from __future__ import annotations

import re
import sys

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.options import FLAG, NUMBER, VALUE, Options, UsageError, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.uuids import uuid_text
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.tools.options import Given

TOPIC, DEFAULT_CONFIG = 2, 5
ACTIONS = ("create", "list", "alter", "describe", "delete")
REPORTS = ("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions")
COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)
OPTIONS = Options(
    "This tool helps to create, delete, describe, or change a topic.",
    {
        **dict.fromkeys((*ACTIONS, *REPORTS), FLAG),
        **dict.fromkeys(("topics-with-overrides", "if-exists", "if-not-exists", "exclude-internal"), FLAG),
        **dict.fromkeys(("bootstrap-server", "command-config", "topic", "topic-id", "config", "delete-config"), VALUE),
        **dict.fromkeys(("partitions", "replication-factor", "partition-size-limit-per-response"), NUMBER),
        "replica-assignment": VALUE,
    },
)
# Option -> the actions that it does not go with.
NOT_WITH = {
    "config": ("describe", "list", "delete"),
    "partitions": ("describe", "list", "delete"),
    "replication-factor": ("alter", "describe", "list", "delete"),
    "replica-assignment": ("describe", "list", "delete"),
    **{report: ("create", "alter", "list", "delete", "topics-with-overrides") for report in REPORTS},
    "topics-with-overrides": ("create", "alter", "list", "delete", *REPORTS),
    "if-exists": ("create", "list"),
    "if-not-exists": ("alter", "describe", "list", "delete"),
    "exclude-internal": ("create", "alter", "delete"),
}


class TopicError(Exception):
    """The tool's own objection."""


def run(given: Given) -> int:
    if sum(given.has(action) for action in ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    action = given.exactly_one(*ACTIONS)
    if not given.has("bootstrap-server"):
        sys.stderr.write("--bootstrap-server must be specified\n")
        return 1
    if action == "describe" and given.has("if-exists") and not given.has("topic", "topic-id"):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if action not in ("list", "describe"):
        given.require("topic")
    if action == "alter":
        if given.has("config"):
            raise UsageError("kafka-configs.sh alters the options of a topic")
        given.require("partitions")
    for name, others in NOT_WITH.items():
        given.exclude(name, others)
    if action == "create":
        given.exclude("replica-assignment", ("partitions", "replication-factor"))
    try:
        with connect(given, "kafka-topics") as cluster:
            RUN[action](cluster, given)
    except (WireClientError, TopicError) as err:
        print(f"Error while executing topic command : {message_of(err)}")
        return 1
    return 0


# --- which topics


def _names(cluster: Cluster, given: Given) -> list[str]:
    hides = given.has("exclude-internal")
    found = sorted(topic.name for topic in cluster.metadata().topics)
    wanted = given.one("topic")
    pattern = None if wanted is None else included(wanted)
    return [
        name
        for name in found
        if not (hides and name in INTERNAL_TOPICS) and (pattern is None or pattern.fullmatch(name))
    ]


def included(text: str) -> re.Pattern[str]:
    """Which topics a list of names or a regular expression means (Kafka: IncludeList). Raises TopicError."""
    words = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(words)
    except re.error:
        raise TopicError(f"{text} is an invalid regex.") from None


def _existing(cluster: Cluster, given: Given) -> list[str]:
    names = _names(cluster, given)
    wanted = given.text("topic")
    if not names and wanted and not given.has("if-exists"):
        raise TopicError(f"Topic '{wanted}' does not exist as expected")
    return names


# --- actions


def create(cluster: Cluster, given: Given) -> None:
    name = given.text("topic")
    configs = _configs(given)
    if "." in name or "_" in name:
        print(COLLISION)
    partitions, factor = given.number("partitions"), given.number("replication-factor")
    if factor is not None and not 1 <= factor <= 32767:
        raise TopicError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise TopicError("The partitions must be greater than 0")
    assignments = _assignment(given.text("replica-assignment"))
    topic = {
        "name": name,
        "num_partitions": -1 if assignments or partitions is None else partitions,
        "replication_factor": -1 if assignments or factor is None else factor,
        "assignments": [{"partition_index": at, "broker_ids": brokers} for at, brokers in enumerate(assignments)],
        "configs": [{"name": option, "value": value} for option, value in configs.items()],
    }
    (result,) = cluster.any().request(make("CreateTopics", topics=[topic], timeout_ms=30_000)).topics
    if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and given.has("if-not-exists"):
        return
    check(result.error_code, result.error_message)
    print(f"Created topic {name}.")


def _configs(given: Given) -> dict[str, str]:
    found = {}
    for pair in given.all("config"):
        name, equals, value = pair.partition("=")
        if not equals or not value.strip():
            raise TopicError(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        found[name.strip()] = value.strip()
    from kafka_shim.config import TOPIC_OPTIONS

    for name in found:
        if name not in TOPIC_OPTIONS:
            raise TopicError(f"Unknown topic config name: {name}")
    return found


def _assignment(text: str) -> list[list[int]]:
    found: list[list[int]] = []
    for number, part in enumerate(text.split(",") if text else ()):
        brokers = [_broker(broker) for broker in part.split(":")]
        doubled = [str(broker) for broker in dict.fromkeys(brokers) if brokers.count(broker) > 1]
        if doubled:
            raise TopicError(f"Partition replica lists may not contain duplicate entries: {','.join(doubled)}")
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise TopicError(f"Partition {number} has different replication factor: {brokers}")
    return found


def _broker(text: str) -> int:
    """The id of a broker. Raises TopicError with Java's message."""
    try:
        return int(text)
    except ValueError:
        raise TopicError(f'For input string: "{text}"') from None


def list_topics(cluster: Cluster, given: Given) -> None:
    print("\n".join(_names(cluster, given)))


def alter(cluster: Cluster, given: Given) -> None:
    names = _existing(cluster, given)
    if not names:
        return
    count, assignments = given.number("partitions"), _assignment(given.text("replica-assignment"))
    held = {topic.name: len(topic.partitions) for topic in cluster.metadata(names).topics}
    topics = [
        {
            "name": name,
            "count": count,
            "assignments": [{"broker_ids": each} for each in assignments[held[name] :]] if assignments else None,
        }
        for name in names
    ]
    for result in cluster.any().request(make("CreatePartitions", topics=topics, timeout_ms=30_000)).results:
        check(result.error_code, result.error_message)


def delete(cluster: Cluster, given: Given) -> None:
    names = _existing(cluster, given)
    if names:
        topics = [{"name": name} for name in names]
        request = make("DeleteTopics", topics=topics, topic_names=names, timeout_ms=30_000)
        for result in cluster.any().request(request).responses:
            check(result.error_code, result.error_message)


def describe(cluster: Cluster, given: Given) -> None:
    wanted_id = given.text("topic-id")
    if wanted_id:
        known = {uuid_text(topic.topic_id): topic.name for topic in cluster.metadata().topics}
        if wanted_id not in known and not given.has("if-exists"):
            raise TopicError(f"TopicId '{wanted_id}' does not exist as expected")
        names = [known[wanted_id]] if wanted_id in known else []
    else:
        names = _existing(cluster, given)
    if not names:
        return
    # The order of a hash map of Java's.
    topics = sorted(_described(cluster, names), key=lambda topic: names.index(topic.name))
    options = _options(cluster, names)
    shows_topics = not given.has(*REPORTS)
    for topic in topics:
        entries = options[topic.name]
        own = [f"{one.name}={one.value}" for one in entries.values() if one.config_source != DEFAULT_CONFIG]
        if shows_topics and (own or not given.has("topics-with-overrides")):
            print(
                f"Topic: {topic.name}\tTopicId: {uuid_text(topic.topic_id)}\tPartitionCount: {len(topic.partitions)}\t"
                f"ReplicationFactor: {len(topic.partitions[0].replica_nodes)}\tConfigs: {','.join(own)}"
            )
        if not given.has("topics-with-overrides"):
            smallest = int(entries["min.insync.replicas"].value)
            for part in sorted(topic.partitions, key=lambda one: one.partition_index):
                if shows_topics or _is_reported(given, part, smallest):
                    _print_partition(topic.name, part)


def _is_reported(given: Given, part: Any, min_isr: int) -> bool:
    in_sync, has_leader = len(part.isr_nodes), part.leader_id >= 0
    return (
        (given.has("under-replicated-partitions") and len(part.replica_nodes) > in_sync)
        or (given.has("unavailable-partitions") and not has_leader)
        or (given.has("under-min-isr-partitions") and (not has_leader or in_sync < min_isr))
        or (given.has("at-min-isr-partitions") and in_sync == min_isr)
    )


def _print_partition(topic: str, part: Any) -> None:
    elr, last_known = part.eligible_leader_replicas, part.last_known_elr
    leader = part.leader_id if part.leader_id >= 0 else "none"
    print(
        f"\tTopic: {topic}\tPartition: {part.partition_index}\tLeader: {leader}"
        f"\tReplicas: {_joined(part.replica_nodes)}\tIsr: {_joined(part.isr_nodes)}"
        f"\tElr: {'N/A' if elr is None else _joined(elr)}"
        f"\tLastKnownElr: {'N/A' if last_known is None else _joined(last_known)}"
    )


def _joined(numbers: Any) -> str:
    return ",".join(map(str, numbers))


def _described(cluster: Cluster, names: list[str]) -> list[Any]:
    """Every topic with all its partitions, page by page."""
    found: dict[str, Any] = {}
    cursor: dict[str, Any] | None = None
    while True:
        request = make(
            "DescribeTopicPartitions",
            topics=[{"name": name} for name in sorted(names)],
            response_partition_limit=2000,
            cursor=cursor,
        )
        answer = cluster.any().request(request)
        for topic in answer.topics:
            check(topic.error_code)
            if topic.name in found:
                found[topic.name].partitions += topic.partitions
            else:
                found[topic.name] = topic
        if answer.next_cursor is None:
            return list(found.values())
        names = [name for name in names if name >= answer.next_cursor.topic_name]
        cursor = {
            "topic_name": answer.next_cursor.topic_name,
            "partition_index": answer.next_cursor.partition_index,
        }


def _options(cluster: Cluster, names: list[str]) -> dict[str, dict[str, Any]]:
    resources = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in names]
    found = {}
    for result in cluster.any().request(make("DescribeConfigs", resources=resources)).results:
        check(result.error_code, result.error_message)
        found[result.resource_name] = {entry.name: entry for entry in result.configs}
    return found


RUN = {"create": create, "list": list_topics, "alter": alter, "describe": describe, "delete": delete}
main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
