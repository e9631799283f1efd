"""Answers that need brokers of their own: before anything was asked, with options that few set, after an upgrade."""

from __future__ import annotations

import shutil
import time
from base64 import urlsafe_b64decode
from functools import partial
from pathlib import Path

import pytest

from kafka_shim.compat.tests.admin.compare import Pair, plain
from kafka_shim.compat.tests.admin.test_data_directory import await_topic
from kafka_shim.java_hash import internal_partition
from kafka_shim.java_order import order_partitions, order_strings, order_timeline
from kafka_shim.targets import Target, make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.kafka_native import CLUSTER_ID
from kafka_shim.targets.waiting import right_answer, wait_until
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {"broker.rack": "r1", "group.coordinator.rebalance.protocols": "classic"}


@pytest.fixture(scope="module")
def rare() -> Iterator[Pair]:
    """Both brokers with rare options, of which nobody has asked anything yet."""
    with make("shim", settings=SETTINGS) as ours, make("kafka-native", settings=SETTINGS) as theirs:
        both = Pair(ours.bootstrap, theirs.bootstrap)
        yield both
        both.close()


@pytest.fixture(scope="module")
def pair(shim: Target, kafka: Target) -> Iterator[Pair]:
    both = Pair(shim.bootstrap, kafka.bootstrap)
    for connection in (both.shim, both.kafka):
        find = partial(connection.request, ask.make("FindCoordinator", key="g", key_type=0), 3)
        wait_until(lambda find=find: not find().error_code, "a coordinator")
        ask.create_topic(connection, "known")
        await_topic(connection, "known", is_there=True)
    yield both
    both.close()


def test_offsets_before_anybody_asked_for_a_coordinator(rare: Pair) -> None:
    topics = [{"name": "t", "partition_indexes": [0, 1]}]
    one = ask.make("OffsetFetch", group_id="g", topics=topics)
    assert rare.ask(one, range(1, 8)) == []
    groups = [{"group_id": name, "topics": wanted} for name, wanted in (("g", topics), ("all", None), ("", topics))]
    assert rare.ask(ask.make("OffsetFetch", groups=groups), range(8, 11)) == []
    answer = rare.shim.request(one, 1)
    assert [each.error_code for each in answer.topics[0].partitions] == [16, 16]


def test_the_rack_of_a_broker(rare: Pair) -> None:
    for version in range(3):
        racks = [
            [each.rack for each in connection.request(ask.make("DescribeCluster"), version).brokers]
            for connection in (rare.shim, rare.kafka)
        ]
        assert racks == [["r1"], ["r1"]]


def test_a_group_protocol_that_is_off_has_no_text(rare: Pair) -> None:
    beat = ask.make("ConsumerGroupHeartbeat", group_id="g", member_id="m", member_epoch=0)
    assert rare.ask(beat, range(2)) == []
    assert rare.ask(ask.make("ConsumerGroupDescribe", group_ids=["g", "h"]), range(2)) == []


SIZES = [100, 3000, 10, 900, 7000, 1, 500]


def test_fetches_are_filled_and_cut_as_kafkas_are(rare: Pair) -> None:
    for connection in (rare.shim, rare.kafka):
        ask.create_topic(connection, "cut", 2)
        await_topic(connection, "cut", is_there=True)
        for partition in (0, 1):
            for size in SIZES:
                told = connection.request(ask.produce("cut", partition, [(None, b"z" * size)]), 9)
                assert not told.responses[0].partition_responses[0].error_code
    ours, theirs = _slices(rare.shim), _slices(rare.kafka)
    assert ours == theirs
    # Some end inside a batch, and some have nothing from the second partition.
    assert any(first % (61 + 7) and second for first, second in ours.values())
    assert any(first and not second for first, second in ours.values())


def _slices(connection: Connection) -> dict[tuple[int, int, int, int], tuple[int, int]]:
    """The bytes of both partitions, for each (offset, bytes of a partition, bytes in all, isolation level)."""
    found = {}
    for offset in (0, 1, 4, 6, 7):
        for each in (0, 1, 60, 200, 3500, 5000, 1 << 20):
            for most in (0, 1, 200, 3500, 4000, 12_000, 1 << 20):
                for level in (0, 1):
                    wanted = [{"partition": one, "fetch_offset": offset, "partition_max_bytes": each} for one in (0, 1)]
                    request = ask.make(
                        "Fetch",
                        max_wait_ms=0,
                        min_bytes=0,
                        max_bytes=most,
                        isolation_level=level,
                        session_epoch=-1,
                        topics=[{"topic": "cut", "partitions": wanted}],
                    )
                    (topic,) = connection.request(request, 12).responses
                    sizes = [len(one.records or b"") for one in sorted(topic.partitions, key=_index)]
                    found[offset, each, most, level] = (sizes[0], sizes[1])
    return found


