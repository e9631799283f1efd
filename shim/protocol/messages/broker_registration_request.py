"""BrokerRegistrationRequest, versions 0-4. Written by transcribe.py: change nothing here."""

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


class BrokerRegistrationRequest(Message):
    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )
    API_KEY = 62
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("cluster_id", "string", "0+", ""),
        ("incarnation_id", "uuid", "0+", ZERO_UUID),
        ("listeners", "[]Listener", "0+", ()),
        ("features", "[]Feature", "0+", ()),
        ("rack", "string", "0+", "", "0+"),
        ("is_migrating_zk_broker", "bool", "1+", False),
        ("log_dirs", "[]uuid", "2+", (), "", True),
        ("previous_broker_epoch", "int64", "3+", -1, "", True),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        cluster_id: str = ""
        incarnation_id: bytes = ZERO_UUID
        listeners: list[Listener] = EMPTY
        features: list[Feature] = EMPTY
        rack: str | None = ""
        is_migrating_zk_broker: bool = False
        log_dirs: list[bytes] = EMPTY
        previous_broker_epoch: int = -1
