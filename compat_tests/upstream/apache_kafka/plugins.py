"""Plug-ins of the shim that ask the JVM of the tests: the plug-in classes that tests name are Java, and some read what
their test keeps for them. ``java/PluginServer.java`` is the other end."""

from __future__ import annotations

import base64
import json
import os
import socket

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.security.standard_authorizer import StandardAuthorizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from kafka_shim.plugins import ConfigChange, NewTopic
    from kafka_shim.security.principals import AuthenticationContext
    from kafka_shim.telemetry.receivers import Push

PORT_VARIABLE = "KAFKA_SHIM_TEST_PLUGINS"
TIMEOUT_S = 60
UNAUTHORIZED = "User:Unauthorized"


def ask(question: dict[str, object]) -> Any:
    """Send a line, return the answer. Raises OSError or ValueError when the plug-in raised."""
    with socket.create_connection(("127.0.0.1", int(os.environ[PORT_VARIABLE])), TIMEOUT_S) as connection:
        connection.sendall(json.dumps(question).encode() + b"\n")
        with connection.makefile("rb") as answers:
            return json.loads(answers.readline())


class PrincipalBuilder:
    """The builder that the test's configuration names for the listener."""

    def build(self, context: AuthenticationContext) -> str:
        certificate = context.certificate
        return str(
            ask(
                {
                    "listener": context.listener_name,
                    "protocol": context.security_protocol,
                    "address": context.client_address,
                    "mechanism": context.mechanism,
                    "authorization_id": context.authorization_id,
                    "certificate": None if certificate is None else base64.b64encode(certificate).decode(),
                }
            )
        )


def _judge(option: str, **facts: object) -> None:
    verdict = ask({"option": option, **facts})
    if verdict:
        name, message = verdict
        raise KafkaError(ErrorCode[name], message)


class CreateTopicPolicy:
    """The policy of the test for new topics."""

    def validate(self, request: NewTopic) -> None:
        _judge(
            "create.topic.policy.class.name",
            topic=request.topic,
            partitions=request.num_partitions,
            factor=request.replication_factor,
            assignments=request.replicas_assignments,
            configs=dict(request.configs),
        )


class AlterConfigPolicy:
    """The policy of the test for changes of options."""

    def validate(self, request: ConfigChange) -> None:
        _judge(
            "alter.config.policy.class.name",
            type=request.resource_type,
            name=request.resource_name,
            configs=dict(request.configs),
        )


class TelemetryExporter:
    """Twin of ClientTelemetryTest.TelemetryExporter: is there, so that clients push, and keeps nothing."""

    def configure(self, options: Mapping[str, str]) -> None:
        pass

    def export_metrics(self, push: Push) -> None:
        pass

    def forget_client(self, client_instance_id: str) -> None:
        pass

    def close(self) -> None:
        pass


class MetricsReporters(TelemetryExporter):
    """The reporters that the test's configuration names: they are told the context of the broker's metrics."""

    def context_change(self, labels: Mapping[str, str]) -> None:
        ask({"labels": dict(labels)})


class PlainHandler:
    """The handler of PLAIN that the test's configuration names."""

    def authenticate(self, user: str, password: str) -> bool:
        return bool(ask({"user": user, "password": password}))


class AllowsAllButUnauthorized(StandardAuthorizer):
    """Twin of RequestQuotaTest.KraftTestAuthorizer."""

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> Collection[str]:
        return [] if principal == UNAUTHORIZED else list(names)

    def allowed_on_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        return principal != UNAUTHORIZED


class AllowsAllButUnauthorizedAlter(AllowsAllButUnauthorized):
    """Twin of AlterCredentialsTest.TestStandardAuthorizer, which denies one request: of the requests in its tests only
    AlterUserScramCredentials needs ALTER on the cluster."""

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> Collection[str]:
        if operation == AclOperation.ALTER and resource_type == ResourceType.CLUSTER:
            return super().allowed(principal, host, operation, resource_type, names)
        return list(names)

    def allowed_on_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        return True
