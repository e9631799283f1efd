"""CreateDelegationTokenRequest, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class CreatableRenewers(Message):
    __slots__ = ("principal_type", "principal_name")
    FIELDS = (
        ("principal_type", "string", "0+", ""),
        ("principal_name", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        principal_type: str = ""
        principal_name: str = ""


class CreateDelegationTokenRequest(Message):
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")
    API_KEY = 38
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (
        ("owner_principal_type", "string", "3+", "", "3+"),
        ("owner_principal_name", "string", "3+", "", "3+"),
        ("renewers", "[]CreatableRenewers", "0+", ()),
        ("max_lifetime_ms", "int64", "0+", 0),
    )

    if TYPE_CHECKING:
        owner_principal_type: str | None = ""
        owner_principal_name: str | None = ""
        renewers: list[CreatableRenewers] = EMPTY
        max_lifetime_ms: int = 0