def _index(partition) -> int:
    return partition.partition_index


# --- order


def test_groups_are_listed_in_kafkas_order(pair: Pair) -> None:
    names = [f"order-{number}" for number in range(60)]
    for connection in (pair.shim, pair.kafka):
        for name in names:
            commit = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
            request = ask.make("OffsetCommit", group_id=name, topics=[{"name": "known", "partitions": [commit]}])
            (topic,) = connection.request(request, 8).topics
            assert not topic.partitions[0].error_code
    ours, theirs = (_listed(connection) for connection in (pair.shim, pair.kafka))
    assert ours == theirs
    assert ours != sorted(ours)


def _listed(connection: Connection) -> list[str]:
    groups = connection.request(ask.make("ListGroups"), 5).groups
    return [group.group_id for group in groups if group.group_id.startswith("order-")]


def test_members_are_described_in_kafkas_order(pair: Pair, shim: Target, kafka: Target) -> None:
    """The ids are random, so the order of each broker is held against the rule."""
    for connection, target in ((pair.shim, shim), (pair.kafka, kafka)):
        classic = _classic_members(connection, target.bootstrap, "members-classic", 12)
        assert classic == order_strings(classic)
        consumer = [f"member-{number}" for number in range(12)]
        for member_id in consumer:
            beat = ask.make(
                "ConsumerGroupHeartbeat",
                group_id="members-consumer",
                member_id=member_id,
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["known"],
                topic_partitions=[],
            )
            assert not connection.request(beat, 1).error_code
        (group,) = connection.request(ask.make("ConsumerGroupDescribe", group_ids=["members-consumer"]), 1).groups
        assert [member.member_id for member in group.members] == order_timeline(consumer)


def _classic_members(connection: Connection, bootstrap: str, group: str, count: int) -> list[str]:
    """Member ids as described. They wait for the rebalance, each on a connection of its own."""
    waiting = []
    for _ in range(count):
        member = Connection(bootstrap)
        join = ask.make(
            "JoinGroup",
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=ask.protocols("range", metadata=ask.subscription("known")),
        )
        member.send(join, 3)
        waiting.append(member)
    members: list[str] = []
    deadline = time.monotonic() + 50  # before a session of 60 s ends: no member sends a heartbeat
    while len(members) < count:
        assert time.monotonic() < deadline, f"{len(members)} members joined"
        time.sleep(0.02)
        (found,) = connection.request(ask.make("DescribeGroups", groups=[group]), 5).groups
        members = [member.member_id for member in found.members]
    for member in waiting:
        member.close()
    return members


def test_partitions_of_groups_come_in_the_order_of_a_java_map() -> None:
    assert order_partitions("__consumer_offsets", range(3)) != order_partitions("__consumer_offsets", range(3))[::-1]
    assert internal_partition("order-1", 50) in order_partitions("__consumer_offsets", range(50))


# --- a refused migration


def test_a_refused_migration_says_why_in_kafkas_words(pair: Pair) -> None:
    join = ask.make(
        "JoinGroup",
        group_id="connectors",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=1000,
        protocol_type="connect",
        protocols=ask.protocols("range"),
    )
    for connection in (pair.shim, pair.kafka):
        assert not connection.request(join, 3).error_code
    beat = ask.make(
        "ConsumerGroupHeartbeat",
        group_id="connectors",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["known"],
        topic_partitions=[],
    )
    assert pair.ask(beat, [0, 1]) == []
    assert "does not use the consumer embedded protocol" in pair.shim.request(beat, 1).error_message


# --- kraft.version


