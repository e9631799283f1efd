"""A large partition of `__consumer_offsets` after a kill: others are served while it is read, and it comes back."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka_shim.errors import ErrorCode
from kafka_shim.java_hash import internal_partition
from kafka_shim.targets import make
from kafka_shim.targets.requests import make as make_request
from kafka_shim.wire_client import Connection

PARTITIONS = 1000
COMMITS = 200  # of all partitions each: 200,000 records, 14 MB
OFFSETS_PARTITIONS = 50
# Of one answer to another group, on a machine that does other work.
BOUND_S = 1.0


def commit(connection: Connection, group: str, offset: int, partitions: int) -> ErrorCode:
    rows = [{"partition_index": number, "committed_offset": offset} for number in range(partitions)]
    topics = [{"name": "wide", "partitions": rows}]
    answer: Any = connection.request(make_request("OffsetCommit", group_id=group, topics=topics), 9)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.mark.alone
def test_a_large_group_is_read_while_the_others_are_served() -> None:
    large = "large"
    small = next(
        name
        for name in (f"small-{number}" for number in range(100))
        if internal_partition(name, OFFSETS_PARTITIONS) != internal_partition(large, OFFSETS_PARTITIONS)
    )
    with make("shim") as target:
        with Connection(target.bootstrap) as connection:
            topics = [{"name": "wide", "num_partitions": PARTITIONS, "replication_factor": 1}]
            connection.request(make_request("CreateTopics", topics=topics, timeout_ms=60_000), 7)
            connection.request(make_request("FindCoordinator", key_type=0, coordinator_keys=[large, small]), 4)
            for number in range(COMMITS):
                assert commit(connection, large, number, PARTITIONS) is ErrorCode.NONE
            assert commit(connection, small, 5, 1) is ErrorCode.NONE
        target.restart(kill=True)
        codes: list[ErrorCode] = []
        slowest_s = 0.0
        asked = [{"group_id": large, "topics": [{"name": "wide", "partition_indexes": [0, PARTITIONS - 1]}]}]
        with Connection(target.bootstrap) as connection:
            until = time.monotonic() + 30
            while not codes or codes[-1] is not ErrorCode.NONE:
                assert time.monotonic() < until, f"not read: {set(codes)}"
                answer: Any = connection.request(make_request("OffsetFetch", groups=asked), 9)
                codes.append(ErrorCode(answer.groups[0].error_code))
                started = time.monotonic()
                assert commit(connection, small, len(codes), 1) is ErrorCode.NONE
                slowest_s = max(slowest_s, time.monotonic() - started)
            assert [part.committed_offset for part in answer.groups[0].topics[0].partitions] == [COMMITS - 1] * 2
    assert set(codes) <= {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE}
    assert slowest_s < BOUND_S
