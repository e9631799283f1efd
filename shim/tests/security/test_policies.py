"""What a Python class forbids through `create.topic.policy.class.name` and `alter.config.policy.class.name`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode
from kafka_shim.plugins import ConfigChange, KafkaError, NewTopic, PolicyViolation
from kafka_shim.protocol.messages.alter_configs_request import AlterableConfig as OldConfig
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsRequest
from kafka_shim.protocol.messages.alter_configs_request import AlterConfigsResource as OldResource
from kafka_shim.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafka_shim.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_shim.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_shim.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_shim.wire_client import Connection, RequestError

SET, DELETE = 0, 1


class Recording:
    """Notes what it is asked, and forbids what has "forbidden" in it."""

    asked: ClassVar[list[Any]] = []
    options: ClassVar[dict[str, str]] = {}
    closed: ClassVar[int] = 0

    def configure(self, options: Mapping[str, str]) -> None:
        type(self).options = dict(options)

    def validate(self, request: NewTopic | ConfigChange) -> None:
        self.asked.append(request)
        if "forbidden" in str(request):
            raise PolicyViolation("not here")
        if "broken" in str(request):
            raise ZeroDivisionError("a bug of the policy")
        if "other" in str(request):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "not so")

    def close(self) -> None:
        type(self).closed += 1


class Topics(Recording):
    asked: ClassVar[list[Any]] = []


class Configs(Recording):
    asked: ClassVar[list[Any]] = []


class Refusing(Recording):
    def validate(self, request: NewTopic | ConfigChange) -> None:
        raise PolicyViolation("nothing")


class CannotStart(Recording):
    def configure(self, options: Mapping[str, str]) -> None:
        raise OSError("no\ntable")


class AwaitedAtItsEnd(Recording):
    async def close(self) -> None:
        pass


class Generating(Recording):
    async def validate(self, request: Any) -> AsyncIterator[None]:
        raise PolicyViolation("nobody hears it")
        yield


class Wrapped(Recording):
    async def later(self) -> None:
        raise PolicyViolation("nobody hears it")

    def validate(self, request: Any) -> Any:
        return self.later()


class Awaited(Recording):
    async def validate(self, request: Any) -> None:
        raise PolicyViolation("nobody hears it")


@pytest.fixture
def client() -> Iterator[Connection]:
    options = {f"{what}_policy_class_name": f"{__name__}.{one.__name__}" for what, one in POLICIES}
    with Broker(**options) as broker, Connection(broker.bootstrap_servers) as connection:
        Topics.asked.clear()
        Configs.asked.clear()
        yield connection


POLICIES = (("create_topic", Topics), ("alter_config", Configs))


def create(client: Connection, *topics: CreatableTopic, validate_only: bool = False) -> list[tuple[int, str | None]]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    return [(one.error_code, one.error_message) for one in client.request(request).topics]


def topic(name: str, partitions: int = 2, replicas: int = 1, **configs: str) -> CreatableTopic:
    given = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=given)


def alter(client: Connection, name: str, *changes: tuple[str, int, str | None], kind: int = 2, only: bool = False):
    configs = [AlterableConfig(name=one, config_operation=what, value=value) for one, what, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    (one,) = client.request(IncrementalAlterConfigsRequest(resources=[resource], validate_only=only)).responses
    return one.error_code, one.error_message


@pytest.mark.option("create.topic.policy.class.name")
@pytest.mark.parametrize("validate_only", [False, True])
def test_each_topic_is_asked_for_and_a_forbidden_one_has_the_policys_text(client: Connection, validate_only: bool):
    answers = create(client, topic("forbidden"), topic("fine", -1, -1, retention_ms="5"), validate_only=validate_only)
    assert sorted(answers) == [(0, None), (ErrorCode.POLICY_VIOLATION, "not here")]
    assert Topics.asked == [
        NewTopic("forbidden", 2, 1, None, {}),
        NewTopic("fine", 1, 1, None, {"retention.ms": "5"}),
    ]
    assert Configs.asked == [ConfigChange(2, "fine", {"retention.ms": "5"})]
    names = {one.name for one in client.request(MetadataRequest(topics=None), 12).topics}
    assert names == (set() if validate_only else {"fine"})


def test_chosen_replicas_are_shown_in_the_place_of_numbers(client: Connection):
    chosen = topic("chosen", -1, -1)
    chosen.assignments = [CreatableReplicaAssignment(partition_index=one, broker_ids=[1]) for one in (0, 1)]
    assert create(client, chosen) == [(0, None)]
    assert Topics.asked == [NewTopic("chosen", None, None, {0: [1], 1: [1]}, {})]


def test_policy_is_asked_after_the_other_checks(client: Connection):
    (answer,) = create(client, topic("forbidden", 0))
    assert answer[0] == ErrorCode.INVALID_PARTITIONS
    (answer,) = create(client, topic("forbidden", retention_ms="x"))
    assert answer[0] == ErrorCode.INVALID_CONFIG
    assert Topics.asked == Configs.asked == []


def test_other_failures_of_a_policy_are_kafkas(client: Connection):
    assert create(client, topic("other")) == [(ErrorCode.INVALID_REQUEST, "not so")]
    assert create(client, topic("broken")) == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)]


def test_failure_of_a_policy_logs_no_values(client: Connection, caplog: pytest.LogCaptureFixture):
    """An option that changes may be a password."""
    answer = alter(client, "broken", ("consumer.session.timeout.ms", SET, "51234"), kind=32)
    assert answer[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "Configs cannot validate ConfigChange(resource_type=32, resource_name='broken')" in caplog.text
    assert "51234" not in caplog.text


def test_topic_on_demand_is_asked_for(client: Connection):
    def told(name: str) -> int:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        return client.request(request, 12).topics[0].error_code

    assert told("forbidden") == told("forbidden") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    told("fine")
    assert told("fine") == 0
    assert [one.topic for one in Topics.asked] == ["forbidden", "forbidden", "fine"]
    client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    assert Topics.asked[-1].topic == Configs.asked[-1].resource_name == "__consumer_offsets"
    assert Configs.asked[-1].configs["cleanup.policy"] == "compact"


def test_coordinator_without_its_topic_is_not_available(client: Connection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Topics, "validate", Refusing.validate)
    (answer,) = client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_name_that_collides_is_not_told(client: Connection):
    create(client, topic("a_b"))
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a.b")], allow_auto_topic_creation=True)
    assert client.request(request, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.option("alter.config.policy.class.name")
@pytest.mark.parametrize("validate_only", [False, True])
def test_options_are_shown_as_they_would_be(client: Connection, validate_only: bool):
    create(client, topic("t", retention_ms="5", segment_ms="7"))
    Configs.asked.clear()
    changes = (("retention.ms", SET, "6"), ("segment.ms", DELETE, None), ("retention.bytes", DELETE, None))
    assert alter(client, "t", *changes, only=validate_only) == (0, None)
    assert Configs.asked == [ConfigChange(2, "t", {"retention.ms": "6", "segment.ms": None})]
    assert alter(client, "forbidden", ("retention.ms", SET, "6"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    forbidden = alter(client, "forbidden", ("consumer.session.timeout.ms", SET, "50000"), kind=32, only=validate_only)
    assert forbidden == (ErrorCode.POLICY_VIOLATION, "not here")
    assert alter(client, "1", ("log.cleaner.threads", SET, "2"), kind=4) == (0, None)
    assert Configs.asked[-1] == ConfigChange(4, "1", {"log.cleaner.threads": "2"})


def test_what_the_old_request_drops_is_not_shown(client: Connection):
    create(client, topic("t", retention_ms="5", segment_ms="7"))
    Configs.asked.clear()
    configs = [OldConfig(name="retention.ms", value="6")]
    resource = OldResource(resource_type=2, resource_name="t", configs=configs)
    (one,) = client.request(AlterConfigsRequest(resources=[resource])).responses
    assert (one.error_code, one.error_message) == (0, None)
    assert Configs.asked == [ConfigChange(2, "t", {"retention.ms": "6"})]


def test_policy_knows_the_options_and_is_closed():
    Recording.closed = 0
    name = f"{__name__}.Recording"
    with Broker(create_topic_policy_class_name=name, num_partitions=3):
        assert Recording.options["num.partitions"] == "3"
        assert Recording.closed == 0
    assert Recording.closed == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("com.example.Policy", "cannot be loaded: .* a Python class"),
        (f"{__name__}.NewTopic", "has no method validate"),
        (f"{__name__}.CannotStart", "cannot be configured: OSError: no table"),
        (f"{__name__}.Awaited", "validate is async, but nothing awaits it"),
        (f"{__name__}.AwaitedAtItsEnd", "close is async, but nothing awaits it"),
        (f"{__name__}.Generating", "validate is async, but nothing awaits it"),
        ("policy_that_fails.Policy", r"cannot be loaded: ZeroDivisionError: division by zero$"),
    ],
)
@pytest.mark.parametrize("option", ["create_topic", "alter_config"])
def test_a_policy_that_cannot_be_used_stops_the_start(
    option: str, name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "policy_that_fails.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=reason):
        Broker(**{f"{option}_policy_class_name": name}).start()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_policy_whose_answer_nothing_awaits_allows_nothing():
    with Broker(create_topic_policy_class_name=f"{__name__}.Wrapped") as broker:
        with pytest.raises(RequestError, match="UNKNOWN_SERVER_ERROR"):
            broker.ensure_topic("t")
        assert broker.topics() == []