def test_kraft_version_1_is_committed_and_each_broker_starts_on_the_others_directory(tmp_path) -> None:
    upgrade = ask.make(
        "UpdateFeatures",
        timeout_ms=5000,
        feature_updates=[{"feature": "kraft.version", "max_version_level": 1, "upgrade_type": 1}],
    )
    lower = ask.make(
        "UpdateFeatures",
        timeout_ms=5000,
        feature_updates=[{"feature": "kraft.version", "max_version_level": 0, "upgrade_type": 2}],
    )
    versions = ask.make("ApiVersions", client_software_name="a", client_software_version="1")
    ours, theirs = (make(kind, data_dir=tmp_path / kind) for kind in ("shim", "kafka-native"))
    try:
        both = Pair(ours.start().bootstrap, theirs.start().bootstrap)
        assert both.ask(upgrade, [2, 1]) == []
        assert both.ask(lower, [1, 2]) == []
        assert _finalised(both.shim, versions) == _finalised(both.kafka, versions)
        assert ("kraft.version", 1) in _finalised(both.shim, versions)
        assert [_has_directory(each) for each in (both.shim, both.kafka)] == [True, True]
        both.close()
    finally:
        ours.stop()
        theirs.stop()
    try:
        for target, kind in ((ours, "kafka-native"), (theirs, "shim")):
            shutil.copytree(target.data_dir, tmp_path / f"{kind}-on-the-other")
            with (
                make(kind, data_dir=tmp_path / f"{kind}-on-the-other") as started,
                Connection(started.bootstrap) as one,
            ):
                assert ("kraft.version", 1) in _finalised(one, versions)
    finally:
        ours.close()
        theirs.close()


def _finalised(connection: Connection, versions) -> list[tuple[str, int]]:
    found = connection.request(versions, 4).finalized_features
    return sorted((feature.name, feature.max_version_level) for feature in found)


def _has_directory(connection: Connection) -> bool:
    wanted = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    answer = connection.request(ask.make("DescribeQuorum", topics=wanted), 2)
    (voter,) = answer.topics[0].partitions[0].current_voters
    return any(voter.replica_directory_id)


# --- a partition without a leader


def test_elections_of_an_offline_partition(tmp_path) -> None:
    """A directory that is a file at the start is offline, and so are its partitions."""
    answers = {}
    for kind in ("shim", "kafka-native"):
        good, bad = tmp_path / f"{kind}-good", tmp_path / f"{kind}-bad"
        bad.mkdir()
        (bad / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER_ID}\nnode.id=1\n")
        if kind == "shim":
            shutil.copytree(bad, good)
        target = make(kind, data_dir=good, settings={"log.dirs": f"{good},{bad}"})
        try:
            target.start()
            with Connection(target.bootstrap) as connection:
                known = _mentions(good, bad)
                ask.create_topic(connection, "spread", 4)
                await_topic(connection, "spread", is_there=True)
                # Kafka's broker tells its controller a moment later which partitions are where.
                if kind == "kafka-native":
                    right_answer(
                        partial(_mentions, good, bad), lambda count, known=known: count >= known + 2, "which are where"
                    )
            target.stop()
            there = [int(path.name.rpartition("-")[2]) for path in bad.iterdir() if path.name.startswith("spread-")]
            shutil.rmtree(bad)
            bad.write_text("not a directory")
            target.start()
            with Connection(target.bootstrap) as connection:
                answers[kind] = [
                    [_election(connection, kind_of, number in there, number) for number in range(4)]
                    for kind_of in (0, 1)
                ]
            assert len(there) == 2
        finally:
            target.close()
    ours, theirs = ({repr(one) for row in answers[kind] for one in row} for kind in ("shim", "kafka-native"))
    assert ours == theirs


def _mentions(good: Path, directory: Path) -> int:
    """How often the metadata log names this data directory."""
    if "directory.id=" not in (text := (directory / "meta.properties").read_text()):
        return 0
    directory_id = urlsafe_b64decode(text.partition("directory.id=")[2].split()[0] + "==")
    log = good / "__cluster_metadata-0" / "00000000000000000000.log"
    return log.read_bytes().count(directory_id)


def _election(connection: Connection, election_type: int, is_offline: bool, partition: int):
    wanted = [{"topic": "spread", "partitions": [partition]}]
    request = ask.make("ElectLeaders", election_type=election_type, topic_partitions=wanted, timeout_ms=5000)
    answer = plain(connection.request(request, 2))
    (found,) = answer["replica_election_results"][0]["partition_result"]
    return election_type, is_offline, found["error_code"], found["error_message"]


# --- metadata.log.dir


def test_a_metadata_log_outside_of_log_dirs_passes_from_broker_to_broker(tmp_path) -> None:
    """The shim makes both directories, Kafka goes on in them, and the shim after it."""
    data, metadata = tmp_path / "data", tmp_path / "metadata"
    for kind in ("shim", "kafka-native", "shim"):
        target = make(kind, data_dir=data, settings={"metadata.log.dir": str(metadata)})
        target.start()
        try:
            with Connection(target.bootstrap) as connection:
                if not (data / "outside-0").exists():
                    ask.create_topic(connection, "outside")
                await_topic(connection, "outside", is_there=True)
        finally:
            target.stop()
        assert (metadata / "__cluster_metadata-0").is_dir()
        assert not (data / "__cluster_metadata-0").exists()
