"""DescribeDelegationTokenRequest, versions 1-3. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class DescribeDelegationTokenOwner(Message):
    __slots__ = ("principal_type", "principal_name")
    FIELDS = (
        ("principal_type", "string", "0+", ""),
        ("principal_name", "string", "0+", ""),
    )

    if TYPE_CHECKING:
        principal_type: str = ""
        principal_name: str = ""


class DescribeDelegationTokenRequest(Message):
    __slots__ = ("owners",)
    API_KEY = 41
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    FIELDS = (("owners", "[]DescribeDelegationTokenOwner", "0+", (), "0+"),)

    if TYPE_CHECKING:
        owners: list[DescribeDelegationTokenOwner] | None = EMPTY
