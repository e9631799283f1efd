"""The topics of a streams topology: the counts that are decided, and what is said of those that do not fit."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode as E
from kafka_shim.errors import KafkaError
from kafka_shim.group.streams.configured import ConfiguredTopology, configure
from kafka_shim.group.streams.topology import Topology
from kafka_shim.protocol.records import streams_group_topology_value as value_module
from kafka_shim.targets.requests import struct


def configured(rows: list[dict[str, Any]], **topics: int) -> ConfiguredTopology:
    """A topology of these subtopologies, over topics with these partition counts."""
    fields = {"subtopologies": [{"subtopology_id": str(at), **row} for at, row in enumerate(rows)]}
    topology = Topology(struct(value_module, value_module.StreamsGroupTopologyValue, fields))
    known = {name: SimpleNamespace(partitions=[None] * count) for name, count in topics.items()}
    image: Any = SimpleNamespace(metadata=SimpleNamespace(topics=known))
    return configure(topology, image)


def counts(found: ConfiguredTopology) -> dict[str, int]:
    return {name: topic.partitions for name, topic in found.missing.items()}


def reads(*names: str, partitions: int = 0) -> dict[str, Any]:
    """A subtopology that reads topics for repartitioning."""
    return {"repartition_source_topics": [{"name": name, "partitions": partitions} for name in names]}


def test_internal_topics_have_the_most_partitions_of_what_is_read() -> None:
    found = configured(
        [
            {"source_topics": ["a", "b"], "repartition_sink_topics": ["r"]},
            {**reads("r"), "repartition_sink_topics": ["q"], "state_changelog_topics": [{"name": "log"}]},
            reads("q"),
        ],
        a=2,
        b=5,
    )
    assert counts(found) == {"r": 5, "log": 5, "q": 5}
    assert found.subtopologies is not None
    assert [each.tasks for each in found.subtopologies.values()] == [5, 5, 5]
    assert found.status == (3, "Internal topics are missing: q, r, log")


def test_a_topology_whose_topics_are_there_is_ready() -> None:
    rows = [{"source_topics": ["a"], "repartition_sink_topics": ["r"]}, reads("r")]
    found = configured(rows, a=2, r=2)
    assert (found.is_ready, found.missing) == (True, {})
    options = [{"key": "cleanup.policy", "value": "delete"}]
    rows[1]["repartition_source_topics"][0].update(replication_factor=1, topic_configs=options, partitions=3)
    (topic,) = configured(rows, a=2).missing.values()
    assert (topic.name, topic.partitions, topic.replication_factor) == ("r", 3, 1)
    assert topic.configs == {"cleanup.policy": "delete"}


def test_copartitioned_topics_have_equal_counts() -> None:
    together = {"copartition_groups": [{"source_topics": [0], "repartition_source_topics": [0]}]}
    rows = [
        {"source_topics": ["a"], "repartition_sink_topics": ["r"]},
        {**reads("r"), "source_topics": ["b"], **together},
    ]
    assert counts(configured(rows, a=2, b=7)) == {"r": 7}
    both = {"copartition_groups": [{"repartition_source_topics": [0, 1]}]}
    rows = [
        {"source_topics": ["a"], "repartition_sink_topics": ["r"]},
        {"source_topics": ["b"], "repartition_sink_topics": ["q"]},
        {**reads("r", "q"), **both},
    ]
    assert counts(configured(rows, a=2, b=7)) == {"r": 7, "q": 7}
    rows[2]["repartition_source_topics"][0]["partitions"] = 7
    assert counts(configured(rows, a=2, b=3)) == {"r": 7, "q": 7}


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        (
            [{"source_topics": ["w", "z", "y", "x"]}],
            (1, "Source topics w, x, y and 1 additional topics are missing."),
        ),
        (
            [{"source_topics": ["a", "b"], "copartition_groups": [{"source_topics": [0, 1]}]}],
            (2, "Following topics do not have the same number of partitions: [{a=2, b=7}]"),
        ),
        (
            [
                {"source_topics": ["a"], "repartition_sink_topics": ["r"]},
                {
                    **reads("r", partitions=5),
                    "source_topics": ["b"],
                    "copartition_groups": [{"source_topics": [0], "repartition_source_topics": [0]}],
                },
            ],
            (
                2,
                "Number of partitions [5] of repartition topic [r] doesn't match number of partitions [7] of the "
                "source topic.",
            ),
        ),
        (
            [{"source_topics": ["a"], "state_changelog_topics": [{"name": "b"}]}],
            (2, "Existing topic b has different number of partitions: expected 2, found 7"),
        ),
    ],
)
def test_topics_that_do_not_fit_are_named(rows: list[dict[str, Any]], status: tuple[int, str]) -> None:
    found = configured(rows, a=2, b=7)
    assert found.status == status
    assert (found.subtopologies, found.missing) == (None, {})


def test_two_counts_of_topics_in_one_group_do_not_fit() -> None:
    sources = [{"name": "r", "partitions": 2}, {"name": "q", "partitions": 3}]
    rows = [{"repartition_source_topics": sources, "copartition_groups": [{"repartition_source_topics": [0, 1]}]}]
    assert configured(rows).status == (2, "Following topics do not have the same number of partitions: [{q=3, r=2}]")


@pytest.mark.parametrize(
    ("rows", "code", "reason"),
    [
        ([{}], E.STREAMS_INVALID_TOPOLOGY, "No source topics found for subtopology 0"),
        ([reads("r")], E.STREAMS_INVALID_TOPOLOGY, "never used as a sink topic"),
        ([{**reads("r"), "repartition_sink_topics": ["r"]}], E.STREAMS_INVALID_TOPOLOGY, "There may be loops"),
        ([{"source_topics": ["a"], "copartition_groups": [{"source_topics": [1]}]}], E.UNKNOWN_SERVER_ERROR, ""),
        ([reads("r", partitions=-1)], E.UNKNOWN_SERVER_ERROR, ""),
        ([{"source_topics": ["a"], **reads("r", "r", partitions=2)}], E.UNKNOWN_SERVER_ERROR, ""),
    ],
)
def test_what_no_topics_could_fit_is_an_error(rows: list[dict[str, Any]], code: E, reason: str) -> None:
    with pytest.raises(KafkaError) as caught:
        configured(rows, a=2)
    assert caught.value.code is code
    assert reason in (caught.value.message or "")


@pytest.mark.parametrize("shape", ["chain", "groups"])
def test_the_time_for_a_large_topology_does_not_grow_with_its_square(shape: str) -> None:
    count = 8000
    rows: list[dict[str, Any]]
    if shape == "chain":
        rows = [{**reads(f"r{at}"), "repartition_sink_topics": [f"r{at + 1}"]} for at in range(count)]
        rows[0]["repartition_source_topics"] = []
        rows[0]["source_topics"] = ["a"]
        rows.append(reads(f"r{count}"))
    else:
        topics = [{"name": f"r{at}", "partitions": 3} for at in range(count)]
        groups = [{"repartition_source_topics": [at]} for at in range(count)]
        rows = [{"source_topics": ["a"], "repartition_source_topics": topics, "copartition_groups": groups}]
    started = time.process_time()
    found = configured(rows, a=3)
    assert time.process_time() - started < 5
    assert set(counts(found).values()) == {3}
    assert len(found.missing) == count


def test_of_several_topics_that_do_not_fit_kafka_names_the_same() -> None:
    """All names have one hash: the order of Kafka's set is that in which it meets them."""
    names = ["BBBB", "AaAa", "BBAa", "AaBB"]
    sizes = {"in": 2, **dict.fromkeys(names, 3)}
    known = {name: SimpleNamespace(partitions=[None] * count) for name, count in sizes.items()}
    image: Any = SimpleNamespace(metadata=SimpleNamespace(topics=known))
    for first in range(len(names)):
        order = names[first:] + names[:first]
        row = {"source_topics": ["in"], "state_changelog_topics": [{"name": name} for name in order]}
        fields = {"subtopologies": [{"subtopology_id": "0", **row}]}
        topology = Topology(struct(value_module, value_module.StreamsGroupTopologyValue, fields))
        status = configure(topology, image).status
        assert status is not None
        assert status[1].startswith(f"Existing topic {order[0]} has")
