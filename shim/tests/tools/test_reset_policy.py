"""Where a consumer without an offset begins, by its `auto.offset.reset`."""

from __future__ import annotations

import time

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.tools.reset_policy import ResetPolicy
from kafka_shim.wire_client import WireClientError

HOUR_MS = 3_600_000


@pytest.fixture
def partitions(broker):
    """t-0 has a record of 1970, one of two hours ago and one of an hour to come; t-1 has none."""
    # The broker's clock does not follow the machine's, which the policy reads.
    broker.create_topic("t", partitions=2, message_timestamp_after_max_ms=2**63 - 1)
    now_ms = time.time_ns() // 1_000_000
    for timestamp_ms in (1, now_ms - 2 * HOUR_MS, now_ms + HOUR_MS):
        broker.produce("t", "value", partition=0, timestamp_ms=timestamp_ms)
    return [("t", 0), ("t", 1)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("earliest", 0),
        ("latest", 3),
        ("by_duration:PT3H", 1),
        ("by_duration:P0DT1H", 2),
        ("by_duration:PT0S", 2),
        # Before 1970: all.
        ("by_duration:P100000D", 0),
    ],
)
def test_each_policy_has_its_offsets(broker, partitions, text, first):
    """A partition without a record of that time begins at its end."""
    with broker.cluster() as cluster:
        assert ResetPolicy.of(text).offsets(cluster, partitions) == {("t", 0): first, ("t", 1): 0}
        assert ResetPolicy.of(text).offsets(cluster, []) == {}


def test_no_policy_is_an_error_that_names_the_partitions(broker, partitions):
    with broker.cluster() as cluster:
        with pytest.raises(WireClientError, match=r"no reset policy for partitions: \[t-0, t-1\]"):
            ResetPolicy.of("none").offsets(cluster, partitions)
        assert ResetPolicy.of("none").offsets(cluster, []) == {}


@pytest.mark.parametrize(
    "text", ["", "Earliest", "by_duration:", "by_duration:-PT1H", "by_duration:1h", "by_durationPT1H"]
)
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(ConfigError, match="Invalid value"):
        ResetPolicy.of(text)
