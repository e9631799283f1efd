"""Rows F and G: what admin requests do, and what options say and do."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, ScenarioClient, name_of
from kafka_shim.targets.requests import make, produce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOPIC = 2
SET, DELETE = 0, 1
FROM_TOPIC, FROM_DEFAULT = 1, 5


@scenario("F1")
def validation_creates_nothing(t: ScenarioClient) -> None:
    """CreateTopics with `validate_only` answers as for a new topic and creates none; the same request then does.
    Metadata has a topic that there is before one that there is not.
    """
    other = t.topic()
    row = {"name": t.name("new"), "num_partitions": 2, "replication_factor": 1}
    for validate_only, there in ((True, False), (False, True)):
        answer = t.ask("CreateTopics", 7, topics=[row], timeout_ms=30_000, validate_only=validate_only)
        t.error(answer.topics[0], NONE, "CreateTopics")
        if there:
            t.wait(lambda: t.serves(t.name("new"), 1), "the topic")
        else:
            asked = [{"name": t.name("new")}, {"name": other}]
            known = t.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
            t.same(
                [name_of(each.error_code) for each in known.topics],
                ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"],
                "topics after the validation",
            )
    answer = t.ask("CreateTopics", 7, topics=[row], timeout_ms=30_000, validate_only=True)
    t.error(answer.topics[0], "TOPIC_ALREADY_EXISTS", "validation of what exists")


@scenario("F2")
def deleted_records_are_gone(t: ScenarioClient) -> None:
    """DeleteRecords raises the log start: EARLIEST says so, an older offset is out of range, the rest is there; -1 is
    the high watermark, and more than that OFFSET_OUT_OF_RANGE.
    """
    topic = t.topic()
    t.quietly_produce(topic, [b"0", b"1", b"2", b"3"])

    def delete(offset: int) -> Any:
        rows = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
        return t.ask("DeleteRecords", 2, topics=rows, timeout_ms=30_000).topics[0].partitions[0]

    def earliest() -> int:
        row = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}
        return int(t.ask("ListOffsets", 5, replica_id=-1, topics=[row]).topics[0].partitions[0].offset)

    t.same(delete(3).low_watermark, 3, "low watermark")
    t.same(earliest(), 3, "the first offset")
    t.error(t.fetch(topic, 2), "OFFSET_OUT_OF_RANGE", "a fetch below it")
    t.same(t.read(topic, 0, 3), [(3, "3")], "the rest")
    t.same(delete(1).low_watermark, 3, "an offset below the first")
    t.error(delete(5), "OFFSET_OUT_OF_RANGE", "an offset above the high watermark")
    t.same(delete(-1).low_watermark, 4, "everything")
    t.same(earliest(), 4, "the first offset of nothing")


@scenario("G1")
def an_option_tells_its_source(t: ScenarioClient) -> None:
    """DescribeConfigs of a topic: the value in force, where it is from, and every level that has one."""
    topic = t.topic(max_message_bytes="5000")
    fields: dict[str, Any] = {"include_synonyms": True}
    row: dict[str, Any] = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["max.message.bytes"]}
    for expected in (FROM_TOPIC, FROM_DEFAULT):
        option = t.ask("DescribeConfigs", 4, resources=[row], **fields).results[0].configs[0]
        t.same(option.config_source, expected, "source of max.message.bytes")
        levels = [(each.name, each.source) for each in option.synonyms]
        wanted = [("max.message.bytes", FROM_TOPIC), ("message.max.bytes", FROM_DEFAULT)]
        t.same(levels, wanted if expected == FROM_TOPIC else wanted[1:], "synonyms of max.message.bytes")
        t.same(option.value, "5000" if expected == FROM_TOPIC else option.synonyms[-1].value, "value")
        change(t, topic, DELETE, None)
        # Kafka's broker takes over what its controller has answered a moment later.
        t.wait(lambda: source_of(t, row) != FROM_TOPIC, "the default is in force again")


def source_of(t: ScenarioClient, row: dict[str, Any]) -> int:
    option = t.send(make("DescribeConfigs", resources=[row]), 4).results[0].configs[0]
    return option.config_source  # type: ignore[no-any-return]


def change(t: ScenarioClient, topic: str, operation: int, value: str | None) -> None:
    config = {"name": "max.message.bytes", "config_operation": operation, "value": value}
    row = {"resource_type": TOPIC, "resource_name": topic, "configs": [config]}
    t.error(t.ask("IncrementalAlterConfigs", 1, resources=[row]).responses[0], NONE, "IncrementalAlterConfigs")


@scenario("G2")
def a_changed_option_is_in_force(t: ScenarioClient) -> None:
    """A smaller `max.message.bytes` refuses a batch that was taken before, and its deletion takes it again."""
    topic = t.topic()

    def error_of_a_large_batch() -> str:
        answer = t.send(produce(topic, 0, [(None, b"x" * 2000)]), 11)
        return name_of(answer.responses[0].partition_responses[0].error_code)

    t.same(error_of_a_large_batch(), NONE, "a batch before the change")
    change(t, topic, SET, "1000")
    t.wait(lambda: error_of_a_large_batch() == "MESSAGE_TOO_LARGE", "the smaller max.message.bytes is in force")
    change(t, topic, DELETE, None)
    t.wait(lambda: error_of_a_large_batch() == NONE, "the default is in force again")
