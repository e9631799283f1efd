"""KRaftVersionRecord, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class KRaftVersionRecord(Message):
    __slots__ = ("version", "kraft_version")
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("version", "int16", "0+", 0),
        ("kraft_version", "int16", "0+", 0),
    )

    def __init__(self, *, version: int = 0, kraft_version: int = 0) -> None:
        self.version = version
        self.kraft_version = kraft_version
        self.unknown_tags = None
