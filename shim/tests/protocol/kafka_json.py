"""Messages to and from the JSON of Kafka's JsonConverter classes."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

from kafka_shim.protocol.message import Message
from kafka_shim.protocol.transcribe import read_definitions, snake
from kafka_shim.targets.kafka_jars import kafka_libs
from kafka_shim.tests.protocol.values import in_range, struct_class

BINARY = {"bytes", "records"}


@cache
def json_names() -> dict[str, str]:
    """Our field names -> Kafka's JSON names."""
    found: dict[str, str] = {}

    def visit(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            name = field["name"]
            # ``KRaft...`` becomes ``kRaft...``, as Kafka's generator has it.
            camel = name[0].lower() + name[1:]
            assert found.setdefault(snake(name), camel) == camel
            visit(field.get("fields", []))

    for _, definition in read_definitions(kafka_libs()):
        visit(definition["fields"])
        for struct in definition.get("commonStructs", ()):
            visit(struct["fields"])
    return found


def to_json(message: Message, version: int) -> str:
    return json.dumps(_node(message, version))


def _node(message: Message, version: int) -> dict[str, Any]:
    return {
        json_names()[row[0]]: _value(row[1], getattr(message, row[0]), version)
        for row in message.FIELDS
        if in_range(row[2], version)
    }


def _value(kind: str, value: Any, version: int) -> Any:
    if value is None:
        return None
    if kind.startswith("[]"):
        return [_value(kind[2:], item, version) for item in value]
    if kind in BINARY:
        return base64.b64encode(bytes(value)).decode()
    if kind == "uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return _node(value, version) if isinstance(value, Message) else value


def from_json(cls: type[Message], text: str) -> Message:
    return _message(cls, json.loads(text))


def _message(cls: type[Message], node: dict[str, Any]) -> Message:
    values = {}
    for row in cls.FIELDS:
        name = json_names()[row[0]]
        if name in node:
            values[row[0]] = _read(cls, row[1], node[name])
    return cls(**values)


def _read(cls: type[Message], kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.startswith("[]"):
        return [_read(cls, kind[2:], item) for item in value]
    if kind in BINARY:
        return base64.b64decode(value)
    if kind == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    struct = struct_class(cls, kind)
    return _message(struct, value) if struct else value
