"""The offsets that `kafka-consumer-groups.sh --reset-offsets` chooses (Kafka: OffsetsUtils)."""

from __future__ import annotations

import csv
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka_shim.client.reading import EARLIEST, LATEST, list_offsets
from kafka_shim.durations import iso_ms
from kafka_shim.errors import ErrorCode
from kafka_shim.tools.consumer_group_data import committed
from kafka_shim.tools.options import UsageError
from kafka_shim.wire_client import RequestError, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_shim.client.cluster import Cluster, TopicPartition
    from kafka_shim.tools.options import Given

SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
EPOCH, MILLISECOND = datetime.fromtimestamp(0, UTC), timedelta(milliseconds=1)
DATE_FORMS = ("%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%dT%H:%M:%S%z")


class InvalidArgument(Exception):
    """A value of an option cannot be used (Java's IllegalArgumentException): the tool ends with 1."""


def prepare(cluster: Cluster, given: Given, group: str) -> dict[TopicPartition, int]:
    """The new offset of each partition in the scope. Raises UsageError, InvalidArgument, RequestError."""
    partitions = _scope(cluster, given, group)
    _check_exist(cluster, partitions)
    if given.has("to-offset"):
        return _in_range(cluster, dict.fromkeys(partitions, given.number("to-offset") or 0))
    if given.has("to-earliest"):
        return _offsets(cluster, partitions, EARLIEST)
    if given.has("to-latest"):
        return _offsets(cluster, partitions, LATEST)
    if given.has("shift-by"):
        now = committed(cluster, group)
        for topic, number in partitions:
            if (topic, number) not in now:
                raise InvalidArgument(
                    f"Cannot shift offset for partition {topic}-{number} since there is no current committed offset"
                )
        return _in_range(cluster, {each: now[each][0] + (given.number("shift-by") or 0) for each in partitions})
    if given.has("to-datetime"):
        return _at(cluster, partitions, timestamp_of(given.text("to-datetime")))
    if given.has("by-duration"):
        return _at(cluster, partitions, time.time_ns() // 1_000_000 - duration_ms(given.text("by-duration")))
    if given.has("from-file"):
        plan = _from_file(given).get(group)
        if plan is None:
            print(f"\nError: No reset plan for group {group} found")
            return {}
        return _in_range(cluster, plan)
    if given.has("to-current"):
        now = committed(cluster, group)
        missing = _offsets(cluster, [each for each in partitions if each not in now], LATEST)
        return {each: now[each][0] if each in now else missing[each] for each in partitions}
    forms = ", ".join(f"[{name}]" for name in SCENARIOS)
    raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: {forms}")


def _scope(cluster: Cluster, given: Given, group: str) -> list[TopicPartition]:
    if given.has("all-topics"):
        return list(committed(cluster, group))
    if given.has("topic"):
        return parse_topics(cluster, given.all("topic"))
    if not given.has("from-file"):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def parse_topics(cluster: Cluster, texts: Iterable[str]) -> list[TopicPartition]:
    """Partitions of `topic` or `topic:0,1`. Raises InvalidArgument, RequestError."""
    found: list[TopicPartition] = []
    for text in texts:
        topic, *numbers = text.split(":")
        if not numbers:
            (answer,) = cluster.metadata([topic]).topics
            check(answer.error_code)
            found += [(topic, part.partition_index) for part in answer.partitions]
            continue
        if len(numbers) != 1:
            raise InvalidArgument(f"Invalid topic arg '{text}', expected topic name and partitions")
        for number in numbers[0].split(","):
            if not number.isdecimal():
                raise InvalidArgument(f"Invalid partition '{number}' specified in topic arg '{text}''")
            found.append((topic, int(number)))
    return found


def _check_exist(cluster: Cluster, partitions: Iterable[TopicPartition]) -> None:
    missing = []
    known: dict[str, set[int]] = {}
    for topic, number in partitions:
        if topic not in known:
            (answer,) = cluster.metadata([topic]).topics
            check(answer.error_code)
            known[topic] = {part.partition_index for part in answer.partitions}
        if number not in known[topic]:
            missing.append(f"{topic}-{number}")
    if missing:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'The partitions "{",".join(missing)}" do not exist')


def _offsets(cluster: Cluster, partitions: Iterable[TopicPartition], when: int) -> dict[TopicPartition, int]:
    wanted = dict.fromkeys(partitions, when)
    return list_offsets(cluster, wanted) if wanted else {}


def _in_range(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    first, last = _offsets(cluster, wanted, EARLIEST), _offsets(cluster, wanted, LATEST)
    return {each: max(first[each], min(offset, last[each])) for each, offset in wanted.items()}


def _at(cluster: Cluster, partitions: list[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
    found = _offsets(cluster, partitions, timestamp_ms)
    after = [each for each, offset in found.items() if offset < 0]
    for topic, number in after:
        print(f"\nWarn: Partition {number} from topic {topic} is empty. Falling back to latest known offset.")
    return {**found, **_offsets(cluster, after, LATEST)}


def timestamp_of(text: str) -> int:
    """Milliseconds of 2026-01-31T12:00:00.000, with or without fraction and zone; without, UTC. Raises
    InvalidArgument."""
    zoned = text if re.search(r"(Z|[+-]\d\d:?\d\d)$", text) else f"{text}Z"
    for form in DATE_FORMS:
        try:
            moment = datetime.strptime(zoned, form)
        except ValueError:
            continue
        return (moment - EPOCH) // MILLISECOND
    raise InvalidArgument(f"{text} is no time of the form YYYY-MM-DDThh:mm:ss.sss")


def duration_ms(text: str) -> int:
    """Milliseconds of PnDTnHnMnS. Raises InvalidArgument."""
    try:
        return iso_ms(text)
    except ValueError:
        raise InvalidArgument(f"{text} is no duration of the form PnDTnHnMnS") from None


def _from_file(given: Given) -> dict[str, dict[TopicPartition, int]]:
    found: dict[str, dict[TopicPartition, int]] = {}
    path = given.text("from-file")
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as err:
        raise InvalidArgument(f"{path}: no lines of text in UTF-8: {err}") from None
    for row in rows:
        try:
            topic, number, offset = row[-3:]
            group = row[0] if len(row) == 4 else given.text("group")
            found.setdefault(group, {})[topic, int(number)] = int(offset)
        except ValueError:
            raise InvalidArgument(f"{path}: no [GROUP,]TOPIC,PARTITION,OFFSET: {row}") from None
    return found


def to_csv(plans: Mapping[str, Mapping[TopicPartition, int]], is_one_group: bool) -> str:
    """The plans in the form that `--from-file` reads."""
    return "".join(
        ",".join((*([] if is_one_group else [_cell(group)]), _cell(topic), str(number), str(offset))) + "\n"
        for group, plan in plans.items()
        for (topic, number), offset in sorted(plan.items())
    )


def _cell(text: str) -> str:
    """A name with a mark of CSV in it stands in quotation marks."""
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\s]', text) else text


def print_plan(plans: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    groups = max(15, *(len(group) for group in plans), 0)
    topics = max(15, *(len(topic) for plan in plans.values() for topic, _ in plan), 0)
    rows: list[tuple[object, ...]] = [
        (group, topic, number, offset)
        for group, plan in plans.items()
        for (topic, number), offset in sorted(plan.items())
    ]
    if plans:
        rows.insert(0, ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
    for group, topic, number, offset in rows:
        print(f"\n{group!s:<{groups}} {topic!s:<{topics}} {number!s:<10} {offset}", end="")
    print()
