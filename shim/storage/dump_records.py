"""Records of the internal topics as the JSON that Kafka's JsonConverter classes write."""

from __future__ import annotations

import json
from base64 import b64encode

from kafka_shim.cext.messages import UnsupportedVersionError, WireError, decode_prefix
from kafka_shim.config import is_secret
from kafka_shim.protocol import record_frames
from kafka_shim.protocol.message import Message, has_version
from kafka_shim.protocol.record_frames import ControlType, UnknownRecordError
from kafka_shim.protocol.record_types import METADATA_RECORDS
from kafka_shim.uuids import uuid_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.cext.records import Record
    from kafka_shim.protocol.record_frames import CoordinatorRecords

# The text of a record's key and value; None where the record has none.
Texts = tuple[str | None, str | None]

CONTROL_LABELS = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}
GROUP_METADATA = 2
# Records of the metadata log, and the resource whose options may be secret.
CONFIG, USER_SCRAM_CREDENTIAL = 4, 11
BROKER = 4
REDACTED = "(redacted)"
_BAD = (WireError, UnknownRecordError, UnsupportedVersionError, ValueError)


def plain(record: Record) -> Texts:
    """Keys and values as text, as Kafka's StringDecoder."""
    return _text(record.key), _text(record.value)


def offsets(record: Record) -> Texts:
    """A record of `__consumer_offsets`."""
    return _coordinator(record_frames.GROUP, record)


def transactions(record: Record) -> Texts:
    """A record of `__transaction_state`."""
    return _coordinator(record_frames.TRANSACTION, record)


def shares(record: Record) -> Texts:
    """A record of `__share_group_state`."""
    return _coordinator(record_frames.SHARE, record)


def metadata(record: Record) -> Texts:
    """A record of `__cluster_metadata`, which has no key, without passwords and keys (Kafka: RecordRedactor)."""
    return _metadata(record, shows_secrets=False)


def metadata_with_secrets(record: Record) -> Texts:
    """The same as Kafka's tool prints it: with passwords and keys."""
    return _metadata(record, shows_secrets=True)


def _metadata(record: Record, *, shows_secrets: bool) -> Texts:
    try:
        message, version = record_frames.decode_metadata(record.value or b"")
    except _BAD as err:
        return None, f"Error at {record.offset}, skipping. {err}"
    name = METADATA_RECORDS[message.API_KEY].partition(".")[0].upper()
    data = as_json(message, version)
    if not shows_secrets:
        _redact(message, data)
    return None, _dump({"type": name, "version": version, "data": data})


def _redact(message: Message, data: Any) -> None:
    if message.API_KEY == USER_SCRAM_CREDENTIAL:
        secret: tuple[str, ...] = ("salt", "storedKey", "serverKey")
    elif message.API_KEY == CONFIG and data.get("resourceType") == BROKER and is_secret(str(data.get("name"))):
        secret = ("value",)
    else:
        return
    data.update({field: REDACTED for field in secret if data.get(field) is not None})


def control(record: Record) -> str:
    """What a control record says, with the space before it."""
    kind = int.from_bytes((record.key or b"")[2:4], "big")
    value = record.value or b""
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        name = "COMMIT" if kind == ControlType.COMMIT else "ABORT"
        return f" endTxnMarker: {name} coordinatorEpoch: {int.from_bytes(value[2:6], 'big', signed=True)}"
    if kind in CONTROL_LABELS:
        version = int.from_bytes(value[:2], "big")
        message, _ = decode_prefix(record_frames.record_class(record_frames.CONTROL_RECORDS[kind]), version, value)
        return f" {CONTROL_LABELS[kind]} {_dump(as_json(message, version))}"
    return f" controlType: UNKNOWN({kind})"


def _coordinator(records: CoordinatorRecords, record: Record) -> Texts:
    if record.key is None:
        raise ValueError(f"the record at offset {record.offset} has no key: another decoder is needed")
    try:
        key = records.decode_key(record.key)
        key_text = _dump({"type": str(key.API_KEY), "data": as_json(key, 0)})
        if record.value is None:
            return key_text, "<DELETE>"
        value = records.decode_value(key.API_KEY, record.value)
        version = int.from_bytes(record.value[:2], "big")
        data = as_json(value, version)
    except UnknownRecordError:
        kind = int.from_bytes(record.key[:2], "big")
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    except _BAD as err:
        return f"Error at offset {record.offset}, skipping. {err}", None
    if key.API_KEY == GROUP_METADATA and data.get("protocolType") == "consumer":
        for node, member in zip(data["members"], value.members, strict=True):  # type: ignore[attr-defined]
            _embed(node, "subscription", "consumer_protocol_subscription.ConsumerProtocolSubscription", member)
            _embed(node, "assignment", "consumer_protocol_assignment.ConsumerProtocolAssignment", member)
    return key_text, _dump({"version": str(version), "data": data})


def _embed(node: dict[str, Any], name: str, path: str, member: Message) -> None:
    """Show what the consumer protocol says inside a member's bytes; bytes of another protocol stay as they are."""
    content = bytes(getattr(member, name))
    try:
        version = int.from_bytes(content[:2], "big")
        module, _, class_name = path.partition(".")
        cls = _message_class(module, class_name)
        message, _ = decode_prefix(cls, version, content, 2)
    except (*_BAD, ImportError, AttributeError):
        return
    node[name] = as_json(message, version)


def _message_class(module: str, name: str) -> type[Message]:
    from importlib import import_module

    for package in ("records", "messages"):
        try:
            found: type[Message] = getattr(import_module(f"kafka_shim.protocol.{package}.{module}"), name)
        except ModuleNotFoundError:
            continue
        return found
    raise ImportError(name)


def as_json(message: Message, version: int) -> dict[str, Any]:
    """A message at a version as plain values; tagged fields only where they differ from their default."""
    node = {}
    for name, kind, versions, default, *more in message.FIELDS:
        value = getattr(message, name)
        tagged = len(more) > 3 and has_version(more[3], version)
        if not has_version(versions, version) or (tagged and _is_default(value, default)):
            continue
        node[_camel(name)] = _value(message, kind, value, version)
    return node


def _is_default(value: Any, default: Any) -> bool:
    if default == ():
        return value == [] or (isinstance(value, Message) and value == type(value)())
    return bool(value == default)


def _value(owner: Message, kind: str, value: Any, version: int) -> Any:
    if value is None:
        return None
    if kind.startswith("[]"):
        return [_value(owner, kind[2:], item, version) for item in value]
    if kind in ("bytes", "records"):
        return b64encode(bytes(value)).decode()
    if kind == "uuid":
        return uuid_text(value)
    return as_json(value, version) if isinstance(value, Message) else value


def _camel(name: str) -> str:
    if name.startswith("kraft_"):
        name = "k_raft_" + name.removeprefix("kraft_")
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _dump(node: dict[str, Any]) -> str:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False)
