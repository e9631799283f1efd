"""The admin clients of kafka-python and librdkafka get the same from the shim as from Apache Kafka."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from kafka_shim.targets.waiting import wait_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.targets import Target


@pytest.fixture(params=["shim", "kafka"])
def target(request: pytest.FixtureRequest) -> Target:
    """Each broker in turn: what a test says must hold on both."""
    return request.getfixturevalue(request.param)


def outcome(futures):
    """name -> None or the error's name, of what confluent-kafka answers."""
    found = {}
    for name, future in futures.items():
        try:
            future.result(30)
            found[name] = None
        except KafkaException as err:
            found[name] = err.args[0].name()
    return found


def test_confluent_kafka_makes_grows_describes_and_deletes_topics(target):
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    made = admin.create_topics([NewTopic("ck-a", 2, 1), NewTopic("ck-b", 1, 1, config={"retention.ms": "7"})])
    assert outcome(made) == {"ck-a": None, "ck-b": None}
    again = admin.create_topics([NewTopic("ck-a", 2, 1), NewTopic("ck/c", 1, 1), NewTopic("ck-d", 1, 5)])
    assert outcome(again) == {
        "ck-a": "TOPIC_ALREADY_EXISTS",
        "ck/c": "TOPIC_EXCEPTION",
        "ck-d": "INVALID_REPLICATION_FACTOR",
    }
    assert outcome(admin.create_partitions([NewPartitions("ck-a", 4)])) == {"ck-a": None}
    assert outcome(admin.create_partitions([NewPartitions("ck-a", 4)])) == {"ck-a": "INVALID_PARTITIONS"}
    resource = ConfigResource(ResourceType.TOPIC, "ck-b")
    entries = admin.describe_configs([resource])[resource].result(30)
    assert entries["retention.ms"].value == "7"
    assert len(entries) == 33
    change = ConfigEntry("retention.ms", "8", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "ck-b", incremental_configs=[change])
    assert list(outcome(admin.incremental_alter_configs([resource])).values()) == [None]
    assert outcome(admin.delete_topics(["ck-a", "ck-b"], operation_timeout=30)) == {"ck-a": None, "ck-b": None}
    assert outcome(admin.delete_topics(["ck-z"])) == {"ck-z": "UNKNOWN_TOPIC_OR_PART"}


def test_kafka_python_makes_grows_describes_and_deletes_topics(target):
    from kafka import KafkaAdminClient
    from kafka.admin import ConfigResource as Resource
    from kafka.admin import ConfigResourceType
    from kafka.errors import TopicAlreadyExistsError

    admin = KafkaAdminClient(bootstrap_servers=target.bootstrap)
    try:
        admin.create_topics({"kp-a": {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "7"}}})
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics(["kp-a"])
        admin.create_partitions({"kp-a": 3})
        # Kafka answers before its broker has seen the controller's record.
        wait_until(lambda: len(admin.describe_topics(["kp-a"])[0]["partitions"]) == 3, "three partitions")
        described = admin.describe_configs([Resource(ConfigResourceType.TOPIC, "kp-a")])
        assert "7" in repr(described)
        assert "kp-a" in admin.list_topics()
        admin.delete_topics(["kp-a"])
    finally:
        admin.close()
