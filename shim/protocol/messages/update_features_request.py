"""UpdateFeaturesRequest, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class FeatureUpdateKey(Message):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")
    FIELDS = (
        ("feature", "string", "0+", ""),
        ("max_version_level", "int16", "0+", 0),
        ("allow_downgrade", "bool", "0", False),
        ("upgrade_type", "int8", "1+", 1),
    )

    if TYPE_CHECKING:
        feature: str = ""
        max_version_level: int = 0
        allow_downgrade: bool = False
        upgrade_type: int = 1


class UpdateFeaturesRequest(Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only")
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("timeout_ms", "int32", "0+", 60000),
        ("feature_updates", "[]FeatureUpdateKey", "0+", ()),
        ("validate_only", "bool", "1+", False),
    )

    if TYPE_CHECKING:
        timeout_ms: int = 60000
        feature_updates: list[FeatureUpdateKey] = EMPTY
        validate_only: bool = False
