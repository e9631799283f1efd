"""DescribeUserScramCredentialsRequest, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, Message


class UserName(Message):
    __slots__ = ("name",)
    FIELDS = (("name", "string", "0+", ""),)

    def __init__(self, *, name: str = "") -> None:
        self.name = name
        self.unknown_tags = None


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("users", "[]UserName", "0+", (), "0+"),)

    def __init__(self, *, users: list[UserName] | None = EMPTY) -> None:
        self.users = [] if users is EMPTY else users
        self.unknown_tags = None
