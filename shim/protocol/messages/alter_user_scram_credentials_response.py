"""AlterUserScramCredentialsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class AlterUserScramCredentialsResult(Message):
    __slots__ = ("user", "error_code", "error_message")
    FIELDS = (
        ("user", "string", "0+", ""),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
    )

    if TYPE_CHECKING:
        user: str = ""
        error_code: int = 0
        error_message: str | None = ""


class AlterUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 51
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("results", "[]AlterUserScramCredentialsResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        results: list[AlterUserScramCredentialsResult] = EMPTY
