"""Most OffsetCommits take a fast path, in which nothing is refused and `cext` makes the offsets. It must do what the
rules do, in every state of a group."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from kafka_shim.api.k08_offset_commit import _split
from kafka_shim.cext.offset_records import Committed, PlainCommits, put_offsets
from kafka_shim.errors import KafkaError
from kafka_shim.group import offset_rules
from kafka_shim.group.groups import Groups
from kafka_shim.metadata.image import Image, Partition, Topic
from kafka_shim.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_shim.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafka_shim.tests.group.harness import Node, subscription

NOW_MS, LIMIT = 1_000_000, 12
NEVER_PLAIN = type("NeverPlain", (), {"take": lambda self, *arguments: None})()
METADATA = (None, "", "m", "x" * 6, "x" * 7, "x" * 12, "x" * 13, "é" * 6, "\U0001f600" * 6, "\U0001f600" * 7)


def fields_of(committed: Committed) -> tuple[Any, ...]:
    names = ("offset", "leader_epoch", "metadata", "commit_ms", "expire_ms", "topic_id", "record_offset")
    return tuple(getattr(committed, name) for name in names)


def stored_in(groups: Groups) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    return {
        (group_id, topic, index): fields_of(committed)
        for group_id in groups.offsets.group_ids()
        for topic, found in groups.offsets.of_group(group_id).items()
        for index, committed in found.items()
    }


def topic_of(source: random.Random, names: list[str], ids: list[bytes], most_index: int) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=source.choice(names),
        topic_id=source.choice(ids),
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=source.randint(-1, most_index) if source.random() < 0.3 else 0,
                committed_offset=source.randrange(-1, 1 << 40),
                committed_leader_epoch=source.randrange(-1, 5),
                committed_metadata=source.choice(METADATA) if source.random() < 0.3 else "m",
            )
            for _ in range(source.choice((0, 1, 1, 1, 2, 3)))
        ],
    )


@pytest.mark.parametrize("by_id", [False, True])
def test_topics_are_known_exactly_when_the_rules_refuse_none(by_id: bool) -> None:
    image = Image()
    for name, count in (("one", 1), ("three", 3)):
        topic = Topic(name, name.encode().ljust(16, b"."))
        topic.partitions = [Partition() for _ in range(count)]
        image.topics[name] = image.topics_by_id[topic.topic_id] = topic
    source = random.Random(7)
    known_topics = image.topics_by_id if by_id else image.topics
    seen = set()
    for _ in range(2000):
        names, ids = ["one", "three", "three"], [*image.topics_by_id]
        if source.random() < 0.2:
            names.append("unknown")
            ids.append(bytes(16))
        asked = [topic_of(source, names, ids, 3) for _ in range(source.choice((0, 1, 1, 2)))]
        ruled = copy.deepcopy(asked)
        for topic in ruled:
            if by_id:
                named = image.topics_by_id.get(topic.topic_id)
                topic.name = "" if named is None else named.name
        refused, left = _split(image, ruled, by_id, {topic.name for topic in ruled})
        is_known = offset_rules.PLAIN_COMMITS.are_known(asked, known_topics, by_id)
        assert is_known == (bool(ruled) and not refused and len(left) == len(ruled)), ruled
        if is_known:
            assert asked == left
        seen.add(is_known)
    assert seen == {True, False}


def groups_in_every_state(node: Node) -> list[tuple[str, str, int]]:
    """Makes groups of both protocols. Returns (group, member, generation or epoch) as members may say them."""
    stable = node.member("stable")
    node.sync("stable", stable, {stable.member_id: b""})
    completing = node.member("completing")
    preparing = node.member("preparing")
    node.sync("preparing", preparing, {preparing.member_id: b""})
    node.join("preparing", protocols=(("range", subscription("t")),))
    node.commit("simple", "t", 1)
    modern = node.modern("modern", "m", 0, subscribed_topic_names=["t"], topic_partitions=[])
    return [
        ("none", "", -1),
        ("simple", "", -1),
        ("stable", stable.member_id, stable.generation_id),
        ("completing", completing.member_id, completing.generation_id),
        ("preparing", preparing.member_id, preparing.generation_id),
        ("modern", "m", modern.member_epoch),
    ]


def outcome(groups: Groups, request: OffsetCommitRequest, version: int) -> Any:
    asked: list[tuple[int, int]] = []
    try:
        changes, response, moves = offset_rules.commit(
            groups, copy.deepcopy(request), version, LIMIT, NOW_MS, lambda *counts: asked.append(counts)
        )
    except KafkaError as error:
        return error.code, error.message
    return [(topic, index, fields_of(each)) for topic, index, each in changes if each], response, moves, asked


def test_a_commit_is_decided_as_by_the_rules(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(11)
    topic_id = node.metadata.image.topics["t"].topic_id
    members = groups_in_every_state(node)
    results = set()
    for _ in range(1500):
        group_id, member_id, epoch = source.choice(members)
        if source.random() < 0.3:
            member_id, epoch = source.choice(members)[1], source.choice((-1, 0, 1, 2, 99))
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            group_instance_id="i" if source.random() < 0.05 else None,
            retention_time_ms=source.choice((-1, -1, -1, 0, 5, (1 << 63) - 1)),
            topics=[topic_of(source, ["t"], [topic_id], 0) for _ in range(source.choice((0, 1, 1, 2)))],
        )
        if source.random() < 0.01:
            request.topics = [topic_of(source, ["t"], [topic_id], 0)]
            request.topics[0].partitions = [OffsetCommitRequestPartition()] * (offset_rules.MANY_OFFSETS + 1)
        version = source.choice((2, 8, 9, 10))
        groups = node.groups._runtime.groups_of(group_id)
        short = outcome(groups, request, version)
        with monkeypatch.context() as patch:
            patch.setattr(offset_rules, "PLAIN_COMMITS", NEVER_PLAIN)
            ruled = outcome(groups, request, version)
        assert short == ruled, request
        results.add(len(short))
    assert results == {2, 4}, "some are refused and some are not"


def test_offsets_are_stored_as_one_by_one() -> None:
    source = random.Random(13)
    one_by_one, at_once = Groups(), Groups()
    base_offset = 0
    for _ in range(500):
        group_id = source.choice("ab")
        changes = [
            (source.choice("tu"), source.randrange(3), Committed(source.randrange(100), -1, "", NOW_MS))
            for _ in range(source.choice((1, 1, 2, 5)))
        ]
        for number, (topic, index, committed) in enumerate(changes, base_offset):
            alike = Committed(committed.offset, -1, "", NOW_MS, record_offset=number)
            one_by_one.commit(group_id, topic, index, alike, -1)
        at_once.commit_all(group_id, [*changes], NOW_MS, base_offset)
        base_offset += len(changes)
    assert at_once.by_id.keys() == one_by_one.by_id.keys() == {"a", "b"}
    assert stored_in(at_once) == stored_in(one_by_one)


def test_what_is_no_message_of_a_commit_is_refused() -> None:
    plain = offset_rules.PLAIN_COMMITS
    odd = OffsetCommitRequestTopic(name="t", partitions=["no partition"])
    assert plain.take([odd], LIMIT, NOW_MS, -1, 10) is None
    assert plain.take(["no topic"], LIMIT, NOW_MS, -1, 10) is None
    assert not plain.are_known([odd], {"t": Topic("t", bytes(16))}, False)
    with pytest.raises(TypeError):
        put_offsets({}, [("t", 0, None)], 0)
    with pytest.raises(AttributeError):
        PlainCommits(Topic, Topic, Topic, Topic)


def test_offsets_are_fetched_as_by_the_rules() -> None:
    """The slow path is that of a group with many offsets, with offsets of deleted topics, or with pending ones."""
    source = random.Random(17)
    ids = [bytes(16), b"1" * 16, b"2" * 16]
    groups = Groups()
    for number in range(60):
        committed = Committed(number, number % 3 - 1, "m", NOW_MS, -1, source.choice(ids), number)
        groups.commit("g", source.choice("tuvw"), source.randrange(4), committed, -1)
    seen = set()
    for _ in range(500):
        topics = [
            OffsetFetchRequestTopics(
                name=source.choice("tuvwx"),
                topic_id=source.choice(ids),
                partition_indexes=[source.randrange(-1, 5) for _ in range(source.choice((0, 1, 3)))],
            )
            for _ in range(source.choice((0, 1, 2)))
        ]
        asked = OffsetFetchRequestGroup(
            group_id=source.choice(("g", "g", "none")), topics=source.choice((topics, topics, None))
        )
        require_stable = source.random() < 0.5
        short = offset_rules.fetch(groups, asked, require_stable)
        # Nobody knows the topic of a name: the same answers, by the slow path.
        ruled = offset_rules.fetch(groups, asked, require_stable, lambda name: bytes(16))
        assert short == ruled, asked
        seen |= {row.committed_offset == -1 for topic in short.topics for row in topic.partitions}
    assert seen == {True, False}
