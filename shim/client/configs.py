"""Changing options of topics, brokers and groups."""

from __future__ import annotations

from kafka_shim.client.requests import make
from kafka_shim.wire_client import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_shim.wire_client import Connection

TOPIC = 2
SET, DELETE = 0, 1


def alter_configs(
    connection: Connection,
    kind: int,
    name: str,
    added: Mapping[str, str],
    deleted: Iterable[str] = (),
    *,
    validate_only: bool = False,
) -> None:
    """Set and unset options of one resource (`kind` as ConfigResource.Type has it). Raises RequestError."""
    changes: list[dict[str, object]] = [
        {"name": option, "config_operation": SET, "value": value} for option, value in added.items()
    ]
    changes += [{"name": option, "config_operation": DELETE, "value": None} for option in deleted]
    resources = [{"resource_type": kind, "resource_name": name, "configs": changes}]
    request = make("IncrementalAlterConfigs", resources=resources, validate_only=validate_only)
    (result,) = connection.request(request).responses
    check(result.error_code, result.error_message, name)
