"""DescribeLogDirs of many partitions lets other requests have their turn."""

from __future__ import annotations

from types import SimpleNamespace

from kafka_shim.api import k35_describe_log_dirs as describe_log_dirs


def test_many_partitions_are_described_in_slices() -> None:
    count = 2 * describe_log_dirs.SLICE + 1
    rows = [(f"t{number % 3}", number, 10 * number, False) for number in range(count)]
    status = SimpleNamespace(
        path="d", partitions=rows, futures=[("t1", 1, 7, 5)], total_bytes=1, usable_bytes=1, is_cordoned=False
    )
    describing = describe_log_dirs._describe(status, False)
    turns = 0
    while True:
        try:
            describing.send(None)
        except StopIteration as done:
            result = done.value
            break
        turns += 1
    assert turns == 2
    found = {
        (topic.name, one.partition_index, one.partition_size, one.is_future_key)
        for topic in result.topics
        for one in topic.partitions
    }
    assert found == {(topic, partition, size, False) for topic, partition, size, _ in rows} | {("t1", 1, 7, True)}
