"""ShareGroupTargetAssignmentMetadataValue, version 0. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ShareGroupTargetAssignmentMetadataValue(Message):
    __slots__ = ("assignment_epoch", "assignment_timestamp")
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("assignment_epoch", "int32", "0+", 0),
        ("assignment_timestamp", "int64", "0+", 0, "", True, 0, "0+"),
    )

    if TYPE_CHECKING:
        assignment_epoch: int = 0
        assignment_timestamp: int = 0
