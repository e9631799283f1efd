"""`kafka-delete-records.sh` (Kafka: DeleteRecordsCommand). For a partition that does not exist Kafka's waits a minute
first."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kafka_shim.client.requests import make
from kafka_shim.tools.errors import exception_of
from kafka_shim.tools.options import VALUE, Options, connect
from kafka_shim.tools.running import flat_main, leave, said
from kafka_shim.wire_client import RequestError, WireClientError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.tools.options import Given

OPTIONS = Options(
    "This tool helps to delete records of the given partitions down to the specified offset.",
    dict.fromkeys(("bootstrap-server", "command-config", "offset-json-file"), VALUE),
)
TIMEOUT_MS = 60_000
# The numbers that Java's types hold.
INT_BITS, LONG_BITS = 31, 63


class FileError(Exception):
    """The file does not say what to delete."""


def run(given: Given) -> int:
    given.require("bootstrap-server", "offset-json-file")
    try:
        with connect(given, "adminclient-1") as cluster:
            wanted = _offsets(Path(given.text("offset-json-file")).read_text(encoding="utf-8"))
            print("Executing records delete operation")
            outcomes = _delete(cluster, wanted)
    except (FileError, OSError, UnicodeError, WireClientError) as err:
        sys.stderr.write(f"{said(err)}\n")
        return 1
    print("Records delete operation completed:")
    for (topic, partition), outcome in sorted(outcomes.items()):
        shown = f"low_watermark: {outcome}" if isinstance(outcome, int) else f"error: {exception_of(outcome)}"
        print(f"partition: {topic}-{partition}\t{shown}")
    return 0


def _delete(cluster: Cluster, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int | RequestError]:
    """Returns the new start of each partition, or its error."""
    by_leader, errors = cluster.by_leader_now(wanted)
    outcomes: dict[TopicPartition, int | RequestError] = {**errors}
    for node_id, topics in by_leader.items():
        request = make(
            "DeleteRecords",
            timeout_ms=TIMEOUT_MS,
            topics=[
                {
                    "name": topic,
                    "partitions": [{"partition_index": one, "offset": wanted[topic, one]} for one in partitions],
                }
                for topic, partitions in topics.items()
            ],
        )
        for topic in cluster.to(node_id).request(request).topics:
            for part in topic.partitions:
                key = topic.name, part.partition_index
                try:
                    check(part.error_code, subject=f"{key[0]}-{key[1]}")
                    outcomes[key] = part.low_watermark
                except RequestError as err:
                    outcomes[key] = err
    return outcomes


def _offsets(text: str) -> dict[TopicPartition, int]:
    """The partitions with the offsets before which records are deleted. Raises FileError."""
    try:
        document, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        raise FileError("The input string is not a valid JSON") from None
    version = _number(document, "version", INT_BITS) if "version" in _object(document) else 1
    if version != 1:
        raise FileError(f"Not supported version field value {version}")
    partitions = document.get("partitions")
    if partitions is None:
        raise FileError("Missing partitions field")
    if not isinstance(partitions, list):
        raise FileError(f"Expected JSON array, received {partitions}")
    wanted: dict[TopicPartition, int] = {}
    twice: dict[TopicPartition, None] = {}
    for one in partitions:
        topic = _field(one, "topic")
        if not isinstance(topic, str):
            raise FileError(f"Expected `String` value, received {topic}")
        key = topic, _number(one, "partition", INT_BITS)
        if key in wanted:
            twice[key] = None
        wanted[key] = _number(one, "offset", LONG_BITS)
    if twice:
        shown = ",".join(f"{topic}-{partition}" for topic, partition in twice)
        raise FileError(f"Offset json file contains duplicate topic partitions: {shown}")
    return wanted


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileError(f"Expected JSON object, received {value}")
    return value


def _field(value: Any, name: str) -> Any:
    try:
        return _object(value)[name]
    except KeyError:
        raise FileError(f"No such field exists: `{name}`") from None


def _number(value: Any, name: str, bits: int) -> int:
    found = _field(value, name)
    if type(found) is not int or not -(1 << bits) <= found < 1 << bits:
        raise FileError(f"Expected `{'Integer' if bits == INT_BITS else 'Long'}` value, received {found}")
    return found


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
