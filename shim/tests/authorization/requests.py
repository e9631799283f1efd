"""What the cases of authorization are made of: names, what Kafka may be asked, and requests."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kafka_shim.protocol import messages

# (API key, version): the request, and what must be asked when all is allowed: operation, resource type, name.
Cases = dict[tuple[int, int], tuple[Callable[[], Any], set[tuple[str, str, str]]]]

CLUSTER = "kafka-cluster"
TOPIC, GROUP, ID = "t", "g", "x"

# What Kafka needs for a request: operation, resource type, name.
READ_GROUP = ("READ", "GROUP", GROUP)
DESCRIBE_GROUP = ("DESCRIBE", "GROUP", GROUP)
DELETE_GROUP = ("DELETE", "GROUP", GROUP)
READ_TOPIC = ("READ", "TOPIC", TOPIC)
WRITE_TOPIC = ("WRITE", "TOPIC", TOPIC)
DESCRIBE_TOPIC = ("DESCRIBE", "TOPIC", TOPIC)
WRITE_ID = ("WRITE", "TRANSACTIONAL_ID", ID)
DESCRIBE_ID = ("DESCRIBE", "TRANSACTIONAL_ID", ID)


def cluster(operation: str) -> tuple[str, str, str]:
    return (operation, "CLUSTER", CLUSTER)


def new(path: str, /, **fields: Any) -> Any:
    """A message or a struct of one: "offset_commit_request.OffsetCommitRequest"."""
    module, _, cls = path.partition(".")
    return getattr(import_module(f"{messages.__name__}.{module}"), cls)(**fields)


def member(message: str, cls: str, **fields: Any) -> Any:
    return new(f"{message}.{cls}", group_id=GROUP, **fields)
