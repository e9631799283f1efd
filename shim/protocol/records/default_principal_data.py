"""DefaultPrincipalData, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


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

    def __init__(self, *, type: str = "", name: str = "", token_authenticated: bool = False) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self.unknown_tags = None
