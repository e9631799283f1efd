"""UpdateFeaturesResponse, versions 0-2. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class UpdatableFeatureResult(Message):
    __slots__ = ("feature", "error_code", "error_message")
    FIELDS = (
        ("feature", "string", "0+", ""),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        feature: str = ""
        error_code: int = 0
        error_message: str | None = ""


class UpdateFeaturesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("results", "[]UpdatableFeatureResult", "0-1", (), "", True),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""
        results: list[UpdatableFeatureResult] = EMPTY
