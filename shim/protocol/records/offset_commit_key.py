"""OffsetCommitKey, version 0. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import Message


class OffsetCommitKey(Message):
    __slots__ = ("group", "topic", "partition")
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FIELDS = (
        ("group", "string", "0", ""),
        ("topic", "string", "0", ""),
        ("partition", "int32", "0", 0),
    )

    def __init__(self, *, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.unknown_tags = None
