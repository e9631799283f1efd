"""CreateDelegationTokenResponse, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class CreateDelegationTokenResponse(Message):
    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    API_KEY = 38
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("principal_type", "string", "0+", ""),
        ("principal_name", "string", "0+", ""),
        ("token_requester_principal_type", "string", "3+", ""),
        ("token_requester_principal_name", "string", "3+", ""),
        ("issue_timestamp_ms", "int64", "0+", 0),
        ("expiry_timestamp_ms", "int64", "0+", 0),
        ("max_timestamp_ms", "int64", "0+", 0),
        ("token_id", "string", "0+", ""),
        ("hmac", "bytes", "0+", b""),
        ("throttle_time_ms", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        principal_type: str = ""
        principal_name: str = ""
        token_requester_principal_type: str = ""
        token_requester_principal_name: str = ""
        issue_timestamp_ms: int = 0
        expiry_timestamp_ms: int = 0
        max_timestamp_ms: int = 0
        token_id: str = ""
        hmac: bytes = b""
        throttle_time_ms: int = 0
