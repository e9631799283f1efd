"""Rows F3, F4, G3, H3, H4: topics, options, retention and compaction as an administrator sees them."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import ScenarioClient, name_of
from kafka_shim.targets import Power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOPIC = 2
SET, DELETE, APPEND, SUBTRACT = range(4)
# Retention and the cleaner look every 200 ms. The smallest segment that Kafka allows is 1 MB; rolls are made by time.
OFTEN = {
    "log.retention.check.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "0",
}


def alter(t: ScenarioClient, topic: str, *changes: tuple[str, int, str | None]) -> str:
    """Changes options of a topic, and returns the name of the error."""
    configs = [{"name": name, "config_operation": how, "value": value} for name, how, value in changes]
    resource = {"resource_type": TOPIC, "resource_name": topic, "configs": configs}
    answer = t.ask("IncrementalAlterConfigs", 1, resources=[resource])
    return name_of(answer.responses[0].error_code)


def described(t: ScenarioClient, topic: str, *names: str) -> dict[str, tuple[str, int]]:
    """(value, source) of options of a topic."""
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": list(names)}
    answer = t.quietly("DescribeConfigs", 4, resources=[resource])
    return {entry.name: (entry.value, entry.config_source) for entry in answer.results[0].configs}


def create(t: ScenarioClient, *topics: dict[str, Any], validate_only: bool = False) -> list[str]:
    """Creates topics, and returns the names of the errors."""
    rows = [{"num_partitions": 1, "replication_factor": 1, **row} for row in topics]
    answer = t.ask("CreateTopics", 5, topics=rows, timeout_ms=30_000, validate_only=validate_only)
    by_name = {each.name: name_of(each.error_code) for each in answer.topics}
    return [by_name[row["name"]] for row in topics]


def start_offset(t: ScenarioClient, topic: str) -> int:
    """The log start offset."""
    row = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}
    return int(t.quietly("ListOffsets", 5, replica_id=-1, topics=[row]).topics[0].partitions[0].offset)


# --- topics


@scenario("F3")
def a_request_creates_what_it_can(t: ScenarioClient) -> None:
    """Each topic of a CreateTopics succeeds or fails by itself, and validateOnly creates nothing."""
    good, bad, there = t.name("good"), t.name("bad") + "/", t.topic("there")
    rows: list[dict[str, Any]] = [
        {"name": good},
        {"name": bad},
        {"name": there},
        {"name": t.name("none"), "num_partitions": 0},
    ]
    wanted = ["NONE", "INVALID_TOPIC_EXCEPTION", "TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS"]
    t.same(create(t, *rows, validate_only=True), wanted, "tried")
    t.same(create(t, *rows), wanted, "made, although tried before")


@scenario("F3")
def partitions_are_added_and_never_taken(t: ScenarioClient) -> None:
    """CreatePartitions raises the count; the same or a lower one is INVALID_PARTITIONS; records stay where they are."""
    topic = t.topic(partitions=2)
    t.produce(topic, [b"before"], partition=1)

    def grow(count: int) -> str:
        row = {"name": topic, "count": count, "assignments": None}
        answer = t.ask("CreatePartitions", 3, topics=[row], timeout_ms=30_000)
        return name_of(answer.results[0].error_code)

    t.same([grow(1), grow(2), grow(4)], ["INVALID_PARTITIONS", "INVALID_PARTITIONS", "NONE"], "counts")
    t.wait(lambda: t.serves(topic, 3), "the fourth partition")
    t.same(t.values(topic, partition=1), [b"before"], "what was there")
    t.same(t.end_offset(topic, partition=3), 0, "the end of the new one")


@scenario("F3")
def a_topic_that_comes_again_is_another_one(t: ScenarioClient) -> None:
    """A deleted topic's name can be used again: it has a new id, no records, and the old id is unknown."""
    topic = t.topic()
    old = t.topic_id(topic)
    t.produce(topic, [b"gone"])
    answer = t.ask("DeleteTopics", 6, topics=[{"name": topic}], timeout_ms=30_000)
    t.error(answer.responses[0], "NONE")
    t.wait(lambda: not t.serves(topic, 0), "its end")
    t.topic()
    t.same(old != t.topic_id(topic), True, "a new id")
    t.same(t.values(topic), [], "records")
    answer = t.quietly("Metadata", 12, topics=[{"topic_id": old, "name": None}])
    t.error(answer.topics[0], "UNKNOWN_TOPIC_ID")


# --- options


