"""Options, loggers, subscriptions to metrics; and the APIs, which do not differ."""

from __future__ import annotations

from kafka_shim.api.broker_loggers import KAFKA_NAMES
from kafka_shim.compat.tests.compat.differences.conftest import option
from kafka_shim.errors import ErrorCode
from kafka_shim.targets import requests as ask
from kafka_shim.wire_client import Connection


def test_the_shim_advertises_kafkas_apis_in_kafkas_versions(each) -> None:
    ours, theirs = each(lambda connection: connection.ranges())
    assert len(theirs) == 75
    assert ours == theirs


def test_documentation_of_options(each) -> None:
    ours, theirs = each(lambda one: option(one, "log.retention.ms").documentation)
    assert ours
    assert theirs
    assert ours != theirs


def test_broker_loggers(each) -> None:
    request = ask.make("DescribeConfigs", resources=[{"resource_type": 8, "resource_name": "1"}])
    ours, theirs = each(lambda one: {entry.name for entry in one.request(request, 4).results[0].configs})
    assert ours - {"root"} - set(KAFKA_NAMES) == {name for name in ours if name.startswith("kafka_shim")}
    assert theirs - ours
    assert {"root", "kafka.server.KafkaApis"} <= ours & theirs


def test_a_class_in_a_change_of_options(each) -> None:
    def text_of(connection: Connection, name: str) -> str:
        change = {"name": "metric.reporters", "config_operation": 0, "value": name}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        told = connection.request(request, 1).responses[0]
        assert told.error_code == ErrorCode.INVALID_REQUEST
        return str(told.error_message)

    ours, theirs = each(lambda connection: text_of(connection, "no.such.Reporter"))
    assert "A class is loaded only if the options that the broker starts with name it" in ours
    assert "Validation of dynamic config update of Set(metric.reporters) failed" in theirs


def test_which_clients_push_metrics(each) -> None:
    def look_ahead(connection: Connection) -> int:
        change = {"name": "match", "config_operation": 0, "value": "client_id=(?!b).*"}
        resource = {"resource_type": 16, "resource_name": "ahead", "configs": [change]}
        request = ask.make("IncrementalAlterConfigs", resources=[resource], validate_only=True)
        return connection.request(request, 1).responses[0].error_code

    assert each(look_ahead) == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
