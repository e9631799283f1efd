"""DescribeUserScramCredentialsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class UserName(Message):
    __slots__ = ("name",)
    FIELDS = (("name", "string", "0+", ""),)

    if TYPE_CHECKING:
        name: str = ""


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (("users", "[]UserName", "0+", (), "0+"),)

    if TYPE_CHECKING:
        users: list[UserName] | None = EMPTY
