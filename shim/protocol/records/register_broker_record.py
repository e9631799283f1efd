"""RegisterBrokerRecord, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, ZERO_UUID, Message

TYPE_CHECKING = False


class BrokerEndpoint(Message):
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


class BrokerFeature(Message):
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


class RegisterBrokerRecord(Message):
    __slots__ = (
        "broker_id",
        "is_migrating_zk_broker",
        "incarnation_id",
        "broker_epoch",
        "end_points",
        "features",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("broker_id", "int32", "0+", 0),
        ("is_migrating_zk_broker", "bool", "2+", False),
        ("incarnation_id", "uuid", "0+", ZERO_UUID),
        ("broker_epoch", "int64", "0+", 0),
        ("end_points", "[]BrokerEndpoint", "0+", ()),
        ("features", "[]BrokerFeature", "0+", ()),
        ("rack", "string", "0+", "", "0+"),
        ("fenced", "bool", "0+", True),
        ("in_controlled_shutdown", "bool", "1+", False),
        ("log_dirs", "[]uuid", "3+", (), "", False, 0, "3+"),
        ("cordoned_log_dirs", "[]uuid", "4+", None, "4+", False, 1, "4+"),
    )

    if TYPE_CHECKING:
        broker_id: int = 0
        is_migrating_zk_broker: bool = False
        incarnation_id: bytes = ZERO_UUID
        broker_epoch: int = 0
        end_points: list[BrokerEndpoint] = EMPTY
        features: list[BrokerFeature] = EMPTY
        rack: str | None = ""
        fenced: bool = True
        in_controlled_shutdown: bool = False
        log_dirs: list[bytes] = EMPTY
        cordoned_log_dirs: list[bytes] | None = None
