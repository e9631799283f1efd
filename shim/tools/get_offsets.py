"""`kafka-get-offsets.sh` (Kafka: GetOffsetShell)."""

from __future__ import annotations

import re
import sys

from kafka_shim.client.reading import list_offsets
from kafka_shim.internal_topics import INTERNAL_TOPICS
from kafka_shim.tools.errors import message_of
from kafka_shim.tools.options import FLAG, VALUE, Options, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.tools.topics import TopicError, included
from kafka_shim.wire_client import RequestError, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.tools.options import Given

    Filter = Callable[[str, int], bool]

OPTIONS = Options(
    "An interactive shell for getting topic-partition offsets.",
    {
        **dict.fromkeys(("bootstrap-server", "command-config", "topic-partitions", "topic", "partitions"), VALUE),
        "time": VALUE,
        "exclude-internal-topics": FLAG,
    },
)
TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


def run(given: Given) -> int:
    given.require("bootstrap-server")
    try:
        timestamp, is_wanted = _time(given.text("time", "latest")), _filter(given)
        with connect(given, "GetOffsetShell") as cluster:
            found = _partitions(cluster, is_wanted, given.has("exclude-internal-topics"))
            for each in sorted(found, key=lambda one: f"{one[0]}-{one[1]}"):
                _print(cluster, each, timestamp)
    except (TopicError, WireClientError) as err:
        sys.stderr.write(f"Error occurred: {message_of(err)}\n")
        return 1
    return 0


def _print(cluster: Cluster, each: TopicPartition, timestamp: int) -> None:
    try:
        offset = list_offsets(cluster, {each: timestamp})[each]
    except RequestError as err:
        said = f"Skip getting offsets for topic-partition {each[0]}-{each[1]} due to error: {message_of(err)}"
        sys.stderr.write(f"{said}\n")
        return
    if offset >= 0:
        print(f"{each[0]}:{each[1]}:{offset}")


def _time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        forms = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        raise TopicError(
            f"Malformed time argument {text}. Please use {forms}, or a specified long format timestamp"
        ) from None


def _partitions(cluster: Cluster, is_wanted: Filter, hides_internal: bool) -> list[TopicPartition]:
    found = [
        (topic.name, part.partition_index)
        for topic in cluster.metadata().topics
        if not (hides_internal and topic.name in INTERNAL_TOPICS)
        for part in topic.partitions
        if is_wanted(topic.name, part.partition_index)
    ]
    if not found:
        raise TopicError("Could not match any topic-partitions with the specified filters")
    return found


def _filter(given: Given) -> Filter:
    if given.has("topic-partitions") and given.has("topic", "partitions"):
        raise TopicError("--topic-partitions cannot be used with --topic or --partitions")
    if given.has("topic-partitions"):
        rules = [_rule(text) for text in given.text("topic-partitions").split(",")]
        return lambda topic, partition: any(rule(topic, partition) for rule in rules)
    topics = included(given.text("topic", ".*"))
    text = given.text("partitions")
    try:
        numbers = {int(number) for number in text.split(",")} if text else None
    except ValueError:
        raise TopicError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None
    return lambda topic, partition: bool(topics.fullmatch(topic)) and (numbers is None or partition in numbers)


def _rule(text: str) -> Filter:
    match = RULE.fullmatch(text)
    if match is None:
        raise TopicError(f"Invalid rule specification: {text}")
    topics = included(match[1] or ".*")
    if match[2]:
        low, high = int(match[2]), int(match[2]) + 1
    else:
        low, high = int(match[3] or 0), int(match[4] or 1 << 31)
    return lambda topic, partition: bool(topics.fullmatch(topic)) and low <= partition < high


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
