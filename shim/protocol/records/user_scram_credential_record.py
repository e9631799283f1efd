"""UserScramCredentialRecord, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class UserScramCredentialRecord(Message):
    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("name", "string", "0+", ""),
        ("mechanism", "int8", "0+", 0),
        ("salt", "bytes", "0+", b""),
        ("stored_key", "bytes", "0+", b""),
        ("server_key", "bytes", "0+", b""),
        ("iterations", "int32", "0+", 0),
    )

    if TYPE_CHECKING:
        name: str = ""
        mechanism: int = 0
        salt: bytes = b""
        stored_key: bytes = b""
        server_key: bytes = b""
        iterations: int = 0
