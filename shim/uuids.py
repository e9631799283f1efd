"""Text forms of uuids. A uuid is 16 bytes; the zero uuid is `kafka_shim.protocol.message.ZERO_UUID`."""

from __future__ import annotations

from base64 import urlsafe_b64encode


def uuid_text(uuid: bytes) -> str:
    """Returns the uuid as Kafka prints it: 22 characters of URL-safe base64, without padding (Kafka: Uuid.toString)."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def java_uuid_text(uuid: bytes) -> str:
    """Returns the uuid as `java.util.UUID` prints it: hexadecimal digits with four dashes."""
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
