"""AlterUserScramCredentialsRequest, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import EMPTY, Message

TYPE_CHECKING = False


class ScramCredentialDeletion(Message):
    __slots__ = ("name", "mechanism")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("mechanism", "int8", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        mechanism: int = 0


class ScramCredentialUpsertion(Message):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")
    FIELDS = (
        ("name", "string", "0+", ""),
        ("mechanism", "int8", "0+", 0),
        ("iterations", "int32", "0+", 0),
        ("salt", "bytes", "0+", b""),
        ("salted_password", "bytes", "0+", b""),
    )

    if TYPE_CHECKING:
        name: str = ""
        mechanism: int = 0
        iterations: int = 0
        salt: bytes = b""
        salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions")
    API_KEY = 51
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("deletions", "[]ScramCredentialDeletion", "0+", ()),
        ("upsertions", "[]ScramCredentialUpsertion", "0+", ()),
    )

    if TYPE_CHECKING:
        deletions: list[ScramCredentialDeletion] = EMPTY
        upsertions: list[ScramCredentialUpsertion] = EMPTY
