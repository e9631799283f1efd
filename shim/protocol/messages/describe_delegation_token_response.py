"""DescribeDelegationTokenResponse, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribedDelegationTokenRenewer(Message):
    __slots__ = ("principal_type", "principal_name")
    FIELDS = (
        ("principal_type", "string", "0+", ""),
        ("principal_name", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        principal_type: str = ""
        principal_name: str = ""


class DescribedDelegationToken(Message):
    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )
    FIELDS = (
        ("principal_type", "string", "0+", ""),
        ("principal_name", "string", "0+", ""),
        ("token_requester_principal_type", "string", "3+", ""),
        ("token_requester_principal_name", "string", "3+", ""),
        ("issue_timestamp", "int64", "0+", 0),
        ("expiry_timestamp", "int64", "0+", 0),
        ("max_timestamp", "int64", "0+", 0),
        ("token_id", "string", "0+", ""),
        ("hmac", "bytes", "0+", b""),
        ("renewers", "[]DescribedDelegationTokenRenewer", "0+", ()),
    )

    if TYPE_CHECKING:
        principal_type: str = ""
        principal_name: str = ""
        token_requester_principal_type: str = ""
        token_requester_principal_name: str = ""
        issue_timestamp: int = 0
        expiry_timestamp: int = 0
        max_timestamp: int = 0
        token_id: str = ""
        hmac: bytes = b""
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY


class DescribeDelegationTokenResponse(Message):
    __slots__ = ("error_code", "tokens", "throttle_time_ms")
    API_KEY = 41
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("error_code", "int16", "0+", 0),
        ("tokens", "[]DescribedDelegationToken", "0+", ()),
        ("throttle_time_ms", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        error_code: int = 0
        tokens: list[DescribedDelegationToken] = EMPTY
        throttle_time_ms: int = 0
