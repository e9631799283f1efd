"""Every option of Kafka's, known and unknown, altered at every level on both brokers, which are then started again.

The answers agree, what is stored is shown alike, and both brokers start: a stored option never stops a start.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from kafka_shim.compat.tests.admin.compare import Pair
from kafka_shim.compat.tests.admin.test_same_answers import OWN
from kafka_shim.config import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    QUOTA_OPTIONS,
    READ_ONLY,
    TOPIC_OPTIONS,
    UNIMPLEMENTED_SECURITY,
    Option,
)
from kafka_shim.protocol.messages import create_topics_request as create
from kafka_shim.protocol.messages import describe_configs_request as describe
from kafka_shim.protocol.messages import incremental_alter_configs_request as alter
from kafka_shim.targets import Target, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SET, DELETE = 0, 1
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
LEVELS = {
    "topic": (TOPIC, "t", TOPIC_OPTIONS),
    "broker": (BROKER, "1", {**BROKER_OPTIONS, **QUOTA_OPTIONS}),
    "all brokers": (BROKER, "", {**BROKER_OPTIONS, **QUOTA_OPTIONS}),
    "group": (GROUP, "g", GROUP_OPTIONS),
    "client metrics": (METRICS, "m", CLIENT_METRICS_OPTIONS),
    "broker logger": (LOGGER, "1", {}),
}
UNKNOWN = ("invalid", "a.name.of.a.later.version", "log.retention.fortnights")
SAMPLES = {
    **{"INT": "1", "SHORT": "1", "LONG": "1000000", "DOUBLE": "0.5", "BOOLEAN": "true"},
    **{"STRING": "a", "LIST": "a", "CLASS": "a", "PASSWORD": "a"},
}


# The answers may differ: listeners cannot change here at run time, and only a JVM knows whether a class exists.
OTHERWISE = frozenset({"listener.security.protocol.map", "listeners", "metric.reporters"})


def values_of(name: str, option: Option | None) -> list[str]:
    """Mostly one that can be and one that cannot. What is not built is refused here, so only its default is asked."""
    if name in OTHERWISE or name.startswith("kafka.shim."):  # the second are this project's own
        return []
    if option is None:
        return ["2"]
    if name in UNIMPLEMENTED_SECURITY or option.kind == "CLASS":
        return [option.default] if option.default else []
    fine = option.default or SAMPLES[option.kind]
    return [fine] if option.update == READ_ONLY else [fine, "?"]


def change(
    kind: int, name: str, option: str, operation: int, value: str | None
) -> alter.IncrementalAlterConfigsRequest:
    config = alter.AlterableConfig(name=option, config_operation=operation, value=value)
    resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    return alter.IncrementalAlterConfigsRequest(resources=[resource])


def changes_of(level: str) -> list[tuple[str, str]]:
    """(option, value) of all that is asked at one level."""
    _, _, table = LEVELS[level]
    return [(option, value) for option in (*table, *UNKNOWN) for value in values_of(option, table.get(option))]


# A thousand requests, of which Kafka fsyncs every one.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Target, Target]]:
    with make("shim") as shim, make("kafka-native") as kafka:
        topic = create.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        with closing(Pair(shim.bootstrap, kafka.bootstrap)) as pair:
            assert pair.ask(create.CreateTopicsRequest(topics=[topic], timeout_ms=30000), [7]) == []
        yield shim, kafka


def altered(both: tuple[Target, Target], operation: int) -> list[str]:
    """Alter everything at every level; answers where the answers differ."""
    found = []
    with closing(Pair(both[0].bootstrap, both[1].bootstrap)) as pair:
        for level, (kind, name, _) in LEVELS.items():
            for option, value in changes_of(level):
                request = change(kind, name, option, operation, value if operation == SET else None)
                found += [f"{level}: {option}={value}: {line}" for line in pair.ask(request, [1])]
    return found


def described(both: tuple[Target, Target]) -> list[str]:
    """Where what is stored is shown differently."""
    found = []
    with closing(Pair(both[0].bootstrap, both[1].bootstrap)) as pair:
        for level, (kind, name, _) in LEVELS.items():
            if kind == LOGGER:
                continue  # a JVM's loggers are its own
            resource = describe.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            request = describe.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            found += [f"{level}: {line}" for line in pair.ask(request, [4])]
    return [line for line in found if not any(f"[{name}]" in line for name in OWN)]


def test_every_option_is_stored_or_refused_alike_and_both_brokers_start_with_it(both):
    assert "\n".join(altered(both, SET)) == ""
    for target in both:
        target.restart()
    assert "\n".join(described(both)) == ""


def test_every_stored_option_can_be_deleted_again(both):
    assert "\n".join(altered(both, DELETE)) == ""
    for target in both:
        target.restart()
    assert "\n".join(described(both)) == ""
