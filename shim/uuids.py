"""Uuids as Kafka prints them; as Java does: `cext.uuids`. A uuid is 16 bytes; the zero uuid is
`kafka_shim.protocol.message.ZERO_UUID`."""

from __future__ import annotations

from base64 import urlsafe_b64encode


def uuid_text(uuid: bytes) -> str:
    """Returns the uuid as Kafka prints it: 22 characters of URL-safe base64, without padding (Kafka: Uuid.toString)."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()