@scenario("G3")
def options_are_set_and_fall_back(t: ScenarioClient) -> None:
    """A topic's option has source 1 when it is set, and that of the broker (5: the default) when it is deleted."""
    topic = t.topic()
    t.same(described(t, topic, "retention.bytes"), {"retention.bytes": ("-1", 5)}, "at first")
    t.same(alter(t, topic, ("retention.bytes", SET, "9")), "NONE", "set")
    t.wait(lambda: described(t, topic, "retention.bytes") == {"retention.bytes": ("9", 1)}, "what was set")
    t.same(alter(t, topic, ("retention.bytes", DELETE, None)), "NONE", "deleted")
    t.wait(lambda: described(t, topic, "retention.bytes") == {"retention.bytes": ("-1", 5)}, "the default")


@scenario("G3")
def one_bad_option_refuses_them_all(t: ScenarioClient) -> None:
    """An IncrementalAlterConfigs of a resource is done as a whole: one bad value, an unknown option or one that comes
    twice refuses it."""
    topic = t.topic()
    good = ("retention.bytes", SET, "9")
    t.same(alter(t, topic, good, ("segment.ms", SET, "soon")), "INVALID_CONFIG", "a bad value")
    t.same(alter(t, topic, good, ("no.such", SET, "1")), "INVALID_CONFIG", "an unknown one")
    t.same(alter(t, topic, good, good), "INVALID_REQUEST", "twice")
    t.same(described(t, topic, "retention.bytes"), {"retention.bytes": ("-1", 5)}, "what is left")


@scenario("G3")
def lists_are_appended_to_and_subtracted_from(t: ScenarioClient) -> None:
    """APPEND and SUBTRACT change list options alone, on top of the default, and an element is there once."""
    topic = t.topic()
    t.same(alter(t, topic, ("cleanup.policy", APPEND, "compact")), "NONE", "appended")
    t.same(alter(t, topic, ("cleanup.policy", APPEND, "compact")), "NONE", "once more")
    both = {"cleanup.policy": ("delete,compact", 1)}
    t.wait(lambda: described(t, topic, "cleanup.policy") == both, "both policies")
    t.same(alter(t, topic, ("cleanup.policy", SUBTRACT, "delete")), "NONE", "subtracted")
    t.wait(lambda: described(t, topic, "cleanup.policy") == {"cleanup.policy": ("compact", 1)}, "one policy")
    t.same(alter(t, topic, ("retention.ms", APPEND, "1")), "INVALID_CONFIG", "not a list")


@scenario("G3")
def a_limit_of_a_topic_holds_for_the_next_batch(t: ScenarioClient) -> None:
    """max.message.bytes refuses a batch that is larger with MESSAGE_TOO_LARGE, from the change on."""
    topic = t.topic()
    t.error(t.produce(topic, [b"z" * 2000]), "NONE")
    t.same(alter(t, topic, ("max.message.bytes", SET, "1000")), "NONE", "set")
    t.wait(lambda: described(t, topic, "max.message.bytes") == {"max.message.bytes": ("1000", 1)}, "the limit")
    t.error(t.produce(topic, [b"z" * 2000]), "MESSAGE_TOO_LARGE")
    t.error(t.produce(topic, [b"z" * 100]), "NONE")


@scenario("G3")
def the_broker_stamps_where_the_topic_says_so(t: ScenarioClient) -> None:
    """With message.timestamp.type=LogAppendTime the answer has the time, and every record of the batch has it."""
    topic = t.topic(message_timestamp_type="LogAppendTime")
    stamped = t.produce(topic, [b"a", b"b"]).log_append_time_ms
    t.same(stamped > t.epoch_ms + 1_800_000, True, "the broker's time")
    t.same(len(t.values(topic)), 2, "records")


# --- DeleteRecords


