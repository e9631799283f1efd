"""DescribeUserScramCredentialsResponse, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class CredentialInfo(Message):
    __slots__ = ("mechanism", "iterations")
    FIELDS = (
        ("mechanism", "int8", "0+", 0),
        ("iterations", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        mechanism: int = 0
        iterations: int = 0


class DescribeUserScramCredentialsResult(Message):
    __slots__ = ("user", "error_code", "error_message", "credential_infos")
    FIELDS = (
        ("user", "string", "0+", ""),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("credential_infos", "[]CredentialInfo", "0+", ()),
    )

    if TYPE_CHECKING:
        user: str = ""
        error_code: int = 0
        error_message: str | None = ""
        credential_infos: list[CredentialInfo] = EMPTY


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("throttle_time_ms", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", "", "0+"),
        ("results", "[]DescribeUserScramCredentialsResult", "0+", ()),
    )

    if TYPE_CHECKING:
        throttle_time_ms: int = 0
        error_code: int = 0
        error_message: str | None = ""
        results: list[DescribeUserScramCredentialsResult] = EMPTY
