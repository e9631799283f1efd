"""ApiVersionsResponse, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ApiVersion(Message):
    __slots__ = ("api_key", "min_version", "max_version")
    FIELDS = (
        ("api_key", "int16", "0+", 0),
        ("min_version", "int16", "0+", 0),
        ("max_version", "int16", "0+", 0),
    )

    if TYPE_CHECKING:
        api_key: int = 0
        min_version: int = 0
        max_version: int = 0


class SupportedFeatureKey(Message):
    __slots__ = ("name", "min_version", "max_version")
    FIELDS = (
        ("name", "string", "3+", ""),
        ("min_version", "int16", "3+", 0),
        ("max_version", "int16", "3+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        min_version: int = 0
        max_version: int = 0


class FinalizedFeatureKey(Message):
    __slots__ = ("name", "max_version_level", "min_version_level")
    FIELDS = (
        ("name", "string", "3+", ""),
        ("max_version_level", "int16", "3+", 0),
        ("min_version_level", "int16", "3+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        max_version_level: int = 0
        min_version_level: int = 0


class ApiVersionsResponse(Message):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("api_keys", "[]ApiVersion", "0+", ()),
        ("throttle_time_ms", "int32", "1+", 0, "", True),
        ("supported_features", "[]SupportedFeatureKey", "3+", (), "", True, 0, "3+"),
        ("finalized_features_epoch", "int64", "3+", -1, "", True, 1, "3+"),
        ("finalized_features", "[]FinalizedFeatureKey", "3+", (), "", True, 2, "3+"),
        ("zk_migration_ready", "bool", "3+", False, "", True, 3, "3+"),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        api_keys: list[ApiVersion] = EMPTY
        throttle_time_ms: int = 0
        supported_features: list[SupportedFeatureKey] = EMPTY
        finalized_features_epoch: int = -1
        finalized_features: list[FinalizedFeatureKey] = EMPTY
        zk_migration_ready: bool = False
