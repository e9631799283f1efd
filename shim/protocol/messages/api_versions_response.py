"""ApiVersionsResponse, versions 0-4. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class ApiVersion(Message):
    __slots__ = ("api_key", "min_version", "max_version")
    FIELDS = (
        ("api_key", "int16", "0+", 0),
        ("min_version", "int16", "0+", 0),
        ("max_version", "int16", "0+", 0),
    )

    def __init__(self, *, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = None


class SupportedFeatureKey(Message):
    __slots__ = ("name", "min_version", "max_version")
    FIELDS = (
        ("name", "string", "3+", ""),
        ("min_version", "int16", "3+", 0),
        ("max_version", "int16", "3+", 0),
    )

    def __init__(self, *, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = None


class FinalizedFeatureKey(Message):
    __slots__ = ("name", "max_version_level", "min_version_level")
    FIELDS = (
        ("name", "string", "3+", ""),
        ("max_version_level", "int16", "3+", 0),
        ("min_version_level", "int16", "3+", 0),
    )

    def __init__(self, *, name: str = "", max_version_level: int = 0, min_version_level: int = 0) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level
        self.unknown_tags = None


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

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = EMPTY,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = EMPTY,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready = zk_migration_ready
        self.unknown_tags = None
