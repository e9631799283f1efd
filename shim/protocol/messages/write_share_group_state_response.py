"""WriteShareGroupStateResponse, versions 0-1. Written by shim.protocol.transcribe: change nothing here."""

from __future__ import annotations

from shim.protocol.message import EMPTY, ZERO_UUID, Message


class PartitionResult(Message):
    __slots__ = ("partition", "error_code", "error_message")
    FIELDS = (
        ("partition", "int32", "0+", 0),
        ("error_code", "int16", "0+", 0),
        ("error_message", "string", "0+", None, "0+"),
    )

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class WriteStateResult(Message):
    __slots__ = ("topic_id", "partitions")
    FIELDS = (
        ("topic_id", "uuid", "0+", ZERO_UUID),
        ("partitions", "[]PartitionResult", "0+", ()),
    )

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.unknown_tags = None


class WriteShareGroupStateResponse(Message):
    __slots__ = ("results",)
    API_KEY = 85
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 0
    FIELDS = (("results", "[]WriteStateResult", "0+", ()),)

    def __init__(self, *, results: list[WriteStateResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None