@scenario("F4")
def deleted_records_are_out_of_range(t: ScenarioClient) -> None:
    """DeleteRecords raises the log start: below it OFFSET_OUT_OF_RANGE, above as before; -1 is the high watermark, and
    more than that is OFFSET_OUT_OF_RANGE."""
    topic = t.topic()
    for value in (b"a", b"b", b"c"):
        t.produce(topic, [value])

    def purge(offset: int) -> tuple[str, int]:
        row = {"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}
        part = t.ask("DeleteRecords", 2, topics=[row], timeout_ms=30_000).topics[0].partitions[0]
        return name_of(part.error_code), part.low_watermark

    t.same(purge(2), ("NONE", 2), "to 2")
    t.same(purge(1), ("NONE", 2), "back to 1 changes nothing")
    t.error(t.fetch(topic, 1), "OFFSET_OUT_OF_RANGE")
    t.same(t.read(topic, 0, 2), [(2, "c")], "what is left")
    t.same(purge(9)[0], "OFFSET_OUT_OF_RANGE", "past the end")
    t.same(purge(-1), ("NONE", 3), "to the end")
    t.same((start_offset(t, topic), t.end_offset(topic)), (3, 3), "start and end")
    t.produce(topic, [b"d"])
    t.same(t.read(topic, 0, 3), [(3, "d")], "what comes after")


@scenario("F4")
def a_compacted_topic_loses_no_records_by_request(t: ScenarioClient) -> None:
    """DeleteRecords of a topic that is only compacted is POLICY_VIOLATION."""
    topic = t.topic(cleanup_policy="compact")
    t.produce(topic, [b"a"])
    row = {"name": topic, "partitions": [{"partition_index": 0, "offset": 1}]}
    answer = t.ask("DeleteRecords", 2, topics=[row], timeout_ms=30_000)
    t.error(answer.topics[0].partitions[0], "POLICY_VIOLATION")


# --- retention


@scenario("H3", needs=Power.SETTINGS, settings=OFTEN)
def old_records_go_with_their_segment(t: ScenarioClient) -> None:
    """Records older than retention.ms go, the last segment too: the log start rises to the end, and offsets go on."""
    topic = t.topic(retention_ms="60000")
    t.produce(topic, [b"an hour old"])
    t.wait(lambda: start_offset(t, topic) == 1, "the log start")
    t.same(t.end_offset(topic), 1, "the end")
    t.error(t.fetch(topic, 0), "OFFSET_OUT_OF_RANGE")
    t.produce(topic, [b"new"], timestamp_ms=t.epoch_ms + 3_600_000)
    t.same(t.read(topic, 0, 1), [(1, "new")], "what comes after")


@scenario("H3", needs=Power.SETTINGS, settings=OFTEN)
def a_full_partition_loses_its_oldest_segments(t: ScenarioClient) -> None:
    """Beyond retention.bytes the oldest segments go, never the active one."""
    topic = t.topic(retention_bytes="1500000", segment_bytes="1048576", max_message_bytes="1000000")
    for _ in range(6):
        t.quietly_produce(topic, [b"z" * 600_000])
    t.wait(lambda: start_offset(t, topic) >= 3, "the log start")
    t.same(t.end_offset(topic), 6, "the end")
    t.note("retention", "six segments of 600 KB", start_offset(t, topic))


# --- compaction


def dirty(t: ScenarioClient, name: str = "t", **more: str) -> str:
    """A compacted topic that is cleaned as soon as it is rolled, which 50 ms of segment.ms do."""
    return t.topic(name, 1, cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_ms="50", **more)


def put(t: ScenarioClient, topic: str, key: bytes, value: bytes) -> None:
    t.error(t.produce(topic, [value], key=key, timestamp_ms=t.epoch_ms + 3_600_000), "NONE")


@scenario("H4", needs=Power.SETTINGS, settings=OFTEN)
def the_last_value_of_a_key_stays_at_its_offset(t: ScenarioClient) -> None:
    """Compaction keeps the last record of each key at its own offset; the end and later offsets do not move."""
    topic = dirty(t)
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", b"4"), (b"c", b"5")):
        put(t, topic, key, value)

    _roll(t, topic)
    t.wait(lambda: t.read(topic, 0, 0)[:1] == [(2, "3")], "the cleaner")
    t.same(t.read(topic, 0, 0)[:3], [(2, "3"), (3, "4"), (4, "5")], "what is left")
    t.same(t.end_offset(topic), 6, "the end")


@scenario("H4")
def a_record_without_a_key_is_refused(t: ScenarioClient) -> None:
    """A compacted topic refuses a record without a key with INVALID_RECORD, and the batch as a whole."""
    topic = t.topic(cleanup_policy="compact")
    t.error(t.produce(topic, [b"no key"], key=None), "INVALID_RECORD")
    t.same(t.end_offset(topic), 0, "the end")


def _roll(t: ScenarioClient, topic: str) -> None:
    """Appends a record whose timestamp is past segment.ms, which rolls the segment."""
    t.error(t.produce(topic, [b"last"], key=b"z", timestamp_ms=t.epoch_ms + 3_601_000), "NONE")
