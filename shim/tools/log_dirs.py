"""`kafka-log-dirs.sh` (Kafka: LogDirsCommand)."""

from __future__ import annotations

import json
import sys

from kafka_shim.client.requests import make
from kafka_shim.errors import ErrorCode
from kafka_shim.java_order import order_ints, order_keys, order_strings, table_size, topic_partition_hash
from kafka_shim.tools.errors import class_of, exception_of
from kafka_shim.tools.options import FLAG, VALUE, Options, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from kafka_shim.client.cluster import Cluster
    from kafka_shim.tools.options import Given

OPTIONS = Options(
    "This tool helps to query log directory usage on the specified brokers.",
    {
        **dict.fromkeys(("bootstrap-server", "command-config", "topic-list", "broker-list"), VALUE),
        "describe": FLAG,
    },
)


def run(given: Given) -> int:
    given.require("bootstrap-server", "describe")
    topics = set(_parts(given.text("topic-list")))
    try:
        with connect(given, "log-dirs-tool") as cluster:
            there = {broker.node_id for broker in cluster.metadata(()).brokers}
            wanted = {_number(text) for text in _parts(given.text("broker-list"))}
            if strangers := wanted - there:
                sys.stderr.write(
                    f"ERROR: The given brokers do not exist from --broker-list: {_listed(strangers)}. "
                    f"Current existent brokers: {_listed(there)}\n"
                )
                return 1
            brokers = order_ints(wanted or there)
            print("Querying brokers for log directories information")
            found = [_in_order(broker=broker, logDirs=_directories(cluster, broker, topics)) for broker in brokers]
    except (ValueError, WireClientError) as err:
        sys.stderr.write(f"{exception_of(err)}\n")
        return 1
    print(f"Received log directory information from brokers {_listed(brokers)}")
    print(json.dumps(_in_order(version=1, brokers=found), separators=(",", ":"), ensure_ascii=False))
    return 0


def _directories(cluster: Cluster, broker: int, topics: set[str]) -> list[dict[str, Any]]:
    answer = cluster.to(broker).request(make("DescribeLogDirs", topics=None))
    check(answer.error_code)
    by_path = {one.log_dir: one for one in answer.results}
    return [_directory(by_path[path], topics) for path in order_strings(by_path)]


def _directory(found: Any, topics: set[str]) -> dict[str, Any]:
    replicas = {
        (topic.name, part.partition_index): part
        for topic in found.topics
        if not topics or topic.name in topics
        for part in topic.partitions
    }
    code = ErrorCode(found.error_code)
    return _in_order(
        logDir=found.log_dir,
        error=None if code is ErrorCode.NONE else class_of(code),
        partitions=[
            _in_order(
                partition=f"{topic}-{partition}",
                size=replicas[topic, partition].partition_size,
                offsetLag=replicas[topic, partition].offset_lag,
                isFuture=replicas[topic, partition].is_future_key,
            )
            for topic, partition in order_keys(
                replicas, lambda key: topic_partition_hash(*key), table_size(len(replicas))
            )
        ],
    )


def _in_order(**values: Any) -> dict[str, Any]:
    """The values in the order in which Kafka's tool prints them, that of its hash maps."""
    return {name: values[name] for name in order_strings(values)}


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'For input string: "{text}"') from None


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, order_ints(set(numbers))))


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
