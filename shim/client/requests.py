"""Builds requests from plain values."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.protocol.headers import request_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.protocol.message import Message

NAMES = {row[0]: key for key, row in API_KEYS.items()}


def make(name: str, **fields: Any) -> Message:
    """Builds a request by Kafka's name. Nested structs are dicts: ``make("Metadata", topics=[{"name": "t"}])``."""
    made = request_class(NAMES[name])
    return struct(sys.modules[made.__module__], made, fields)


def struct(module: Any, made: type[Message], fields: Mapping[str, Any]) -> Message:
    """Builds a message or nested struct of `module` from plain values. Raises TypeError for an unknown field."""
    types = {row[0]: row[1] for row in made.FIELDS}
    return made(**{name: _value(module, types.get(name, ""), value) for name, value in fields.items()})


def _value(module: Any, kind: str, value: Any) -> Any:
    name = kind.removeprefix("[]")
    nested = getattr(module, name, None) if name[:1].isupper() else None
    if nested is None:
        return value
    if isinstance(value, Mapping):
        return struct(module, nested, value)
    if isinstance(value, list):
        return [struct(module, nested, item) if isinstance(item, Mapping) else item for item in value]
    return value
