"""Groups whose target was computed at a time that is still to come: the clock was set back, or was ahead elsewhere."""

from __future__ import annotations

from kafka_shim.embedded import Broker
from kafka_shim.targets.requests import create_topic, make
from kafka_shim.wire_client import Connection, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HOUR_MS = 3_600_000


def consumer(client: Connection, member_id: str, epoch: int = 0, **subscribed: str) -> Any:
    fields: dict[str, Any] = subscribed or {"subscribed_topic_names": ["t"]}
    fields |= {"member_epoch": epoch, "rebalance_timeout_ms": 60_000, "topic_partitions": []}
    return client.request(make("ConsumerGroupHeartbeat", group_id="g", member_id=member_id, **fields), 1)


def sharer(client: Connection, member_id: str) -> Any:
    fields = {"subscribed_topic_names": ["t"]}
    return client.request(make("ShareGroupHeartbeat", group_id="g", member_id=member_id, **fields), 1)


def streams_instance(client: Connection, member_id: str) -> Any:
    fields: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "process_id": member_id}
    fields["topology"] = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]}
    fields |= {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    return client.request(make("StreamsGroupHeartbeat", group_id="g", member_id=member_id, **fields), 0)


def _set_back(
    broker: Broker, client: Connection, join: Callable[[Connection, str], Any], description: Any, version: int
) -> None:
    """Two members join, and between them the clock is set back: the second has its part of the target at once."""
    create_topic(client, "t", 2)
    check(client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4).coordinators[0].error_code)
    check(join(client, "a").error_code)
    broker.clock.advance("10s")
    broker.call(broker.state.clock.set_wall, broker.clock.now_ms() - HOUR_MS)
    check(join(client, "b").error_code)
    (group,) = client.request(description, version).groups
    assert {member.member_id for member in group.members} == {"a", "b"}
    assert group.assignment_epoch == group.group_epoch


def test_a_consumer_group_goes_on_after_the_clock_was_set_back(broker: Broker, client: Connection) -> None:
    _set_back(broker, client, consumer, make("ConsumerGroupDescribe", group_ids=["g"]), 0)


def test_an_expression_is_resolved_after_the_clock_was_set_back(broker: Broker, client: Connection) -> None:
    for topic in ("t", "u"):
        create_topic(client, topic, 1)
    check(client.request(make("FindCoordinator", key_type=0, coordinator_keys=["g"]), 4).coordinators[0].error_code)
    check(consumer(client, "a", subscribed_topic_regex="t.*").error_code)
    broker.clock.advance("10s")
    broker.call(broker.state.clock.set_wall, broker.clock.now_ms() - HOUR_MS)
    epoch = 0
    for _ in range(2):  # the second one is behind the resolution
        joined = consumer(client, "b", epoch, subscribed_topic_regex="u.*")
        check(joined.error_code)
        epoch = joined.member_epoch
        broker.clock.advance("2s")
    (group,) = client.request(make("ConsumerGroupDescribe", group_ids=["g"]), 0).groups
    targets = {member.member_id: member.target_assignment.topic_partitions for member in group.members}
    assert [one.topic_name for one in targets["b"]] == ["u"]


def test_a_streams_group_goes_on_after_the_clock_was_set_back(broker: Broker, client: Connection) -> None:
    name = "streams.initial.rebalance.delay.ms"
    option = {"name": name, "config_operation": 0, "value": "0"}
    resource = {"resource_type": 32, "resource_name": "g", "configs": [option]}
    client.request(make("IncrementalAlterConfigs", resources=[resource]), 1)
    _set_back(broker, client, streams_instance, make("StreamsGroupDescribe", group_ids=["g"]), 0)


def test_a_share_group_goes_on_after_the_clock_was_set_back(broker: Broker, client: Connection) -> None:
    _set_back(broker, client, sharer, make("ShareGroupDescribe", group_ids=["g"]), 1)
