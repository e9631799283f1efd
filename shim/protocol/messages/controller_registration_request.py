"""ControllerRegistrationRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class Listener(Message):
    __slots__ = ("name", "host", "port", "security_protocol")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("host", "string", "0+", ""),
        ("port", "uint16", "0+", 0),
        ("security_protocol", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        host: str = ""
        port: int = 0
        security_protocol: int = 0


class Feature(Message):
    __slots__ = ("name", "min_supported_version", "max_supported_version")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("min_supported_version", "int16", "0+", 0),
        ("max_supported_version", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        min_supported_version: int = 0
        max_supported_version: int = 0


class ControllerRegistrationRequest(Message):
    __slots__ = ("controller_id", "incarnation_id", "zk_migration_ready", "listeners", "features")
    API_KEY = 70
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("controller_id", "int32", "0+", 0),
        ("incarnation_id", "uuid", "0+", ZERO_UUID),
        ("zk_migration_ready", "bool", "0+", False),
        ("listeners", "[]Listener", "0+", ()),
        ("features", "[]Feature", "0+", ()),
    )

    if TYPE_CHECKING:
        controller_id: int = 0
        incarnation_id: bytes = ZERO_UUID
        zk_migration_ready: bool = False
        listeners: list[Listener] = EMPTY
        features: list[Feature] = EMPTY
