"""ApiVersionsRequest, versions 0-4. Written by transcribe.py: change nothing here."""

from __future__ import annotations

from kafka_shim.protocol.message import Message

TYPE_CHECKING = False


class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version")
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("client_software_name", "string", "3+", "", "", True),
        ("client_software_version", "string", "3+", "", "", True),
    )

    if TYPE_CHECKING:
        client_software_name: str = ""
        client_software_version: str = ""
