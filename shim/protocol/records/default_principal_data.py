"""DefaultPrincipalData, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class DefaultPrincipalData(Message):
    __slots__ = ("type", "name", "token_authenticated")
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("type", "string", "0+", ""),
        ("name", "string", "0+", ""),
        ("token_authenticated", "bool", "0+", False),
    )

    if TYPE_CHECKING:
        type: str = ""
        name: str = ""
        token_authenticated: bool = False
