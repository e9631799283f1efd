"""All partitions of a broker: the metadata log, configurations, open files, the sizes that DescribeLogDirs shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim.config import TopicConfig
from kafka_shim.errors import ErrorCode
from kafka_shim.storage.data_dir import read_topic_id
from kafka_shim.storage.partitions import SLICE
from kafka_shim.tests.storage.conftest import NOW_MS, TOPIC_ID, Disk, make_logs, put, records, refused, start
from kafka_shim.tests.test_cost import Counter


def test_open_files_are_bounded(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk({"segment.bytes": "1048576"})
    log = disk.open()
    disk.logs.services.files.limit = 3
    for _ in range(100):
        put(log, b"z" * 200_000)
    assert len(log.segments) > 10
    assert len(records(log)) == 100
    assert len(disk.logs.services.files) <= 3


def test_configuration_changes_reach_loaded_partitions(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open()
    disk.logs.configure("t", 1, TopicConfig(disk.logs.config, {"max.message.bytes": "100"}))
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        put(log, b"z" * 200)


def test_a_changed_topic_costs_the_same_beside_many_others(tmp_path: Path) -> None:
    """A request that changed a thousand topics looked at every used partition for each of them."""
    logs, config = make_logs(tmp_path)
    start(logs, config)
    changed = logs.create("t", TOPIC_ID, 0, config)
    counts = []
    for others in (0, 1, 50):  # Python 3.12 tells a thread's first tracer of no instruction
        for partition in range(others):
            logs.create("others", TOPIC_ID, partition, config)
        counter = Counter()
        given = TopicConfig(logs.config, {"max.message.bytes": str(others)})
        counter.begin()
        logs.configure("t", 1, given)
        counter.end()
        assert changed.config is given
        counts.append(counter.count)
    assert 0 < counts[1] == counts[2]


def test_metadata_log_is_opened_apart_and_found_again(tmp_path: Path) -> None:
    from kafka_shim.cext.records import build

    logs, config = make_logs(tmp_path)
    logs.open_dirs()
    log = logs.open_metadata_log()
    log.append_batch(build([(None, b"x", NOW_MS, ())]), now_ms=NOW_MS)
    logs.start(lambda topic, partition: (TOPIC_ID, config, 0))
    assert logs.names() == []
    logs.stop()
    assert read_topic_id(str(tmp_path / "__cluster_metadata-0")) == "AAAAAAAAAAAAAAAAAAAAAQ"
    logs, config = make_logs(tmp_path)
    logs.open_dirs()
    assert logs.open_metadata_log().log_end_offset == 1
    logs.stop()


def test_describing_many_partitions_loads_none_and_leaves_the_loop_to_others(tmp_path: Path) -> None:
    logs, config = make_logs(tmp_path)
    start(logs, config)
    for partition in range(300):
        logs.create("t", TOPIC_ID, partition, config)
    size_bytes = put(logs.get("t", 7), b"a").size_bytes
    logs.stop()
    logs, config = make_logs(tmp_path)
    start(logs, config)
    describing = logs.describe_dirs()
    turns = 0
    with pytest.raises(StopIteration) as answer:
        while True:
            describing.send(None)
            turns += 1
    (status,) = answer.value.value
    assert turns == 300 // SLICE
    assert len(status.partitions) == 300
    assert {partition: size for _, partition, size, _ in status.partitions if size} == {7: size_bytes}
    assert logs.loaded() == []
    logs.stop()
