"""What an operator forbids beyond Kafka's own rules: policies for new topics and for changes of options.

Source: CreateTopicPolicy, AlterConfigPolicy, and where ReplicationControlManager and ConfigurationControlManager of
Kafka 4.3.1 call them: after all other checks, also with `validate_only`, and before the controller's mutation quota.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from inspect import isasyncgen, isawaitable, isgenerator

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.image import RESOURCE_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class CreateTopicPolicy(Protocol):
        """What `create.topic.policy.class.name` names."""

        def validate(self, request: NewTopic) -> None:
            """Raises PolicyViolation, or another KafkaError, if the topic must not be created."""

    class AlterConfigPolicy(Protocol):
        """What `alter.config.policy.class.name` names."""

        def validate(self, request: ConfigChange) -> None:
            """Raises PolicyViolation, or another KafkaError, if the options must not be changed so."""


logger = logging.getLogger("kafka_shim.policies")


class PolicyViolation(KafkaError):
    """A policy forbids what the client asked for. The client gets POLICY_VIOLATION and the text."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.POLICY_VIOLATION, message)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created (Kafka: CreateTopicPolicy.RequestMetadata). Either the numbers are None, or the
    assignments. `configs` are the options of the request, without defaults."""

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    # partition -> node ids of its replicas
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Options to be changed (Kafka: AlterConfigPolicy.RequestMetadata). `configs` has the new value of each option that
    changes, None for one that is removed. What the old AlterConfigs removes by not naming it is not among them."""

    resource_type: int
    resource_name: str
    # There may be passwords among them, and a log shows a change.
    configs: Mapping[str, str | None] = field(repr=False)


class Policies:
    """The policies of a broker; None where none is configured. Event-loop thread only."""

    __slots__ = ("alter_config", "create_topic")

    def __init__(self, create_topic: CreateTopicPolicy | None, alter_config: AlterConfigPolicy | None) -> None:
        self.create_topic = create_topic
        self.alter_config = alter_config

    def check_new_topic(
        self, name: str, replicas: Sequence[Sequence[int]], configs: Mapping[str, str], *, is_assigned: bool = False
    ) -> None:
        """Raises KafkaError if the policy forbids this topic. `is_assigned`: the client chose the replicas."""
        if self.create_topic is None:
            return
        if is_assigned:
            request = NewTopic(name, None, None, dict(enumerate(replicas)), dict(configs))
        else:
            request = NewTopic(name, len(replicas), len(replicas[0]), None, dict(configs))
        _validate(self.create_topic, request)

    def check_options_of_new_topic(self, name: str, configs: Mapping[str, str]) -> None:
        """Raises KafkaError if the policy forbids these options. As in Kafka it is not asked where there are none."""
        if configs:
            self.check_options(RESOURCE_TOPIC, name, configs)

    def check_options(self, resource_type: int, name: str, configs: Mapping[str, str | None]) -> None:
        """Raises KafkaError if the policy forbids these options."""
        if self.alter_config is not None:
            _validate(self.alter_config, ConfigChange(resource_type, name, dict(configs)))

    def close(self) -> None:
        """Let policies that have `close` release what they hold."""
        for policy in (self.create_topic, self.alter_config):
            close = getattr(policy, "close", None)
            if close is not None:
                try:
                    close()
                except Exception:  # a user's class must not stop the stop
                    logger.exception("%s cannot be closed", type(policy).__qualname__)


def _validate(policy: CreateTopicPolicy | AlterConfigPolicy, request: Any) -> None:
    try:
        _check_done(policy.validate(request))
    except KafkaError:
        raise
    except Exception as error:  # a user's class: its fault is the client's UNKNOWN_SERVER_ERROR, as in Kafka
        logger.exception("%s cannot validate %s", type(policy).__qualname__, request)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def _check_done(answer: object) -> None:
    """A method whose `async` a wrapper hides has not run yet: it would allow everything. Raises TypeError."""
    if isawaitable(answer) or isasyncgen(answer) or isgenerator(answer):
        raise TypeError(f"validate returns a {type(answer).__name__}, which nothing awaits")
